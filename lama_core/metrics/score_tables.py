"""Score tables over several runs, for the Results page and the command line.

A score table is computed in three steps; a click on a page repeats only the steps that it affects:

    relation_figures    metrics that depend on neither k nor the chosen relations
    relation_precision  P@k and its interval, for one k
    summarise           both, over the chosen relations, by relation, source or type

A relation's score is over its facts. The score of a source (or type) is the unweighted mean over
its relations (Petroni et al. 2019, section 4.4). A relation without facts that count is excluded
from the mean, but keeps its row, with n = 0. ConceptNet's total is either this mean or the mean
over its facts, because the released code treats ConceptNet as one relation. For intervals of P@k
see `intervals`. All computations are vectorised: 6 models x 41 relations x 34,000 facts take a few
tens of milliseconds.

Departure: ConceptNet's total
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.metrics.calibration import (
    N_BINS,
    reliability_bins,
)
from lama_core.metrics.intervals import mean_share_intervals, share_intervals
from lama_core.metrics.relation_figures import (
    FIRST_LOG_PROB,
    METRICS,
    TEXT_METRICS,
    chance_precision,
    scored_rows,
)
from lama_core.runs.facts_table import RANKED, UNRANKED
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking

By = Literal["relation", "source", "type"]
BYS: tuple[By, ...] = get_args(By)
Average = Literal["relations", "facts"]
AVERAGES: tuple[Average, ...] = get_args(Average)
CONCEPTNET = "ConceptNet"  # the source whose total can be averaged in two ways


def of_run(run: Run, **columns: object) -> pd.DataFrame:
    """Make a table of one run: the columns run and model, then others."""
    return pd.DataFrame({"run": run.info.id, "model": run.info.model, **columns})


def stacked(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate tables; an empty table if there are none."""
    every = list(tables)
    return pd.concat(every, ignore_index=True) if every else pd.DataFrame()


def score_table(
    runs: Sequence[Run],
    *,
    by: By = "relation",
    ranking: Ranking = "filtered",
    k: int = 1,
    relations: Sequence[str] = (),
    conceptnet: Average = "relations",
    mrr_depth: int | None = None,
) -> pd.DataFrame:
    """Return one row per run and relation (or source, or source and type), in the runs' order.

    Args:
        runs: Finished runs.
        by: What a row is.
        ranking: Filtered or raw.
        k: The k of `p_at_k`.
        relations: Names of the relations to include; () is all.
        conceptnet: Whether ConceptNet's total is the mean over relations or facts.
        mrr_depth: Ranks beyond this count as 0 in MRR; None means unlimited.

    Returns:
        Columns: run, model, dataset, source, relation (by relation only), label, type, n_relations
        (relations with facts that count), of_relations (queried relations), mean_over (`relations`
        or `facts`; not by relation), n, n_excluded, those of `METRICS`, p_at_k, low, high (interval
        of p_at_k), chance (P@k of a random order; NaN if unknown), n_answers (ranked words; by
        relation only; NaN if unknown). P@k is from 0 to 1.
    """
    scored = [
        (relation_figures(run, ranking, mrr_depth=mrr_depth), relation_precision(run, k, ranking))
        for run in runs
    ]
    return summarise(scored, by=by, relations=relations, conceptnet=conceptnet)


def relation_figures(
    run: Run, ranking: Ranking = "filtered", *, mrr_depth: int | None = None
) -> pd.DataFrame:
    """Return one row per relation, with the columns of `score_table` that don't depend on k."""
    rows = scored_rows(run, ranking, mrr_depth=mrr_depth)
    columns: dict[str, object] = {
        "relation": [relation.name for relation in rows.relations],
        "run": run.info.id,
        "model": run.info.model,
        "dataset": run.info.dataset,
        "source": [relation.source for relation in rows.relations],
        "label": [relation.label for relation in rows.relations],
        "type": [relation.type for relation in rows.relations],
        "n_relations": 1,
        "of_relations": 1,
        "n": rows.n,
        "n_excluded": [relation.n_excluded for relation in rows.relations],
        "n_answers": rows.n_answers,
    }
    columns |= {name: metric.compute(rows) for name, metric in METRICS.items()}
    if run.info.generates:
        columns |= {name: metric.compute(rows) for name, metric in TEXT_METRICS.items()}
    return pd.DataFrame(columns)


