"""Figures of one set of ranks: P@k, its curve, MRR, mean and median rank, macro P@k.

All take the ranks of facts that count, int or float [fact], 1 = best, and give NaN for no facts.

    P@k      = |{facts: rank <= k}| / |facts|
    MRR      = mean of 1 / rank
    macro    = mean over objects of (P@k over the facts with that object)

P@k of a relation is the mean over its facts; of a source, the unweighted mean over its relations.
Source: Petroni et al. 2019, section 4.4; macro: Jiang et al. 2020, section 5.1.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ranks = NDArray[np.int64] | NDArray[np.float64]


def precision_at(ranks: Ranks, k: int = 1) -> float:
    """Share of facts whose gold is among the k best. Raises ValueError for k below 1."""
    if k < 1:
        raise ValueError(f"k is {k}: P@k needs k of at least 1")
    return _mean(ranks <= k)


def precision_curve(ranks: Ranks, k_max: int = 100) -> NDArray[np.float64]:
    """P@1, P@2, ... P@k_max, float64 [k]. Never falls as k grows."""
    if not len(ranks):
        return np.full(k_max, np.nan)
    counts = np.bincount(np.minimum(ranks, k_max + 1).astype(np.int64), minlength=k_max + 2)
    return np.cumsum(counts[1 : k_max + 1]) / len(ranks)


def mean_reciprocal_rank(ranks: Ranks) -> float:
    """Mean of 1 / rank."""
    return _mean(1.0 / ranks) if len(ranks) else float("nan")


def mean_rank(ranks: Ranks) -> float:
    """Mean rank."""
    return _mean(ranks)


def median_rank(ranks: Ranks) -> float:
    """Median rank; of an even number of facts, the mean of the two in the middle."""
    return float(np.median(ranks)) if len(ranks) else float("nan")


def macro_precision_at(ranks: Ranks, objects: Sequence[str], k: int = 1) -> float:
    """P@k of each object's facts, then the mean over the objects.

    A model that always gives the most frequent object of n scores 1 / n.
    """
    if not len(ranks):
        return float("nan")
    _, codes = np.unique(np.asarray(objects, dtype=object).astype(str), return_inverse=True)
    return float((np.bincount(codes, ranks <= k) / np.bincount(codes)).mean())


def _mean(values: NDArray[np.bool_] | Ranks) -> float:
    return float(values.astype(np.float64).mean()) if len(values) else float("nan")
