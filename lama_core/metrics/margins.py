"""How far ahead the right answer is: margins of statements, counted in bins of equal width.

    margin = score of the gold - best score of the answers that aren't right

in nats of log-likelihood (of `mean`, a token). A margin above 0 puts the gold first in the filtered
ranking. The bins have 0 as a border; a margin on a border belongs to the bin below it. What lies
beyond the outermost of them is in that bin, which is as wide as it must be.
Source: Wiland et al. 2024 (BEAR), section 3, rank the same scores.
"""

from collections.abc import Sequence
from math import ceil, floor, inf, isfinite, log10

import numpy as np
import pandas as pd

from lama_core.metrics.fact_answers import margins_of
from lama_core.metrics.relation_figures import scored_rows
from lama_core.metrics.score_tables import of_run, stacked
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking

N_BINS = 24
# The middle share of the margins decides the width: one far out shall not hide the others.
MIDDLE = (0.02, 0.98)


def margin_histogram(
    runs: Sequence[Run],
    *,
    ranking: Ranking = "filtered",
    relations: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Facts by margin, the right and the wrong ones apart; runs without margins have no row.

    Columns run, model, right (rank 1 in the ranking), low, high (-inf and inf at the ends), n,
    share (of the run's facts that have a margin).
    """
    found = []
    for run in runs:
        rows = scored_rows(run, ranking, relations)
        margins = margins_of(run)[rows.at].astype(np.float64)
        known = ~np.isnan(margins)
        if known.any():
            found.append((run, margins[known], rows.ranks[known] == 1))
    if not found:
        return pd.DataFrame(columns=["run", "model", "right", "low", "high", "n", "share"])
    edges = _borders([margins for _, margins, _ in found])
    ends = np.array([-inf, *edges, inf])
    tables = []
    for run, margins, right in found:
        bins = np.searchsorted(edges, margins, side="left")
        for is_right in (False, True):
            n = np.bincount(bins[right == is_right], minlength=len(ends) - 1)
            share = n / len(margins)
            columns = {"low": ends[:-1], "high": ends[1:], "n": n, "share": share}
            tables.append(of_run(run, right=is_right, **columns))
    return stacked(tables)


def _borders(margins: Sequence[np.ndarray]) -> np.ndarray:
    """The borders between bins, float64 ascending, 0 among them: multiples of 1, 2 or 5 x 10^n."""
    finite = np.concatenate(margins)
    finite = finite[np.isfinite(finite)]
    low, high = (0.0, 0.0) if not len(finite) else np.quantile(finite, MIDDLE).tolist()
    low, high = min(low, 0.0), max(high, 0.0)
    width = _round_width((high - low) / N_BINS)
    first, last = floor(low / width), ceil(high / width)
    return np.array([round(number * width, 9) for number in range(first, last + 1)])


def _round_width(width: float) -> float:
    """The next of 1, 2 and 5 x 10^n that is at least so wide."""
    if width <= 0 or not isfinite(width):
        return 1.0
    power = 10.0 ** floor(log10(width))
    return next((step * power for step in (1, 2, 5) if step * power >= width), 10 * power)
