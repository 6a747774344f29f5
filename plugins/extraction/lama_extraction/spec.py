"""Specification of runs of systems that find answers in texts, comparable to cloze runs.

Rows, candidates and excluded facts are those of a cloze run; the log-probability is the logarithm
of the system's confidence. Most candidates have no confidence, so the ranks are:

    rank of a candidate that was found   by confidence, ties in candidate order
    rank of a gold answer not found      the last, after every other candidate

so a query without an answer (a zero answer) counts as wrong, as in the paper. If nothing was found,
a row has no first answer.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lama_core.candidates.columns import NO_COLUMN, Columns
from lama_core.candidates.spelling import OpenVocabulary, places_of
from lama_core.datasets import Dataset
from lama_core.models.protocols import Context, Encoded, Kind
from lama_core.probes.cloze.spec import ClozeSpec, SegmentWork
from lama_core.runs.spec import Load
from lama_core.scoring.batches import ScoreBlock
from lama_core.scoring.executors import Tick
from lama_core.scoring.preparation import Prepared, Segment, prepare
from lama_core.scoring.queries import Knowledge, Question, make_questions
from lama_core.scoring.retrieval import OpenBook
from lama_core.scoring.top_answers import TopRows, rank_block, to_table
from lama_core.types import Query
from lama_extraction.extractor import NAMES, VERSION, Extraction, Linking
from lama_extraction.request import ExtractRequest, ReadRequest

if TYPE_CHECKING:
    from lama_extraction.reader import SpanReader

EXTRACTOR, READER = "relation extractor", "reader"
# Passages per query that a reader gets; five as in DrQA.
N_PASSAGES = 5
PART = 64  # queries per part
BLANK = "what"  # fills the blank of a query for a reader


class Finder:
    """A system that finds answers in texts. It has no tokens, so any word is a candidate."""

    kind: Kind = "masked"  # it sees both sides of a blank
    device = "cpu"

    def __init__(self, name: str, notes: Sequence[str] = ()) -> None:
        self.name = name
        self.notes = tuple(notes)
        self.vocabulary = OpenVocabulary()

    @abstractmethod
    def find(self, question: Question, columns: Columns) -> Mapping[int, float]:
        """Return candidate column -> log of the confidence, for the candidates that are found."""

    def encode_all(self, queries: Sequence[Query], context: Context) -> list[Encoded]:
        """Return an encoding without tokens for each query."""
        return [Encoded((), (), places_of(query)) for query in queries]


class LinkedExtractor(Finder):
    """The relation extractor, with one of its two ways of linking entities."""

    def __init__(self, extraction: Extraction, linking: Linking) -> None:
        notes = []
        if names := ", ".join(extraction.untrained):
            corpus = extraction.corpus.name
            notes.append(
                f"no training pair of {names} co-occurs in {corpus}, so none of their facts gets "
                "an answer"
            )
        super().__init__(NAMES[linking], notes)
        self._extraction = extraction
        self._linking: Linking = linking

    def find(self, question: Question, columns: Columns) -> Mapping[int, float]:
        """Return the objects of the triples with the question's subject and relation."""
        fact = question.fact
        graph = self._extraction.graph(self._linking, fact)
        found: dict[int, float] = {}
        for obj, confidence in graph.get((fact.relation, fact.subject), {}).items():
            column = columns.find(obj)
            if isinstance(column, int):
                found[column] = max(math.log(confidence), found.get(column, -math.inf))
        return found


class BookReader(Finder):
    """A question-answering model that reads the passages nearest to a query."""

    def __init__(self, reader: "SpanReader", book: OpenBook) -> None:
        super().__init__(reader.name)
        self.device = reader.device
        self._reader = reader
        self._book = book

    def encode_all(self, queries: Sequence[Query], context: Context) -> list[Encoded]:
        """Return an encoding without tokens for each query.

        Raises:
            UserError: If a query is so long that no passage fits into the reader's window.
        """
        for query in queries:
            self._reader.check_question(query.text(BLANK))
        return super().encode_all(queries, context)

    def find(self, question: Question, columns: Columns) -> Mapping[int, float]:
        """Return the candidates that the reader finds in the passages."""
        query = question.query
        if query is None:
            return {}
        passages = [found.passage for found in self._book.index.search(query, N_PASSAGES)]
        key = columns.spelling.key
        return self._reader.find(
            query.text(BLANK), passages, lambda word: columns.index.get(key(word))
        )


