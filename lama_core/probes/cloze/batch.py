"""Many sentences at once: every model's first answer to each, and where the gold stands.

    P@1 = sentences whose gold is first / sentences whose gold is a candidate

As in a run, a gold that is no candidate of the model doesn't count; the rank that it would have
is there nevertheless (`ask.Gold`).
A file has a sentence a line, a row or an object; what can't be asked is a line with a reason.
"""

import csv
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Annotated, Any, ClassVar

import orjson

from lama_core.candidates.columns import Candidates, Columns
from lama_core.errors import UserError
from lama_core.models.protocols import BlankFiller, Context
from lama_core.probes.cloze.query import (
    BlankAnswer,
    ask_queries,
    blank_json,
    candidates_json,
    check_gold,
    rescores,
)
from lama_core.probes.model_info import OfModel, model_fields
from lama_core.progress import OnProgress, Progress, silent
from lama_core.requests import argument
from lama_core.rounding import percent
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.types import Query

MAX_LINES = 500
MAX_BYTES = 2_000_000
AT_ONCE = 32
TEXT_COLUMNS = ("text", "sentence", "query")
GOLD_COLUMNS = ("gold", "answer", "object", "obj_label")


@dataclass(frozen=True, kw_only=True)
class ManyRequest(shared_fields.ClozeSettings):
    """A file of sentences with a blank: the fields of `batch`."""

    command: ClassVar[tuple[str, ...]] = ("batch",)
    python: ClassVar[str] = "batch"

    file: Annotated[
        str,
        argument(
            "CSV or TSV with the columns text and gold, JSONL with these fields, or a text a line "
            "with its gold answer after a tab or |; - reads lines from standard input.",
            takes_dash=True,
        ),
    ] = field(kw_only=False)
    renormalise: shared_fields.Renormalise = False


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence, or why it can't be asked (fault). number: its first line in the file, from 1."""

    number: int
    text: str
    gold: str | None = None
    fault: str = ""

    def query(self) -> Query:
        """The sentence cut at its blank. Raises UserError unless it has exactly one."""
        query = parse_query(self.text)
        if query.n_blanks > 1:
            raise UserError(
                f"It has {query.n_blanks} blanks, and here one is asked: write words in the place "
                "of the others."
            )
        return query


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """One model's first answer to a line, as `blank`'s only prediction; or why there is none."""

    blank: BlankAnswer | None = None
    context: Context | None = None
    fault: str = ""

    @property
    def word(self) -> str | None:
        """The first answer."""
        return self.blank.predictions[0].token if self.blank else None

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON has it, or why there is none."""
        if self.blank is None:
            return {"fault": self.fault}
        return {"context": self.context, **blank_json(self.blank)}

    @property
    def is_right(self) -> bool | None:
        """Whether the gold is first; None without one that is a candidate, or an answer."""
        gold = self.blank.gold if self.blank else None
        return gold.rank == 1 if gold and gold.in_candidates else None


@dataclass(frozen=True, slots=True)
class ModelOnMany(OfModel):
    """One model's first answers, one a line. n_candidates: words that are one of its tokens."""

    n_candidates: int
    answers: tuple[LineAnswer, ...]

    @property
    def n_counted(self) -> int:
        """How many lines have a gold that is one of its candidates, and were answered."""
        return sum(answer.is_right is not None for answer in self.answers)

    @property
    def n_outside(self) -> int:
        """How many of the lines that it answered have a gold that is none of its candidates."""
        golds = (answer.blank.gold for answer in self.answers if answer.blank)
        return sum(gold is not None and not gold.in_candidates for gold in golds)

    @property
    def n_right(self) -> int:
        """How many of them have the gold first."""
        return sum(bool(answer.is_right) for answer in self.answers)

    @property
    def precision_at_1(self) -> float | None:
        """P@1, between 0 and 1; None where nothing counts."""
        return self.n_right / self.n_counted if self.n_counted else None

    def summary(self) -> str:
        """In words: P@1 with what it counts, and what it doesn't."""
        n_asked = sum(answer.blank is not None for answer in self.answers)
        said = f"{n_asked:,} of {len(self.answers):,} sentences answered"
        if self.precision_at_1 is not None:
            counted = f"{self.n_right:,} of {self.n_counted:,} golds first"
            said = f"P@1 {percent(self.precision_at_1)} % ({counted}); {said}"
        if self.n_outside:
            s = "s" if self.n_outside > 1 else ""
            said += f"; {self.n_outside:,} gold{s} not among the candidates, and not counted"
        return said


