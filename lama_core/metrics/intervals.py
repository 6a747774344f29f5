"""Bootstrap intervals: how far a figure would move with other facts of the same kind.

Percentile bootstrap (Efron 1979): draw as many facts with replacement, recompute, repeat; the
interval lies between the (1 - level) / 2 and (1 + level) / 2 quantiles. Facts are drawn within
their relation, since the relations of a source are chosen, not drawn. For shares there is a
shortcut with the same distribution: the number of successes in a resample of n facts of which c
succeeded is Binomial(n, c / n), and of paired differences Multinomial.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

N_SAMPLES = 2000
LEVEL = 0.95
SEED = 0

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Interval:
    """Lower and upper end; NaN where there are no facts."""

    low: float
    high: float


def draw_shares(
    successes: Ints, totals: Ints, *, n_samples: int = N_SAMPLES, seed: int = SEED
) -> Floats:
    """Resampled shares, float64 [group, sample]; NaN for a group without facts.

    successes, totals: int64 [group].
    """
    draw = np.random.default_rng(seed)
    with np.errstate(invalid="ignore"):
        shares = np.where(totals > 0, successes / np.maximum(totals, 1), 0.0)
        drawn = draw.binomial(totals[:, None], shares[:, None], (len(totals), n_samples))
        return np.where(totals[:, None] > 0, drawn / np.maximum(totals, 1)[:, None], np.nan)


def draw_differences(
    gains: Ints, losses: Ints, totals: Ints, *, n_samples: int = N_SAMPLES, seed: int = SEED
) -> Floats:
    """Resampled mean paired differences, float64 [group, sample]; NaN for a group without facts.

    gains, losses: int64 [group], facts whose value rises or falls by one.
    """
    draw = np.random.default_rng(seed)
    samples = np.full((len(totals), n_samples), np.nan)
    for group, (gain, loss, total) in enumerate(zip(gains, losses, totals, strict=True)):
        if total:
            shares = [gain / total, loss / total, 1 - (gain + loss) / total]
            counts = draw.multinomial(total, shares, n_samples)
            samples[group] = (counts[:, 0] - counts[:, 1]) / total
    return samples


def quantile_interval(samples: Floats, *, level: float = LEVEL) -> Interval:
    """The interval that holds the middle `level` of the samples."""
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))
