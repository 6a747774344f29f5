"""Figures of ranks, checked by hand and by what must always hold."""

from dataclasses import replace
from math import isnan

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from lama_core import metrics
from lama_core.metrics.baselines import freq_ranks
from lama_core.metrics.calibration import reliability_bins
from lama_core.metrics.comparison import mcnemar
from lama_core.metrics.correlates import cosines, pearson_matrix
from lama_core.metrics.intervals import share_intervals
from lama_core.runs.facts_table import RANKED
from lama_core.runs.info import RelationInfo

RANKS = np.array([1, 3, 2, 10, 101])


def test_precision_at_k_counts_ranks_up_to_k() -> None:
    assert metrics.precision_at(RANKS) == metrics.precision_at(RANKS, 1) == 1 / 5
    assert metrics.precision_at(RANKS, 3) == 3 / 5
    assert metrics.precision_at(RANKS, 100) == 4 / 5


def scored(ranks: np.ndarray, objects: np.ndarray | None = None) -> metrics.Scored:
    """One relation's facts that count."""
    numbers = np.arange(len(ranks))
    zeros = np.zeros(len(ranks), np.int64)
    relation = RelationInfo("P1", "TREx", "", None, (), len(ranks), 0)
    golds = zeros if objects is None else objects
    known, n_answers = zeros + RANKED, np.array([np.nan])
    return metrics.Scored(
        "filtered", (relation,), zeros, ranks, known, golds, numbers, numbers, n_answers
    )


def figure(name: str, rows: metrics.Scored) -> float:
    return float(metrics.METRICS[name].compute(rows)[0])


def test_ranks_beyond_the_depth_count_as_zero_in_mean_reciprocal_rank() -> None:
    """As in LAMA's released code, whose depth is 10,000: the last rank that counts is the depth."""
    rows = replace(scored(RANKS), mrr_depth=10)
    assert figure("mrr", rows) == pytest.approx((1 + 1 / 3 + 1 / 2 + 1 / 10 + 0) / 5)
    assert figure("mean_rank", rows) == (1 + 3 + 2 + 10 + 101) / 5


def test_macro_precision_gives_every_object_the_same_weight() -> None:
    ranks, objects = np.array([1, 1, 1, 2]), ["French", "French", "French", "Dutch"]
    assert metrics.macro_precision_at(ranks, objects) == (3 / 3 + 0 / 1) / 2
    assert figure("macro_p_at_1", scored(ranks, np.array([0, 0, 0, 1]))) == (3 / 3 + 0 / 1) / 2


def test_no_facts_give_nan_and_not_zero() -> None:
    none = np.array([], dtype=np.int64)
    assert isnan(metrics.precision_at(none)) and isnan(metrics.macro_precision_at(none, []))
    assert all(isnan(figure(name, scored(none))) for name in metrics.METRICS)
    assert np.isnan(share_intervals(np.array([0]), np.array([0])).low).all()


def test_mcnemar_is_the_two_sided_binomial_test() -> None:
    # P(X >= 9 or X <= 2) = 2 (C(11,0) + C(11,1) + C(11,2)) / 2 ** 11
    assert mcnemar(9, 2) == pytest.approx(2 * (1 + 11 + 55) / 2**11)
    assert mcnemar(0, 0) == 1


def test_a_confidence_on_a_border_belongs_to_the_bin_below() -> None:
    bins = reliability_bins(np.array([0.0, 0.5, 1.0]), np.array([False, True, True]), n_bins=2)
    assert bins[["n", "accuracy"]].to_numpy().tolist() == [[2, 1 / 2], [1, 1.0]]
    calibrated = reliability_bins(np.full(4, 0.25), np.array([True, False, False, False]))
    assert metrics.expected_calibration_error(calibrated) == 0
    none = reliability_bins(np.zeros(0), np.zeros(0, bool))
    assert isnan(metrics.expected_calibration_error(none))


def test_freq_ranks_by_count_then_first_appearance() -> None:
    # Relation 0: b b a c -> b 1, a 2, c 3. Relation 1: its own order, c before a.
    relations = np.array([0, 0, 0, 0, 1, 1])
    objects = np.array([1, 0, 1, 2, 2, 0])
    assert freq_ranks(relations, objects).tolist() == [1, 2, 1, 3, 1, 2]
    # Places: 0 -> 1, 1 -> 2, 2 -> 3. Subject 5 owns all three; the others of them are removed.
    relations, objects, subjects = np.zeros(4, np.int64), np.array([0, 1, 2, 0]), [5, 5, 5, 6]
    found = freq_ranks(relations, objects, np.array(subjects))
    assert found.tolist() == [1, 2 - 1, 3 - 2, 1]


def rows(*answers: tuple[str, str, str, int]) -> pd.DataFrame:
    frame = pd.DataFrame(answers, columns=["relation", "fact_id", "first", "rank_filtered"])
    frame["prompt"] = frame.groupby(["relation", "fact_id"]).cumcount()
    frame["excluded"] = None
    return frame


def test_consistency_is_the_share_of_agreeing_pairs() -> None:
    facts = rows(
        *[("P1", "a", "Rome", 1)] * 2, ("P1", "a", "Oslo", 2), *[("P1", "b", "Bern", 1)] * 3
    )
    (result,) = metrics.paraphrase_consistency(facts).itertuples()
    assert result.consistency == (1 + 3) / (3 + 3)
    assert result.accuracy == 5 / 6
    assert result.consistent_accuracy == 1 / 2
    assert (result.n_facts, result.n_prompts) == (2, 3)
    assert metrics.paraphrase_consistency(rows(("P1", "a", "Rome", 1))).empty, "no pair"


def test_spearman_of_rows_agrees_with_scipy() -> None:
    draw = np.random.default_rng(3)
    a = draw.normal(size=(4, 30)).astype(np.float32).round(1)
    b = draw.normal(size=(4, 30)).astype(np.float32).round(1)
    expected = [spearmanr(x, y).statistic for x, y in zip(a, b, strict=True)]
    assert metrics.spearman_rows(a, b).tolist() == pytest.approx(expected)
    assert metrics.spearman_rows(a, a).tolist() == pytest.approx([1.0] * 4)
    assert np.isnan(metrics.spearman_rows(np.zeros((1, 5), np.float32), b[:1, :5])).all()


def test_a_column_that_does_not_vary_has_no_correlation() -> None:
    matrix = pearson_matrix(pd.DataFrame({"a": [1, 2, 3], "b": [6, 4, 2], "c": [1, 1, 1]}))
    assert matrix["a"]["b"] == pytest.approx(-1)
    assert isnan(matrix["a"]["c"])


def test_cosines_of_named_vectors() -> None:
    table = {"x": [1.0, 0.0], "y": [0.0, 2.0], "z": [3.0, 3.0], "o": [0.0, 0.0]}
    found = cosines(
        lambda names: np.array([table[n] for n in names], np.float32),
        ["x", "x", "x"],
        ["y", "z", "o"],
    )
    assert found[:2].tolist() == pytest.approx([0, 1 / np.sqrt(2)])
    assert isnan(found[2])


def test_every_metric_says_what_it_is() -> None:
    for name, metric in metrics.METRICS.items():
        assert name == metric.name and metric.label and metric.formula and metric.meaning
        assert metric.shown(float("nan")) == "" and metric.shown(0.5)
    assert metrics.METRICS["p_at_1"].shown(0.1234) == "12.3"
    assert metrics.METRICS["mean_rank"].shown(1234.4) == "1,234"
