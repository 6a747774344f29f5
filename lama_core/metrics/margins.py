"""Histogram of margins: how far the right answer's statement is ahead of the wrong ones.

    margin = score of the gold answer - best score of the wrong answers

in nats of log-likelihood (nats per token for the score `mean`). With a margin above 0 the gold
answer is first in the filtered ranking. The bins have equal width and a border at 0; a margin on a
border belongs to the bin below it. The two outermost bins are open-ended.
Source: Wiland et al. 2024 (BEAR), section 3, rank the same scores.
"""

from collections.abc import Sequence
from math import ceil, floor, inf, log10

import numpy as np
import pandas as pd

from lama_core.metrics.fact_answers import margins_of
from lama_core.metrics.relation_figures import scored_rows
from lama_core.metrics.score_tables import of_run, stacked
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking

N_BINS = 24
# Quantiles between which the bins are spread, so that outliers don't widen them.
MIDDLE = (0.02, 0.98)


def margin_histogram(
    runs: Sequence[Run],
    *,
    ranking: Ranking | None = "filtered",
    relations: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Count right and wrong facts by margin, one row per bin; skip runs without margins.

    Columns: run, model, right (rank 1 in the ranking), low, high (-inf and inf at the ends), n,
    share (of the run's facts that have a margin). ranking: None is each run's own.
    """
    found = []
    for run in runs:
        rows = scored_rows(run, ranking or run.info.ranking, relations)
        margins = margins_of(run)[rows.at].astype(np.float64)
        known = ~np.isnan(margins)
        if known.any():
            found.append((run, margins[known], rows.ranks[known] == 1))
    if not found:
        return pd.DataFrame(columns=["run", "model", "right", "low", "high", "n", "share"])
    finite = np.concatenate([margins for _, margins, _ in found])
    finite = finite[np.isfinite(finite)]
    low, high = (0.0, 0.0) if not len(finite) else np.quantile(finite, MIDDLE).tolist()
    low, high = min(low, 0.0), max(high, 0.0)
    least = (high - low) / N_BINS  # the width is rounded up to 1, 2 or 5 x 10^n
    power = 10.0 ** floor(log10(least)) if least > 0 else 1.0
    width = next((step * power for step in (1, 2, 5) if step * power >= least), 10 * power)
    first, last = floor(low / width), ceil(high / width)
    edges = np.array([round(number * width, 9) for number in range(first, last + 1)])
    ends = np.array([-inf, *edges, inf])
    tables = []
    for run, margins, right in found:
        bins = np.searchsorted(edges, margins, side="left")
        for is_right in (False, True):
            n = np.bincount(bins[right == is_right], minlength=len(ends) - 1)
            columns = {"low": ends[:-1], "high": ends[1:], "n": n, "share": n / len(margins)}
            tables.append(of_run(run, right=is_right, **columns))
    return stacked(tables)