def relation_precision(run: Run, k: int, ranking: Ranking = "filtered") -> pd.DataFrame:
    """Return P@k of each relation, in the order of `RunInfo.relations`.

    Columns: p_at_k, low and high (its interval), NaN if undefined; chance (P@k of a random order),
    NaN if the number of ranked words is unknown.
    """
    rows = scored_rows(run, ranking)
    shares = rows.precision(k)
    n = np.where(np.isnan(shares), 0, rows.n)
    ends = share_intervals(np.rint(np.nan_to_num(shares) * n), n)
    chance = chance_precision(rows, k)
    return pd.DataFrame({"p_at_k": shares, "low": ends.low, "high": ends.high, "chance": chance})


def summarise(
    scored: Sequence[tuple[pd.DataFrame, pd.DataFrame]],
    *,
    by: By = "relation",
    relations: Sequence[str] = (),
    conceptnet: Average = "relations",
) -> pd.DataFrame:
    """Return one row per run and relation, source, or source and type, as in `score_table`.

    Args:
        scored: `relation_figures` and `relation_precision` of each run.
        by: What a row is.
        relations: Names of the relations to include; () is all.
        conceptnet: Whether ConceptNet's row is the mean over relations or facts. Over facts, each
            relation's score is weighted by its facts, also for metrics such as macro P@1 that
            aren't means over facts.
    """
    tables = [figures.assign(**found) for figures, found in scored]
    if len(relations):
        tables = [table[table["relation"].isin(relations)] for table in tables]
    if by == "relation":
        return stacked(tables)
    rows: list[dict[str, object]] = []
    for table in tables:
        scores = [name for name in (*METRICS, *TEXT_METRICS, "p_at_k", "chance") if name in table]
        types = table["type"] if by == "type" else pd.Series(None, table.index, dtype=object)
        for (source, kind), part in table.groupby(["source", types], sort=False, dropna=False):
            mean_over = conceptnet if source == CONCEPTNET else "relations"
            known = part[part["n"] > 0]
            rows.append(
                {
                    **{name: part[name].iloc[0] for name in ("run", "model", "dataset")},
                    "source": source,
                    "label": "",
                    "type": kind if isinstance(kind, str) else None,
                    "n_relations": len(known),
                    "of_relations": len(part),
                    "mean_over": mean_over,
                    "n": int(part["n"].sum()),
                    "n_excluded": int(part["n_excluded"].sum()),
                    **means_of(known, scores, mean_over),
                }
            )
    return pd.DataFrame(rows)


def means_of(
    known: pd.DataFrame, scores: Sequence[str], mean_over: Average = "relations"
) -> dict[str, float]:
    """Return the means of a group's scores, and the interval `low` to `high` of its P@k.

    known: a row for each of the group's relations with facts that count; NaN without any.
    """
    if not len(known):
        return dict.fromkeys((*scores, "low", "high"), np.nan)
    n = known["n"].to_numpy()
    hits = np.rint(known["p_at_k"].to_numpy(dtype=float) * n)
    weights, ends = np.ones(len(n)), mean_share_intervals(hits, n)
    if mean_over == "facts":
        weights, ends = n.astype(float), share_intervals(hits.sum(), n.sum())
    values = np.ascontiguousarray(known[[*scores]].to_numpy(dtype=float).T)
    averages = np.average(values, axis=1, weights=weights).tolist()
    means = dict(zip(scores, averages, strict=True))
    return means | {"low": float(ends.low), "high": float(ends.high)}


def relations_counted(n_relations: int, of_relations: int) -> str:
    """Return `2 of 3 relations` for a mean over only some relations; "" for a mean over all.

    Args:
        n_relations: Relations with facts that count, which the mean is over; 0 for no mean.
        of_relations: Relations of the source (or type) that the run queried.
    """
    partial = 0 < n_relations < of_relations
    return f"{n_relations} of {of_relations} relations" if partial else ""


