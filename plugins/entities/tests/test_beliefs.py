"""Do beliefs agree: each constraint, counted by hand for the small world's beliefs."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from small_world import FACTS, TEMPLATES, Believer, crawl_world, write_world

from lama_core.datasets import load_dataset
from lama_core.errors import UserError
from lama_core.lessons.charts import chart_figure, chart_table
from lama_core.lessons.lesson import Predict, ShowRun, list_lessons
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.plan import plan
from lama_core.rounding import percent
from lama_core.runs.execute import execute
from lama_core.runs.find import load_run
from lama_core.testing import check_view
from lama_entities.beliefs import Belief, Beliefs, BeliefsRequest, beliefs, beliefs_of
from lama_entities.types import relation_types
from pages.ui.lessons.step_view import screen_of

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_world(tmp_path)


def counts(shown: Any) -> dict[str, tuple[int, int]]:
    return {row["constraint"]: (row["kept"], row["n"]) for row in shown.frame.to_dict("records")}


def broken(shown: Any, constraint: str) -> list[tuple[str, str]]:
    (info,) = shown.infos
    found = [one for one in shown.found.checks[info.id] if not one.kept]
    return [(one.belief.sentence, one.against) for one in found if one.constraint == constraint]


def test_each_constraint_of_a_crawl_is_counted(data: Path) -> None:
    run = crawl_world(data, Believer(), depth=4)
    shown = beliefs.answer(BeliefsRequest((run.info.id,)))
    assert counts(shown) == {
        # The four capitals and the three of "capital of"; broken is (Norway, Oslo).
        "inverse": (4 + 3 - 1, 4 + 3),
        # Each of the five borders has an answer; broken is (Norway, France).
        "symmetric": (5 - 1, 5),
        "another thing": (5, 5),
        # 4 capitals (Lyon is only the second answer) and 3 "capital of"; broken are those of Oslo.
        "one value": (7 - 2, 7),
        "type": (16, 16),
        # The same; broken are Sweden's and the ones of Paris and Oslo in both directions.
        "country": (7 - 4, 7),
    }
    mean = percent((6 / 7 + 4 / 5 + 1 + 5 / 7 + 1 + 3 / 7) / 6)
    assert shown.conclusion.endswith(f"6 constraints: {shown.names[run.info.id]} {mean} %")
    assert broken(shown, "inverse") == [
        ("The capital of Norway is Oslo .", "Oslo is the capital of Sweden .")
    ]
    assert broken(shown, "symmetric") == [
        (
            "Norway shares a border with France .",
            "Norway isn't among the answers to “France shares a border with ___ .”: Italy.",
        )
    ]
    assert broken(shown, "one value") == [
        ("The capital of Norway is Oslo .", "The capital of Sweden is Oslo ."),
        ("The capital of Sweden is Oslo .", "The capital of Norway is Oslo ."),
    ]
    assert set(broken(shown, "country")) == {
        ("The capital of Sweden is Oslo .", "Oslo is located in Norway ."),
        ("Oslo is the capital of Sweden .", "Oslo is located in Norway ."),
        ("The capital of France is Paris .", "Paris is located in Italy ."),
        ("Paris is the capital of France .", "Paris is located in Italy ."),
    }


def test_an_answer_that_is_the_subject_counts_apart_whatever_its_case(data: Path) -> None:
    model = Believer(changed={("Norway", "P47"): {"norway": 0.9, "Sweden": 0.6}})
    shown = beliefs.answer(BeliefsRequest((crawl_world(data, model, depth=4).info.id,)))
    found = counts(shown)  # two borders of Norway, one of Sweden
    assert (found["another thing"], found["symmetric"]) == ((2, 3), (2, 2))
    assert broken(shown, "another thing") == [
        ("Norway shares a border with Norway .", "The answer is the subject itself.")
    ]


@pytest.mark.parametrize(
    ("relation", "subject", "answer", "kept"),
    [
        ("P47", "the Bahamas", "bahamas", {"another thing": False}),
        ("P463", "Norway", "norway", {"another thing": False}),
        ("HasProperty", "a port", "port", {}),
        ("P17", "Kathmandu", "nepal", {"type": True}),
        ("P20", "Max Born", "music", {"type": False}),
        ("P101", "Max Born", "music", {}),  # a thing that may be a field
        ("P31", "Oder", "german", {}),  # everything is a thing
        ("P37", "Norway", "unheard-of", {}),
    ],
)
def test_what_an_answer_alone_keeps(
    relation: str, subject: str, answer: str, kept: dict[str, bool]
) -> None:
    one = Belief(relation, subject, answer, 0.5, f"{subject}: [MASK]")
    answers = {one.asked: {one.answer[0]: one.object}}
    starter = load_dataset("starter")
    asked = {one.asked: [one]}, answers, {one.asked: 1}
    found = Beliefs(*asked, frozenset(answers[one.asked]), lambda *_: "", starter)
    assert {check.constraint: check.kept for check in found.checks()} == kept


def test_only_a_subject_that_can_be_an_answer_can_keep_the_other_direction() -> None:
    run = load_run("starter-minilm_mlm-manual")
    back = [one for one in beliefs_of(run).checks() if one.constraint in ("inverse", "symmetric")]
    # Ranked words are single tokens: "Costa Rica" can't be among the answers about Panama.
    assert not [one for one in back if " " in one.belief.asked[0]]
    assert {"Panama", "Norway"} <= {one.belief.subject for one in back}


def test_a_sentence_of_two_relations_is_a_belief_of_one_and_has_no_type(tmp_path: Path) -> None:
    more = {"P30": ("continent", TEMPLATES["P17"][1])}
    model = Believer()
    path = write_world(tmp_path, FACTS | {"P30": (("Oslo", "Norway"),)}, more)
    request = ProbeRequest(str(path), ("believer",), candidates="full")
    (spec,) = plan(request, load=lambda *_, **__: model)
    run = execute(spec, load=lambda *_, **__: model)
    assert {relation for _, relation in beliefs_of(run).by_query} == {"P36", "P1376", "P17", "P47"}
    found = counts(beliefs.answer(BeliefsRequest((run.info.id,))))
    assert (found["type"], found["country"]) == ((3 + 3 + 4, 10), (2 + 1, 6))


def test_a_run_has_first_answers_and_lists_of_ten(data: Path) -> None:
    model = Believer()
    request = ProbeRequest(str(data), ("believer",), candidates="full")
    (spec,) = plan(request, load=lambda *_, **__: model)
    run = execute(spec, load=lambda *_, **__: model)
    shown = check_view(beliefs, runs=(run.info.id,))
    assert counts(shown) == {
        "inverse": (4, 5),  # the capital of Sweden isn't asked
        "symmetric": (4, 4),  # all eight words are among the ten best
        "another thing": (4, 4),
        "one value": (6, 6),  # of capital and capital of; a country is asked for once
        "type": (3 + 3 + 4 + 4, 14),
        "country": (2 + 1, 6),
    }


def test_only_chosen_relations_and_probable_beliefs_are_counted(data: Path) -> None:
    run = crawl_world(data, Believer(), depth=4)
    only = beliefs.answer(BeliefsRequest((run.info.id,), relations=("P36",)))
    assert counts(only)["inverse"] == (3, 4) and counts(only)["country"] == (2, 4)
    sure = beliefs.answer(BeliefsRequest((run.info.id,), above=0.75))
    assert counts(sure)["inverse"] == (4, 4)  # France and Italy, in both directions


def test_models_with_other_beliefs_are_no_ranking_and_names_are_the_datas(data: Path) -> None:
    lower = Believer("lower", changed={("Norway", "P36"): {"oslo": 0.9}, ("Rome", "P1376"): {}})
    runs = [crawl_world(data, model, depth=4).info.id for model in (Believer(), lower)]
    shown = beliefs.answer(BeliefsRequest(tuple(runs)))
    n = shown.frame["n"]
    assert (n.min(), n.max()) == (5, 16)
    assert shown.conclusion.startswith(
        "Not a ranking, as each model's own beliefs are counted (5 to 16 for a constraint)."
    )
    found = {one.belief.sentence for one in shown.found.checks[runs[1]]}
    assert "The capital of Norway is Oslo ." in found


def test_runs_without_such_beliefs_say_so(data: Path) -> None:
    run = crawl_world(data, Believer(), depth=1)
    with pytest.raises(UserError, match="No constraint can be counted: choose runs of relations"):
        beliefs.answer(BeliefsRequest((run.info.id,), above=1))


def test_the_lesson_is_listed_after_the_projects_and_its_charts_have_the_rows() -> None:
    listing = list_lessons()
    lesson = listing.lessons[-1]
    assert (lesson.id, listing.problems) == ("11-beliefs", ())
    runs = [load_run(f"starter-{model}-manual") for model in ("minilm_mlm", "smollm2_135m")]
    for before, step in pairwise(lesson.steps):
        if isinstance(step, ShowRun) and isinstance(before, Predict):
            table = chart_table(runs, step)
            assert before.row in set(table["row"])
            models = {run.info.id: run.info.model for run in runs}
            drawn = table.assign(model=table["run"].map(models))
            assert chart_figure(step, drawn, models).caption.endswith("beliefs per bar")
            labels = {relation_types()[name].label for name in step.relations}
            assert before.row != "symmetric" or labels == {"shares border with"}
            page, params = screen_of(step, [run.info for run in runs])
            assert (page, params["chart"], params["relations"]) == (
                "results",
                beliefs.view.title,
                step.relations,
            )
