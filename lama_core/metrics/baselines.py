"""The Freq baseline: rank words by how often they are objects of the relation in the test data.

Words that are never objects rank last. Ties rank in the order of first appearance.
Source: Petroni et al. 2019, section 4.3.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def freq_ranks(relations: Ints, objects: Ints, subjects: Ints | None = None) -> Ints:
    """Return the baseline's rank of each fact's object in its relation, int64 [fact], 1 = best.

    Args:
        relations: Codes of the relations, int64 [fact].
        objects: Codes of the objects, int64 [fact].
        subjects: Codes of the subjects, int64 [fact]. If given, other objects of the same relation
            and subject are removed (filtered ranking). None: raw ranking.
    """
    facts = pd.DataFrame({"relation": relations, "object": objects})
    words = facts.groupby(["relation", "object"], sort=False).size()
    places = words.groupby(level="relation").rank(method="first", ascending=False)
    ranks = pd.Series(places.reindex(pd.MultiIndex.from_frame(facts)).to_numpy())
    if subjects is not None:
        # Filtered: subtract the number of better-ranked objects of the same subject.
        ranks = ranks - (ranks.groupby([relations, subjects]).rank(method="dense") - 1)
    return ranks.to_numpy(dtype=np.int64)
