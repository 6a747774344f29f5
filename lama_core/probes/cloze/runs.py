"""Runs of cloze queries: a dataset's facts asked of one model, and ranked among candidates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from lama_core.asking.answers import Rows, from_table, rank_block, to_table
from lama_core.asking.executors import Part, Tick
from lama_core.asking.preparation import Prepared, Segment, make_judge, prepare
from lama_core.asking.prompts import PromptKind, PromptSet
from lama_core.asking.questions import (
    Judge,
    Knowledge,
    Question,
    gather_knowledge,
    make_questions,
)
from lama_core.asking.retrieval import OpenBook
from lama_core.asking.scoring import MAX_ROWS, MAX_TOKENS, ScoreBlock, n_tokens, plan_batches
from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import Vocabulary
from lama_core.datasets import Dataset, load_dataset
from lama_core.errors import UserError
from lama_core.models.base import RESCORED, BlankFiller
from lama_core.progress import Unit
from lama_core.runs.info import RelationInfo
from lama_core.runs.rows import make_rows
from lama_core.runs.spec import Finished, RunSpec, Sitting

# Raised by one whenever the same specification would give other numbers; never for anything else.
VERSION = 2
OPEN_BOOK = "open-book"
# A part is so many batches: what a killed process loses, and what costs one file.
BATCHES = 4


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

    def candidate_list(self) -> tuple[str, str, bool]:
        """Name and digest of the candidates, and whether case is folded."""
        return self.candidates.name, self.candidates.digest, self.candidates.fold_case

    def load_data(self) -> Dataset:
        """The data. Raises UserError if they are no longer those of the specification."""
        dataset = load_dataset(self.dataset)
        if dataset.digest != self.data_digest:
            raise UserError(
                f"The dataset {self.dataset_name!r} has changed since this run was planned: "
                "plan it again, which begins a new run. What was scored before is kept."
            )
        return dataset

    def prepare(self, scorer: Any, on_note: Callable[[str], None]) -> Sitting:
        """The questions as the model's tokens, in parts."""
        for note in scorer.notes:
            on_note(f"{scorer.name}: {note}")
        dataset = self.load_data()
        knowledge = gather_knowledge(dataset, self.relations)
        judge = make_judge(knowledge, self.candidates, scorer, self.context)
        if self.open_book is not None:
            judge = _judge_behind(self.open_book, judge)
        questions = make_questions(dataset, self.relations, self.prompts, self.limit, judge)
        if self.open_book is not None:
            questions = [_behind(self.open_book, question) for question in questions]
        prepared = prepare(questions, knowledge, self.candidates, scorer, self.context)
        work = ClozeWork(prepared.segments, self.batch_rows, self.batch_tokens)
        vocabulary = scorer.vocabulary  # and not its weights, which may be another process's

        def finish(tables: Sequence[pa.Table]) -> Finished:
            return self.finish(work.places, prepared, knowledge, dataset, vocabulary, tables)

        return Sitting(work, finish)

    def finish(
        self,
        places: Sequence[tuple[int, int]],
        prepared: Prepared,
        knowledge: Knowledge,
        dataset: Dataset,
        vocabulary: Vocabulary,
        tables: Sequence[pa.Table],
    ) -> Finished:
        """The run's rows and relations from its parts; places: the segment of each, and more."""
        answers: list[tuple[int, Rows]] = [
            (segment, from_table(table)) for (segment, _), table in zip(places, tables, strict=True)
        ]
        return Finished(
            make_rows(prepared, answers, knowledge, vocabulary),
            describe_relations(self, dataset, prepared),
            max(len(segment.columns.words) for segment in prepared.segments),
            self.details(),
            words=self._words(prepared),
        )

    def details(self) -> dict[str, Any]:
        """The text that was read, of a run with the open book."""
        if self.open_book is None:
            return {}
        index = self.open_book.index
        about = {"name": index.name, "digest": index.digest, "passages": index.n_passages}
        return {"open_book": about}

    def _words(self, prepared: Prepared) -> dict[str, tuple[str, ...]]:
        """The words of each segment, under the relation where each has its own."""
        found = {}
        for segment in prepared.segments:
            first = prepared.questions[int(segment.rows[0])].relation.name
            found[first if self.candidates.per_relation else ""] = tuple(segment.columns.words)
        return found


