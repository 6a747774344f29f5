"""Tables over many runs at once, for the Results page and the command line.

The score table is made in three steps, so that a page recomputes only what a click has changed:

    relation_figures    what depends on neither k nor the chosen relations
    precision_samples   P@k and its resamples, for one k
    summarise           both, over the chosen relations, by relation, source or type

A relation's figure is over its facts. A source's (or type's) is the unweighted mean over its
relations (Petroni et al. 2019, section 4.4); a relation without a fact that counts is left out of
that mean and stays a row of its own, with n = 0. Everything works on whole columns: 6 models x 41
relations x 34,000 facts take a few tens of milliseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.asking.ranking import Ranking
from lama_core.metrics.calibration import (
    N_BINS,
    ReliabilityBin,
    expected_calibration_error,
    reliability_bins,
)
from lama_core.metrics.figures import METRICS, Floats, scored_rows
from lama_core.metrics.intervals import LEVEL, draw_shares
from lama_core.requests import argument, option
from lama_core.runs.info import Run

By = Literal["relation", "source", "type"]
BYS: tuple[By, ...] = ("relation", "source", "type")


@dataclass(frozen=True, slots=True)
class ResultsRequest:
    """Finished runs, and which table of theirs: the choices of `results` and of the page.

    own: each run on all the facts that it counts, see `runs.aligned`.
    """

    command: ClassVar[tuple[str, ...]] = ("results",)

    runs: tuple[str, ...] = argument()
    by: By = "relation"
    ranking: Ranking | None = None
    k: int = 1
    relations: tuple[str, ...] = option("--relation", default=())
    wording: bool = False
    slices: bool = False
    own: bool = False


@dataclass(frozen=True)
class PrecisionSamples:
    """P@k of each relation of a run, in the order of `RunInfo.relations`.

    p_at_k: float64 [relation], NaN without facts. samples: float64 [relation, sample].
    """

    p_at_k: Floats
    samples: Floats


def score_table(
    runs: Sequence[Run],
    *,
    by: By = "relation",
    ranking: Ranking = "filtered",
    k: int = 1,
    relations: Sequence[str] = (),
    level: float = LEVEL,
) -> pd.DataFrame:
    """One row a run and relation (or source, or source and type), in the runs' order.

    Columns: run, model, dataset, source, relation (by relation only), label, type, n_relations, n,
    n_excluded, those of `METRICS`, p_at_k, low, high (the interval of p_at_k). P@ between 0 and 1.
    """
    tables = [
        summarise(
            relation_figures(run, ranking),
            precision_samples(run, k, ranking),
            by=by,
            relations=relations,
            level=level,
        )
        for run in runs
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def relation_figures(run: Run, ranking: Ranking = "filtered") -> pd.DataFrame:
    """One row a relation of the run, with the columns of `score_table` that no k changes."""
    rows = scored_rows(run, ranking)
    table = pd.DataFrame(
        {
            "relation": [relation.name for relation in rows.relations],
            "run": run.info.id,
            "model": run.info.model,
            "dataset": run.info.dataset,
            "source": [relation.source for relation in rows.relations],
            "label": [relation.label for relation in rows.relations],
            "type": [relation.type for relation in rows.relations],
            "n_relations": 1,
            "n": rows.n,
            "n_excluded": [relation.n_excluded for relation in rows.relations],
        }
    )
    return table.assign(**{name: metric.compute(rows) for name, metric in METRICS.items()})


def precision_samples(run: Run, k: int, ranking: Ranking = "filtered") -> PrecisionSamples:
    """P@k of every relation, and resamples of it."""
    rows = scored_rows(run, ranking)
    is_hit = rows.ranks <= k
    hits = np.bincount(rows.relation[is_hit], minlength=len(rows.n))
    return PrecisionSamples(rows.mean(is_hit), draw_shares(hits, rows.n))


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
    values = {name: table[name].to_numpy(dtype=float) for name in (*METRICS, "p_at_k")}
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
        for name, column in values.items():
            line[name] = float(column[known].mean()) if known else float("nan")
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


def precision_curves(
    runs: Sequence[Run],
    *,
    ranking: Ranking = "filtered",
    k_max: int = 100,
    relations: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Figure 2: mean P@k over relations, k from 1 to k_max. Columns run, model, k, p_at_k."""
    tables = []
    for run in runs:
        rows = scored_rows(run, ranking, relations)
        known = rows.n > 0
        width = k_max + 2
        cells = rows.relation * width + np.minimum(rows.ranks, k_max + 1)
        counts = np.bincount(cells, minlength=len(rows.relations) * width)
        hits = np.cumsum(counts.reshape(-1, width)[:, 1 : k_max + 1], axis=1)
        mean = (hits[known] / rows.n[known, None]).mean(axis=0) if known.any() else np.nan
        tables.append(
            pd.DataFrame(
                {
                    "run": run.info.id,
                    "model": run.info.model,
                    "k": np.arange(1, k_max + 1),
                    "p_at_k": mean,
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def rank_histogram(
    runs: Sequence[Run],
    *,
    ranking: Ranking = "filtered",
    bins_per_decade: int = 3,
    relations: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Facts by rank, in bins that are equal on a log axis. Columns run, model, low, high, n, share.

    A bin holds the ranks from `low` to `high`, both included; rank 1 has a bin of its own.
    """
    chosen = [(run, scored_rows(run, ranking, relations)) for run in runs]
    highest = max((int(rows.ranks.max(initial=1)) for _, rows in chosen), default=1)
    n_bins = int(np.ceil(np.log10(max(highest, 2)) * bins_per_decade))
    edges = np.unique(np.round(10 ** (np.arange(n_bins + 1) / bins_per_decade)).astype(np.int64))
    lows = np.unique(np.concatenate([[1], edges + 1]))
    lows = lows[lows <= highest]
    highs = np.concatenate([lows[1:] - 1, [highest]])
    tables = []
    for run, rows in chosen:
        numbers = np.searchsorted(lows, rows.ranks, side="right") - 1
        counts = np.bincount(numbers, minlength=len(lows))
        tables.append(
            pd.DataFrame(
                {
                    "run": run.info.id,
                    "model": run.info.model,
                    "low": lows,
                    "high": highs,
                    "n": counts,
                    "share": counts / max(1, len(rows.ranks)),
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def rank_quartiles(
    runs: Sequence[Run],
    *,
    ranking: Ranking = "filtered",
    relations: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Box plots by model: columns run, model, n, low (5%), q1, median, q3, high (95%), mean."""
    lines = []
    for run in runs:
        ranks = scored_rows(run, ranking, relations).ranks
        ends = np.quantile(ranks, [0.05, 0.25, 0.5, 0.75, 0.95]) if len(ranks) else [np.nan] * 5
        names = ("low", "q1", "median", "q3", "high")
        lines.append(
            {"run": run.info.id, "model": run.info.model, "n": len(ranks)}
            | dict(zip(names, map(float, ends), strict=True))
            | {"mean": float(ranks.mean()) if len(ranks) else float("nan")}
        )
    return pd.DataFrame(lines)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A run's reliability diagram. ece: expected calibration error. n: facts."""

    run: str
    model: str
    bins: tuple[ReliabilityBin, ...]
    ece: float
    n: int


def calibrate(
    run: Run,
    *,
    ranking: Ranking = "filtered",
    relations: Sequence[str] | None = None,
    n_bins: int = N_BINS,
) -> Calibration:
    """How far the probability of a run's first answers is the share of right ones.

    With the filtered ranking the first answer is the best without the other valid objects.
    """
    rows = scored_rows(run, ranking, relations)
    name = "first_log_prob" if ranking == "raw" else "first_filtered_log_prob"
    confidence = np.exp(run.facts[name].to_numpy(dtype=np.float64)[rows.at])
    bins = reliability_bins(confidence, rows.ranks == 1, n_bins=n_bins)
    ece = expected_calibration_error(bins)
    return Calibration(run.info.id, run.info.model, bins, ece, len(rows.at))
