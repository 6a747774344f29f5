"""One model's runs of three kinds on the eight facts of statement_fakes, worked by hand.

fact             word at a blank   whole answers   generated text       right in
Anna  Rome       Rome              Rome            Rome, I think.       all ways
Ben   Paris      Rome              Rome            <b>PARISIAN</b>         none: other capitals
Cleo  Rome       Paris             Paris           In Rome.             the text
Dan   Oslo       Oslo              Oslo            I don't know.        blank, whole
Eve   New York   two tokens, so the cloze run excludes the fact
Land  Berlin     Berlin            Berlin          (empty)              blank, whole
Land  Paris      Paris, after Berlin is removed    (empty)              blank, whole
Isle  Berlin     Paris             Paris           Berlin or Paris      the text
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from statement_fakes import make_ways

from lama_core.errors import UserError
from lama_core.metrics import score_table
from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.intervals import difference_intervals, share_intervals
from lama_core.metrics.verdicts import overridden, with_verdicts
from lama_core.metrics.ways_of_asking import WaysOfAsking, compare_ways, runs_by_way
from lama_core.runs.info import Run
from lama_core.runs.tags import Row, change_tags

BLANK, WHOLE, TEXT = "word at a blank", "whole answers", "generated answer"


@pytest.fixture
def runs(home: Path) -> tuple[Run, Run, Run]:
    return make_ways(home, home / "data" / "runs")


def key(run: Run, row: int) -> Row:
    return str(run.facts["fact_id"].iloc[row]), 0


@pytest.fixture
def found(runs: tuple[Run, Run, Run]) -> WaysOfAsking:
    return compare_ways(runs[::-1])


def test_only_facts_that_all_runs_count_are_compared(found: WaysOfAsking) -> None:
    assert found.ways == [BLANK, WHOLE, TEXT], "in this order, whatever the order of the runs"
    assert list(found.facts["subject"]) == ["Anna", "Ben", "Cleo", "Dan", "Land", "Land", "Isle"]
    assert found.n_known.tolist() == [3, 0, 1, 2, 2, 2, 1]


def test_shares_and_paired_differences_are_as_worked_by_hand(found: WaysOfAsking) -> None:
    shares = found.shares().set_index(["relation", "way"])
    assert shares["n"].groupby(level=0, sort=False).first().to_dict() == {
        "all": 7, "P19": 4, "P47": 3,
    }  # fmt: skip
    assert shares.loc["all", "p_at_1"].to_dict() == {BLANK: 4 / 7, WHOLE: 4 / 7, TEXT: 3 / 7}
    assert shares.loc["P19", "p_at_1"].to_dict() == {BLANK: 2 / 4, WHOLE: 2 / 4, TEXT: 2 / 4}
    assert shares.loc["all", "n_only"].to_dict() == {BLANK: 0, WHOLE: 0, TEXT: 2}
    low, high = shares.loc[("all", TEXT), ["low", "high"]]
    ends = share_intervals(np.array([3]), np.array([7]))
    assert (low, high) == (ends.low[0], ends.high[0])
    line = found.differences().set_index(["relation", "a", "b"]).loc[("all", BLANK, TEXT)]
    assert (line["difference"], line["only_a"], line["only_b"]) == ((2 - 3) / 7, 3, 2)
    paired = difference_intervals(np.array([2]), np.array([3]), np.array([7]))
    assert (line["low"], line["high"]) == (paired.low[0], paired.high[0])


def test_facts_known_in_one_way_have_that_way_and_all_answers(found: WaysOfAsking) -> None:
    table = found.known_in_one_way()
    assert table[["subject", "way"]].values.tolist() == [["Cleo", TEXT], ["Isle", TEXT]]
    assert table[f"{TEXT} answer"].tolist() == ["In Rome.", "Berlin or Paris"]
    assert table[f"{WHOLE} answer"].tolist() == ["Paris", "Paris"]


def test_two_ways_can_be_compared_and_relations_chosen(runs: tuple[Run, Run, Run]) -> None:
    both = compare_ways(runs[1:], relations=("P19",))
    assert both.ways == [WHOLE, TEXT]
    assert list(both.facts["subject"]) == ["Anna", "Ben", "Cleo", "Dan", "Eve"]
    with pytest.raises(UserError, match="no counted fact in common"):
        compare_ways(runs, relations=("P1",))


def test_runs_are_grouped_by_data_and_model(runs: tuple[Run, Run, Run]) -> None:
    infos = [run.info for run in runs]
    ((compared, ways),) = runs_by_way(infos).items()
    assert compared == ("stated", "filler")
    assert {way: [info.id for info in of_way] for way, of_way in ways.items()} == {
        BLANK: [infos[0].id], WHOLE: [infos[1].id], TEXT: [infos[2].id],
    }  # fmt: skip
    assert not runs_by_way(infos[:1]), "one way is no comparison"


def test_a_verdict_changes_the_figures_that_count_it(runs: tuple[Run, Run, Run]) -> None:
    run = runs[2]
    assert with_verdicts(run) is run
    change_tags(run.info, [key(run, 2)], add=["judged wrong", "ambiguous"])
    change_tags(run.info, [key(run, 1)], add=["judged right"])
    change_tags(run.info, [key(run, 0)], add=["judged right", "judged wrong"])
    assert overridden(run) == {1: True, 2: False}, "contradictory tags count for nothing"
    plain, judged = score_table([run]), score_table([with_verdicts(run)])
    assert plain["p_at_1"].tolist()[0] == 2 / 5 == judged["p_at_1"].tolist()[0]
    assert compare_ways([*runs[:2], with_verdicts(run)]).n_known.tolist() == [3, 1, 0, 2, 2, 2, 1]
    pd.testing.assert_frame_equal(
        plain[["exact_match", "contains"]], judged[["exact_match", "contains"]]
    )
    joined = join_answers(runs)
    assert joined.verdicts(2) == {1: True, 2: False} and joined.verdicts(0) == {}


def test_tags_of_runs_that_rank_answers_are_no_verdicts(runs: tuple[Run, Run, Run]) -> None:
    change_tags(runs[0].info, [key(runs[0], 2)], add=["judged right"])
    assert overridden(runs[0]) == {}
