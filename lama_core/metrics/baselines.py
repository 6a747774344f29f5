"""The Freq baseline: rank words by how often they are objects of the relation in the test data.

Words that are never objects come after all that are; ties in the order of first appearance.
Source: Petroni et al. 2019, section 4.3.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def freq_ranks(relations: Ints, objects: Ints, subjects: Ints | None = None) -> Ints:
    """The baseline's rank of each fact's object among its relation's, int64 [fact], 1 = best.

    relations, objects, subjects: int64 [fact], equal numbers for equal names, none negative.
    subjects: given, the other objects of the same relation and subject are removed first (filtered
    ranking); None ranks raw.
    """
    if not len(objects):
        return np.zeros(0, dtype=np.int64)
    words, first, inverse, counts = np.unique(
        relations * (int(objects.max()) + 1) + objects,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    owner = relations[first]
    order = np.lexsort((first, -counts, owner))
    places = np.empty(len(words), dtype=np.int64)
    places[order] = _count_within(owner[order]) + 1
    ranks: Ints = places[inverse]
    if subjects is None:
        return ranks
    # A subject's objects in order of place: each is preceded by those that are removed for it.
    pair = relations * (int(subjects.max()) + 1) + subjects
    width = int(ranks.max()) + 1
    known, back = np.unique(pair * width + ranks, return_inverse=True)
    return ranks - _count_within(known // width)[back]


def _count_within(groups: Ints) -> Ints:
    """0, 1, 2, ... within each run of equal numbers."""
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    lengths = np.diff(np.concatenate([starts, [len(groups)]]))
    return np.arange(len(groups)) - np.repeat(starts, lengths)