def _behind(book: OpenBook, question: Question) -> Question:
    """The question behind its passage; one that isn't asked stays as it is."""
    if question.query is None or question.excluded is not None:
        return question
    return replace(question, query=book.before(question.query))


def _judge_behind(book: OpenBook, judge: Judge) -> Judge:
    """Says why a fact asked behind its passage would be left out."""
    return lambda fact, query: judge(fact, book.before(query))


def describe_relations(
    spec: ClozeSpec, dataset: Dataset, prepared: Prepared
) -> tuple[RelationInfo, ...]:
    """The relations of a run, with how many of their rows count."""
    counts: dict[tuple[str, bool], int] = {}
    for question in prepared.questions:
        key = question.relation.name, question.excluded is None
        counts[key] = counts.get(key, 0) + 1
    found = []
    for name in spec.relations:
        relation = dataset.relation(name)
        found.append(
            RelationInfo(
                name,
                relation.source,
                relation.label,
                relation.type,
                spec.prompts.of(name),
                counts.get((name, True), 0),
                counts.get((name, False), 0),
                relation.domains,
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class ClozeWork:
    """The queries of a run, in batches of one length that are planned over a whole segment."""

    segments: tuple[Segment, ...]
    batch_rows: int = MAX_ROWS
    batch_tokens: int = MAX_TOKENS
    unit: Unit = field(default="queries", init=False)

    @cached_property
    def batches(self) -> list[list[list[int]]]:
        """The queries of each batch of each segment."""
        return [
            plan_batches(segment.encoded, max_rows=self.batch_rows, max_tokens=self.batch_tokens)
            for segment in self.segments
        ]

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """The segment and the first batch of each part."""
        return [
            (segment, first)
            for segment, batches in enumerate(self.batches)
            for first in range(0, len(batches), BATCHES)
        ]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """A few batches each."""
        return tuple(self._part(segment, first) for segment, first in self.places)

    def _part(self, segment: int, first: int) -> Part:
        encoded = self.segments[segment].encoded
        queries = [encoded[query] for batch in self._batches(segment, first) for query in batch]
        return Part(f"{segment:05}-{first:07}", len(queries), sum(map(n_tokens, queries)))

    def _batches(self, segment: int, first: int) -> list[list[int]]:
        return self.batches[segment][first : first + BATCHES]

    def score(self, model: BlankFiller, number: int, tick: Tick) -> pa.Table:
        """The answers of one part: the columns of `answers.ROW`.

        A graphics card is kept busy by the whole part at once; the parts are the same everywhere.
        """
        segment, first = self.places[number]
        batches = self._batches(segment, first)
        if model.device != "cpu":
            batches = [[query for batch in batches for query in batch]]
        found = []
        for batch in batches:
            found.append(self.answer(model, segment, batch))
            tick(len(batch))
        return pa.concat_tables(found)

    def answer(self, model: BlankFiller, segment: int, batch: Sequence[int]) -> pa.Table:
        """The answers of one batch."""
        scored = self.scores(model, segment, batch)
        return to_table(rank_block(model.name, self.segments[segment], scored))

    def scores(self, model: BlankFiller, segment: int, batch: Sequence[int]) -> ScoreBlock:
        """The scores of one batch."""
        asked = self.segments[segment]
        scores = model.blank_log_probs([asked.encoded[query] for query in batch], asked.columns)
        return ScoreBlock(0, np.array(batch, dtype=np.int64), scores.log_probs, scores.order)
