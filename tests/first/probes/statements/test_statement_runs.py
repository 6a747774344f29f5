"""Runs of statements: ranks, margins and probabilities by hand; the same bytes whatever dies."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from every_kind import plan_runs
from written_statements import UNKNOWN, StatementTable, write_bear

from lama_core.candidates.columns import NOT_A_CANDIDATE
from lama_core.datasets import load_dataset
from lama_core.errors import UserError
from lama_core.metrics import score_table
from lama_core.models.protocols import Statement
from lama_core.probes.statements.request import StatementsRequest
from lama_core.probes.statements.spec import NOT_WRITTEN, StatementSpec
from lama_core.runs.execute import execute
from lama_core.runs.info import Run
from lama_core.scoring import answer_spaces
from lama_core.scoring.preparation import NoFactCounts
from lama_core.scoring.queries import DUPLICATE, NO_FIT
from lama_core.scoring.statement_scores import (
    MAX_STATEMENTS_AT_ONCE,
    Scoring,
    make_statement,
    score_answers,
    statement_score,
)
from lama_core.types import Query

ANSWERS = ("Lima", "New York", "Oslo", UNKNOWN)
FACTS = (
    ("Peru", "Lima"),
    ("USA", "New York"),
    ("USA", "Lima"),
    ("Norway", UNKNOWN),
    ("Chile", "Oslo"),
)
SAID = {
    "Peru": {"Lima": -1.0, "New York": -2.0, "Oslo": -1.5, UNKNOWN: 0.0},
    "USA": {"Lima": -0.5, "New York": -1.0, "Oslo": -3.0, UNKNOWN: 0.0},
    "Chile": {"Lima": -1.0, "New York": -0.25, "Oslo": -1.0, UNKNOWN: 0.0},
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_bear(tmp_path / "toy", FACTS, ANSWERS)


def specify(data: Path, model: StatementTable | None = None, **choices: Any) -> StatementSpec:
    model = model or StatementTable(SAID)
    request = StatementsRequest(str(data), (model.name,), **choices)
    (spec,) = plan_runs(request, lambda *_, **__: model)
    assert isinstance(spec, StatementSpec)
    return spec


def run(
    data: Path, folder: Path, model: StatementTable | None = None, **choices: Any
) -> tuple[Run, dict[str, list[Any]]]:
    model = model or StatementTable(SAID)
    spec = specify(data, model, **choices)
    made = execute(spec, folder=folder, load=lambda *_, **__: model)
    return made, pq.read_table(made.info.folder / "facts.parquet").to_pydict()


def log_softmax(score: float, *scores: float) -> float:
    return float(score - np.log(np.exp(scores).sum()))


def test_ranks_margins_and_probabilities_are_those_worked_by_hand(
    data: Path, tmp_path: Path
) -> None:
    made, rows = run(data, tmp_path)
    # "Peru is in Lima now.": -1 each for Peru, is, in, now.; -1 for Lima, less 0.125 of the rest.
    peru = [-4 - 1 + 0.125, -4 - 2 - 0.5 + 0.125, -4 - 1.5 + 0.125, -np.inf]
    usa = [-4 - 0.5 + 0.125, -4 - 1 - 0.5 + 0.125, -4 - 3 + 0.125, -np.inf]
    chile = [-4 - 1 + 0.125, -4 - 0.25 - 0.5 + 0.125, -4 - 1 + 0.125, -np.inf]
    assert rows["scores"] == [peru, usa, usa, None, chile]
    assert rows["rank_raw"] == [1, 2, 1, None, 3], "of two equal ones the earlier answer is before"
    assert rows["rank_filtered"] == [1, 1, 1, None, 3]
    assert rows["margin"] == [
        peru[0] - peru[2],
        usa[1] - usa[2],  # Lima is right, too
        usa[0] - usa[2],
        None,
        chile[2] - chile[1],
    ]
    np.testing.assert_allclose(rows["log_prob"][0], log_softmax(peru[0], *peru), rtol=1e-6)
    np.testing.assert_allclose(rows["log_prob"][1], log_softmax(usa[1], *usa), rtol=1e-6)
    assert rows["first"] == ["Lima", "Lima", "Lima", None, "New York"]
    assert rows["first_filtered"] == ["Lima", "New York", "Lima", None, "New York"]
    assert rows["first_is_valid"] == [False, True, False, None, False]
    assert rows["n_valid"] == [1, 2, 2, 1, 1]
    assert rows["excluded"] == [None, None, None, NOT_WRITTEN, None]
    assert rows["top_words"][0] == ["Lima", "Oslo", "New York", *[None] * 7]
    first, second = rows["top_log_probs"][0][:2]
    np.testing.assert_allclose(first - second, peru[0] - peru[2], rtol=1e-6)
    assert made.words is not None and set(made.words) == {"P1"}
    assert sorted(made.words["P1"].to_pylist()) == sorted(ANSWERS)
    table = score_table([made], ranking="filtered")
    assert (table["n"][0], table["n_excluded"][0]) == (4, 1)
    assert table["p_at_1"][0] == 3 / 4
    assert table["macro_p_at_1"][0] == pytest.approx((2 / 2 + 1 / 1 + 0 / 1) / 3)
    assert score_table([made], ranking="raw")["p_at_1"][0] == 2 / 4


@pytest.mark.parametrize(
    ("choices", "wanted"),
    [
        ({"aggregate": "mean"}, [(-5 + 0.125) / 5, (-6.5 + 0.125) / 6, (-5.5 + 0.125) / 5]),
        ({"part": "answer"}, [-1 + 0.125, -2.5 + 0.125, -1.5 + 0.125]),
        ({"part": "answer", "aggregate": "mean"}, [-0.875, -2.375 / 2, -1.375]),
        ({"part": "conditional"}, [-1.0, -2.5, -1.5]),
        ({"hiding": "original"}, [-5 + 0.375, -6.5 + 0.375, -5.5 + 0.375]),
        ({"template": 1}, [-2 - 1 + 0.125, -2 - 2.5 + 0.125, -2 - 1.5 + 0.125]),
    ],
)
def test_each_way_of_scoring_sums_its_own_tokens(
    data: Path, tmp_path: Path, choices: dict[str, Any], wanted: list[float]
) -> None:
    if choices.get("template"):  # In Lima is Peru.
        wanted = [value - 1 for value in wanted]
    _, rows = run(data, tmp_path, **choices)
    np.testing.assert_allclose(rows["scores"][0][:3], wanted, rtol=1e-6)


def test_a_statement_begins_with_a_capital_and_says_where_its_answer_stands() -> None:
    query = Query(("the capital of Peru is ", ", they say."))
    assert make_statement(query, "Lima") == Statement(
        "The capital of Peru is Lima, they say.", 23, 27
    )
    assert make_statement(query, "Lima", "conditional").text == "The capital of Peru is Lima"
    first = make_statement(Query(("", " is it.")), "oslo")
    assert first == Statement("Oslo is it.", 0, 4)


def test_facts_that_cant_be_asked_say_why(tmp_path: Path) -> None:
    facts = (("Peru", "Lima"), ("Peru", "Lima"), ("USA", "Oslo"), ("Chile " * 9, "Lima"))
    data = tmp_path / "toy.csv"
    data.write_text(
        "subject,object,relation,template,id\n"
        + "".join(
            f"{sub},{obj},P1,[X] is in [Y] now.,{number}\n"
            for number, (sub, obj) in enumerate(facts)
        ),
        encoding="utf-8",
    )
    (tmp_path / "answers.txt").write_text("Lima\nNew York\n")
    model = StatementTable(SAID, most=10)
    made, rows = run(data, tmp_path, model, answers=f"file:{tmp_path / 'answers.txt'}")
    assert rows["excluded"] == [None, DUPLICATE, NOT_A_CANDIDATE, NO_FIT]
    assert made.info.n_candidates == 2 and made.words is not None
    assert {name: words.to_pylist() for name, words in made.words.items()} == {
        "": ["Lima", "New York"]
    }
    (tmp_path / "others.txt").write_text("Bogotá")
    with pytest.raises(
        NoFactCounts, match=r"None of the 4 facts can be scored with table: .*among"
    ):
        run(data, tmp_path, model, answers=f"file:{tmp_path / 'others.txt'}")


def test_an_answer_that_begins_a_text_takes_a_model_that_can_score_its_beginning(
    tmp_path: Path,
) -> None:
    templates = ["[Y] is where [X] is.", "[X] is in [Y]."]
    data = write_bear(tmp_path / "toy", FACTS[:3], ANSWERS, templates=templates)
    model = StatementTable(SAID, scores_first=False, name="bare")
    with pytest.raises(NoFactCounts, match="the model starts texts without a start token"):
        run(data, tmp_path, model)
    assert run(data, tmp_path, model, template=1)[0].info.n == 3
    assert run(data, tmp_path)[0].info.n == 3


def test_a_relations_answers_are_the_datas_own_or_its_objects(data: Path, tmp_path: Path) -> None:
    named = answer_spaces.named_space("relation")
    assert answer_spaces.answers_of(named, load_dataset(data), "P1") == ANSWERS
    table = tmp_path / "own.csv"
    table.write_text("subject,object,template\nPeru,Lima,[X] [Y]\nUSA,New York,[X] [Y]\n")
    assert answer_spaces.answers_of(named, load_dataset(table), "own") == ("Lima", "New York")


def test_the_identity_changes_with_what_the_numbers_depend_on_and_with_nothing_else(
    data: Path, tmp_path: Path
) -> None:
    answers = tmp_path / "answers.txt"
    answers.write_text("Lima\nOslo\n")
    changes: list[dict[str, Any]] = [
        {},
        {"aggregate": "mean"},
        {"part": "answer"},
        {"part": "conditional"},
        {"hiding": "original"},
        {"template": 1},
        {"answers": f"file:{answers}"},
        {"limit": 2},
    ]
    found = [specify(data, **choices).digest for choices in changes]
    assert len(set(found)) == len(changes)
    assert specify(data, ranking="raw").digest == found[0]
    moved = tmp_path / "moved.txt"
    moved.write_text("Lima\n\n Oslo")
    assert specify(data, answers=f"file:{moved}").digest == found[6], "by content, not by path"
    left = StatementTable(SAID, kind="causal")
    plain, hidden = (specify(data, left, hiding=how).digest for how in ("within-word", "original"))
    assert plain == hidden, "nothing stands right of a token to be hidden"
    write_bear(data, FACTS, (*ANSWERS, "Rome"))
    assert specify(data).digest != found[0], "the data's answer space is of the data"


def test_an_answer_space_of_a_hundred_thousand_is_given_to_a_model_in_pieces(
    tmp_path: Path,
) -> None:
    answers = [f"City{number}" for number in range(100_000)]
    file = tmp_path / "answers.txt"
    file.write_text("\n".join(answers))
    data = write_bear(tmp_path / "toy", [("Peru", "City7"), ("Chile", "City99999")], [])
    model = StatementTable()
    made, rows = run(data, tmp_path, model, answers=f"file:{file}")
    assert max(model.given) == MAX_STATEMENTS_AT_ONCE and sum(model.given) == 2 * 100_000
    assert made.info.n_candidates == 100_000
    assert rows["scores"] == [None, None], "too many to be kept"
    assert all(1 <= rank <= 100_000 for rank in rows["rank_raw"])
    assert all(len([word for word in top if word]) == 10 for top in rows["top_words"])
    file.write_text("\n".join([*answers, "one more"]))
    with pytest.raises(UserError, match="There are 100,001 answers; the maximum is 100,000"):
        specify(data, model, answers=f"file:{file}")


@pytest.mark.parametrize("n_answers", [1, 3, 2048, 2049, 5000])
def test_no_more_statements_than_that_are_at_once_and_each_is_in_its_place(n_answers: int) -> None:
    model = StatementTable()
    queries = [Query((f"Land {number} is in ", ".")) for number in range(3)]
    answers = [f"City{number}" for number in range(n_answers)]
    ticks: list[int] = []
    found = score_answers(model, queries, answers, Scoring(), ticks.append)
    assert ticks == model.given and sum(ticks) == 3 * n_answers, "it can be stopped in between"
    assert max(model.given) <= MAX_STATEMENTS_AT_ONCE
    for row, column in ((0, 0), (2, n_answers - 1)):
        (alone,) = model.statement_log_probs([make_statement(queries[row], answers[column])])
        assert found[row, column] == statement_score(alone, "sum")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("", "the list of answers is empty: write one answer per line"),
        ("Lima\nOslo\nLima", "The answer 'Lima' occurs twice: remove one"),
        ("Lima\n" + "x" * 301, "Answer 2 is longer than 300 letters: shorten it"),
        ("a\0b", "the list of answers is not text"),
    ],
)
def test_a_file_that_is_no_list_of_answers_is_one_sentence(
    data: Path, tmp_path: Path, lines: str, reason: str
) -> None:
    file = tmp_path / "answers.txt"
    file.write_text(lines)
    with pytest.raises(UserError) as error:
        specify(data, answers=f"file:{file}")
    assert reason in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ({"answers": "common"}, "Unknown answers 'common': choose relation, or file:PATH"),
        ({"answers": "file:/nowhere"}, "/nowhere"),
        ({"template": 2}, "No relation has a template 2: the highest number is 1"),
        ({"hiding": "all"}, "all"),
        ({"limit": 0}, "limit can't be 0"),
        ({"relations": ("P2",)}, "has no relation 'P2'"),
    ],
)
def test_a_request_that_cant_be_met_is_one_sentence(
    data: Path, choices: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UserError) as error:
        specify(data, **choices)
    assert reason in str(error.value) and "\n" not in str(error.value)


def test_a_relation_without_that_template_is_left_out(data: Path) -> None:
    write_bear(data, (("Peru", "Lima"),), ANSWERS, templates=["[X]: [Y]"], relation="P2")
    assert specify(data).relations == ("P1", "P2")
    assert specify(data, template=1).relations == ("P1",)
