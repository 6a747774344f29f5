"""Predictions beside their answers, what charts are drawn from, stored answers, the handout."""

import msgspec
import numpy as np
import pytest

from lama_core import metrics
from lama_core.lessons.charts import (
    CHARTS,
    OF_SERIES,
    chart_table,
)
from lama_core.lessons.handout import handout
from lama_core.lessons.lesson import Ask, Explain, Lesson, Predict, ShowRun, Text
from lama_core.lessons.step_results import (
    StepResult,
    first_to_predict,
    judge,
    judged_predictions,
    missing_row_note,
)
from lama_core.lessons.stored_answers import find_stored
from lama_core.metrics.correlates import Mentions
from lama_core.runs.find import list_runs
from lama_core.runs.info import Run
from lama_core.runs.series import find_series

RANGES = Predict(question="?", between=(20, 40), row="a")
NASTY = "<script>alert(1)</script>"


def bundled(model: str, prompts: str) -> Run:
    (info,) = (
        one
        for one in list_runs(kinds=("cloze", "contrast", "statements"))
        if one.bundled and (one.model, one.prompts) == (model, prompts)
    )
    return Run(info)


@pytest.fixture(scope="module")
def plain() -> Run:
    return bundled("minilm-mlm", "manual")


@pytest.mark.parametrize(
    ("share", "answer"),
    [
        (0.1999, "less than 20\u00a0% (20.0\u00a0%)"),
        (0.2, "20 to 40\u00a0% (20.0\u00a0%)"),
        (0.4, "40\u00a0% or more (40.0\u00a0%)"),
    ],
)
def test_a_number_lies_in_the_range_whose_lower_end_it_reaches(share: float, answer: str) -> None:
    shown = StepResult(values={("b", "m"): 0.9, ("a", "m"): share})
    found = judge(RANGES, answer.split(" (")[0], shown)
    assert found.answer == answer and found.right


def test_a_number_that_is_an_end_lies_above_it_whatever_its_digits() -> None:
    for n in range(1, 100):  # 100 * 0.29 is less than 29
        step = Predict(question="?", between=(n,), row="a")
        found = judge(step, "", StepResult(values={("a", "m"): n / 100}))
        assert found.answer.startswith(f"{n}\u00a0% or more"), n


def test_of_rows_with_as_much_each_is_right() -> None:
    step = Predict(question="?", choices=("a", "b", "c"))
    shown = StepResult(values={("a", "m"): 0.25, ("b", "m"): 0.5, ("c", "m"): 0.5})
    assert [judge(step, row, shown).right for row in "abc"] == [False, True, True]
    assert judge(step, "a", shown).answer == "b (50.0\u00a0%)"


def test_a_row_is_right_if_no_other_of_the_choices_has_more() -> None:
    step = Predict(question="?", choices=("a", "b"), model="m")
    shown = StepResult(
        values={("a", "n"): 1.0, ("a", "m"): 0.25, ("b", "m"): 0.5, ("c", "m"): 0.75}
    )
    assert judge(step, "b", shown).answer == "b (50.0\u00a0%)"
    assert judge(step, "b", shown).right and not judge(step, "a", shown).right
    assert judge(step, "b", StepResult(values={("b", "m"): 0.5})).answer == ""


def test_a_word_is_right_whatever_its_case_and_of_the_row_and_model_that_are_meant() -> None:
    shown = StepResult(
        firsts={("x ___", "m"): "paris", ("y ___", "m"): "rome", ("y ___", "n"): "oslo"}
    )
    assert judge(Predict(question="?"), " Paris ", shown).right
    assert judge(Predict(question="?", row="y ___"), "Rome", shown).right
    assert judge(Predict(question="?", row="y ___", model="n"), "Oslo", shown).right
    assert judge(Predict(question="?", model="absent"), "Oslo", shown).answer == ""


def test_nothing_is_right_before_its_answer_was_shown_unless_it_is_written() -> None:
    assert judge(Predict(question="?"), "", None).right is False
    assert judge(Predict(question="?", choices=("a", "b"), answer="b"), "b", None).right


