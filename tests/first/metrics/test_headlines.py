"""The headline of results, from figures that are small enough to check by hand."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lama_core.metrics import METRICS
from lama_core.metrics.comparison import Agreement, Comparison, Difference, MeanDifference
from lama_core.metrics.headlines import (
    CHOSEN,
    Standing,
    headline,
    overall,
    paired_headline,
    standings,
)
from lama_core.metrics.intervals import Interval, mean_share_intervals, share_intervals

P1 = METRICS["p_at_1"]
NAN = float("nan")


def standing(
    title: str, value: float, low: float = NAN, high: float = NAN, n: int = 900, relations: int = 44
) -> Standing:
    return Standing(title, value, low, high, n, relations)


SMOL = standing("SmolLM2", 0.295, 0.251, 0.342)
MINI = standing("MiniLM", 0.271, 0.230, 0.316)
TWIN = standing("Twin", 0.1, 0.08, 0.13)
WIDE = standing("B", 0.2, 0.1, 0.3)


def test_the_best_of_two_whose_intervals_overlap() -> None:
    found = headline([MINI, SMOL], P1, k=1, source="T-REx")
    assert found.text == (
        "SmolLM2 is ahead: 29.5 % (25.1 to 34.2) of first answers are right on average over these "
        "44 T-REx relations; the intervals of SmolLM2 and MiniLM overlap"
    )
    assert found.counted == (
        "P@1: the share of facts whose right answer is ranked first; the unweighted mean over 44 "
        "relations, 900 facts in all. In brackets: the 95 % interval."
    )
    assert found.order == ("SmolLM2", "MiniLM")


@pytest.mark.parametrize(
    ("runs", "tail"),
    [
        ([SMOL, MINI, TWIN], "; the intervals of SmolLM2 and MiniLM overlap"),
        ([SMOL, MINI, WIDE], "; its interval overlaps those of MiniLM and B"),
        ([SMOL, standing("B", 0.2, 0.15, 0.251)], "; the intervals of SmolLM2 and B overlap"),
        ([SMOL, standing("B", 0.2)], "44 relations"),
    ],
)  # fmt: skip
def test_overlap_is_said_of_intervals_only(runs: list[Standing], tail: str) -> None:
    assert headline(runs, P1, k=1).text.endswith(tail)


def test_a_run_is_clearly_ahead_if_its_interval_overlaps_no_other() -> None:
    for others in ([TWIN], [TWIN, standing("B", 0.1, 0.05, 0.2)]):
        said = headline([SMOL, *others], P1, k=1).text
        assert said.startswith("SmolLM2 is clearly ahead: 29.5 % (25.1 to 34.2)")
        assert said.endswith("44 relations")


def test_chosen_relations_are_named_and_one_relation_counts_its_facts() -> None:
    one = standing("SmolLM2", 0.637, 0.535, 0.729, n=91, relations=1)
    assert headline([one, TWIN], P1, k=1, relations=["P36 capital"]).text.startswith(
        "SmolLM2 is clearly ahead on P36 capital: 63.7 % (53.5 to 72.9) of 91 first answers are "
        "right"
    )
    names = ["a", "b", "c", "d"]
    assert " on a, b and c: " in headline([SMOL], P1, k=1, relations=names[:3]).text
    assert " on 4 chosen relations: " in headline([SMOL], P1, k=1, relations=names).text


def test_one_model_has_its_figure_alone_and_over_facts() -> None:
    assert headline([SMOL], P1, k=10, counts="queries").text == (
        "SmolLM2: 29.5 % (25.1 to 34.2) of queries have the right answer among the first 10 on "
        "average over these 44 relations"
    )
    said = headline([replace(SMOL, over_facts=1 / 3)], P1, k=1).text
    assert said.endswith("on average over these 44 relations (over facts: 33.3 % of 900)")
    none = standing("A", NAN, n=0, relations=0)
    assert headline([none, SMOL], P1, k=1).text.startswith("SmolLM2: 29.5 %")
    assert headline([none], P1, k=1).text == "None of these facts can be scored for these models"


def test_figures_that_print_the_same_are_level() -> None:
    near = standing("Near", 0.2951, 0.25, 0.35)
    found = headline([SMOL, TWIN, near], P1, k=1)
    assert found.text.startswith(
        "Near and SmolLM2 are level: 29.5 % (25.0 to 35.0; 25.1 to 34.2) of first answers are right"
    )
    zero = [standing(name, 0.0, 0.0, 0.04) for name in "ABC"]
    assert headline(zero, P1, k=1).text.startswith("A, B and C are level: 0.0 %")


def test_figures_on_an_unequal_footing_are_not_said_to_be_ahead() -> None:
    other = standing("MiniLM", 0.271, 0.230, 0.316, n=850)
    found = headline([SMOL, other], P1, k=1, differ="the models are scored on different facts")
    assert found.text.startswith("SmolLM2 has the best figure: 29.5 %")
    assert found.text.endswith("relations; the models are scored on different facts")
    assert "each model's own facts: 900 (SmolLM2), 850 (MiniLM)." in found.counted


def test_a_lower_mean_rank_is_ahead_and_has_no_interval() -> None:
    runs = [standing("A", 12.4), standing("B", 8.25)]
    found = headline(runs, METRICS["mean_rank"])
    assert found.text.startswith("B is ahead: mean rank 8 on average over these 44 relations")
    assert "interval" not in found.text + found.counted


def test_the_figure_is_the_unweighted_mean_over_relations_that_count() -> None:
    ends = share_intervals(pd.Series([1, 3]).to_numpy(), pd.Series([4, 4]).to_numpy())
    rows = pd.DataFrame(
        [
            {"name": "A", "n": 4, "n_excluded": 1, "p_at_k": 1 / 4, "low": ends.low[0],
             "high": ends.high[0]},
            {"name": "A", "n": 4, "n_excluded": 0, "p_at_k": 3 / 4, "low": ends.low[1],
             "high": ends.high[1]},
            {"name": "A", "n": 0, "n_excluded": 7, "p_at_k": NAN, "low": NAN, "high": NAN},
            {"name": "B", "n": 0, "n_excluded": 7, "p_at_k": NAN, "low": NAN, "high": NAN},
        ]
    ).assign(chance=0.1, **dict.fromkeys(METRICS, 0.5))  # fmt: skip
    a, b = standings(overall(rows), "p_at_k")
    expected = mean_share_intervals(np.array([1, 3]), np.array([4, 4]))
    assert (a.value, a.n, a.n_relations, a.over_facts) == (1 / 2, 8, 2, 4 / 8)
    assert (a.low, a.high) == (float(expected.low), float(expected.high))
    assert math.isnan(b.value) and b.n_relations == 0
    (no_interval, _) = standings(overall(rows), "mrr")
    assert no_interval.value == 0.5 and math.isnan(no_interval.low)


def paired(
    difference: float,
    low: float,
    high: float,
    sample: tuple[float, float] = (NAN, NAN),
    n: int = 7,
    only: str = "",
) -> Comparison:
    """A comparison over relations of which A gets 20 %; over its 100 facts, A gets 30 right.

    sample: the interval with relations as a sample. only: chosen facts of the runs.
    """
    ends = Interval(low, high)
    only_a, only_b = max(0, round(-100 * difference)), max(0, round(100 * difference))
    whole = Difference("", 100, 0.3, 0.3 + difference, difference, ends, only_a, only_b)
    p = NAN if math.isnan(sample[0]) else 0.5
    mean = MeanDifference(
        n, 0.2, 0.2 + difference, difference, ends, Interval(*sample), p, 3, n - 3
    )
    same = Agreement(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    run: Any = SimpleNamespace(info=SimpleNamespace(only=only))
    return Comparison(whole, mean, (), "fact", 0.5, same, run, pd.DataFrame(), 0)


def test_a_paired_difference_is_said_from_the_side_of_the_one_ahead() -> None:
    found = paired(-0.05, -0.08, -0.02, (-0.09, -0.01))
    assert paired_headline(found, ("A", "B")) == (
        "A is ahead of B by 5.0 points (2.0 to 8.0): 20.0 % against 15.0 % of first answers are "
        "right on average over 7 relations (over 100 facts: 30.0 % against 25.0 %)"
    )
    found = paired(0.05, 0.02, 0.08, n=1)
    assert paired_headline(found, ("A", "B"), k=10).endswith(
        "25.0 % against 20.0 % of 100 facts have the right answer among the first 10"
    )


def test_a_paired_difference_that_is_not_clear_is_said_so() -> None:
    said = paired_headline(paired(0.05, -0.01, 0.11), ("A", "B"))
    assert said.startswith("B is ahead of A by 5.0 points (-1.0 to 11.0)")
    assert said.endswith("the interval includes 0, so the difference is not clear")
    said = paired_headline(paired(0.05, 0.02, 0.08, (-0.04, 0.14)), ("A", "B"))
    assert said.startswith("On these relations B is ahead of A by 5.0 points (2.0 to 8.0): 25.0 %")


def test_a_lead_that_is_shown_as_0_is_no_lead_and_chosen_facts_rank_no_model() -> None:
    for difference in (0.0, 0.0004, -0.0004):
        said = paired_headline(paired(difference, -0.03, 0.03, n=1), ("A", "B"))
        assert said == "A and B are level: 20.0 % of 100 first answers are right"
    assert paired_headline(paired(0.2, 0.1, 0.3, only="some"), ("A", "B")).endswith(f"; {CHOSEN}")
