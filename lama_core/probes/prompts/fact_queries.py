"""Facts of one relation, prepared for querying with many prompts.

Exclusions and candidate columns are decided once for the relation. They are the same for all
prompts, so that prompts can be compared and combined.
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
class PreparedFacts:
    """Facts of a relation that a model can be scored on.

    Attributes:
        columns: The candidates.
        gold: Column of the gold answer, int64 [fact].
        removed: Columns of the other valid objects, int64 [fact, n], padded with -1.
        excluded: The other facts, each with the reason for its exclusion.
    """

    relation: Relation
    facts: tuple[Fact, ...]
    columns: Columns
    gold: Ints
    removed: Ints
    excluded: tuple[tuple[Fact, str], ...]

    @property
    def objects(self) -> tuple[str, ...]:
        """The gold answers, spelled as in the candidates."""
        return tuple(self.columns.words[column] for column in self.gold)

    def segment(self, at: slice = slice(None)) -> Segment:
        """Return a range of the facts as a segment without questions."""
        gold = self.gold[at]
        return Segment(self.columns, (), (), np.arange(len(gold)), gold, self.removed[at])

    def take(self, numbers: Sequence[int]) -> "PreparedFacts":
        """Return the facts at these positions."""
        chosen = np.array(numbers, dtype=np.int64)
        facts = tuple(self.facts[number] for number in numbers)
        return replace(self, facts=facts, gold=self.gold[chosen], removed=self.removed[chosen])

    def queries(self, prompt: Prompt | str, context: Context = "both") -> tuple[Query, ...]:
        """Return one query per fact; context `left` drops the text after the blank."""
        filled = tuple(fill(prompt, fact.subject) for fact in self.facts)
        if context == "both":
            return filled
        return tuple(Query((query.parts[0], "")) for query in filled)


def make_prepared_facts(
    relation: Relation,
    facts: Sequence[Fact],
    candidates: Candidates,
    model: BlankFiller,
    context: Context,
    *,
    template: str,
    known: Sequence[Fact] | None = None,
) -> PreparedFacts:
    """Prepare facts for a model, with the same exclusions as in any run.

    template: Facts that don't fit into the model's context window with this template are excluded.
    known: All facts of the relation, which give the other valid objects; None uses `facts`. Raises
    UserError if all facts are excluded.
    """
    dataset = make_dataset("prompts", [relation], facts, ReadReport())
    knowledge = gather_knowledge(
        make_dataset("prompts", [relation], known or facts, ReadReport()), [relation.name]
    )
    prompts = PromptSet("prompts", "template", ((relation.name, (template,)),))
    questions = make_questions(dataset, [relation.name], prompts, None)
    prepared = prepare(questions, knowledge, candidates, model, context)
    segment = prepared.segments[0]
    kept = tuple(prepared.questions[row].fact for row in segment.rows)
    excluded = tuple(
        (question.fact, question.excluded) for question in prepared.questions if question.excluded
    )
    return PreparedFacts(relation, kept, segment.columns, segment.gold, segment.removed, excluded)
