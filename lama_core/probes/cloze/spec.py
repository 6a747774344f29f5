"""Runs of cloze queries: a dataset's facts asked of one model, and ranked among candidates.

Runs of other systems and of altered queries are special cases: see `ClozeSpec.make_work`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from lama_core.candidates.columns import Candidates
from lama_core.datasets import Dataset
from lama_core.models.protocols import RESCORED, BlankFiller
from lama_core.progress import Unit
from lama_core.runs.info import RelationInfo
from lama_core.runs.rows import make_rows
from lama_core.runs.spec import Finished, RunSpec, Sitting
from lama_core.scoring.batches import MAX_ROWS, MAX_TOKENS, ScoreBlock, n_tokens, plan_batches
from lama_core.scoring.executors import Part, Tick
from lama_core.scoring.preparation import Prepared, Segment, make_judge, prepare
from lama_core.scoring.prompt_choice import PromptKind, PromptSet
from lama_core.scoring.queries import Knowledge, Question, gather_knowledge, make_questions
from lama_core.scoring.retrieval import OpenBook
from lama_core.scoring.top_answers import from_table, rank_block, to_table

# Raised by one whenever the same specification would give other numbers; never for anything else.
VERSION = 2
OPEN_BOOK = "open-book"
# A part is so many batches: what a killed process loses, and what costs one file.
BATCHES = 4


@dataclass(frozen=True)
class SegmentWork(ABC):
    """The queries of a run's segments in parts: so many steps of each segment."""

    segments: tuple[Segment, ...]
    unit: Unit = field(default="queries", init=False)

    @abstractmethod
    def steps(self, segment: int) -> range:
        """The first step of each part of a segment; what a step is depends on the work."""

    @abstractmethod
    def size(self, segment: int, first: int) -> tuple[int, int]:
        """Units and about how many tokens a part has."""

    @abstractmethod
    def score(self, model: Any, number: int, tick: Tick) -> pa.Table:
        """The answers of one part: the columns of `answers.ROW`, and more."""

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """The segment and the first step of each part."""
        return [(at, first) for at in range(len(self.segments)) for first in self.steps(at)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts, in the order of `places`."""
        return tuple(
            Part(f"{segment:05}-{first:07}", *self.size(segment, first))
            for segment, first in self.places
        )


@dataclass(frozen=True, kw_only=True)
class ClozeSpec(RunSpec):
    """A run of cloze queries.

    candidates: per relation, for each relation's own objects.
    limit: the first so many facts of each relation, in file order.
    batch_rows, batch_tokens: what a batch holds; it can change the last bits.
    open_book: what stands before each query; None is nothing.
    """

    kind: ClassVar[str] = "cloze"
    version: ClassVar[int] = VERSION

    prompts: PromptSet
    candidates: Candidates
    batch_rows: int = MAX_ROWS
    batch_tokens: int = MAX_TOKENS
    open_book: OpenBook | None = None

    def options(self) -> dict[str, Any]:
        """Prompts and how facts are drawn, candidates, a batch, and what both sides rescore."""
        options: dict[str, Any] = {
            "prompts": [self.prompts.kind, self.prompts.templates],
            "candidates": [self.candidates.per_relation, self.candidates.digest],
            "batch": [self.batch_rows, self.batch_tokens],
        }
        if self.prompts.kind == "ten sentences":
            options["drawn"] = "facts that count"  # before, facts whether they count or not
        if self.model_kind == "causal" and self.context == "both":
            options["rescored"] = [RESCORED, "valid objects"]
        if self.open_book is not None:
            options["open book"] = self.open_book.identity
        return options

    def prompt_name(self) -> str:
        """The prompt set's name, and whether the book is open."""
        return self.prompts.name if self.open_book is None else f"{OPEN_BOOK} {self.prompts.name}"

    def prompt_kind(self) -> PromptKind:
        """Where its texts come from."""
        return self.prompts.kind

    def prepare(self, scorer: Any, on_note: Callable[[str], None]) -> Sitting:
        """The questions as the model's tokens, in parts."""
        for note in scorer.notes:
            on_note(f"{scorer.name}: {note}")
        dataset: Dataset = self.load_data()
        knowledge = gather_knowledge(dataset, self.relations)
        prepared, work = self.make_work(dataset, knowledge, scorer)
        vocabulary = scorer.vocabulary  # and not its weights, which may be another process's

        def finish(tables: Sequence[pa.Table]) -> Finished:
            answers = [
                (segment, from_table(table))
                for (segment, _), table in zip(work.places, tables, strict=True)
            ]
            rows = make_rows(prepared, answers, knowledge, vocabulary)
            for name, column in self.more_columns(work, prepared, tables).items():
                rows = rows.append_column(name, column)
            words = {}
            for segment in prepared.segments:
                first = prepared.questions[int(segment.rows[0])].relation.name
                words[first * self.candidates.per_relation] = tuple(segment.columns.words)
            relations = self._describe(dataset, prepared.questions)
            return Finished(rows, relations, max(map(len, words.values())), self.details(), words)

        return Sitting(work, finish)

    def make_work(
        self, dataset: Dataset, knowledge: Knowledge, scorer: Any
    ) -> tuple[Prepared, SegmentWork]:
        """The questions that count, and the work of asking them."""
        judge = make_judge(knowledge, self.candidates, scorer, self.context)
        before = self.open_book.before if self.open_book is not None else lambda query: query
        questions = make_questions(
            dataset,
            self.relations,
            self.prompts,
            self.limit,
            lambda fact, query: judge(fact, before(query)),
        )
        if self.open_book is not None:
            questions = [
                replace(one, query=before(one.query)) if one.query and not one.excluded else one
                for one in questions
            ]
        prepared = prepare(questions, knowledge, self.candidates, scorer, self.context)
        return prepared, ClozeWork(prepared.segments, self.batch_rows, self.batch_tokens)

    def more_columns(
        self, work: Any, prepared: Prepared, tables: Sequence[pa.Table]
    ) -> dict[str, pa.Array]:
        """Columns that only its kind has, by name, from the parts' tables."""
        return {}

    def details(self) -> dict[str, Any]:
        """The text that was read, of a run with the open book."""
        if self.open_book is None:
            return {}
        index = self.open_book.index
        about = {"name": index.name, "digest": index.digest, "passages": index.n_passages}
        return {"open_book": about}

    def _describe(
        self, dataset: Dataset, questions: Sequence[Question]
    ) -> tuple[RelationInfo, ...]:
        """The relations of a run, with how many of their rows count."""
        counts = Counter((one.relation.name, one.excluded is None) for one in questions)
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
    """The queries of a run, in batches of one length that are planned over a whole segment."""

    batch_rows: int = MAX_ROWS
    batch_tokens: int = MAX_TOKENS

    @cached_property
    def batches(self) -> list[list[list[int]]]:
        """The queries of each batch of each segment."""
        return [
            plan_batches(segment.encoded, max_rows=self.batch_rows, max_tokens=self.batch_tokens)
            for segment in self.segments
        ]

    def steps(self, segment: int) -> range:
        """A few batches are a part."""
        return range(0, len(self.batches[segment]), BATCHES)

    def size(self, segment: int, first: int) -> tuple[int, int]:
        """Queries and their tokens."""
        encoded = self.segments[segment].encoded
        batches = self.batches[segment][first : first + BATCHES]
        queries = [encoded[query] for batch in batches for query in batch]
        return len(queries), sum(map(n_tokens, queries))

    def score(self, model: BlankFiller, number: int, tick: Tick) -> pa.Table:
        """The answers of one part; a GPU is given the whole part at once."""
        segment, first = self.places[number]
        batches = self.batches[segment][first : first + BATCHES]
        if model.device != "cpu":
            batches = [[query for batch in batches for query in batch]]
        found = []
        for batch in batches:
            block = score_segment(model, self.segments[segment], batch)
            found.append(self.answer(model, segment, block))
            tick(len(batch))
        return pa.concat_tables(found)

    def answer(self, model: BlankFiller, segment: int, block: ScoreBlock) -> pa.Table:
        """The answers of one batch, whose scores are known."""
        return to_table(rank_block(model.name, self.segments[segment], block))


def score_segment(model: BlankFiller, segment: Segment, queries: Sequence[int]) -> ScoreBlock:
    """The scores of some of a segment's queries."""
    encoded = [segment.encoded[query] for query in queries]
    scores = model.blank_log_probs(encoded, segment.columns)
    return ScoreBlock(0, np.array(queries, dtype=np.int64), scores.log_probs, scores.order)
