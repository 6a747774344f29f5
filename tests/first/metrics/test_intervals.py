"""Intervals that never close to a point, checked by hand, against scipy, and by what must hold."""

from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from lama_core.metrics.intervals import (
    difference_intervals,
    mean_difference_intervals,
    mean_of_sample,
    mean_share_intervals,
    mean_value_intervals,
    share_intervals,
)

Z2 = 1.959963984540054**2
COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
SPLITS = st.lists(st.integers(0, 90), min_size=3, max_size=3).filter(any)


def share(right: int, n: int) -> tuple[float, float]:
    found = share_intervals(np.array([right]), np.array([n]))[0]
    return found.low, found.high


def difference(gains: int, losses: int, n: int) -> tuple[float, float]:
    found = difference_intervals(np.array([gains]), np.array([losses]), np.array([n]))[0]
    return found.low, found.high


def test_none_of_185_is_not_certainly_none() -> None:
    # p (1 - p) = n p^2 / z^2 has the root z^2 / (n + z^2).
    assert share(0, 185) == pytest.approx((0, Z2 / (185 + Z2)))
    assert share(0, 185)[1] == pytest.approx(0.0203, abs=1e-4)
    assert share(185, 185) == pytest.approx((185 / (185 + Z2), 1))
    assert share(0, 185)[0] == 0 and share(185, 185)[1] == 1
    assert share(1, 10) == pytest.approx((0.018, 0.404), abs=5e-4), "of the textbook"


@given(COUNTS)
def test_shares_agree_with_scipy(counts: tuple[int, int]) -> None:
    right, n = counts
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert share(right, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(COUNTS)
def test_the_mean_over_one_relation_has_the_interval_of_its_share(counts: tuple[int, int]) -> None:
    right, n = np.array([counts[0]]), np.array([counts[1]])
    found = mean_share_intervals(right, n)
    assert (float(found.low), float(found.high)) == pytest.approx(share(*counts))


@given(SPLITS)
def test_the_mean_difference_over_one_relation_has_the_interval_of_its_difference(
    counts: list[int],
) -> None:
    gains, losses, _ = counts
    found = mean_difference_intervals(
        np.array([gains]), np.array([losses]), np.array([sum(counts)])
    )
    expected = difference(gains, losses, sum(counts))
    assert (float(found.low), float(found.high)) == pytest.approx(expected, abs=1e-9)


def test_relations_count_as_one_sample_unless_they_differ() -> None:
    for right, ends in ((0, (0, Z2 / (100 + Z2))), (25, (100 / (100 + Z2), 1))):
        found = mean_share_intervals(np.full(4, right), np.full(4, 25))
        assert (float(found.low), float(found.high)) == pytest.approx(ends)
    found = mean_share_intervals(np.array([50, 50]), np.array([100, 100]))
    # Equal observed shares are less likely than in one sample of 200, so n* is 199.
    assert (float(found.low), float(found.high)) == pytest.approx(share(100, 200), abs=5e-4)
    # In a sample of 200 facts of both relations, also the number of each relation's facts varies.
    found = mean_share_intervals(np.array([1, 99]), np.array([100, 100]))
    low, high = share(100, 200)
    assert found.high - found.low < (high - low) / 2


def test_relations_in_which_all_or_no_facts_are_right_still_have_an_interval() -> None:
    found = mean_share_intervals(np.array([0, 5]), np.array([5, 5]))
    # s_r = 3 V / 7 for both, v = 3 V / 70 and V = 1/4 + v, so n* = V / v = 70 / 3.
    half = (found.high - found.low) / 2
    n = 70 / 3
    assert half == pytest.approx(sqrt(Z2 * (1 / (4 * n) + Z2 / (4 * n * n))) / (1 + Z2 / n))


@given(st.lists(COUNTS, min_size=1, max_size=20))
def test_the_interval_of_a_mean_holds_it_and_stays_possible(counts: list[tuple[int, int]]) -> None:
    right, n = np.array(counts).T
    found = mean_share_intervals(right, n)
    mean = float((right / n).mean())
    assert 0 <= found.low <= mean <= found.high <= 1
    assert found.high > found.low


def test_a_paired_difference_is_that_of_the_textbook_and_no_flip_is_not_certain() -> None:
    # Airway reactivity of 21 children before and after: 1 and 7 flips (Fagerland et al. 2014).
    assert difference(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert difference(0, 0, 185) == pytest.approx((-Z2 / (185 + Z2), Z2 / (185 + Z2)))
    assert all(map(isnan, difference(0, 0, 0)))


@given(SPLITS)
def test_a_difference_is_held_and_agrees_with_mcnemars_score_test(counts: list[int]) -> None:
    gains, losses, _ = counts
    n = sum(counts)
    low, high = difference(gains, losses, n)
    assert -1 <= low <= (gains - losses) / n <= high <= 1 and high > low
    assert difference(losses, gains, n) == pytest.approx((-high, -low))
    statistic = (gains - losses) ** 2 - Z2 * (gains + losses)
    assert (low <= 0 <= high) == (statistic <= 0)


def test_the_mean_of_one_relations_values_has_students_interval() -> None:
    found = mean_value_intervals(np.array([0.1]), np.array([0.1**2]), np.array([3]))
    half = 4.302653 * 0.1 / sqrt(3)
    assert (float(found.low), float(found.high)) == pytest.approx((0.1 - half, 0.1 + half))
    for variances, n in (([0.0, 0.0], [3, 3]), ([0.0, 1.0], [1, 3])):
        found = mean_value_intervals(np.array([1.0, 2.0]), np.array(variances), np.array(n))
        assert isnan(found.low) and isnan(found.high)


def test_degrees_of_freedom_are_welchs() -> None:
    found = mean_value_intervals(np.array([0.0, 1.0]), np.array([4.0, 4.0]), np.array([8, 8]))
    # Two relations with the same variance and size: 7 + 7 degrees, t(14) = 2.1448.
    assert float(found.high) == pytest.approx(0.5 + 2.144787 * sqrt(4 / 8 + 4 / 8) / 2)


def test_the_mean_of_a_sample_is_students() -> None:
    values = np.array([0.0, 0.1, 0.2])
    found = mean_of_sample(values)
    # s = 0.1 and t(2) = 4.3027
    half = 4.302653 * 0.1 / sqrt(3)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.1 - half, 0.1 + half))
    assert found.p == pytest.approx(ttest_1samp(values, 0).pvalue)
    for values in (np.array([0.25]), np.zeros(5)):  # doesn't vary
        found = mean_of_sample(values)
        assert isnan(found.p) and isnan(found.interval.low) and not isnan(found.mean)
