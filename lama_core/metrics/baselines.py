"""The Freq baseline: rank words by how often they are objects of the relation in the test data.

Words that are never objects come after all that are; ties in the order of first appearance.
Source: Petroni et al. 2019, section 4.3.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def freq_ranks(relations: Ints, objects: Ints, subjects: Ints | None = None) -> Ints:
    """The baseline's rank of each fact's object among its relation's, int64 [fact], 1 = best.

    relations, objects, subjects: int64 [fact], equal numbers for equal names. subjects: given, the
    other objects of the same relation and subject are removed first (filtered ranking); None ranks
    raw.
    """
    facts = pd.DataFrame({"relation": relations, "object": objects})
    words = facts.groupby(["relation", "object"], sort=False).size()
    places = words.groupby(level="relation").rank(method="first", ascending=False)
    ranks = pd.Series(places.reindex(pd.MultiIndex.from_frame(facts)).to_numpy())
    if subjects is not None:
        # A subject's objects in order of place: each is preceded by those that are removed for it.
        ranks = ranks - (ranks.groupby([relations, subjects]).rank(method="dense") - 1)
    return ranks.to_numpy(dtype=np.int64)
