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

from lama_core.candidates.columns import NO_COLUMN as NO_COLUMN
from lama_core.candidates.columns import pad_columns as pad_columns

Ranking = Literal["filtered", "raw"]
RANKINGS: tuple[Ranking, ...] = ("filtered", "raw")

GROUP = 64  # columns of which only the highest value is compared, to find the best ten

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
    log_probs: Floats, gold: Ints, *, removed: Ints | None = None, order: Floats | None = None
) -> Ranks:
    """Return the raw and filtered rank of each gold answer; 1 is best.

    Of equal log-probabilities, the earlier column ranks higher. The gold answer is never removed.
    Source: Petroni et al. 2019, section 4.4.

    Args:
        log_probs: Natural log-probabilities, float32 [query, candidate].
        gold: Column of the gold answer, int64 [query].
        removed: Columns of the other valid objects, int64 [query, n], padded with -1; None removes
            none.
        order: Ranks the candidates of log-probability -inf, float32 [query, candidate]; None if
            all are scored.

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
    ahead = log_probs > gold_log_probs
    ties = log_probs == gold_log_probs
    for at in np.flatnonzero(np.count_nonzero(ties, axis=1) > 1):  # the gold answer ties itself
        ahead[at, : gold[at]] |= ties[at, : gold[at]]
    in_tail = np.isneginf(gold_log_probs[:, 0])
    if order is not None and in_tail.any():
        tail = np.flatnonzero(in_tail)
        gold_order = order[tail, gold[tail]][:, None]
        earlier = np.arange(n_candidates) < gold[tail][:, None]
        before = (order[tail] > gold_order) | ((order[tail] == gold_order) & earlier)
        ahead[tail] = np.where(ties[tail], before, ahead[tail])
    raw = 1 + np.count_nonzero(ahead, axis=1).astype(np.int64)
    if removed is None or not removed.size:
        return Ranks(raw, raw.copy())
    counts = (removed != NO_COLUMN) & (removed != gold[:, None])
    removed_ahead = counts & ahead[rows[:, None], np.where(counts, removed, 0)]
    return Ranks(raw, raw - np.count_nonzero(removed_ahead, axis=1))


def best_candidates(
    log_probs: Floats, k: int, *, removed: Ints | None = None, order: Floats | None = None
) -> Top:
    """Return the k best candidates of each query, in the order that `rank_gold` defines.

    log_probs, removed and order: as for `rank_gold`. Removed candidates are skipped.
    """
    n_queries, n_candidates = log_probs.shape
    out = np.zeros(log_probs.shape, dtype=bool)
    if removed is not None and removed.size:
        query, place = np.nonzero(removed != NO_COLUMN)
        out[query, removed[query, place]] = True
        log_probs = np.where(out, np.float32(-np.inf), log_probs)
    width = min(k, n_candidates)
    rows = np.arange(n_queries)[:, None]
    least = _least_of_best(log_probs, width)
    columns = np.zeros((n_queries, width), dtype=np.int64)
    in_tail = np.isneginf(least)
    for at in np.flatnonzero(in_tail):
        ordered = _sorted_in_full(log_probs[at], None if order is None else order[at], out[at])
        columns[at] = ordered[:width]
    reaches = (log_probs >= least[:, None]) & ~in_tail[:, None]
    query, column = np.divmod(np.flatnonzero(reaches), n_candidates)
    ordered = np.lexsort((column, -log_probs[query, column], query))
    n_reached = np.bincount(query, minlength=n_queries)
    first = np.cumsum(n_reached) - n_reached
    scored = np.flatnonzero(~in_tail)
    columns[scored] = column[ordered][first[scored, None] + np.arange(width)]
    gone = np.arange(width) >= n_candidates - np.count_nonzero(out, axis=1)[:, None]
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


def _least_of_best(log_probs: Floats, k: int) -> Floats:
    """Return a value for each query that at least k candidates reach, the k best among them.

    It is the k-th highest of the highest values of groups of columns: k groups have a candidate
    that reaches it, and whatever is lower isn't among the k best. Few others reach it, and finding
    it takes a fraction of the time of a partition of all columns. A group's columns are equally far
    apart, which is the fastest to compare.
    """
    n_candidates = log_probs.shape[1]
    size = max(1, min(GROUP, n_candidates // (8 * k)))
    n_whole = n_candidates - n_candidates % size
    groups = log_probs[:, :n_whole].reshape(len(log_probs), size, n_whole // size).max(axis=1)
    if n_whole < n_candidates:
        rest = log_probs[:, n_whole:].max(axis=1, keepdims=True)
        groups = np.concatenate([groups, rest], axis=1)
    kth: Floats = np.partition(groups, groups.shape[1] - k, axis=1)[:, groups.shape[1] - k]
    return kth


def _sorted_in_full(log_probs: Floats, order: Floats | None, out: NDArray[np.bool_]) -> Ints:
    """Return all columns of one query, best first; removed ones (`out`) last."""
    n = len(log_probs)
    among_tail = np.zeros(n) if order is None else np.where(np.isneginf(log_probs), -order, 0)
    return np.lexsort((np.arange(n), among_tail, -log_probs, out))