@dataclass(frozen=True, slots=True)
class ManyAnswer:
    """All models' first answers to the lines."""

    lines: tuple[Line, ...]
    candidates: Candidates
    models: tuple[ModelOnMany, ...]

    def differs(self, row: int) -> bool:
        """Whether the models' first answers to a line differ, their case ignored."""
        words = (model.answers[row].word for model in self.models)
        return len({word.lower() for word in words if word is not None}) > 1

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of plain values for each model and line; None where unknown."""
        rows = []
        for model in self.models:
            for line, answer in zip(self.lines, model.answers, strict=True):
                row: dict[str, Any] = {"model": model.name, "line": line.number, "text": line.text}
                first = answer.blank.predictions[0] if answer.blank else None
                gold = answer.blank.gold if answer.blank else None
                rows.append(
                    row
                    | {
                        "word": first.token if first else None,
                        "begins": first.begins if first else None,
                        "log_prob": first.log_prob if first else None,
                        "prob": first.prob if first else None,
                        "gold": line.gold,
                        "gold_rank": gold.rank if gold else None,
                        "right": answer.is_right,
                        "fault": answer.fault,
                    }
                )
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return the object that `batch --json` prints."""
        sizes = [model.n_candidates for model in self.models]
        return {
            "candidates": candidates_json(self.candidates, sizes),
            "models": [
                {
                    **model.model_json(),
                    "n": model.n_counted,
                    "n_gold_outside": model.n_outside,
                    "p_at_1": model.precision_at_1,
                    "answers": [
                        {"line": line.number, "text": line.text, **answer.to_json()}
                        for line, answer in zip(self.lines, model.answers, strict=True)
                    ],
                }
                for model in self.models
            ],
        }


