"""95 % score intervals: how much a figure would vary with other facts of the same kind.

Score intervals are used for every share and every difference of shares. They have a positive width
even for 0 of n and n of n, and stay within the possible range.

    share of c in n        Wilson's: all p with |c/n - p| <= z sqrt(p (1 - p) / n)
    paired difference      Tango's: the same for (gains - losses) / n, all d with
                           |gains - losses - n d| <= z sqrt(n (2 q + d (1 - d))), where q is the
                           maximum-likelihood share of losses given d
    mean over relations    Wilson's or Tango's, with the mean shares and an effective number of
                           facts in place of c/n and n
    mean of log-probabilities or ranks over relations
                           Student's, with Satterthwaite's degrees of freedom (Welch 1947)

The effective number of facts n* is the number of facts in one sample whose mean would vary as much
as the mean over relations does:

    n* = (variance of a fact drawn from a random relation) / v
    v  = (1 / R^2) sum over relations of s_r / n_r, the variance of the mean over R relations

where s_r is the variance of a fact of relation r, such as p (1 - p) for shares. A relation with few
facts often has no right answer, so its s_r would be estimated as 0. Therefore s_r is estimated from
the relation's n_r facts and `PRIOR_FACTS` more, which vary like a fact of a random relation. All
estimates are without bias if the relations have the same p. If every fact is right, or none, n* is
the value for relations with the same p. With one relation n* = n, so the interval is Wilson's or
Tango's.

The facts of each relation are treated as a sample, the relations as fixed. In simulated samples of
41 relations x 15 facts, 5 % right; 61 x 20, 14 %; 16 x 20, 10 %; 41 x 100, 5 %; and most others,
such intervals contain the true mean in 93 to 97.5 of 100 cases
(`tests/third/metrics/test_coverage_of_intervals.py`). Exceptions: relations with one to three facts
each say little about their own s_r; if they differ, the interval is too wide (up to 99 %). If one
relation has far fewer facts than the other few, it decides the mean's variance, and the interval
can contain the true mean in 88 of 100 cases only.
Zou, Huang and Zhang's combination of the relations' own intervals, used before, covers 87 to 91 %
in the four settings named above, because the intervals of rare answers are not symmetric.

Bootstrap and Bayesian intervals are not used: a resample of 0 of n is always 0 of n, and posterior
draws for many small relations shrink towards 1/2.

If the relations themselves are the sample, `mean_of_sample` gives Student's interval and test.

Sources: Wilson 1927; Tango 1998; Korn and Graubard 1998 (effective size), compared with others by
Franco et al. 2019; Satterthwaite 1946; Student 1908.
Departure: Intervals
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from lama_core.scoring.ranking import Ints

LEVEL = 0.95
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
METHOD = "Wilson's score interval"
METHOD_OF_MEANS = f"{METHOD} with an effective number of facts"
METHOD_OF_DIFFERENCES = "Tango's score interval of paired shares"
METHOD_OF_MEAN_DIFFERENCES = f"{METHOD_OF_DIFFERENCES}, with an effective number of facts"
PRIOR_FACTS = 3  # 0 to 10 were tried: with fewer, unequal relations are covered too rarely
N_HALVINGS = 55  # bisections of [-1, 1], down to the precision of a float

Floats = NDArray[np.float64]
Counts = NDArray[np.int64] | NDArray[np.float64]  # float64: effective numbers of facts


@dataclass(frozen=True, slots=True)
class Interval:
    """Lower and upper end of one interval; NaN if undefined."""

    low: float
    high: float

    @property
    def includes_zero(self) -> bool:
        """Whether 0 is in the interval; False if it is undefined."""
        return bool(self.low <= 0 <= self.high)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Lower and upper ends of several intervals, float64 of the same shape; NaN without facts."""

    low: Floats
    high: Floats

    def __getitem__(self, at: int) -> Interval:
        return Interval(float(self.low[at]), float(self.high[at]))


@dataclass(frozen=True, slots=True)
class SampleMean:
    """The mean of a sample, its interval, and the two-sided p-value of the hypothesis mean = 0.

    Interval and p are NaN for fewer than two values, if all values are equal, or one is NaN.
    """

    mean: float
    interval: Interval
    p: float


def share_intervals(successes: Counts, totals: Counts) -> Intervals:
    """Return Wilson's interval of each share; successes, totals: of the same shape."""
    z2 = Z**2
    n = np.where(totals > 0, totals, np.nan)
    share = successes / n
    centre = share + z2 / (2 * n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n)))
    low, high = (centre - half) / (1 + z2 / n), (centre + half) / (1 + z2 / n)
    # Avoid rounding errors: 0 of n starts at exactly 0, n of n ends at exactly 1.
    low = np.where(successes == 0, 0.0 * n, np.minimum(low, share))
    high = np.where(successes == totals, 1.0 + 0.0 * n, np.maximum(high, share))
    return Intervals(low, high)


