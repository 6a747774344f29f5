"""Runs of systems that find answers in texts, as any run of cloze queries on the same facts.

Rows, candidates and which facts count are those of a cloze run; the log-probability is that of the
system's confidence. A system says nothing of most words:

    rank of a word that it found   by its confidence, ties in candidate order
    rank of a gold that it didn't  the last: behind every other candidate

so that a question without an answer (a zero answer) counts as wrong, as in the paper. Where nothing
was found, a row has no first answer.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import OpenVocabulary, place_of
from lama_core.datasets import Dataset
from lama_core.models.protocols import Context, Encoded, Kind
from lama_core.probes.cloze.spec import ClozeSpec, SegmentWork
from lama_core.probes.extraction.extractor import NAMES, VERSION, Extraction, Linking
from lama_core.runs.spec import Load
from lama_core.scoring.batches import ScoreBlock
from lama_core.scoring.executors import Tick
from lama_core.scoring.preparation import Prepared, Segment, prepare
from lama_core.scoring.queries import Knowledge, Question, make_questions
from lama_core.scoring.ranking import NO_COLUMN
from lama_core.scoring.retrieval import OpenBook
from lama_core.scoring.top_answers import Rows, rank_block, to_table
from lama_core.types import Query

if TYPE_CHECKING:
    from lama_core.models.auxiliary.reader import SpanReader

EXTRACTOR, READER = "relation extractor", "reader"
# Passages that a reader is given for a question, as DrQA's were five.
N_PASSAGES = 5
PART = 64  # questions
BLANK = "what"  # stands in the blank of a question that is put to a reader


class Finder:
    """A system that finds answers in texts. It has no tokens: any word is one of its own."""

    kind: Kind = "masked"  # it is shown both sides of a blank
    device = "cpu"

    def __init__(self, name: str, notes: Sequence[str] = ()) -> None:
        self.name = name
        self.notes = tuple(notes)
        self.vocabulary = OpenVocabulary()

    @abstractmethod
    def find(self, question: Question, columns: Columns) -> Mapping[int, float]:
        """The log of its confidence in each candidate that it found, by column."""

    def encode_all(self, queries: Sequence[Query], context: Context) -> list[Encoded]:
        """Queries of no tokens."""
        return [Encoded((), (), (place_of(query.parts[0]),)) for query in queries]


class LinkedExtractor(Finder):
    """The relation extractor, with one of its two ways to link entities."""

    def __init__(self, extraction: Extraction, linking: Linking) -> None:
        notes = []
        if names := ", ".join(extraction.untrained):
            corpus = extraction.corpus.name
            notes.append(
                f"{corpus} states no pair that trains {names}: every answer of them is a zero "
                "answer"
            )
        super().__init__(NAMES[linking], notes)
        self._extraction = extraction
        self._linking: Linking = linking

    def find(self, question: Question, columns: Columns) -> Mapping[int, float]:
        """The objects of the triples with the question's subject and relation."""
        fact = question.fact
        graph = self._extraction.graph(self._linking, fact)
        found: dict[int, float] = {}
        for obj, confidence in graph.get((fact.relation, fact.subject), {}).items():
            column = columns.find(obj)
            if isinstance(column, int):
                found[column] = max(math.log(confidence), found.get(column, -math.inf))
        return found


class BookReader(Finder):
    """A question-answering model that is given the passages nearest to a question."""

    def __init__(self, reader: "SpanReader", book: OpenBook) -> None:
        super().__init__(reader.name)
        self.device = reader.device
        self._reader = reader
        self._book = book

    def encode_all(self, queries: Sequence[Query], context: Context) -> list[Encoded]:
        """Queries of no tokens. Raises UserError for one that leaves no room for a passage."""
        for query in queries:
            self._reader.check_question(query.text(BLANK))
        return super().encode_all(queries, context)

    def find(self, question: Question, columns: Columns) -> Mapping[int, float]:
        """The candidates that stand in the passages."""
        query = question.query
        if query is None:
            return {}
        passages = [one.passage for one in self._book.index.search(query, N_PASSAGES)]
        key = columns.spelling.key
        return self._reader.find(
            query.text(BLANK), passages, lambda word: columns.index.get(key(word))
        )


@dataclass(frozen=True)
class FoundWork(SegmentWork):
    """The questions of a run, in their order. questions: of each segment, a question a query."""

    questions: tuple[tuple[Question, ...], ...]

    def steps(self, segment: int) -> range:
        """A few questions are a part."""
        return range(0, len(self.questions[segment]), PART)

    def size(self, segment: int, first: int) -> tuple[int, int]:
        """Questions, twice."""
        n = len(self.questions[segment][first : first + PART])
        return n, n

    def score(self, finder: Finder, number: int, tick: Tick) -> pa.Table:
        """The answers of one part."""
        segment, first = self.places[number]
        columns = self.segments[segment].columns
        found = []
        for question in self.questions[segment][first : first + PART]:
            found.append(finder.find(question, columns))
            tick(1)
        return to_table(rank_found(finder.name, self.segments[segment], first, found))


def rank_found(
    name: str, segment: Segment, first: int, found: Sequence[Mapping[int, float]]
) -> Rows:
    """Rank log-confidences by column; a gold answer that isn't found stands last."""
    at = np.arange(first, first + len(found))
    log_probs = np.full((len(found), len(segment.columns.words)), -np.inf, dtype=np.float32)
    for row, known in enumerate(found):
        for column, value in known.items():
            log_probs[row, column] = value
    order = np.zeros_like(log_probs)
    order[np.arange(len(found)), segment.gold[at]] = -1
    rows = rank_block(name, segment, ScoreBlock(0, at, log_probs, order))
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
        """The questions of which it may find the answers."""
        questions = make_questions(dataset, self.relations, self.prompts, self.limit)
        prepared = prepare(questions, knowledge, self.candidates, scorer, self.context)
        asked = tuple(
            tuple(prepared.questions[row] for row in segment.rows.tolist())
            for segment in prepared.segments
        )
        return prepared, FoundWork(prepared.segments, asked)


@dataclass(frozen=True, kw_only=True)
class ExtractorSpec(FoundSpec):
    """A run of the relation extractor. extraction: is shared by the runs that are made together."""

    linking: Linking
    extraction: Extraction = field(compare=False, repr=False)

    def options(self) -> dict[str, Any]:
        """Those of a cloze run, the text that trains it, and how entities are linked."""
        more = [VERSION, self.extraction.corpus.digest, self.linking]
        return {**super().options(), "extractor": more}

    def open(self, load: Load) -> LinkedExtractor:
        """The extractor, trained when it is first asked."""
        return LinkedExtractor(self.extraction, self.linking)

    def details(self) -> dict[str, Any]:
        """The text that trained it, and the relations that it couldn't learn."""
        corpus = self.extraction.corpus
        about = {"name": corpus.name, "digest": corpus.digest}
        return {"extractor": {"corpus": about, "untrained": list(self.extraction.untrained)}}


@dataclass(frozen=True, kw_only=True)
class ReaderSpec(FoundSpec):
    """A run of a question-answering model over the open book."""

    open_book: OpenBook

    def options(self) -> dict[str, Any]:
        """Those of a cloze run, and how many passages are read."""
        return {**super().options(), "passages": N_PASSAGES}

    def open(self, load: Load) -> BookReader:
        """The reader. Raises UserError if it has other weights by now."""
        from lama_core.models.auxiliary.reader import load_reader

        reader = self.unchanged(load_reader(self.model))
        return BookReader(reader, self.open_book)
