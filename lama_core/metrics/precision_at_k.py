"""P@k and macro P@k of a set of ranks; for finished runs see `relation_figures`.

Both take the ranks of the facts that count, int or float [fact], 1 = best, and return NaN without
facts.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

RankArray = NDArray[np.int64] | NDArray[np.float64]


def precision_at(ranks: RankArray, k: int = 1) -> float:
    """Share of facts whose gold answer is among the k best; NaN without facts."""
    return float((ranks <= k).mean()) if len(ranks) else float("nan")


def macro_precision_at(ranks: RankArray, objects: Sequence[str], k: int = 1) -> float:
    """Mean over objects of P@k of the object's facts.

    A majority-class predictor scores 1 / n for n objects.
    """
    names = np.asarray(objects, dtype=object).astype(str)
    return float(group_shares(names, ranks <= k)[1].mean()) if len(ranks) else float("nan")


def group_shares(
    keys: NDArray[Any], right: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the distinct keys, and the share of right rows for each, float64 [key]."""
    known, codes = np.unique(keys, return_inverse=True)
    return known, np.bincount(codes, right) / np.bincount(codes)


def means(groups: NDArray[np.int64], values: NDArray[Any], n: int) -> NDArray[np.float64]:
    """Return the mean value of each of n groups, float64 [group]; NaN for an empty group."""
    counts = np.bincount(groups, minlength=n)
    sums = np.bincount(groups, values, minlength=n)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
