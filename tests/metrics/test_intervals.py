"""Intervals that never close to a point, checked by hand, against scipy, and by what must hold."""

from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, ttest_1samp

from lama_core.metrics.intervals import (
    Intervals,
    difference_intervals,
    mean_interval,
    mean_of_sample,
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


def test_one_in_ten_is_that_of_the_textbook() -> None:
    assert share(1, 10) == pytest.approx((0.018, 0.404), abs=5e-4)


@given(COUNTS)
def test_shares_agree_with_scipy(counts: tuple[int, int]) -> None:
    right, n = counts
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert share(right, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_shares_are_near_the_posterior_of_jeffreys() -> None:
    for right in (0, 1, 40, 92, 185):
        ends = beta.ppf([0.025, 0.975], right + 1 / 2, 185 - right + 1 / 2)
        assert share(right, 185) == pytest.approx(tuple(ends), abs=0.01)


@given(COUNTS)
def test_the_interval_holds_the_share_and_moves_with_it(counts: tuple[int, int]) -> None:
    right, n = counts
    low, high = share(right, n)
    assert 0 <= low <= right / n <= high <= 1
    assert high - low > 0.9 * Z2 / (n + Z2), "the shortest is that of none or all"
    if right < n:
        above = share(right + 1, n)
        assert low < above[0] and high < above[1]
    assert share(n - right, n) == pytest.approx((1 - high, 1 - low))


def test_the_mean_over_one_relation_is_the_relation() -> None:
    ends = share_intervals(np.array([3]), np.array([20]))
    found = mean_interval(np.array([3 / 20]), ends)
    assert (float(found.low), float(found.high)) == pytest.approx((ends[0].low, ends[0].high))
    with pytest.raises(ValueError, match="no relations"):
        mean_interval(np.zeros(0), Intervals(np.zeros(0), np.zeros(0)))


def test_distances_of_relations_are_added_as_squares() -> None:
    ends = Intervals(np.array([0.1, 0.46]), np.array([0.5, 0.9]))
    found = mean_interval(np.array([0.13, 0.5]), ends)
    assert float(found.low) == pytest.approx(0.315 - sqrt(0.03**2 + 0.04**2) / 2)
    assert float(found.high) == pytest.approx(0.315 + sqrt(0.37**2 + 0.4**2) / 2)


@given(st.lists(COUNTS, min_size=1, max_size=20))
def test_the_interval_of_a_mean_holds_it_and_stays_possible(counts: list[tuple[int, int]]) -> None:
    right, n = np.array(counts).T
    found = mean_interval(right / n, share_intervals(right, n))
    mean = float((right / n).mean())
    assert 0 <= found.low <= mean <= found.high <= 1
    assert found.high > found.low


def test_the_interval_of_a_mean_covers_the_truth() -> None:
    draw = np.random.default_rng(0)
    truth = draw.beta(0.3, 4, 41)  # few facts are known, as by a small model
    right = draw.binomial(60, truth, (500, 41)).T
    found = mean_interval(right / 60, share_intervals(right, np.full_like(right, 60)))
    covered = ((found.low <= truth.mean()) & (truth.mean() <= found.high)).mean()
    assert 0.92 < covered < 0.98


def test_a_paired_difference_is_that_of_the_textbook() -> None:
    # Airway reactivity of 21 children before and after: 1 and 7 flips (Fagerland et al. 2014).
    assert difference(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_no_flip_is_not_certainly_no_difference() -> None:
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


def test_the_mean_of_a_sample_is_students() -> None:
    values = np.array([0.0, 0.1, 0.2])
    found = mean_of_sample(values)
    # s = 0.1 and t(2) = 4.3027
    half = 4.302653 * 0.1 / sqrt(3)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.1 - half, 0.1 + half))
    assert found.p == pytest.approx(ttest_1samp(values, 0).pvalue)


def test_a_sample_that_does_not_vary_says_nothing_of_others() -> None:
    for values in (np.array([0.25]), np.zeros(5)):
        found = mean_of_sample(values)
        assert isnan(found.p) and isnan(found.interval.low) and not isnan(found.mean)
