"""Accuracy of prompts: running, fact by fact, with Wilson intervals, and as a leaderboard.

A user who stops when satisfied looks at many intervals, so the last one covers less than its
nominal 95 %. The page shows a note about it. A study stores the results of its prompts, so their
curves need no model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.metrics.comparison import Difference, paired_difference
from lama_core.metrics.intervals import difference_intervals, share_intervals
from lama_core.models.protocols import BlankFiller, Context
from lama_core.probes.prompts.fact_queries import PreparedFacts
from lama_core.probes.prompts.study import RelationStudy
from lama_core.scoring.batches import score_cloze
from lama_core.scoring.ranking import Ranking, best_candidates, rank_gold

OWN = -1  # the number of prompts that aren't in the study


@dataclass(frozen=True, slots=True)
class AccuracyWithInterval:
    """An accuracy with the ends of its 95 % interval, all between 0 and 1."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TriedFact:
    """The result of a prompt on one fact. rank: Of the gold answer. first: The best candidate."""

    subject: str
    gold: str
    rank: int
    first: str


@dataclass(frozen=True, slots=True)
class PromptTrial:
    """The results of a prompt on the facts tried so far. total: Number of available facts."""

    template: str
    total: int
    asked: tuple[TriedFact, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether all facts were tried."""
        return len(self.asked) >= self.total

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the gold answer has rank 1, bool [fact]."""
        return np.array([one.rank == 1 for one in self.asked], dtype=np.bool_)

    def less(self, other: "PromptTrial") -> Difference:
        """Return this prompt's P@1 minus the other's on the same facts, with Tango's interval."""
        return paired_difference(other.right, self.right)

    def curve(self) -> list[AccuracyWithInterval]:
        """Return the accuracy after 1, 2, ... facts."""
        n_right = np.cumsum(self.right, dtype=np.int64)
        n_facts = np.arange(1, len(n_right) + 1)
        ends = share_intervals(n_right, n_facts)
        columns = ((n_right / n_facts).tolist(), ends.low.tolist(), ends.high.tolist())
        return [AccuracyWithInterval(*row) for row in zip(*columns, strict=True)]


# A prompt tried on test facts, and the places of these facts among the study's test facts.
OwnTrial = tuple[PromptTrial, Sequence[int]]


def leaderboard(
    study: RelationStudy, prompts: Sequence[int], own: Iterable[OwnTrial] = ()
) -> pd.DataFrame:
    """Return a row for each prompt, best first, compared with LAMA's (manual) prompt.

    The difference is paired: it is over the facts that both prompts were tried on, with Tango's
    interval.

    Args:
        study: The study of a relation.
        prompts: The numbers of the prompts in the study's pool.
        own: Trials of prompts that aren't in the study.

    Returns:
        number (in the pool, `OWN` for others), prompt, n (test facts), p_at_1, low, high (Wilson's
        interval), and difference, difference_low, difference_high: P@1 minus that of LAMA's prompt;
        NaN for LAMA's prompt and without one.
    """
    right: NDArray[np.bool_] = study.ranks == 1
    every = np.arange(len(study.test))
    tried = [(number, study.pool.templates[number], right[number], every) for number in prompts]
    tried += [(OWN, one.template, one.right, np.array(facts)) for one, facts in own if len(facts)]
    manual = study.pool.manual
    counts = []
    for _, _, is_right, facts in tried:
        by_manual = is_right if manual is None else right[manual][facts]
        won, lost = is_right & ~by_manual, by_manual & ~is_right
        counts.append((len(is_right), is_right.sum(), won.sum(), lost.sum()))
    n, n_right, n_won, n_lost = np.array(counts, np.int64).reshape(-1, 4).T
    ends, difference_ends = share_intervals(n_right, n), difference_intervals(n_won, n_lost, n)
    differences = {
        "difference": (n_won - n_lost) / n,
        "difference_low": difference_ends.low,
        "difference_high": difference_ends.high,
    }
    alone = np.array([manual in (None, number) for number, *_ in tried], bool)
    table = pd.DataFrame(
        {
            "number": [number for number, *_ in tried],
            "prompt": [template for _, template, *_ in tried],
            "n": n,
            "p_at_1": n_right / n,
            "low": ends.low,
            "high": ends.high,
            **{name: np.where(alone, np.nan, values) for name, values in differences.items()},
        }
    )
    return table.sort_values("p_at_1", ascending=False, kind="stable").reset_index(drop=True)


def stored_trial(study: RelationStudy, prompt: int, facts: Sequence[int]) -> PromptTrial:
    """Return the stored results of a study's prompt on the test facts at these positions."""
    first, ranks = study.first_answers(study.rows[prompt]), study.ranks[prompt]
    asked = (
        TriedFact(
            study.test[fact].subject,
            study.test[fact].object,
            int(ranks[fact]),
            study.words.get(int(first[fact]), "?"),
        )
        for fact in facts
    )
    return PromptTrial(study.pool.templates[prompt], len(facts), tuple(asked))


def extended_trial(
    growth: PromptTrial,
    model: BlankFiller,
    facts: PreparedFacts,
    context: Context,
    ranking: Ranking,
    *,
    n_facts: int = 16,
    order: Sequence[int] | None = None,
) -> PromptTrial:
    """Try the prompt on the next `n_facts` facts and return the extended results.

    order: positions of the facts in the order to try them; None is the order of `facts`.
    """
    start = len(growth.asked)
    positions = (order if order is not None else range(len(facts.facts)))[start : start + n_facts]
    batch = facts.take(positions)
    queries = batch.queries(growth.template, context)
    results: dict[int, TriedFact] = {}
    for block in score_cloze(model, queries, batch.columns, context=context):
        at, removed = block.indices, batch.removed[block.indices]
        ranks = rank_gold(block.log_probs, batch.gold[at], removed=removed, order=block.order)
        hidden = removed if ranking == "filtered" else None
        top = best_candidates(block.log_probs, 1, removed=hidden, order=block.order).columns[:, 0]
        for number, column, rank in zip(at.tolist(), top, getattr(ranks, ranking), strict=True):
            fact, word = batch.facts[number], batch.columns.words[column]
            results[number] = TriedFact(fact.subject, fact.object, int(rank), word)
    return replace(growth, asked=(*growth.asked, *(results[number] for number in sorted(results))))