def lesson_of(*steps: Text | Predict | Ask | Explain | ShowRun) -> Lesson:
    return Lesson(
        id="l", own=True, title=NASTY, minutes=5, question=NASTY, sources=(NASTY,), steps=steps
    )


LESSON = lesson_of(
    Text(title=NASTY, text=NASTY),
    Predict(question=NASTY, choices=(NASTY, "b"), text="t"),
    Ask(query="A ___."),
    Explain(text="e", source=NASTY),
    Predict(question="second?", answer="x"),
)


def test_a_question_without_a_prediction_stands_before_what_follows() -> None:
    assert first_to_predict(LESSON, {}, 2) is None
    assert first_to_predict(LESSON, {}, 3) == 2
    assert first_to_predict(LESSON, {2: "b"}, 5) is None
    assert first_to_predict(LESSON, {2: "b"}, 6) == 5
    judged = judged_predictions(LESSON, {2: "b"}, {})
    assert [(one.question, one.predicted) for one in judged] == [(NASTY, "b"), ("second?", "")]


def test_the_handout_shows_what_was_shown_and_escapes_it_all() -> None:
    shown = StepResult(
        title=NASTY, heads=(NASTY, "model"), rows=((NASTY, "minilm"),), notes=(NASTY,),
        shares=(0.25,), firsts={("", NASTY): NASTY},
    )  # fmt: skip
    made = handout(LESSON, {2: NASTY, 5: f"y{NASTY}"}, {3: shown})
    assert "<script" not in made and made.count("&lt;script&gt;") >= 14
    assert 'style="width:25.0%"' in made
    assert made.count("<td>yes</td>") == made.count("<td>no</td>") == 1
    assert "http" not in made and "src=" not in made  # nothing is fetched to read it
    assert "This step was not shown before printing" in handout(LESSON, {}, {})


def test_a_stored_answer_is_that_of_the_fact_asked_in_these_words(plain: Run) -> None:
    rows = np.flatnonzero((plain.facts["query"] == "The capital of Egypt is [MASK].").to_numpy())
    stored = find_stored("The capital of  Egypt is ___.", [plain])
    assert stored is not None and stored.run == plain.info.id
    best = stored.found.predictions
    words = tuple(one.token for one in best)
    assert words == tuple(plain.top.words[rows[0]][:5]) and words[0] == "cairo"
    assert best[0].log_prob == pytest.approx(float(plain.facts["first_log_prob"].iloc[rows[0]]))
    assert find_stored("Nobody asked ___ so.", [plain]) is None
    (gold,) = stored.judged(" cairo").golds
    assert (gold.word, gold.rank) == ("Cairo", 1) == (stored.golds[0].word, stored.golds[0].rank)
    assert gold.log_prob == pytest.approx(best[0].log_prob, abs=1e-4)
    (listed,) = stored.judged(words[1]).golds
    assert (listed.word, listed.rank) == (words[1], 2)
    assert stored.judged("Lima").golds == stored.judged(None).golds == ()