def difference_intervals(gains: Counts, losses: Counts, totals: Counts) -> Intervals:
    """Return Tango's interval of each paired difference (gains - losses) / totals.

    gains: [group], facts that only the second run gets right. losses: the same for the first.
    """
    n = np.where(totals > 0, totals, np.nan)
    estimate = (gains - losses) / n

    def above(difference: Floats) -> Floats:
        """Standard errors by which the estimate exceeds a difference; a decreasing function."""
        b = -gains - losses + (2 * n - gains + losses) * difference
        c = -losses * difference * (1 - difference)
        lost = (np.sqrt(np.maximum(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
        variance = n * (2 * lost + difference * (1 - difference))
        distance = gains - losses - n * difference
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(distance == 0, 0.0, distance / np.sqrt(np.maximum(variance, 0.0)))

    def end(inside: Floats, outside: float) -> Floats:
        beyond = np.full_like(inside, outside)
        for _ in range(N_HALVINGS):
            middle = (inside + beyond) / 2
            holds = np.abs(above(middle)) <= Z
            inside, beyond = np.where(holds, middle, inside), np.where(holds, beyond, middle)
        return np.where(np.isnan(estimate), np.nan, inside)

    return Intervals(end(estimate, -1.0), end(estimate, 1.0))


def mean_share_intervals(hits: Ints | Floats, totals: Ints) -> Intervals:
    """Return the interval of the mean share over the first axis, of the shape of the other axes.

    hits, totals: [relation, ...], right facts and facts (at least one) of at least one relation.
    """
    shares = hits / totals
    mean = shares.mean(axis=0)
    n = _effective_facts(shares * (1 - shares), mean * (1 - mean), totals)
    return share_intervals(mean * n, n)


def mean_difference_intervals(gains: Ints, losses: Ints, totals: Ints) -> Intervals:
    """Return the interval of the mean over the first axis of (gains - losses) / totals.

    gains, losses, totals: int64 [relation, ...] of at least one relation, as in
        `difference_intervals`; totals at least 1.
    """
    won, lost = gains / totals, losses / totals
    mean_won, mean_lost = won.mean(axis=0), lost.mean(axis=0)
    n = _effective_facts(
        won + lost - (won - lost) ** 2,
        mean_won + mean_lost - (mean_won - mean_lost) ** 2,
        totals,
    )
    return difference_intervals(mean_won * n, mean_lost * n, n)


def mean_value_intervals(means: Floats, variances: Floats, totals: Ints) -> Intervals:
    """Return Student's interval of the mean of the relations' means over the first axis.

    NaN if a relation has fewer than two facts, or if no relation's facts differ.

    Args:
        means: Mean of the facts of at least one relation, float64 [relation, ...].
        variances: Their sample variance (divisor n - 1), float64 [relation, ...].
        totals: Number of facts, int64 [relation, ...].
    """
    from scipy.special import stdtrit  # `scipy.stats.t` takes half a second to import

    mean = means.mean(axis=0)
    free = np.where(totals > 1, totals - 1, np.nan)
    parts = variances / totals
    variance = parts.sum(axis=0)
    variance = np.where(variance > 0, variance, np.nan)
    degrees = variance**2 / (parts**2 / free).sum(axis=0)
    half = stdtrit(degrees, (1 + LEVEL) / 2) * np.sqrt(variance) / len(means)
    return Intervals(np.asarray(mean - half), np.asarray(mean + half))


def _effective_facts(variances: Floats, pooled: Floats, totals: Ints) -> Floats:
    """Return the effective number of facts n* of a mean over relations (see the module).

    Let V be the variance of a fact of a random relation. The variance s_r is estimated by
    (n_r variances_r + PRIOR_FACTS V) / (n_r - 1 + PRIOR_FACTS), and V by pooled + v. Solving
    v = sum(s_r / n_r) / R^2 for v gives V / v as below.

    Args:
        variances: Of the observed facts of each relation (divisor n), float64 [relation, ...].
        pooled: Variance of a fact drawn from a random relation, as observed, float64 [...].
        totals: Number of facts, int64 [relation, ...].
    """
    squared = len(totals) ** 2
    own = (variances / (totals - 1 + PRIOR_FACTS)).sum(axis=0) / squared
    prior = (PRIOR_FACTS / (totals * (totals - 1 + PRIOR_FACTS))).sum(axis=0) / squared
    equal = squared / (1 / totals).sum(axis=0)  # if all relations have the same p
    varies = pooled > 0
    divisor = np.where(varies, own + pooled * prior, 1.0)
    return np.asarray(np.where(varies, (pooled + own) / divisor, equal))


def mean_of_sample(values: Floats) -> SampleMean:
    """Return the mean of the values, float64 [value], with Student's interval and one-sample test.

    The interval is cut to [-1, 1].
    """
    from scipy.special import stdtr, stdtrit  # `scipy.stats.t` takes half a second to import

    mean = float(values.mean()) if len(values) else float("nan")
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    if not spread > 1e-12:  # also for NaN
        return SampleMean(mean, Interval(float("nan"), float("nan")), float("nan"))
    error, free = spread / np.sqrt(len(values)), len(values) - 1
    half = float(stdtrit(free, (1 + LEVEL) / 2)) * error
    p = 2 * float(stdtr(free, -abs(mean) / error))
    return SampleMean(mean, Interval(max(-1.0, mean - half), min(1.0, mean + half)), p)
