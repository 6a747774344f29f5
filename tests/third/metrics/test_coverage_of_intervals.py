"""95 % intervals contain the true value in 93 to 97.5 of 100 simulated samples.

The true values of each setting are drawn or given; the facts of each relation are then drawn from
them, `N_SAMPLES` times.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from lama_core.metrics.intervals import (
    Intervals,
    mean_difference_intervals,
    mean_share_intervals,
)

Floats = NDArray[np.float64]
N_SAMPLES = 3000  # the standard error of a coverage of 95 % is 0.4 points
UNEQUAL = [3, 5, 8, 12, 20, 40, 80, 150, 300, 900]
LIKE_LAMA = np.linspace(20, 1000, 41).astype(int).tolist()


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


@pytest.mark.parametrize(
    ("totals", "mean", "spread"),
    [
        ([15] * 41, 0.05, 0.0),
        ([20] * 61, 0.14, 0.0),
        ([20] * 16, 0.10, 0.0),
        ([100] * 41, 0.05, 0.0),
        (LIKE_LAMA, 0.20, 0.2),
        ([15] * 41, 0.95, 0.0),
        (UNEQUAL, 0.15, 0.2),
        ([10] * 3, 0.50, 0.3),
    ],
)
def test_means_over_relations_are_covered(totals: list[int], mean: float, spread: float) -> None:
    draw = np.random.default_rng(2)
    truth = shares_of(draw, mean, spread, len(totals))
    n = np.array(totals)[:, None]
    found = mean_share_intervals(draw.binomial(n, truth), n)
    assert 93 <= covered(found, truth.mean(axis=0)) <= 97.5


@pytest.mark.parametrize(
    ("totals", "gains", "losses", "size"),
    [
        ([15] * 41, 0.05, 0.02, None),
        ([20] * 61, 0.20, 0.10, 2),
        ([100] * 41, 0.10, 0.01, 10),
        (UNEQUAL, 0.10, 0.05, None),
    ],
)
def test_mean_differences_over_relations_are_covered(
    totals: list[int], gains: float, losses: float, size: float | None
) -> None:
    draw = np.random.default_rng(5)
    n = np.array(totals)[:, None]
    if size is None:  # all relations have the same shares
        won, lost = (np.full((len(n), N_SAMPLES), share) for share in (gains, losses))
    else:
        true = draw.dirichlet(
            np.array([gains, losses, 1 - gains - losses]) * size, (len(n), N_SAMPLES)
        )
        won, lost = true[..., 0], true[..., 1]
    n_won = draw.binomial(n, won)
    n_lost = draw.binomial(n - n_won, lost / np.maximum(1 - won, 1e-12))
    found = mean_difference_intervals(n_won, n_lost, n)
    assert 93 <= covered(found, (won - lost).mean(axis=0)) <= 97.5
