"""The facts of one relation, ready to be asked through many prompts.

Which facts count, and their columns among the candidates, is decided once for the relation and is
the same for every prompt, so that prompts can be compared and combined.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lama_core.candidates.columns import Candidates, Columns
from lama_core.datasets.dataset import ReadReport, make_dataset
from lama_core.models.protocols import BlankFiller, Context
from lama_core.scoring.blanks import fill
from lama_core.scoring.preparation import Segment, prepare
from lama_core.scoring.prompt_choice import PromptSet
from lama_core.scoring.queries import gather_knowledge, make_questions
from lama_core.scoring.ranking import Ints
from lama_core.types import Fact, Prompt, Query, Relation


@dataclass(frozen=True)
class AskedFacts:
    """Facts of a relation that count for a model.

    columns: the candidates. gold: int64 [fact], a column. removed: int64 [fact, n], columns of the
    other valid objects, -1 for none. excluded: (fact, reason) of those that don't count.
    """

    relation: Relation
    facts: tuple[Fact, ...]
    columns: Columns
    gold: Ints
    removed: Ints
    excluded: tuple[tuple[Fact, str], ...]

    @property
    def objects(self) -> tuple[str, ...]:
        """Each fact's gold as the candidates write it."""
        return tuple(self.columns.words[column] for column in self.gold)

    def segment(self, at: slice = slice(None)) -> Segment:
        """Some of the facts as a segment of which only the answers are known."""
        gold = self.gold[at]
        return Segment(self.columns, (), (), np.arange(len(gold)), gold, self.removed[at])

    def take(self, numbers: Sequence[int]) -> "AskedFacts":
        """Some of the facts, by position."""
        chosen = np.array(numbers, dtype=np.int64)
        facts = tuple(self.facts[number] for number in numbers)
        return replace(self, facts=facts, gold=self.gold[chosen], removed=self.removed[chosen])

    def queries(self, prompt: Prompt | str, context: Context = "both") -> tuple[Query, ...]:
        """One query a fact, cut to what the context shows."""
        filled = [fill(prompt, fact.subject) for fact in self.facts]
        if context == "both":
            return tuple(filled)
        return tuple(Query((query.parts[0], "")) for query in filled)


def make_asked(
    relation: Relation,
    facts: Sequence[Fact],
    candidates: Candidates,
    model: BlankFiller,
    context: Context,
    *,
    template: str,
    known: Sequence[Fact] | None = None,
) -> AskedFacts:
    """Return the facts that count for a model; the same rules as for any run.

    template: decides which facts fit the model's window. known: all facts of the relation, which
    tell the other valid objects. Raises UserError when none counts.
    """
    dataset = make_dataset("prompts", [relation], facts, ReadReport())
    everything = make_dataset("prompts", [relation], known or facts, ReadReport())
    knowledge = gather_knowledge(everything, [relation.name])
    prompts = PromptSet("prompts", "template", ((relation.name, (template,)),))
    questions = make_questions(dataset, [relation.name], prompts, None)
    prepared = prepare(questions, knowledge, candidates, model, context)
    segment = prepared.segments[0]
    kept = tuple(prepared.questions[row].fact for row in segment.rows)
    excluded = tuple((one.fact, one.excluded) for one in prepared.questions if one.excluded)
    return AskedFacts(relation, kept, segment.columns, segment.gold, segment.removed, excluded)
