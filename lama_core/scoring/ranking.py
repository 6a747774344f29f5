"""The rank of the gold answer among the candidates; no other module defines ranks.

    rank(gold) = 1 + number of candidates that rank above the gold answer

Candidates rank by log-probability; the earlier one in the candidate list wins a tie.
Candidates with log-probability -inf (the words that a causal model with context `both` did not
rescore) rank below all others; among themselves they rank by `order`.

raw: all candidates count. filtered: the other valid objects of the same subject and relation are
removed first (Petroni et al. 2019, section 4.4, after Bordes et al. 2013; the paper's released code
does not remove them).

Departure: Other valid objects
Departure: Ties
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import NO_COLUMN

Ranking = Literal["filtered", "raw"]
RANKINGS: tuple[Ranking, ...] = ("filtered", "raw")

GROUP = 64  # columns of which the highest value is compared first, to find the best ten

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank of each gold answer under both rankings, int64 [query]; 1 is best."""

    raw: Ints
    filtered: Ints


@dataclass(frozen=True, slots=True)
class Top:
    """The best candidates of each query, best first.

    If there are fewer than k candidates, the remaining columns are -1, with log-probability -inf.

    Attributes:
        columns: int64 [query, k].
        log_probs: Natural log-probabilities, float32 [query, k].
    """

    columns: Ints
    log_probs: Floats


def rank_gold(
    log_probs: Floats,
    gold: Ints,
    *,
    removed: Ints | None = None,
    order: Floats | None = None,
    gold_scores: Floats | None = None,
) -> Ranks:
    """Return the raw and filtered rank of each gold answer; 1 is best.

    Of equal log-probabilities, the earlier column ranks higher. The gold answer is never removed.
    A gold answer that was scored next to the ranked words never has rank 1, because other words
    that weren't ranked could be better, too.
    Source: Petroni et al. 2019, section 4.4.

    Args:
        log_probs: Natural log-probabilities, float32 [query, candidate].
        gold: Column of the gold answer, int64 [query].
        removed: Columns of the other valid objects, int64 [query, n], padded with -1; None removes
            none.
        order: Ranks the candidates of log-probability -inf, float32 [query, candidate]; None if
            all are scored.
        gold_scores: `Scores.gold`, float32 [query]; NaN where `log_probs` has the gold answer's.

    Raises:
        ValueError: If a gold index is outside the columns, or a log-probability is NaN; the message
            names the first such query.
    """
    n_queries, n_candidates = log_probs.shape
    outside = (gold < 0) | (gold >= n_candidates)
    if outside.any():
        query = int(np.flatnonzero(outside)[0])
        raise ValueError(
            f"query {query}: the gold column {gold[query]} is outside the {n_candidates} candidates"
        )
    nan = first_nan(log_probs)
    if nan is not None:
        raise ValueError(f"query {nan}: a log-probability is NaN")
    rows = np.arange(n_queries)
    gold_log_probs = log_probs[rows, gold][:, None]
    apart = np.zeros(n_queries, np.bool_)
    if gold_scores is not None:
        apart = ~np.isnan(gold_scores)
        gold_log_probs[apart, 0] = gold_scores[apart]
    ahead = log_probs > gold_log_probs
    ties = log_probs == gold_log_probs
    ahead[apart] |= ties[apart]
    for at in np.flatnonzero((_n_true(ties) > 1) & ~apart):  # the gold answer ties itself
        ahead[at, : gold[at]] |= ties[at, : gold[at]]
    in_tail = np.isneginf(gold_log_probs[:, 0])
    if order is not None and in_tail.any():
        tail = np.flatnonzero(in_tail)
        gold_order = order[tail, gold[tail]][:, None]
        earlier = np.arange(n_candidates) < gold[tail][:, None]
        before = (order[tail] > gold_order) | ((order[tail] == gold_order) & earlier)
        ahead[tail] = np.where(ties[tail], before, ahead[tail])
    best = np.where(apart, 2, 1)
    raw = 1 + _n_true(ahead)
    filtered = raw.copy()
    if removed is not None and removed.size:
        counts = (removed != NO_COLUMN) & (removed != gold[:, None])
        removed_ahead = counts & ahead[rows[:, None], np.where(counts, removed, 0)]
        filtered -= np.count_nonzero(removed_ahead, axis=1)
    return Ranks(np.maximum(raw, best), np.maximum(filtered, best))


