"""The rank of the gold answer that each row of a run knows, and so which metrics are defined.

    a rank                      every metric is defined
    a list of n predictions     the rank is from 1 to n, or larger: P@k is defined for k <= n
    a verdict (right or wrong)  the rank is 1 or larger: P@1 is defined

A metric of several facts is defined if it is defined for each of them; undefined is NaN. What a row
knows doesn't depend on whether the answer is right, so that no metric is over the right answers
alone. The first answer of a row is unknown if a tool stored only its rank or verdict.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lama_core.runs.alignment import Bools
from lama_core.runs.facts_table import RANKED
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ints


def hits(ranks: NDArray[Any], known: Ints, k: int) -> NDArray[np.float64]:
    """Return whether each rank is at most k, float64 [row]: 1, 0, or NaN if it isn't known.

    Args:
        ranks: Ranks, [row]; NaN in excluded rows.
        known: `Run.known_to` of these rows.
        k: The k of P@k.
    """
    return np.where((known < k) | np.isnan(ranks), np.nan, ranks <= k)


def defined_rows(groups: NDArray[Any], right: Sequence[NDArray[np.float64]]) -> Bools:
    """Return the rows of the groups in which P@k is defined for all runs, bool [row].

    Args:
        groups: The group of each row, such as its relation.
        right: `hits` of each run in these rows.
    """
    return ~np.isin(groups, np.unique(groups[np.isnan(np.array(right)).any(axis=0)]))


def why_undefined(runs: Iterable[Run], k: int) -> str:
    """Return for which runs P@k isn't defined, and up to which k it is, in a sentence."""
    most = {run.info.label: int(run.known_to[run.counted].min(initial=RANKED)) for run in runs}
    names = [f"{name} (defined up to P@{n})" for name, n in most.items() if n < k]
    return (
        f"P@{k} isn't defined for {' and '.join(names)}, because the results don't have the ranks "
        "of all right answers. Choose a smaller k."
    )
