"""The Freq baseline: rank words by how often they are objects of the relation in the test data.

Words that are never objects rank last. Ties rank in the order of first appearance.
Source: Petroni et al. 2019, section 4.3.

Departure: The baseline Freq when filtered
"""

import numpy as np

from lama_core.scoring.ranking import Ints


def freq_ranks(relations: Ints, objects: Ints, subjects: Ints | None = None) -> Ints:
    """Return the baseline's rank of each fact's object in its relation, int64 [fact], 1 = best.

    Args:
        relations: Codes of the relations, int64 [fact].
        objects: Codes of the objects, int64 [fact].
        subjects: Codes of the subjects, int64 [fact]. If given, other objects of the same relation
            and subject are removed (filtered ranking). None: raw ranking.
    """
    keys = relations * (objects.max(initial=0) + 2) + objects + 1
    _, first, word, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -counts, relations[first]))
    places = np.empty(len(order), dtype=np.int64)
    places[order] = _numbered(relations[first][order])
    ranks = places[word] + 1
    if subjects is not None:
        # Filtered: subtract the number of better-ranked objects of the same subject.
        keys = relations * (subjects.max(initial=0) + 2) + subjects + 1
        width = ranks.max(initial=0) + 1
        cells, cell = np.unique(keys * width + ranks, return_inverse=True)
        ranks -= _numbered(cells // width)[cell]
    return ranks


def _numbered(groups: Ints) -> Ints:
    """Number the members of each group from 0, int64 [member]; equal groups are adjacent."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)