def _checked(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines. Raises UserError for no line, too many, or none that can be asked."""
    if not lines:
        raise UserError("No sentence is given: write one a line, each with a blank.")
    if len(lines) > MAX_LINES:
        raise UserError(
            f"{len(lines):,} sentences are given; at most {MAX_LINES} are asked at once: take some "
            "out."
        )
    if all(line.fault for line in lines):
        first = lines[0]
        raise UserError(f"No sentence can be asked; line {first.number}: {first.fault}")
    return tuple(lines)


def read_lines(text: str) -> tuple[Line, ...]:
    """Read a sentence a line, its gold behind a tab or else behind `|`. Empty lines are skipped."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            sentence, _, gold = line.partition("\t" if "\t" in line else "|")
            found.append(_line(number, sentence, gold))
    return _checked(found)


def read_file(data: bytes, name: str) -> tuple[Line, ...]:
    """Read a file's sentences: a table (.csv, .tsv), objects (.jsonl), else lines.

    A table or object has a `text` (or `sentence`, `query`), and a `gold` (or `answer`, `object`,
    `obj_label`) where there is one. Raises UserError for what can't be read or asked.
    """
    if len(data) > MAX_BYTES:
        raise UserError(f"{name} has over {MAX_BYTES // 1_000_000} MB, the most that is read.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{name} is not UTF-8 (byte {error.start + 1:,}): save it as “CSV UTF-8”, or "
            "as text in UTF-8."
        ) from error
    ending = PurePath(name).suffix.lower()
    if ending in (".csv", ".tsv"):
        return _checked(_rows_of(text, name, "\t" if ending == ".tsv" else ""))
    if ending == ".jsonl":
        return _checked(_objects_of(text))
    return read_lines(text.replace("\r\n", "\n").replace("\r", "\n"))


def write_lines(lines: Sequence[Line]) -> str:
    """The text from which `read_lines` reads the same sentences and golds."""
    rows = ((" ".join(line.text.split()), line.gold or "") for line in lines)
    return "\n".join(f"{text}\t{gold}" if gold or "|" in text else text for text, gold in rows)


def _rows_of(text: str, name: str, separator: str) -> list[Line]:
    delimiter = separator or max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found = []
    try:
        header = [cell.strip().lower() for cell in next(reader, [])]
        if not set(TEXT_COLUMNS) & set(header):
            has = ", ".join(header)[:200] or "nothing"
            raise UserError(
                f"{name} has no column text in its first line, which has: {has}. Name the column "
                "of the sentences text."
            )
        begins = reader.line_num + 1
        for cells in reader:
            number, begins = begins, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                fault = f"{len(cells)} cells stand where the first line has {len(header)}."
                found.append(Line(number, delimiter.join(cells), fault=fault))
            else:
                row = dict(zip(reversed(header), reversed(cells), strict=True))
                found.append(_line(number, *_sentence_of(row)))
    except csv.Error as error:
        raise UserError(
            f"{name} can't be read as a table from line {reader.line_num} on ({error}): look at "
            "its quotes."
        ) from error
    return found


def _sentence_of(row: Mapping[str, Any]) -> tuple[Any, Any]:
    """A row's sentence and gold, by the first name that it has."""
    text = next((row[one] for one in TEXT_COLUMNS if one in row), None)
    return text, next((row[one] for one in GOLD_COLUMNS if row.get(one) is not None), "")


def _objects_of(text: str) -> list[Line]:
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        fault = "It is no object with a text, and a gold that is text."
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value, fault = None, "It is no JSON object."
        sentence, gold = _sentence_of(value if isinstance(value, dict) else {})
        if isinstance(sentence, str) and isinstance(gold, str):
            found.append(_line(number, sentence, gold))
        else:
            found.append(Line(number, line.strip(), fault=fault))
    return found


def _line(number: int, text: str, gold: str) -> Line:
    """A line with its fault, if it has one whatever the model."""
    line = Line(number, " ".join(text.split()), " ".join(gold.split()) or None)
    try:
        line.query()
        check_gold(gold)
    except UserError as error:
        return replace(line, fault=str(error))
    return line


def ask_lines(
    model: BlankFiller,
    lines: Sequence[Line],
    candidates: Candidates,
    *,
    context: Context | None = None,
    columns: Columns | None = None,
    limits: Limits = UNLIMITED,
    on_progress: OnProgress = silent,
    **options: Any,
) -> ModelOnMany:
    """One model's first answer to the first lines, the same as `ask.ask` gives.

    limits: of each sentence whose words are rescored, else of `AT_ONCE` together; once the time of
    a question is over, no further sentence is rescored, and the lines before it are answered, one
    at least. A line that doesn't fit the model has the reason. options: further ones of `ask.ask`.
    """
    until = limits.until()
    columns = columns or candidates.columns(model.vocabulary)
    shared: dict[str, Any] = {"context": context, "columns": columns, "limits": limits}
    answers: dict[int, LineAnswer] = {}
    together: list[int] = []
    alone: list[int] = []
    for row, line in enumerate(lines):
        if line.fault:
            answers[row] = LineAnswer(fault=line.fault)
            continue
        try:
            slow = rescores(model, line.query(), gold=line.gold, **shared)
        except UserError as error:
            answers[row] = LineAnswer(fault=str(error))
            continue
        (alone if slow else together).append(row)

    def ask_rows(rows: Sequence[int]) -> None:
        on_progress(Progress(model.name, len(answers), len(lines), "sentences"))
        queries, golds = [lines[row].query() for row in rows], [lines[row].gold for row in rows]
        found = ask_queries(model, queries, candidates, gold=golds, **shared, **options)
        for row, answer in zip(rows, found, strict=True):
            answers[row] = LineAnswer(answer.blanks[0], answer.context)

    end = len(lines)
    for number, row in enumerate(alone):
        if number and time.monotonic() > until:
            end = row
            break
        ask_rows([row])
    together = [row for row in together if row < end]
    for first in range(0, len(together), AT_ONCE):
        ask_rows(together[first : first + AT_ONCE])
    every = tuple(answers[row] for row in range(end))
    n_candidates = len(columns.words)
    return ModelOnMany(n_candidates=n_candidates, answers=every, **model_fields(model))


def joined(parts: Sequence[ModelOnMany]) -> ModelOnMany:
    """One model's answers to all lines, from those to one part after the other; one at least."""
    return replace(parts[0], answers=tuple(one for part in parts for one in part.answers))