def precision_curves(
    runs: Sequence[Run],
    *,
    ranking: Ranking = "filtered",
    k_max: int = 100,
    relations: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the data of Figure 2: mean P@k over relations with its interval, k from 1 to k_max.

    Columns: run, model, k, p_at_k, low, high, n (facts that count), n_relations (relations with
    such facts), chance (mean P@k of a random order; NaN if the number of words is unknown). P@k is
    NaN for a k for which it isn't defined.
    """
    tables = []
    for run in runs:
        rows = scored_rows(run, ranking, relations)
        known = rows.n > 0
        width = k_max + 2
        cells = rows.relation * width + np.minimum(rows.ranks, k_max + 1)
        counts = np.bincount(cells, minlength=len(rows.relations) * width)
        hits = np.cumsum(counts.reshape(-1, width)[:, 1 : k_max + 1], axis=1)
        hits, totals = hits[known], rows.n[known, None] + np.zeros(k_max, dtype=np.int64)
        mean, low, high, chance = np.full((4, k_max), np.nan)
        if known.any():
            mean, ends = (hits / totals).mean(axis=0), mean_share_intervals(hits, totals)
            low, high = ends.low, ends.high
            chance = np.mean(
                [chance_precision(rows, k)[known] for k in range(1, k_max + 1)], axis=1
            )
        k = np.arange(1, k_max + 1)
        table = of_run(run, k=k, p_at_k=mean, low=low, high=high)
        table.loc[k > rows.known.min(initial=k_max), ["p_at_k", "low", "high"]] = np.nan
        tables.append(
            table.assign(n=int(rows.n.sum()), n_relations=int(known.sum()), chance=chance)
        )
    return stacked(tables)


def rank_histogram(
    runs: Sequence[Run],
    *,
    ranking: Ranking | None = "filtered",
    bins_per_decade: int = 3,
    relations: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Count facts by rank, in bins of equal width on a log axis.

    Columns: run, model, low, high, n (facts), share (mean over relations), over_facts (share of the
    run's facts). A bin includes both `low` and `high`; rank 1 has a separate bin. A run has no bins
    of ranks that some of its rows don't know. ranking: None is each run's own.
    """
    chosen = [(run, scored_rows(run, ranking or run.info.ranking, relations)) for run in runs]
    ranked = (rows.ranks[rows.ranks < UNRANKED] for _, rows in chosen)
    highest = max((int(one.max(initial=1)) for one in ranked), default=1)
    n_bins = int(np.ceil(np.log10(max(highest, 2)) * bins_per_decade))
    edges = np.unique(np.round(10 ** (np.arange(n_bins + 1) / bins_per_decade)).astype(np.int64))
    lows = np.unique(np.concatenate([[1], edges + 1]))
    lows = lows[lows <= highest]
    highs = np.concatenate([lows[1:] - 1, [highest]])
    tables = []
    for run, rows in chosen:
        cells = rows.relation * len(lows) + (np.searchsorted(lows, rows.ranks, side="right") - 1)
        counts = np.bincount(cells, rows.ranks < UNRANKED, len(rows.n) * len(lows))
        by_relation = counts.reshape(-1, len(lows))[rows.n > 0]
        table = of_run(
            run,
            low=lows,
            high=highs,
            n=by_relation.sum(axis=0).astype(np.int64),
            share=(by_relation / rows.n[rows.n > 0, None]).sum(axis=0) / max(1, len(by_relation)),
            over_facts=by_relation.sum(axis=0) / max(1, len(rows.ranks)),
        )
        tables.append(table[table["high"] <= rows.known.min(initial=RANKED)])
    return stacked(tables)


def rank_quartiles(
    runs: Sequence[Run],
    *,
    ranking: Ranking | None = "filtered",
    relations: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return box plot data: columns run, model, n, low (5%), q1, median, q3, high (95%), mean.

    ranking: None is each run's own.
    """
    return stacked(
        of_run(run, **box_of(scored_rows(run, ranking or run.info.ranking, relations).exact))
        for run in runs
    )


def box_of(ranks: NDArray[Any]) -> dict[str, Any]:
    """Return box plot data of ranks [fact]: n, low (5%), q1, median, q3, high (95%), mean.

    NaN, except n, if a rank isn't known.
    """
    ends = np.quantile(ranks, [0.05, 0.25, 0.5, 0.75, 0.95]) if len(ranks) else [np.nan] * 5
    columns = dict(zip(("low", "q1", "median", "q3", "high"), ends, strict=True))
    mean = float(ranks.mean()) if len(ranks) else np.nan
    return {"n": [len(ranks)], **columns, "mean": mean}


def calibrate(
    run: Run,
    *,
    ranking: Ranking = "filtered",
    relations: Sequence[str] | None = None,
    n_bins: int = N_BINS,
) -> pd.DataFrame:
    """Return the calibration of a run's first answers: `calibration.reliability_bins`.

    In the filtered ranking the first answer is the best without the other valid objects. Facts
    without an answer are excluded.
    """
    rows = scored_rows(run, ranking, relations)
    log_probs = run.column(FIRST_LOG_PROB[ranking]).to_numpy(dtype=np.float64)[rows.at]
    answered = ~np.isnan(log_probs)
    return reliability_bins(np.exp(log_probs[answered]), rows.ranks[answered] == 1, n_bins=n_bins)
