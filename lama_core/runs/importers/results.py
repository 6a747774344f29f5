"""The records that readers of other tools' results return.

A reader turns files into `ImportedResults`, one for each model. It computes nothing but what the
files' own numbers say: a rank is the file's, or follows from the scores of all answers
(`matching`, when `all_scores` and `options` are given).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from lama_core.datasets.line_reader import Reading, Rejected
from lama_core.progress import OnProgress

MAX_PREDICTIONS = 10  # predictions of a row that are kept
MAX_DROPPED = 5  # dropped rows of one reason that are named; the others are only counted
MAX_REASONS = 50  # different reasons; rows dropped for further ones are counted together
MAX_ROWS = 2_000_000  # rows of one import
MAX_BYTES = 1 << 30  # size of one file
MAX_TEXT = 4000  # letters of a subject, object or query that are kept
BATCH = 20_000  # rows that are plain Python values at a time

# The columns of `ImportedResults.rows`; all but the first three may be missing.
ANSWERS = pa.schema(
    [
        ("relation", pa.string()),
        ("subject", pa.string()),
        ("object", pa.string()),
        ("query", pa.string()),
        ("rank", pa.int32()),
        ("log_prob", pa.float32()),
        ("predictions", pa.list_(pa.string())),
        ("scores", pa.list_(pa.float32())),
        ("correct", pa.bool_()),
        ("all_scores", pa.list_(pa.float32())),
        ("template", pa.int16()),
    ]
)
REQUIRED = ("relation", "subject", "object")


@dataclass(frozen=True, slots=True)
class DroppedRows:
    """Rows that an import drops, for one reason.

    Attributes:
        where: The first places as text: `samples_x.jsonl line 7`, `facts.csv line 3, 8, 9 …`.
        reason: Why, as a short clause: `no right answer`.
        n: How many rows; 0 if that isn't known, because the rest of a file can't be read.
        of_answer: Whether the reason can depend on the model's answer (its rank, score, verdict or
            prediction), so that the score of the other rows isn't that of all.
    """

    where: str
    reason: str
    n: int = 1
    of_answer: bool = True


@dataclass(frozen=True)
class ImportedResults:
    """The results of one model, as its tool wrote them.

    Attributes:
        model: The model's name as the tool wrote it; "" if unknown (the user has to give it).
        tool: Name of the tool: `lm-pub-quiz`; "" for a plain table.
        version: The tool's version, "" if unknown.
        dataset: Name of the data as the tool wrote it; "" if unknown.
        created: When the results were made, ISO date or time; "" if unknown.
        rows: One row a query, with columns of `ANSWERS`. `relation`, `subject` and `object` have no
            nulls and no empty text; every other column may be missing or null in some rows.
            query: the text that the model was asked.
            rank: 1 is best, at least 1. Tools store one rank: it is kept as both the raw and the
            filtered one.
            log_prob: natural logarithm of the object's probability, at most 0, or the score of the
            whole answer if the tool ranks whole answers. Never NaN or infinite: null instead.
            predictions: best first; at most 10 are kept. scores: of these predictions, natural
            logarithms, as many as predictions, or null.
            correct: whether the tool counts the answer as right. It matters only in rows without a
            rank; then right is rank 1 and wrong is not ranked.
            all_scores: scores of all answers to the relation, in the order of `options`, for tools
            that score a fixed list; then ranks, log-probability and predictions follow from them
            and the reader leaves those columns out. NaN isn't allowed; -inf is an answer that the
            model can't write. The list has exactly as many items as `options[relation]`; all rows
            have such a list, or none has.
            template: number of the query's template in `templates[relation]`. Without it, queries
            of one fact are distinguished by their texts.
        options: Relation -> its possible answers in a fixed order, each once; {} if unknown. In a
            relation with options, each object is one of them.
        templates: Relation -> its templates, with `[X]` and `[Y]`, used or not; {} if unknown.
        dropped: The rows that were dropped, a record for each reason.
    """

    model: str
    tool: str
    version: str
    dataset: str
    created: str
    rows: pa.Table
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    templates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dropped: tuple[DroppedRows, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The user's description of the files.

    Attributes:
        model: Name of the model, or, for files with several models, the only one to read; "" if not
            given.
        dataset: Name of the data; "" if not given.
        columns: Role -> name of the table's column, for the table format; {} guesses all.
        encoding: Of a table's text, if it isn't Unicode; "" if not given.
        sheet: Of a spreadsheet with several; "" if not given.
    """

    model: str = ""
    dataset: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    encoding: str = ""
    sheet: str = ""


