"""Specification of cloze runs: one model ranks the candidates for each fact of a dataset.

Runs of other systems and of altered queries override `ClozeSpec.make_work`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from lama_core.candidates.columns import Candidates
from lama_core.datasets import Dataset
from lama_core.models.protocols import RESCORED, BlankFiller
from lama_core.progress import Unit
from lama_core.runs.info import RelationInfo
from lama_core.runs.rows import make_rows
from lama_core.runs.spec import Finished, RunSpec, ScoringJob
from lama_core.scoring.batches import MAX_ROWS, MAX_TOKENS, ScoreBlock, plan_batches
from lama_core.scoring.executors import Part, Tick
from lama_core.scoring.preparation import (
    Prepared,
    Segment,
    kinds_of_places,
    make_judge,
    prepare,
)
from lama_core.scoring.prompt_choice import PromptKind, PromptSet
from lama_core.scoring.queries import Knowledge, Question, gather_knowledge, make_questions
from lama_core.scoring.refusals import exclude_refused, join_rows, score_accepted
from lama_core.scoring.retrieval import OpenBook
from lama_core.scoring.top_answers import from_table, rank_block, to_table

# Rows that are prepared and scored on their own, so that workers can divide the preparation of a
# large run. Runs with fewer rows are as in earlier versions.
RANGE = 1 << 16
# Batches per part. Each part is one file; a killed process loses at most one part.
BATCHES = 4


@dataclass(frozen=True)
class SegmentWork(ABC):
    """The queries of a run's segments, in parts; a part is a range of steps of one segment.

    Subclasses define a step: a batch, a question or a fact.
    """

    segments: tuple[Segment, ...]
    unit: Unit = field(default="queries", init=False)

    @abstractmethod
    def first_steps(self, segment: int) -> range:
        """Return the index of the first step of each part of a segment."""

    @abstractmethod
    def size(self, segment: int, first: int) -> int:
        """Return the number of units of a part."""

    @abstractmethod
    def score(self, model: Any, number: int, tick: Tick) -> pa.Table:
        """Return the answers of one part: columns of `top_answers.ROW` and of the subclass."""

    @cached_property
    def part_starts(self) -> list[tuple[int, int]]:
        """The segment and the first step of each part."""
        return [
            (segment, first)
            for segment in range(len(self.segments))
            for first in self.first_steps(segment)
        ]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts, in the order of `part_starts`."""
        return tuple(
            Part(f"{segment:05}-{first:07}", self.size(segment, first))
            for segment, first in self.part_starts
        )


