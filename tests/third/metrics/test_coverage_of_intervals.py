"""95 % intervals contain the true value in 93 to 97.5 of 100 simulated samples.

The true values of each setting are drawn or given; the facts of each relation are then drawn from
them, `N_SAMPLES` times. For shares of single relations the true shares are drawn again for each
sample, because the coverage at one share jumps with it: there are only n + 1 possible samples.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from lama_core.metrics.intervals import (
    Intervals,
    difference_intervals,
    mean_difference_intervals,
    mean_of_sample,
    mean_share_intervals,
    mean_value_intervals,
    share_intervals,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
N_SAMPLES = 3000  # the standard error of a coverage of 95 % is 0.4 points
UNEQUAL = [3, 5, 8, 12, 20, 40, 80, 150, 300, 900]
LIKE_LAMA = np.linspace(20, 1000, 41).astype(int).tolist()
OBJECTS = [2, 2, 3, 3, 4, 5, 6, 8, 10, 15] * 4  # facts of each object of a relation


def covered(found: Intervals, truth: Floats) -> float:
    """Return the percentage of intervals that contain the true value."""
    return 100 * float(np.mean((found.low <= truth) & (truth <= found.high)))


def shares_of(draw: np.random.Generator, mean: float, spread: float, n: int) -> Floats:
    """Return true shares, float64 [relation, sample]: Beta with this mean and standard deviation.

    spread 0: all relations have the same share.
    """
    if spread == 0:
        return np.full((n, N_SAMPLES), mean)
    size = mean * (1 - mean) / spread**2 - 1
    return draw.beta(mean * size, (1 - mean) * size, (n, N_SAMPLES))


def flips_of(
    draw: np.random.Generator, gains: float, losses: float, size: float | None, n: int
) -> tuple[Floats, Floats]:
    """Return true shares of gains and losses, float64 [relation, sample] each.

    size: of a Dirichlet distribution, smaller if relations differ more; None if they are equal.
    """
    means = np.array([gains, losses, 1 - gains - losses])
    if size is None:
        return np.full((n, N_SAMPLES), gains), np.full((n, N_SAMPLES), losses)
    true = draw.dirichlet(means * size, (n, N_SAMPLES))
    return true[..., 0], true[..., 1]


def draw_flips(
    draw: np.random.Generator, gains: Floats, losses: Floats, totals: Ints
) -> tuple[Ints, Ints]:
    """Return numbers of gains and losses, int64 [relation, sample], for these true shares."""
    won = draw.binomial(totals, gains)
    return won, draw.binomial(totals - won, losses / np.maximum(1 - gains, 1e-12))


@pytest.mark.parametrize("n", [15, 50, 400])
def test_shares_are_covered(n: int) -> None:
    draw = np.random.default_rng(1)
    truth = draw.random(N_SAMPLES)
    found = share_intervals(draw.binomial(n, truth), np.full(N_SAMPLES, n))
    assert 93 <= covered(found, truth) <= 97.5


@pytest.mark.parametrize(
    ("totals", "mean", "spread"),
    [
        ([15] * 41, 0.05, 0.0),
        ([15] * 41, 0.05, 0.1),
        ([20] * 61, 0.14, 0.0),
        ([20] * 61, 0.14, 0.2),
        ([20] * 16, 0.10, 0.0),
        ([100] * 41, 0.05, 0.0),
        ([100] * 41, 0.05, 0.1),
        (LIKE_LAMA, 0.20, 0.2),
        ([15] * 41, 0.95, 0.0),
        (UNEQUAL, 0.10, 0.0),
        (UNEQUAL, 0.15, 0.2),
        ([20] * 2, 0.20, 0.2),
        ([10] * 3, 0.50, 0.3),
        ([15] * 5, 0.30, 0.3),
    ],
)
def test_means_over_relations_are_covered(totals: list[int], mean: float, spread: float) -> None:
    draw = np.random.default_rng(2)
    truth = shares_of(draw, mean, spread, len(totals))
    n = np.array(totals)[:, None]
    found = mean_share_intervals(draw.binomial(n, truth), n)
    assert 93 <= covered(found, truth.mean(axis=0)) <= 97.5


@pytest.mark.parametrize(("mean", "spread"), [(0.3, 0.0), (0.3, 0.15), (0.1, 0.0)])
def test_macro_means_over_objects_are_covered(mean: float, spread: float) -> None:
    draw = np.random.default_rng(3)
    truth = shares_of(draw, mean, spread, len(OBJECTS))
    n = np.array(OBJECTS)[:, None]
    found = mean_share_intervals(draw.binomial(n, truth), n)
    assert 93 <= covered(found, truth.mean(axis=0)) <= 97.5


@pytest.mark.parametrize(("n", "gains", "losses"), [(60, 0.2, 0.1), (300, 0.05, 0.02)])
def test_paired_differences_are_covered(n: int, gains: float, losses: float) -> None:
    draw = np.random.default_rng(4)
    won, lost = flips_of(draw, gains, losses, 20, 1)
    counts = draw_flips(draw, won, lost, np.array([[n]]))
    found = difference_intervals(*counts, np.array([[n]]))
    assert 93 <= covered(found, won - lost) <= 97.5


@pytest.mark.parametrize(
    ("totals", "gains", "losses", "size"),
    [
        ([15] * 41, 0.05, 0.02, None),
        ([15] * 41, 0.05, 0.02, 10),
        ([20] * 61, 0.20, 0.10, 2),
        ([100] * 41, 0.10, 0.01, 10),
        ([15] * 5, 0.20, 0.10, 10),
        (UNEQUAL, 0.10, 0.05, None),
    ],
)
def test_mean_differences_over_relations_are_covered(
    totals: list[int], gains: float, losses: float, size: float | None
) -> None:
    draw = np.random.default_rng(5)
    won, lost = flips_of(draw, gains, losses, size, len(totals))
    n = np.array(totals)[:, None]
    found = mean_difference_intervals(*draw_flips(draw, won, lost, n), n)
    assert 93 <= covered(found, (won - lost).mean(axis=0)) <= 97.5


@pytest.mark.parametrize("totals", [[5] * 3, [4, 8, 30, 100], [20] * 41])
def test_means_of_log_probabilities_are_covered(totals: list[int]) -> None:
    draw = np.random.default_rng(6)
    truth = draw.normal(-5, 2, (len(totals), N_SAMPLES))
    spread = draw.uniform(0.5, 2, (len(totals), 1))
    n = np.array(totals)[:, None]
    means = draw.normal(truth, spread / np.sqrt(n))
    variances = spread**2 * draw.chisquare(n - 1, truth.shape) / (n - 1)
    found = mean_value_intervals(means, variances, n)
    assert 93 <= covered(found, truth.mean(axis=0)) <= 97.5


def test_the_mean_of_a_population_of_relations_is_covered() -> None:
    draw = np.random.default_rng(7)
    samples = draw.binomial(20, draw.beta(1, 6, (N_SAMPLES, 61))) / 20
    ends = [mean_of_sample(sample).interval for sample in samples]
    found = Intervals(np.array([one.low for one in ends]), np.array([one.high for one in ends]))
    assert 93 <= covered(found, np.full(N_SAMPLES, 1 / 7)) <= 97.5
