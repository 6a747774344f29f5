"""P@k and macro P@k of one set of ranks, for what is no run of its own (see `figures`).

Both take the ranks of facts that count, int or float [fact], 1 = best, and give NaN for no facts.
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
