"""Figures of runs of statements, on the eight facts of statement_fakes, worked by hand there."""

from dataclasses import replace
from math import isnan
from pathlib import Path

import pyarrow as pa
import pytest
from statement_fakes import SCORES, make_statement_run
from test_hand_worked import ANSWERS, make_run

from lama_core import metrics
from lama_core.errors import UserError
from lama_core.metrics.comparison import what_differs
from lama_core.metrics.fact_answers import AnswerFilter, join_answers, right_answers
from lama_core.metrics.slices import slice_table, slicings
from lama_core.runs.alignment import align
from lama_core.runs.info import CANDIDATES_FILE, FACTS_FILE, Run, read_info, write_info
from lama_core.views.scores import ScoresRequest, scores
from lama_core.views.view import show_runs

MARGINS = [2.0, -1.0, -3.0, 1.5, 3.5, None, None, -2.0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("statements")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return make_statement_run(folder, folder / "runs")


def subjects(run: Run, chosen: AnswerFilter) -> list[str]:
    joined = join_answers([run])
    return [str(name) for name in joined.facts["subject"].iloc[joined.select(chosen)]]


def test_the_chance_level_is_k_over_the_answers_of_the_relation(run: Run) -> None:
    table = metrics.score_table([run]).set_index("relation")
    assert table["n_answers"].to_dict() == {"P19": 4, "P47": 2}
    assert table["chance"].to_dict() == {"P19": 1 / 4, "P47": 1 / 2}
    assert table["p_at_1"].to_dict() == {"P19": 3 / 5, "P47": 2 / 3}
    lines = show_runs(scores.view, (run,), ScoresRequest()).to_json()
    assert [(line["n_answers"], line["chance"]) for line in lines] == [(4, 1 / 4), (2, 1 / 2)]
    assert all(type(line["n_answers"]) is int for line in lines)
    at_three = metrics.score_table([run], k=3).set_index("relation")
    assert at_three["chance"].to_dict() == {"P19": 3 / 4, "P47": 1.0}
    mean = metrics.score_table([run], by="source")
    assert mean["chance"].tolist() == [(1 / 4 + 1 / 2) / 2]
    curve = metrics.precision_curves([run], k_max=3)
    assert curve["chance"].tolist() == [(1 / 4 + 1 / 2) / 2, (2 / 4 + 1) / 2, (3 / 4 + 1) / 2]


def test_words_of_one_list_are_as_many_for_every_relation_and_have_no_margins(
    run: Run, tmp_path: Path
) -> None:
    cloze = make_run(tmp_path, "words", ANSWERS)  # its five words are ranked in every relation
    assert metrics.score_table([cloze])["chance"].tolist() == [1 / 5, 1 / 5]
    assert not cloze.info.guessable and metrics.margin_histogram([cloze]).empty
    said = what_differs(run.info, cloze.info)
    assert "whole answers (at most 4)" in said and "words at the blank (5)" in said
    assert said == what_differs(cloze.info, run.info)


def test_margins_are_as_worked_by_hand(run: Run) -> None:
    margins = join_answers([run]).runs[0].margin
    for found, worked in zip(margins.tolist(), MARGINS, strict=True):
        assert isnan(found) if worked is None else found == pytest.approx(worked)


def test_bins_of_margins_part_the_right_from_the_wrong_at_0(run: Run) -> None:
    table = metrics.margin_histogram([run])
    right, wrong = table[table["right"] & (table["n"] > 0)], table[~table["right"]]
    assert (right["low"] >= 0).all() and (wrong.loc[wrong["n"] > 0, "high"] <= 0).all()
    assert (right["n"].sum(), wrong["n"].sum()) == (3, 3), "two facts have no wrong answer"
    assert table["share"].sum() == pytest.approx(1.0)
    for line in table[table["n"] > 0].itertuples():
        chosen = AnswerFilter(
            margin_min=line.low, margin_max=line.high,
            **({"right": (0,)} if line.right else {"wrong": (0,)}),
        )  # fmt: skip
        assert len(subjects(run, chosen)) == line.n, "a bin's facts are those that its filter finds"


def test_facts_are_chosen_by_margin_and_number_of_answers(run: Run) -> None:
    assert subjects(run, AnswerFilter(margin_min=0)) == ["Anna", "Dan", "Eve"]
    assert subjects(run, AnswerFilter(margin_max=-2)) == ["Cleo", "Isle"], "the upper end is in"
    assert subjects(run, AnswerFilter(margin_min=-2, margin_max=0)) == ["Ben"]
    assert subjects(run, AnswerFilter(answers_min=3)) == ["Anna", "Ben", "Cleo", "Dan", "Eve"]
    assert subjects(run, AnswerFilter(answers_max=2)) == ["Land", "Land", "Isle"]


def test_slices_have_a_chance_level_and_balanced_accuracy(run: Run) -> None:
    table = slice_table(join_answers([run])).set_index(["by", "slice"])
    line = table.loc[("number of answers", "1 to 10")]
    assert (line["n"], line["p_at_k"]) == (8, (3 + 2) / 8)
    assert line["chance"] == pytest.approx((5 * 1 / 4 + 3 * 1 / 2) / 8)
    # Rome 1 of 2, Paris 0, Oslo 1, New York 1; Berlin 1 of 2, and P47's Paris, another gold, 1.
    assert line["macro_p_at_1"] == pytest.approx((1 / 2 + 0 + 1 + 1 + 1 / 2 + 1) / 6)


def test_domains_are_kept_with_the_run_and_slice_its_facts(run: Run, tmp_path: Path) -> None:
    born, next_to = run.info.relations
    about = (replace(born, domains=("people", "places")), replace(next_to, domains=("places",)))
    write_info(replace(run.info, relations=about), tmp_path)
    read = read_info(tmp_path)
    assert read.relations == about
    told = Run(replace(run.info, relations=read.relations))
    assert subjects(told, AnswerFilter(domains=("people",))) == subjects(
        run, AnswerFilter(relations=("P19",))
    )
    table = slice_table(join_answers([told])).set_index(["by", "slice"])
    assert table.loc[("domain", "people"), "n"] == 5 and table.loc[("domain", "places"), "n"] == 8
    assert "domain" not in slicings(join_answers([run]))


def test_a_fact_has_the_scores_of_all_its_answers(run: Run) -> None:
    for row, subject in enumerate(run.facts["subject"].astype(str)):
        found = run.scores_of(row)
        assert found is not None
        assert dict(zip(found.words, found.scores.tolist(), strict=True)) == SCORES[subject]
    assert right_answers(run, 5) == {"Berlin", "Paris"} and right_answers(run, 0) == {"Rome"}


def test_runs_of_words_have_no_scores_and_lost_files_say_so(folder: Path, tmp_path: Path) -> None:
    assert make_run(tmp_path, "words", ANSWERS).scores_of(0) is None
    run = make_statement_run(folder, tmp_path / "runs")
    with pytest.raises(UserError, match="row 99 is missing"):
        run.scores_of(99)
    (run.info.folder / CANDIDATES_FILE).unlink()
    with pytest.raises(UserError, match=r"missing\. Delete the run"):
        run.scores_of(0)
    (run.info.folder / FACTS_FILE).write_bytes(b"no table")
    with pytest.raises(UserError, match="damaged"):
        run.scores_of(0)


def test_ranks_and_chance_on_fewer_answers_are_of_the_shared_ones(run: Run) -> None:
    shared = align([run, replace_words(run, {"P19": {"Rome", "Oslo"}, "P47": {"Berlin", "Paris"}})])
    table = metrics.score_table([shared[0]]).set_index("relation")
    assert table["n_answers"].to_dict() == {"P19": 2, "P47": 2}
    assert table["n"].to_dict() == {"P19": 3, "P47": 3}, "Ben's and Eve's golds aren't shared"


def replace_words(run: Run, words: dict[str, set[str]]) -> Run:
    """The run as if it had ranked other words of each relation."""
    info = replace(run.info, n_candidates=2, id=f"{run.info.id}-fewer")
    kept = {name: pa.array(sorted(known)) for name, known in words.items()}
    return Run(info, changed_words=kept)