@dataclass(frozen=True, slots=True)
class ResultsFormat:
    """A format of results.

    Attributes:
        name: For `--format`: `lm-pub-quiz`.
        title: For users, after "a" or "an" or alone in a list: `lm-pub-quiz results folder`.
        recognizes: Whether a file, or a folder (an archive is unpacked before), is in this format.
            Cheap: reads at most the beginning of a few files. It may answer True for a damaged
            file that is clearly meant to be in this format. UserError means no.
        read: Read a file or folder; one `ImportedResults` for each model. Raises UserError with one
            clear sentence if nothing is usable; single unusable rows are `dropped`.
    """

    name: str
    title: str
    recognizes: Callable[[Path], bool]
    read: Callable[[Path, ReadOptions, OnProgress], list[ImportedResults]]


def short(text: str) -> str:
    """Return the text without control zeros and surrounding space, at most `MAX_TEXT` long."""
    return text.replace("\0", "").strip()[:MAX_TEXT]


class FactRejected(Rejected):
    """Raised for a row to drop whatever the model answered: its fact can't be used."""


@contextmanager
def of_fact() -> Iterator[None]:
    """Reject a row because of its fact, and not of its answer, if the block raises `Rejected`."""
    try:
        yield
    except Rejected as reason:
        raise FactRejected(str(reason)) from None


class DropList:
    """Collects dropped rows by reason, with the first places of each.

    A reason counts as one of the answer (see `DroppedRows.of_answer`) unless the reader knows
    better.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, bool], list[str]] = {}
        self._n: dict[tuple[str, bool], int] = {}

    def add(self, where: str, reason: str, n: int = 1, *, of_answer: bool = True) -> None:
        """Add `n` rows at one place; 0: an unknown number."""
        key = (reason, of_answer)
        if key not in self._n and len(self._n) >= MAX_REASONS:
            key = ("other reasons", of_answer)
        places = self._places.setdefault(key, [])
        if len(places) < MAX_DROPPED:
            places.append(where)
        self._n[key] = self._n.get(key, 0) + n

    def add_lines(
        self, file: str, lines: Iterable[int], reason: str, *, of_answer: bool = True
    ) -> None:
        """Add the rows at some lines of a file; file: "" for numbers of rows.

        Line 0 is the rest of a file, with an unknown number of rows.
        """
        place = f"{file} line" if file else "row"
        for line in lines:
            said = str(line) if (reason, of_answer) in self._places else f"{place} {line}"
            self.add(said if line else file, reason, int(line > 0), of_answer=of_answer)

    def add_reading(self, reading: Reading, *, of_answer: bool = True) -> None:
        """Add the lines that were dropped while reading."""
        for one in reading.dropped:
            self.add_lines(one.file, [one.line], one.reason, of_answer=of_answer)

    @contextmanager
    def dropping(self, file: str, line: int) -> Iterator[None]:
        """Add the line of a file if the block raises `Rejected`."""
        try:
            yield
        except Rejected as reason:
            is_of_fact = isinstance(reason, FactRejected)
            self.add_lines(file, [line], str(reason), of_answer=not is_of_fact)

    def records(self) -> tuple[DroppedRows, ...]:
        """Return a record for each reason, first those of answers."""
        found = []
        for key, places in sorted(self._places.items(), key=lambda one: not one[0][1]):
            n = self._n[key]
            where = ", ".join(places) + " …" * (n > len(places))
            found.append(DroppedRows(where, key[0], n, key[1]))
        return tuple(found)
