"""A prompt's accuracy as it grows, fact by fact, with its interval (Wilson's, see `intervals`).

A person who stops when satisfied looks many times, so the interval at the stop covers less than its
95 per cent; the page says so. Of a prompt that a study holds, all facts are known at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lama_core.metrics.comparison import Difference, paired_difference
from lama_core.metrics.intervals import share_intervals
from lama_core.models.protocols import BlankFiller, Context
from lama_core.probes.prompts.fact_queries import AskedFacts
from lama_core.probes.prompts.study import RelationStudy
from lama_core.scoring.batches import score_cloze
from lama_core.scoring.ranking import Ranking, best_candidates, rank_gold
from lama_core.types import Prompt


@dataclass(frozen=True, slots=True)
class Accuracy:
    """An accuracy with its interval, all between 0 and 1."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Asked:
    """One fact's outcome, under the ranking that was asked for. first: the best answer."""

    subject: str
    gold: str
    rank: int
    first: str


@dataclass(frozen=True, slots=True)
class Growth:
    """How far a prompt was tried. total: facts that there are."""

    template: str
    total: int
    asked: tuple[Asked, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every fact was asked."""
        return len(self.asked) >= self.total

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the gold answer comes first, bool [fact]."""
        return np.array([one.rank == 1 for one in self.asked], dtype=np.bool_)

    def less(self, other: "Growth") -> Difference:
        """P@1 minus that of another prompt on the same facts, with Tango's interval."""
        return paired_difference(other.right, self.right)

    def curve(self) -> list[Accuracy]:
        """Accuracy after 1, 2, ... facts."""
        right = np.cumsum(self.right, dtype=np.int64)
        asked = np.arange(1, len(right) + 1)
        ends = share_intervals(right, asked)
        columns = ((right / asked).tolist(), ends.low.tolist(), ends.high.tolist())
        return [Accuracy(*row) for row in zip(*columns, strict=True)]


def stored_growth(study: RelationStudy, prompt: int, facts: Sequence[int]) -> Growth:
    """A prompt of a study on some of its test facts, by position, without a model."""
    first, ranks = study.first_answers(study.rows[prompt]), study.ranks[prompt]
    asked = (
        Asked(
            study.test[fact].subject,
            study.objects[fact],
            int(ranks[fact]),
            study.words.get(int(first[fact]), "?"),
        )
        for fact in facts
    )
    return Growth(study.pool.templates[prompt], len(facts), tuple(asked))


def grow(
    growth: Growth,
    model: BlankFiller,
    facts: AskedFacts,
    context: Context,
    ranking: Ranking,
    *,
    n_facts: int = 16,
    order: Sequence[int] | None = None,
) -> Growth:
    """Return the growth with the next `n_facts` facts asked, in the given order of positions."""
    start = len(growth.asked)
    places = (order if order is not None else range(len(facts.facts)))[start : start + n_facts]
    some = facts.take(list(places))
    queries = some.queries(Prompt(growth.template), context)
    found: dict[int, Asked] = {}
    for block in score_cloze(model, queries, some.columns, context=context):
        at, removed = block.indices, some.removed[block.indices]
        ranks = rank_gold(block.log_probs, some.gold[at], removed=removed, order=block.order)
        out = removed if ranking == "filtered" else None
        top = best_candidates(block.log_probs, 1, removed=out, order=block.order).columns[:, 0]
        for number, column, rank in zip(at.tolist(), top, getattr(ranks, ranking), strict=True):
            fact, word = some.facts[number], some.columns.words[column]
            found[number] = Asked(fact.subject, fact.object, int(rank), word)
    return replace(growth, asked=(*growth.asked, *(found[number] for number in sorted(found))))