@dataclass(frozen=True)
class FoundWork(SegmentWork):
    """The questions of a run, in order.

    questions: For each segment, the question of each query.
    """

    questions: tuple[tuple[Question, ...], ...]

    def first_steps(self, segment: int) -> range:
        return range(0, len(self.questions[segment]), PART)

    def size(self, segment: int, first: int) -> int:
        """Return the number of questions of a part."""
        return len(self.questions[segment][first : first + PART])

    def score(self, finder: Finder, number: int, tick: Tick) -> pa.Table:
        segment, first = self.part_starts[number]
        columns = self.segments[segment].columns
        found = []
        for question in self.questions[segment][first : first + PART]:
            found.append(finder.find(question, columns))
            tick(1)
        return to_table(rank_found(finder.name, self.segments[segment], first, found))


def rank_found(
    name: str, segment: Segment, first: int, found: Sequence[Mapping[int, float]]
) -> TopRows:
    """Return the answers to consecutive queries; a gold answer that isn't found ranks last.

    Args:
        name: Name of the system.
        segment: The segment of the queries.
        first: Index of the first query.
        found: For each query, candidate column -> log of the confidence.
    """
    queries = np.arange(first, first + len(found))
    log_probs = np.full((len(found), len(segment.columns.words)), -np.inf, dtype=np.float32)
    for row, confidences in enumerate(found):
        for column, value in confidences.items():
            log_probs[row, column] = value
    order = np.zeros_like(log_probs)
    order[np.arange(len(found)), segment.gold[queries]] = -1
    rows = rank_block(name, segment, ScoreBlock(0, queries, log_probs, order))
    rows["log_prob"][np.isneginf(rows["log_prob"])] = np.nan
    rows["top"][np.isneginf(rows["top_log_probs"])] = NO_COLUMN
    rows["first_filtered"][np.isneginf(rows["first_filtered_log_prob"])] = NO_COLUMN
    return rows


@dataclass(frozen=True, kw_only=True)
class FoundSpec(ClozeSpec):
    """A run of a system that finds answers in texts."""

    def make_work(
        self, dataset: Dataset, knowledge: Knowledge, scorer: Any
    ) -> tuple[Prepared, SegmentWork]:
        """Return the questions, and the work of answering those that aren't excluded."""
        questions = make_questions(dataset, self.relations, self.prompts, self.limit)
        prepared = prepare(questions, knowledge, self.candidates, scorer, self.context)
        counted = tuple(
            tuple(prepared.questions[row] for row in segment.rows.tolist())
            for segment in prepared.segments
        )
        return prepared, FoundWork(prepared.segments, counted)


@dataclass(frozen=True, kw_only=True)
class ExtractorSpec(FoundSpec):
    """A run of the relation extractor; runs that are planned together share the extraction."""

    request: ExtractRequest
    linking: Linking
    extraction: Extraction = field(compare=False, repr=False)

    def options(self) -> dict[str, Any]:
        """Return a cloze run's options, with the training corpus and the way of linking names."""
        more = [VERSION, self.extraction.corpus.digest, self.linking]
        return {**super().options(), "extractor": more}

    def open(self, load: Load) -> LinkedExtractor:
        """Return the extractor, which is trained when it is first used."""
        return LinkedExtractor(self.extraction, self.linking)

    def details(self) -> dict[str, Any]:
        """Return the training corpus, and the relations without training pairs."""
        corpus = self.extraction.corpus
        about = {"name": corpus.name, "digest": corpus.digest}
        return {"extractor": {"corpus": about, "untrained": list(self.extraction.untrained)}}


@dataclass(frozen=True, kw_only=True)
class ReaderSpec(FoundSpec):
    """A run of a question-answering model that reads open-book passages."""

    request: ReadRequest
    open_book: OpenBook

    def options(self) -> dict[str, Any]:
        """Return a cloze run's options, with the number of passages."""
        return {**super().options(), "passages": N_PASSAGES}

    def open(self, load: Load) -> BookReader:
        from lama_extraction.reader import load_reader

        reader = self.unchanged(load_reader(self.model))
        return BookReader(reader, self.open_book)
