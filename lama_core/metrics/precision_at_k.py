"""P@k and macro P@k of one set of ranks, for what is no run of its own (see `figures`).

Both take the ranks of facts that count, int or float [fact], 1 = best, and give NaN for no facts.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ranks = NDArray[np.int64] | NDArray[np.float64]


def precision_at(ranks: Ranks, k: int = 1) -> float:
    """Share of facts whose gold is among the k best. Raises ValueError for k below 1."""
    if k < 1:
        raise ValueError(f"k is {k}: P@k needs k of at least 1")
    return float((ranks <= k).mean()) if len(ranks) else float("nan")


def macro_precision_at(ranks: Ranks, objects: Sequence[str], k: int = 1) -> float:
    """P@k of each object's facts, then the mean over the objects.

    A model that always gives the most frequent object of n scores 1 / n.
    """
    names = np.asarray(objects, dtype=object).astype(str)
    return float(group_shares(names, ranks <= k)[1].mean()) if len(ranks) else float("nan")


def group_shares(
    keys: NDArray[Any], right: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The different keys, and of each the share of its rows that are right, float64 [key]."""
    known, codes = np.unique(keys, return_inverse=True)
    return known, np.bincount(codes, right) / np.bincount(codes)


def means(groups: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The mean of each group's values, float64 [group]; NaN for one without. groups: below n."""
    counts = np.bincount(groups, minlength=n)
    sums = np.bincount(groups, values, minlength=n)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
