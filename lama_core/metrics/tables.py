"""Tables over many runs at once, for the Results page and the command line.

Everything works on whole columns: 6 models x 41 relations x 34,000 facts take a few tens of
milliseconds, so a page can recompute at every click.

A relation's figure is over its facts. A source's (or type's) is the unweighted mean over its
relations (Petroni et al. 2019, section 4.4); a relation without a fact that counts is left out of
that mean and stays a row of its own, with n = 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.asking.questions import SQUAD
from lama_core.asking.ranking import Ranking
from lama_core.metrics.baselines import freq_ranks
from lama_core.metrics.calibration import (
    N_BINS,
    ReliabilityBin,
    expected_calibration_error,
    reliability_bins,
)
from lama_core.metrics.intervals import LEVEL, draw_shares
from lama_core.runs.records import RelationInfo, Run

By = Literal["relation", "source", "type"]
BYS: tuple[By, ...] = ("relation", "source", "type")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """The rows of a run that count, as columns.

    relations: the chosen ones. relation: int64 [row], an index into them. ranks: int64 [row].
    objects: int64 [row], equal for equal objects. at: int64 [row], the row of `Run.facts`.
    """

    relations: tuple[RelationInfo, ...]
    relation: NDArray[np.int64]
    ranks: NDArray[np.int64]
    objects: NDArray[np.int64]
    at: NDArray[np.int64]

    @cached_property
    def n(self) -> NDArray[np.int64]:
        """Rows of each relation, int64 [relation]."""
        return np.bincount(self.relation, minlength=len(self.relations))

    def mean(self, values: NDArray[np.generic]) -> Floats:
        """Mean of a value over each relation's rows, float64 [relation]; NaN where it has none."""
        sums = np.bincount(self.relation, values.astype(np.float64), minlength=len(self.relations))
        with np.errstate(invalid="ignore"):
            return np.where(self.n > 0, sums / np.maximum(self.n, 1), np.nan)


def scored_rows(run: Run, ranking: Ranking, relations: Sequence[str] | None = None) -> Scored:
    """The rows of a run that count, of these relations (all by default)."""
    facts = run.facts
    wanted = None if relations is None else set(relations)
    chosen = tuple(r for r in run.info.relations if wanted is None or r.name in wanted)
    number = {relation.name: at for at, relation in enumerate(chosen)}
    names = facts["relation"].cat.categories
    lookup = np.array([*(number.get(str(name), -1) for name in names), -1], dtype=np.int64)
    relation = lookup[facts["relation"].cat.codes.to_numpy()]
    ranks = facts[f"rank_{ranking}"].to_numpy()
    at = np.flatnonzero((relation >= 0) & ~np.isnan(ranks))
    objects = facts["object"].cat.codes.to_numpy()
    return Scored(
        chosen, relation[at], ranks[at].astype(np.int64), objects[at].astype(np.int64), at
    )