def test_mentions_are_counted_in_rows_that_leave_nothing_out(
    plain: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = ShowRun(figure="mentions", relations=("P36",))
    facts = plain.facts[(plain.facts["relation"] == "P36") & plain.facts["excluded"].isna()]
    right = facts.set_index("object")["rank_filtered"] == 1
    none, few, ten, many, most, *_ = map(str, right.index)
    counts = {none: 0, few: 9, ten: 10, many: 999, most: 1000}

    made_up = Mentions("made up", lambda name: counts.get(name, 50))
    monkeypatch.setattr("lama_core.views.mentions.mentions_of", lambda _: made_up)
    table = chart_table([plain], step).set_index("row")
    assert table["n"].to_dict() == {
        "0 to 9 times": 2, "10 to 99 times": len(facts) - 4, "100 to 999 times": 1,
        "1,000 to 9,999 times": 1,
    }  # fmt: skip
    assert table.loc["0 to 9 times", "value"] == right[[none, few]].mean()
    rest = right.drop([none, few, many, most])
    assert table.loc["10 to 99 times", "value"] == rest.mean()
    assert (table["low"] <= table["value"]).all() and (table["value"] <= table["high"]).all()


def test_a_row_that_is_no_line_of_the_chart_is_named_with_the_nearest() -> None:
    shown = StepResult(values={("P36 capital", "m"): 0.5, ("P37 official language", "m"): 0.25})
    for step in (
        Predict(question="?", between=(20,), row="P36 capitl"),
        Predict(question="?", choices=("P37 official language", "P36 capitl")),
    ):
        assert missing_row_note(step, shown) == (
            "The answer can't be shown: this chart has no row 'P36 capitl' "
            "(did you mean 'P36 capital'?)."
        )
        assert missing_row_note(step, None) == missing_row_note(step, StepResult()) == ""
    assert missing_row_note(Predict(question="?", between=(20,), row="P36 capital"), shown) == ""
    assert missing_row_note(Predict(question="?", between=(20,)), shown) == ""
    assert missing_row_note(Predict(question="?", choices=("P36", "P37")), shown) == (
        "The answer can't be shown: this chart has no row 'P36' (one is 'P36 capital')."
    )


def test_a_chart_says_the_same_as_the_score_table(plain: Run) -> None:
    step = ShowRun(figure="by relation", relations=("P36", "P140"), k=10)
    table = chart_table([plain], step)
    score = metrics.score_table([plain], k=10, relations=("P36", "P140"))
    assert table["value"].tolist() == score["p_at_k"].tolist()
    assert table["row"].tolist() == ["P36 capital", "P140 religion"]
    assert table["freq"].isna().all()  # the baseline is P@1's
    one = chart_table([plain], msgspec.structs.replace(step, k=1))
    assert (
        one["freq"].tolist()
        == metrics.score_table([plain], relations=("P36", "P140"))["freq"].tolist()
    )


def test_altered_queries_are_means_over_relations() -> None:
    run = bundled("minilm-mlm", "negated")
    table = chart_table(
        [run], ShowRun(figure="altered", prompts="negated", relations=("P36", "P30"))
    )
    found = metrics.contrast(run)
    found = found[found["relation"].isin(["P36", "P30"])]
    assert table["row"].tolist() == ["the same first answer", "P@1, asked plainly", "P@1, negated"]
    assert table["value"].tolist() == pytest.approx(
        [found["overlap"].sum() / 2, found["plain"].sum() / 2, found["altered"].sum() / 2]
    )
    assert (table["low"] < table["value"]).all() and (table["value"] < table["high"]).all()


@pytest.mark.parametrize("figure", CHARTS)
def test_every_figure_has_shares_of_runs_that_come_with_the_project(figure: str) -> None:
    prompts = {"altered": "misprimed", "wordings": "paraphrases"}.get(figure, "manual")
    if figure == "analogies":
        runs = [Run(info) for info in list_runs(kinds=("analogy",)) if info.model == "minilm-mlm"]
    else:
        runs = [bundled("minilm-mlm", prompts)]
    if figure in OF_SERIES:
        series = next(one for one in find_series(list_runs()) if one.name == "minilm-mlm")
        runs = [Run(info) for info in series.runs]
    if figure == "ways":
        runs.append(bundled("minilm-mlm", "statements template 0"))
    table = chart_table(runs, ShowRun(figure=figure, prompts=prompts))  # type: ignore[arg-type]
    assert len(table) and table["value"].between(0, 1).all() and (table["n"] >= 0).all()
    assert not table.duplicated(["run", "row"]).any()
    assert chart_table([], ShowRun(figure="by relation")).empty


def test_a_step_can_show_any_view_that_has_a_chart(plain: Run) -> None:
    runs = [plain, bundled("smollm2-135m", "manual")]
    step = ShowRun(figure="known-by", relations=("P36",), options={"by": "source"})
    table = chart_table(runs, step)
    assert table["value"].sum() == pytest.approx(1.0) and len(table) == 4
    for wrong in ({"figure": "known"}, {"figure": "known-by", "options": {"bye": "source"}}):
        with pytest.raises(ValueError, match="did you mean"):
            ShowRun(**wrong)
