"""A shortlist of candidates per fact, for fitting prompt weights and trying weights on a page.

The full list has about 21,000 candidates. The shortlist of a fact keeps the candidates to which any
prompt gives the highest probabilities, and always the gold answer. A seeded sample represents the
other candidates (offset = log of the number that each sampled one represents), so that the softmax
of an ensemble keeps its total mass:

    Z(w) = sum over kept of exp s(y)  +  m/n sum over the sample of exp s(y)

with m candidates not kept and n of them sampled. If all candidates are kept, none is sampled and
the fit is exact. The earlier candidate wins a tie for the last kept place. The sample is the first
n candidates not kept in a random order of all candidates, which depends on the fact's place alone:
another CPU's last digits change the sample only by the candidates that cross the boundary between
kept and not kept. `ceilings` bounds the candidates that are not kept: none of them can have an
ensemble score above sum_i w_i ceiling_i. This shows whether an ensemble's first answer is certain
without the full distributions (Fagin's threshold).

Departure: What an ensemble is fitted on
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lama_core.probes.prompts.distributions import DistributionStore
from lama_core.scoring.ranking import Floats, Ints, best_candidates

KEPT = 384
DRAWN = 128
SEED = 2020


@dataclass(frozen=True)
class Shortlist:
    """The shortlisted candidates of each fact, with their log-probabilities.

    Attributes:
        columns: Candidate columns, int64 [fact, column]; kept ones first, then sampled ones.
        log_probs: float32 [prompt, fact, column].
        gold: Position of the gold answer in `columns`, int64 [fact].
        offsets: float32 [fact, column]; 0 for a kept candidate, for a sampled one the log of the
            number of candidates that it represents.
        ceilings: Highest log-probability of a candidate that is not kept, float32 [prompt, fact];
            -inf if all are kept.
        n_kept: Number of kept columns.
    """

    columns: Ints
    log_probs: Floats
    gold: Ints
    offsets: Floats
    ceilings: Floats
    n_kept: int


def make_shortlist(
    store: DistributionStore, *, n_facts: int | None = None, kept: int = KEPT, drawn: int = DRAWN
) -> Shortlist:
    """Return the shortlist of the first `n_facts` facts (None: all), reading chunk by chunk.

    Keeps the `kept` candidates with the highest probability under any prompt (the earlier column
    wins a tie) and samples `drawn` of the others.
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
    random = np.random.default_rng(SEED)
    for at, chunk in store.chunks():
        highest = chunk.max(axis=0)
        # The gold answer is always kept.
        highest[np.arange(len(highest)), store.asked.gold[at]] = np.inf
        best = best_candidates(highest, kept).columns
        for fact in range(at.start, min(at.stop, n_facts)):
            values = chunk[:, fact - at.start]
            chosen = np.sort(best[fact - at.start])
            order = random.permutation(n_candidates)
            others = order[~np.isin(order, chosen)]
            columns[fact] = np.concatenate([chosen, np.sort(others[:drawn])])
            log_probs[:, fact] = values[:, columns[fact]]
            if len(others):
                ceilings[:, fact] = values[:, others].max(axis=1)
        if at.stop >= n_facts:
            break
    gold = (columns == store.asked.gold[:n_facts, None]).argmax(axis=1)
    return Shortlist(columns, log_probs, gold, offsets, ceilings, kept)


@dataclass(frozen=True, slots=True)
class ShortlistAnswers:
    """The answers of an ensemble, computed from the shortlist alone.

    Attributes:
        first: Column of the best candidate, int64 [fact].
        correct: Whether the best candidate is the gold answer, bool [fact].
        certain: Whether no candidate outside the shortlist can rank above it, bool [fact].
    """

    first: Ints
    correct: NDArray[np.bool_]
    certain: NDArray[np.bool_]


def shortlist_answers(
    shortlist: Shortlist, weights: Floats, removed: Ints | None = None
) -> ShortlistAnswers:
    """Return a log-linear ensemble's best candidate for each fact; the earlier column wins a tie.

    weights: float32 [prompt]. removed: columns that filtered ranking removes, int64 [fact, n],
    padded with -1; None removes none.
    """
    scores = np.tensordot(weights, shortlist.log_probs[:, :, : shortlist.n_kept], axes=1)
    if removed is not None:
        columns = shortlist.columns[:, : shortlist.n_kept, None]
        scores[(columns == removed[:, None, :]).any(axis=2)] = -np.inf
    best = scores.argmax(axis=1)
    rows = np.arange(len(best))
    used = weights > 0
    ceilings = np.tensordot(weights[used], shortlist.ceilings[used], axes=1)
    return ShortlistAnswers(
        shortlist.columns[rows, best], best == shortlist.gold, scores[rows, best] > ceilings
    )