def best_candidates(
    log_probs: Floats, k: int, *, removed: Ints | None = None, order: Floats | None = None
) -> Top:
    """Return the k best candidates of each query, in the order that `rank_gold` defines.

    log_probs, removed and order: as for `rank_gold`. Removed candidates are skipped.
    """
    n_queries, n_candidates = log_probs.shape
    out = np.zeros(log_probs.shape, dtype=bool)
    n_left = np.full((n_queries, 1), n_candidates)
    if removed is not None and removed.size:
        query, place = np.nonzero(removed != NO_COLUMN)
        out[query, removed[query, place]] = True
        n_left -= _n_true(out)[:, None]
        log_probs = np.where(out, np.float32(-np.inf), log_probs)
    width = min(k, n_candidates)
    query, column = _reaching(log_probs, width)
    ordered = np.lexsort((column, -log_probs[query, column], query))
    n_reaching = np.bincount(query, minlength=n_queries)
    first = np.cumsum(n_reaching) - n_reaching
    columns = np.zeros((n_queries, width), dtype=np.int64)
    found = np.flatnonzero(n_reaching)
    columns[found] = column[ordered][first[found, None] + np.arange(width)]
    for at in np.flatnonzero(n_reaching == 0):
        row, tail = log_probs[at], np.zeros(n_candidates)
        if order is not None:
            tail = np.where(np.isneginf(row), -order[at], 0)
        columns[at] = np.lexsort((np.arange(n_candidates), tail, -row, out[at]))[:width]
    rows = np.arange(n_queries)[:, None]
    gone = np.arange(width) >= n_left
    chosen = np.where(gone, -np.inf, log_probs[rows, columns]).astype(np.float32)
    missing = ((0, 0), (0, k - width))
    return Top(
        np.pad(np.where(gone, NO_COLUMN, columns), missing, constant_values=NO_COLUMN),
        np.pad(chosen, missing, constant_values=-np.inf),
    )


def first_nan(log_probs: Floats) -> int | None:
    """Return the first query with a log-probability that is NaN, or None."""
    nan = np.flatnonzero(np.isnan(log_probs.max(axis=1)))  # NaN if any of them is
    return int(nan[0]) if len(nan) else None


def _n_true(flags: NDArray[np.bool_]) -> Ints:
    """Return the number of True in each row, int64 [row]; numpy takes longer with `axis=1`."""
    return np.array([np.count_nonzero(row) for row in flags], dtype=np.int64)


def _reaching(log_probs: Floats, k: int) -> tuple[Ints, Ints]:
    """Return the query and the column of some scored candidates, the k best of a query among them.

    A query has none if its scored candidates are in fewer than k groups.

    The columns are divided into groups. At least k candidates reach the k-th highest of the groups'
    highest values, so whatever is lower isn't among the k best. Finding this value and comparing
    the candidates of the groups that reach it takes a fraction of the time of a partition. A
    group's columns are equally far apart, which is the fastest to compare.
    """
    n_queries, n_candidates = log_probs.shape
    n_groups = min(n_candidates, max(8 * k, -(-n_candidates // GROUP)))
    size = -(-n_candidates // n_groups)  # the last columns of some groups are missing
    whole = log_probs[:, : n_groups * (size - 1)].reshape(n_queries, size - 1, n_groups)
    rest = log_probs[:, n_groups * (size - 1) :]
    highest = whole.max(axis=1, initial=-np.inf)
    np.maximum(highest[:, : rest.shape[1]], rest, out=highest[:, : rest.shape[1]])
    least = np.partition(highest, n_groups - k, axis=1)[:, n_groups - k, None]
    query, group = np.nonzero((highest >= least) & (least > -np.inf))
    column = group[:, None] + n_groups * np.arange(size)
    values = log_probs[query[:, None], np.minimum(column, n_candidates - 1)]
    at, place = np.nonzero((values >= least[query]) & (column < n_candidates))
    return query[at], column[at, place]