@dataclass(frozen=True, kw_only=True)
class ClozeSpec(RunSpec, kind="cloze", version=2):
    """A run of cloze queries.

    Attributes:
        prompts: The prompt set.
        candidates: The candidates; with `per_relation`, the objects of each relation.
        batch_rows: Maximum queries of a batch; can change the last bits of the scores.
        batch_tokens: Maximum tokens of a batch; can change the last bits of the scores.
        range_rows: Rows of each of `n_ranges` ranges.
        open_book: Open-book context, if any.
        has_other_tokens: Whether words may have other tokens than in earlier versions.
    """

    prompts: PromptSet
    candidates: Candidates
    batch_rows: int = MAX_ROWS
    batch_tokens: int = MAX_TOKENS
    range_rows: int = RANGE
    open_book: OpenBook | None = None
    has_other_tokens: bool = False

    def options(self) -> dict[str, Any]:
        """Return the prompts, candidates, batch size and other options that affect the numbers."""
        options: dict[str, Any] = {
            "prompts": [self.prompts.kind, self.prompts.templates],
            "candidates": [self.candidates.per_relation, self.candidates.digest],
            "batch": [self.batch_rows, self.batch_tokens],
        }
        if self.prompts.kind == "ten sentences":
            options["drawn"] = "facts that count"  # earlier versions also drew excluded facts
        if self.model_kind == "causal" and self.context == "both":
            options["rescored"] = [RESCORED, "left", "turned", "objects of the relation"]
        if self.open_book is not None:
            options["open book"] = self.open_book.identity
        # Otherwise no keys, so that earlier runs keep their identity.
        if self.has_other_tokens:
            options["words"] = "tokenized in the text"
        if self.n_ranges > 1:  # batches don't cross ranges, which can change last digits
            options["range"] = self.range_rows
        return options

    def prompt_name(self) -> str:
        """Return the prompt set's name, after `open-book` if the run has open-book context."""
        return self.prompts.name if self.open_book is None else f"open-book {self.prompts.name}"

    def prompt_kind(self) -> PromptKind:
        return self.prompts.kind

    def prepare(self, scorer: Any, on_note: Callable[[str], None]) -> ScoringJob:
        """Return the queries as the model's tokens, in parts."""
        dataset, knowledge = self._gather(scorer, on_note)
        return self._job(scorer, dataset, knowledge, *self.make_work(dataset, knowledge, scorer))

    def ranges(
        self, scorer: Any, on_note: Callable[[str], None], earlier: Callable[[int], Finished]
    ) -> Callable[[int], ScoringJob]:
        """Return a function that prepares the queries of a range, by its number."""
        if self.n_ranges == 1:
            return super().ranges(scorer, on_note, earlier)
        dataset, knowledge = self._gather(scorer, on_note)
        questions = self._questions(dataset, knowledge, scorer)
        places = kinds_of_places(questions, self.candidates)

        def prepare_range(number: int) -> ScoringJob:
            some = questions[number * self.range_rows : (number + 1) * self.range_rows]
            prepared = prepare(some, knowledge, self.candidates, scorer, self.context, places)
            return self._job(scorer, dataset, knowledge, prepared, self._work(prepared))

        return prepare_range

    def _gather(self, scorer: Any, on_note: Callable[[str], None]) -> tuple[Dataset, Knowledge]:
        """Return the dataset and its answers."""
        for note in scorer.notes:
            on_note(f"{scorer.name}: {note}")
        dataset: Dataset = self.load_data()
        return dataset, gather_knowledge(dataset, self.relations)

    def _job(
        self,
        scorer: Any,
        dataset: Dataset,
        knowledge: Knowledge,
        prepared: Prepared,
        work: SegmentWork,
    ) -> ScoringJob:
        """Return the scoring work on prepared queries."""
        # So that `finish` doesn't keep the weights in memory.
        vocabulary, model_name = scorer.vocabulary, scorer.name

        def finish(tables: Sequence[pa.Table]) -> Finished:
            numbers = [segment for segment, _ in work.part_starts]
            scored, kept = exclude_refused(prepared, numbers, tables, model_name)
            answers = [
                (number, from_table(table)) for number, table in zip(numbers, kept, strict=True)
            ]
            rows = make_rows(scored, answers, knowledge, vocabulary)
            for name, column in self.more_columns(work, scored, kept).items():
                rows = rows.append_column(name, column)
            words = {}
            for segment in scored.segments:
                first = scored.questions[int(segment.rows[0])].relation.name
                words[first * self.candidates.per_relation] = tuple(segment.columns.words)
            relations = self._describe(dataset, scored.questions)
            return Finished(
                rows, relations, max(map(len, words.values()), default=0), self.details(), words
            )

        return ScoringJob(work, finish)

    def make_work(
        self, dataset: Dataset, knowledge: Knowledge, scorer: Any
    ) -> tuple[Prepared, SegmentWork]:
        """Return the questions, and the work of scoring those that aren't excluded."""
        questions = self._questions(dataset, knowledge, scorer)
        prepared = prepare(questions, knowledge, self.candidates, scorer, self.context)
        return prepared, self._work(prepared)

    def _work(self, prepared: Prepared) -> "ClozeWork":
        return ClozeWork(prepared.segments, self.batch_rows, self.batch_tokens)

    def _questions(self, dataset: Dataset, knowledge: Knowledge, scorer: Any) -> list[Question]:
        """Return every row of the run, with the open-book context before each query."""
        judge = make_judge(knowledge, self.candidates, scorer, self.context)
        add_passage = self.open_book.before if self.open_book is not None else lambda query: query
        return [
            replace(question, query=add_passage(question.query))
            if question.query and not question.excluded
            else question
            for question in make_questions(
                dataset,
                self.relations,
                self.prompts,
                self.limit,
                lambda fact, query: judge(fact, add_passage(query)),
            )
        ]

    def more_columns(
        self, work: Any, prepared: Prepared, tables: Sequence[pa.Table]
    ) -> dict[str, pa.Array]:
        """Return further columns by name, made from the parts' tables.

        The table of a part without scored queries can lack columns.
        """
        return {}

    def details(self) -> dict[str, Any]:
        """Return the name, digest and size of the open-book corpus, if there is one."""
        if self.open_book is None:
            return {}
        index = self.open_book.index
        return {
            "open_book": {"name": index.name, "digest": index.digest, "passages": index.n_passages}
        }

    def _describe(
        self, dataset: Dataset, questions: Sequence[Question]
    ) -> tuple[RelationInfo, ...]:
        """Return the relations of a run, with the numbers of counted and excluded rows."""
        counts = Counter((row.relation.name, row.excluded is None) for row in questions)
        return tuple(
            RelationInfo.of(
                dataset.relation(name),
                self.prompts.of(name),
                counts[name, True],
                counts[name, False],
            )
            for name in self.relations
        )


@dataclass(frozen=True)
class ClozeWork(SegmentWork):
    """The queries of a run. Queries of similar length in a segment form a batch."""

    batch_rows: int = MAX_ROWS
    batch_tokens: int = MAX_TOKENS

    @cached_property
    def batches(self) -> list[list[list[int]]]:
        """The queries of each batch of each segment."""
        return [
            plan_batches(segment.encoded, max_rows=self.batch_rows, max_tokens=self.batch_tokens)
            for segment in self.segments
        ]

    def first_steps(self, segment: int) -> range:
        return range(0, len(self.batches[segment]), BATCHES)

    def size(self, segment: int, first: int) -> int:
        """Return the number of queries of a part."""
        return sum(map(len, self.batches[segment][first : first + BATCHES]))

    def score(self, model: BlankFiller, number: int, tick: Tick) -> pa.Table:
        """Return the answers of one part; a GPU scores the whole part in one batch."""
        segment, first = self.part_starts[number]
        batches = self.batches[segment][first : first + BATCHES]
        if model.device != "cpu":
            batches = [[query for batch in batches for query in batch]]

        def score_queries(queries: Sequence[int]) -> pa.Table:
            return self.answer(
                model, segment, score_segment(model, self.segments[segment], queries)
            )

        scored = []
        for batch in batches:
            for queries, table in score_accepted(score_queries, batch):
                scored.append((queries, table))
                tick(len(queries))
        return join_rows(scored)

    def answer(self, model: BlankFiller, segment: int, block: ScoreBlock) -> pa.Table:
        return to_table(rank_block(model.name, self.segments[segment], block))


def score_segment(model: BlankFiller, segment: Segment, queries: Sequence[int]) -> ScoreBlock:
    """Return the scores of some of a segment's queries."""
    scores = model.blank_log_probs([segment.encoded[query] for query in queries], segment.columns)
    return ScoreBlock(
        0,
        np.array(queries, dtype=np.int64),
        scores.log_probs,
        scores.order,
        scores.gold,
        scores.gold_log_probs(),
    )