def score_table(
    runs: Sequence[Run],
    *,
    by: By = "relation",
    ranking: Ranking = "filtered",
    k: int = 1,
    relations: Sequence[str] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """One row a run and relation (or source, or source and type), in the runs' order.

    Columns: run, model, dataset, source, relation (by relation only), label, type, n_relations, n,
    n_excluded, p_at_1, p_at_10, p_at_k, low, high (the interval of p_at_k), mrr, macro_p_at_1,
    mean_rank, median_rank, freq (P@1 of the Freq baseline on the same facts). P@ between 0 and 1.
    """
    tables = [_run_table(run, by, ranking, k, relations, level) for run in runs]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _run_table(
    run: Run,
    by: By,
    ranking: Ranking,
    k: int,
    relations: Sequence[str] | None,
    level: float,
) -> pd.DataFrame:
    rows = scored_rows(run, ranking, relations)
    hits = rows.ranks <= k
    samples = draw_shares(np.bincount(rows.relation[hits], minlength=len(rows.relations)), rows.n)
    figures: dict[str, Floats] = {
        "p_at_1": rows.mean(rows.ranks == 1),
        "p_at_10": rows.mean(rows.ranks <= 10),
        "p_at_k": rows.mean(hits),
        "mrr": rows.mean(1.0 / rows.ranks),
        "macro_p_at_1": _macro(rows),
        "mean_rank": rows.mean(rows.ranks),
        "median_rank": _medians(rows),
        "freq": freq_precision(run, rows, ranking),
    }
    groups = _groups(rows.relations, by)
    counted = [members[rows.n[members] > 0] for members in groups.values()]
    ends = _ends([samples[known] for known in counted], level)
    lines = []
    for at, ((source, kind), members) in enumerate(groups.items()):
        known = counted[at]
        first = rows.relations[members[0]]
        line: dict[str, object] = {
            "run": run.info.id,
            "model": run.info.model,
            "dataset": run.info.dataset,
            "source": source,
            "label": first.label if by == "relation" else "",
            "type": first.type if by == "relation" else kind,
            "n_relations": len(members),
            "n": int(rows.n[members].sum()),
            "n_excluded": sum(rows.relations[member].n_excluded for member in members),
        }
        if by == "relation":
            line = {"relation": first.name} | line
            line["source"] = first.source
        for name, values in figures.items():
            line[name] = float(values[known].mean()) if len(known) else float("nan")
        line["low"], line["high"] = float(ends[0, at]), float(ends[1, at])
        lines.append(line)
    return pd.DataFrame(lines)


def _ends(samples: Sequence[Floats], level: float) -> Floats:
    """Interval ends of the mean over each group's relations, float64 [end, group]; NaN if none."""
    n_samples = max((group.shape[1] for group in samples), default=1)
    means = [group.mean(axis=0) if len(group) else np.full(n_samples, np.nan) for group in samples]
    return np.quantile(np.array(means), [(1 - level) / 2, (1 + level) / 2], axis=1)


def _groups(
    relations: Sequence[RelationInfo], by: By
) -> dict[tuple[str, str | None], NDArray[np.int64]]:
    """(source, type) -> relations, by order of appearance; by relation each stands alone."""
    keys: dict[By, Callable[[RelationInfo], tuple[str, str | None]]] = {
        "relation": lambda relation: (relation.name, None),
        "source": lambda relation: (relation.source, None),
        "type": lambda relation: (relation.source, relation.type),
    }
    groups: dict[tuple[str, str | None], list[int]] = {}
    for at, relation in enumerate(relations):
        groups.setdefault(keys[by](relation), []).append(at)
    return {key: np.array(members, dtype=np.int64) for key, members in groups.items()}


def _macro(rows: Scored) -> Floats:
    """Macro P@1 of each relation: mean per object, then over objects."""
    width = int(rows.objects.max(initial=-1)) + 1
    keys, codes = np.unique(rows.relation * max(width, 1) + rows.objects, return_inverse=True)
    if not len(keys):
        return np.full(len(rows.relations), np.nan)
    per_object = np.bincount(codes, rows.ranks == 1) / np.bincount(codes)
    owner = keys // width
    counts = np.bincount(owner, minlength=len(rows.relations))
    sums = np.bincount(owner, per_object, minlength=len(rows.relations))
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _medians(rows: Scored) -> Floats:
    """Median rank of each relation."""
    order = np.lexsort((rows.ranks, rows.relation))
    ranks, n = rows.ranks[order], rows.n
    starts = np.concatenate([[0], np.cumsum(n)[:-1]]).astype(np.int64)
    medians = np.full(len(n), np.nan)
    full = n > 0
    low = ranks[starts[full] + (n[full] - 1) // 2]
    high = ranks[starts[full] + n[full] // 2]
    medians[full] = (low + high) / 2
    return medians


def freq_precision(run: Run, rows: Scored, ranking: Ranking) -> Floats:
    """P@1 of the Freq baseline on the rows that count, float64 [relation]."""
    subjects = run.facts["subject"].cat.codes.to_numpy().astype(np.int64)[rows.at]
    # A SQuAD question has no subject that it could share with another.
    alone = np.array([relation.source == SQUAD for relation in rows.relations], dtype=bool)
    on_its_own = alone[rows.relation]
    subjects[on_its_own] = len(run.facts) + rows.at[on_its_own]
    ranks = freq_ranks(rows.relation, rows.objects, None if ranking == "raw" else subjects)
    return rows.mean(ranks == 1)


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
