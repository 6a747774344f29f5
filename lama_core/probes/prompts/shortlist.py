"""The candidates that decide an ensemble, instead of all 21,000: what fitting and sliders work on.

For each fact the columns that any prompt likes best are kept as they are, the gold among them. Of
the others a seeded sample stands for all (offset = log of how many each stands for), so that the
softmax of an ensemble keeps its whole mass:

    Z(w) = sum over kept of exp s(y)  +  m/n sum over the sample of exp s(y)

with m columns left out and n of them drawn. When there are no more candidates than are kept,
nothing is drawn and the fit is the exact one. `ceilings` bounds what was left out: no column
outside can have a mixed score above sum_i w_i ceiling_i, which tells whether an ensemble's first
answer is certain without the full distributions (Fagin's threshold).

Departure: What an ensemble is fitted on
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lama_core.probes.prompts.distributions import DistributionStore

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

KEPT = 384
DRAWN = 128
SEED = 2020


@dataclass(frozen=True)
class Shortlist:
    """The deciding columns of each fact.

    columns: int64 [fact, column], of the candidates; the kept ones first, the drawn ones after.
    log_probs: float32 [prompt, fact, column]. gold: int64 [fact], a position in `columns`.
    offsets: float32 [fact, column], 0 for kept ones; log of how many a drawn one stands for.
    ceilings: float32 [prompt, fact], the highest log-probability outside the kept columns, -inf if
        nothing is outside. n_kept: how many columns are kept.
    """

    columns: Ints
    log_probs: Floats
    gold: Ints
    offsets: Floats
    ceilings: Floats
    n_kept: int


def make_shortlist(
    store: DistributionStore,
    *,
    n_facts: int | None = None,
    kept: int = KEPT,
    drawn: int = DRAWN,
    seed: int = SEED,
) -> Shortlist:
    """The shortlist of the first `n_facts` facts (all if None), read chunk by chunk.

    A column's rank for keeping is the highest probability that any prompt gives it.
    """
    n_prompts, n_all, n_candidates = store.shape
    n_facts = n_all if n_facts is None else min(n_facts, n_all)
    kept = min(kept, n_candidates)
    drawn = min(drawn, n_candidates - kept)
    width = kept + drawn
    columns = np.empty((n_facts, width), np.int64)
    log_probs = np.empty((n_prompts, n_facts, width), np.float32)
    ceilings = np.full((n_prompts, n_facts), -np.inf, np.float32)
    offsets = np.zeros((n_facts, width), np.float32)
    if drawn:
        offsets[:, kept:] = np.log((n_candidates - kept) / drawn)
    random = np.random.default_rng(seed)
    for at, chunk in store.chunks():
        facts = range(at.start, min(at.stop, n_facts))
        for fact in facts:
            values = chunk[:, fact - at.start]
            highest = values.max(axis=0)
            highest[store.asked.gold[fact]] = np.inf  # the gold is always kept
            order = np.argpartition(-highest, kept - 1) if kept < n_candidates else np.arange(kept)
            chosen, others = np.sort(order[:kept]), order[kept:]
            picked = random.choice(others, drawn, replace=False) if drawn else others[:0]
            columns[fact] = np.concatenate([chosen, np.sort(picked)])
            log_probs[:, fact] = values[:, columns[fact]]
            if len(others):
                ceilings[:, fact] = values[:, others].max(axis=1)
        if at.stop >= n_facts:
            break
    gold = (columns == store.asked.gold[:n_facts, None]).argmax(axis=1)
    return Shortlist(columns, log_probs, gold, offsets, ceilings, kept)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an ensemble answers, by the shortlist alone.

    first: int64 [fact], the candidate that comes first. correct: bool [fact], whether it is the
    gold. certain: bool [fact], whether no candidate outside the shortlist can come before it.
    """

    first: Ints
    correct: NDArray[np.bool_]
    certain: NDArray[np.bool_]


def judge(shortlist: Shortlist, weights: Floats, removed: Ints | None = None) -> Verdict:
    """The first answer of the log-linear ensemble of these weights, float32 [prompt], to each fact.

    removed: int64 [fact, n], columns that are no answers (filtered ranking), -1 for none; None is
    none at all. Ties go to the earlier candidate, as everywhere.
    """
    kept = shortlist.log_probs[:, :, : shortlist.n_kept]
    scores = np.tensordot(weights, kept, axes=1)
    if removed is not None:
        columns = shortlist.columns[:, : shortlist.n_kept, None]
        scores[(columns == removed[:, None, :]).any(axis=2)] = -np.inf
    best = scores.argmax(axis=1)
    rows = np.arange(len(best))
    used = weights > 0
    ceilings = np.tensordot(weights[used], shortlist.ceilings[used], axes=1)
    return Verdict(
        shortlist.columns[rows, best],
        best == shortlist.gold,
        scores[rows, best] > ceilings,
    )
