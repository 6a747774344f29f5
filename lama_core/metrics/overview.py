"""`score_table` in three steps, so that a page recomputes only what a click has changed.

    relation_figures    what depends on neither k nor the chosen relations
    precision_samples   P@k and its resamples, for one k
    summarise           both, over the chosen relations, by relation, source or type

The numbers are those of `tables.score_table`. Where only some relations are chosen, its interval
is over other resamples of the same facts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.asking.ranking import Ranking
from lama_core.metrics.intervals import LEVEL, draw_shares
from lama_core.metrics.tables import By, score_table, scored_rows
from lama_core.runs.records import Run

FIGURES = ("p_at_1", "p_at_10", "mrr", "macro_p_at_1", "mean_rank", "median_rank", "freq")


@dataclass(frozen=True)
class PrecisionSamples:
    """P@k of each relation of a run, in the order of `RunInfo.relations`.

    p_at_k: float64 [relation], NaN without facts. samples: float64 [relation, sample].
    """

    p_at_k: NDArray[np.float64]
    samples: NDArray[np.float64]


def relation_figures(run: Run, ranking: Ranking = "filtered") -> pd.DataFrame:
    """One row a relation of the run, with the columns of `score_table`."""
    return score_table([run], by="relation", ranking=ranking)


def precision_samples(run: Run, k: int, ranking: Ranking = "filtered") -> PrecisionSamples:
    """P@k of every relation, and resamples of it."""
    rows = scored_rows(run, ranking)
    n = rows.n
    hits = np.bincount(rows.relation[rows.ranks <= k], minlength=len(n))
    with np.errstate(invalid="ignore"):
        p_at_k = np.where(n > 0, hits / np.maximum(n, 1), np.nan)
    return PrecisionSamples(p_at_k, draw_shares(hits, n))


def summarise(
    figures: pd.DataFrame,
    precision: PrecisionSamples,
    *,
    by: By = "relation",
    relations: Sequence[str] = (),
    level: float = LEVEL,
) -> pd.DataFrame:
    """One row a relation, source, or source and type, with the columns of `score_table`.

    figures, precision: of the same run. relations: only these; () is all.
    """
    table = figures.assign(p_at_k=precision.p_at_k)
    chosen = np.arange(len(table))
    if len(relations):
        chosen = np.flatnonzero(table["relation"].isin(relations))
    ends = [(1 - level) / 2, (1 + level) / 2]
    if by == "relation":
        table = table.iloc[chosen].reset_index(drop=True)
        low, high = _quantiles(precision.samples[chosen], ends)
        return table.assign(low=low, high=high)
    values = table[[*FIGURES, "p_at_k"]].to_numpy(dtype=float)
    n, n_excluded = table["n"].to_numpy(), table["n_excluded"].to_numpy()
    sources, types = table["source"].tolist(), table["type"].astype(object).tolist()
    groups: dict[tuple[str, str | None], list[int]] = {}
    for at in chosen.tolist():
        kind = types[at] if by == "type" and isinstance(types[at], str) else None
        groups.setdefault((sources[at], kind), []).append(at)
    first = table.iloc[0]
    lines = []
    for (source, kind), members in groups.items():
        known = [member for member in members if n[member] > 0]
        line: dict[str, object] = {
            "run": first["run"],
            "model": first["model"],
            "dataset": first["dataset"],
            "source": source,
            "label": "",
            "type": kind,
            "n_relations": len(members),
            "n": int(n[members].sum()),
            "n_excluded": int(n_excluded[members].sum()),
        }
        means = values[known].mean(axis=0) if known else np.full(values.shape[1], np.nan)
        line |= dict(zip((*FIGURES, "p_at_k"), means.tolist(), strict=True))
        sampled = precision.samples[known]
        low, high = np.quantile(sampled.mean(axis=0), ends) if known else (np.nan, np.nan)
        lines.append(line | {"low": float(low), "high": float(high)})
    return pd.DataFrame(lines)


def _quantiles(samples: NDArray[np.float64], ends: Sequence[float]) -> NDArray[np.float64]:
    """The ends of each row's interval, float64 [end, row]; NaN for a row of NaN."""
    found = np.full((len(ends), len(samples)), np.nan)
    known = ~np.isnan(samples).any(axis=1)
    if known.any():
        found[:, known] = np.quantile(samples[known], ends, axis=1)
    return found
