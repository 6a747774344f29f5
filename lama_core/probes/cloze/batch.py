"""Batches of cloze queries: every model's first answer to each sentence, and the gold ranks.

    P@1 = sentences with the gold answer first / sentences whose gold answer is a candidate

As in a run, P@1 doesn't count a sentence whose gold answer isn't a candidate of the model, but the
gold answer's rank is returned (`query.Gold`). A file has one sentence per line, row or object; an
invalid sentence gets the reason in place of answers.

A chat server ranks no candidates: `generation.batch` makes its answers.
"""

import csv
import io
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Annotated, Any, ClassVar

import orjson

from lama_core.candidates.columns import Candidates, Columns
from lama_core.errors import UserError
from lama_core.models.protocols import BlankFiller, Context, GeneratedText
from lama_core.models.server.addresses import is_chat
from lama_core.probes.cloze.query import (
    BlankAnswer,
    blank_json,
    candidates_json,
    check_gold,
    query_in_batches,
    rescores,
)
from lama_core.probes.model_info import AboutModel, model_fields
from lama_core.progress import OnProgress, Progress, ignore
from lama_core.requests import argument
from lama_core.rounding import percent
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import NO_BLANK, parse_query
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.types import Query

MAX_LINES = 500
MAX_BYTES = 2_000_000
BATCH_SIZE = 32
TEXT_COLUMNS = ("text", "sentence", "query", "question")
GOLD_COLUMNS = ("gold", "answer", "object", "obj_label")


@dataclass(frozen=True, kw_only=True)
class ManyRequest(shared_fields.ClozeSettings):
    """The fields of `batch`: a file of sentences with a blank, and options."""

    command: ClassVar[tuple[str, ...]] = ("batch",)
    python: ClassVar[str] = "batch"

    file: Annotated[
        str,
        argument(
            "CSV or TSV with the columns text and gold, JSONL with these fields, or one text per "
            "line with the gold (right) answer after a tab or |. - reads lines from standard "
            "input. Chat servers also answer questions, which have no blank.",
            takes_dash=True,
        ),
    ] = field(kw_only=False)
    renormalise: shared_fields.Renormalise = False


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A sentence of a batch.

    Attributes:
        number: Number, from 1, of the sentence's first line in the file.
        text: The sentence.
        gold: The gold answer, if given.
        fault: Why the sentence is invalid; empty if it is valid.
    """

    number: int
    text: str
    gold: str | None = None
    fault: str = ""

    @property
    def is_question(self) -> bool:
        """Whether the line is valid for a chat server only, because it has no blank."""
        return self.fault == NO_BLANK

    def query(self) -> Query:
        """Return the sentence as a query. Raises UserError unless it has exactly one blank."""
        query = parse_query(self.text)
        if query.n_blanks > 1:
            raise UserError(
                f"The sentence has {query.n_blanks} blanks; a batch allows one: replace the others "
                "with words."
            )
        return query


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """One model's first answer to a line.

    Attributes:
        blank: The answer at the blank, with only the first prediction; None if not answered, or
            answered by a chat server.
        context: The context that the model saw; None without an answer.
        fault: Why there is no answer; empty if there is one.
        generated: A chat server's answer.
        contains_gold: Whether the generated answer contains the gold answer; None if either is
            missing.
    """

    blank: BlankAnswer | None = None
    context: Context | None = None
    fault: str = ""
    generated: GeneratedText | None = None
    contains_gold: bool | None = None

    @property
    def is_answered(self) -> bool:
        """Whether there is an answer."""
        return self.blank is not None or self.generated is not None

    @property
    def word(self) -> str | None:
        """The first answer, or the generated text."""
        if self.generated is not None:
            return self.generated.text.strip()
        return self.blank.predictions[0].token if self.blank else None

    @property
    def begins(self) -> str | None:
        """The longer word that the first answer begins; None if there is none."""
        return self.blank.predictions[0].begins if self.blank else None

    @property
    def log_prob(self) -> float | None:
        """Log-probability of the answer; None if it is unknown."""
        if self.generated is None:
            return self.blank.predictions[0].log_prob if self.blank else None
        value = float(self.generated.log_probs.sum())
        return None if math.isnan(value) else value

    @property
    def prob(self) -> float | None:
        """Probability of the answer; None if it is unknown."""
        if self.blank is not None:
            return self.blank.predictions[0].prob
        return None if self.log_prob is None else math.exp(self.log_prob)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values, or why there is none."""
        if self.generated is not None:
            return {"answer": self.word, "log_prob": self.log_prob, "right": self.contains_gold}
        if self.blank is None:
            return {"fault": self.fault}
        return {"context": self.context, **blank_json(self.blank)}

    @property
    def is_right(self) -> bool | None:
        """Whether the gold answer is first; None if it is missing or not a candidate.

        A chat server's answer is right if it contains the gold answer.
        """
        if self.generated is not None:
            return self.contains_gold
        gold = self.blank.gold if self.blank else None
        return gold.rank == 1 if gold and gold.in_candidates else None


@dataclass(frozen=True, slots=True)
class BatchModelAnswers(AboutModel):
    """One model's first answers, one per line.

    n_candidates: Number of candidates that are one token of the model; 0 for a chat server.
    """

    n_candidates: int
    answers: tuple[LineAnswer, ...]

    @property
    def n_counted(self) -> int:
        """Number of answered lines whose gold answer is a candidate."""
        return sum(answer.is_right is not None for answer in self.answers)

    @property
    def n_outside(self) -> int:
        """Number of answered lines whose gold answer isn't a candidate."""
        golds = (answer.blank.gold for answer in self.answers if answer.blank)
        return sum(gold is not None and not gold.in_candidates for gold in golds)

    @property
    def n_right(self) -> int:
        """Number of lines with the gold answer first."""
        return sum(bool(answer.is_right) for answer in self.answers)

    @property
    def precision_at_1(self) -> float | None:
        """P@1, between 0 and 1; None if no line is counted."""
        return self.n_right / self.n_counted if self.n_counted else None

    def summary(self) -> str:
        """Return as text P@1 and the numbers of lines answered, counted and not counted."""
        n_answered = sum(answer.is_answered for answer in self.answers)
        text = f"{n_answered:,} of {len(self.answers):,} sentences answered"
        if self.precision_at_1 is not None:
            how = "right answers first"
            if any(answer.generated for answer in self.answers):
                how = "texts contain the right answer"
            counted = f"{self.n_right:,} of {self.n_counted:,} {how}"
            text = f"P@1 {percent(self.precision_at_1)} % ({counted}); {text}"
        if self.n_outside:
            s = "s" if self.n_outside > 1 else ""
            text += f"; {self.n_outside:,} right answer{s} not among the candidates, not counted"
        return text


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """All models' first answers to a batch."""

    lines: tuple[BatchLine, ...]
    candidates: Candidates
    models: tuple[BatchModelAnswers, ...]

    def differs(self, row: int) -> bool:
        """Return whether the models' first answers to a line differ, ignoring case."""
        words = (model.answers[row].word for model in self.models)
        return len({word.lower() for word in words if word is not None}) > 1

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of plain values for each model and line; None where unknown."""
        rows = []
        for model in self.models:
            for line, answer in zip(self.lines, model.answers, strict=True):
                gold = answer.blank.gold if answer.blank else None
                rows.append(
                    {
                        "model": model.name,
                        "line": line.number,
                        "text": line.text,
                        "word": answer.word,
                        "begins": answer.begins,
                        "log_prob": answer.log_prob,
                        "prob": answer.prob,
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


def _check_lines(lines: Sequence[BatchLine], models: Sequence[str]) -> tuple[BatchLine, ...]:
    """Return the lines. Raises UserError for no line, too many, or no valid one."""
    if not lines:
        raise UserError("Sentences are missing: write one per line, each with a blank.")
    if len(lines) > MAX_LINES:
        raise UserError(
            f"There are {len(lines):,} sentences; the maximum is {MAX_LINES}. Remove some."
        )
    answers_questions = any(map(is_chat, models))
    if all(line.fault and not (answers_questions and line.is_question) for line in lines):
        first = lines[0]
        raise UserError(f"No sentence is valid. Line {first.number}: {first.fault}")
    return tuple(lines)


def read_lines(text: str, *, models: Sequence[str] = ()) -> tuple[BatchLine, ...]:
    """Read one sentence per line, with its gold answer after a tab, or else after `|`.

    models: The models that get the lines; chat servers answer lines without a blank, too.
    """
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            sentence, _, gold = line.partition("\t" if "\t" in line else "|")
            lines.append(_line(number, sentence, gold))
    return _check_lines(lines, models)


def read_file(data: bytes, name: str, *, models: Sequence[str] = ()) -> tuple[BatchLine, ...]:
    """Read the sentences of a table (.csv, .tsv), of objects (.jsonl), or else of lines.

    A table or object has a `text` (or `sentence`, `query`, `question`), and optionally a `gold` (or
    `answer`, `object`, `obj_label`). models: As for `read_lines`.

    Raises:
        UserError: If the file is unreadable or too large, or has no valid sentence.
    """
    if len(data) > MAX_BYTES:
        raise UserError(f"{name} is too large: the maximum is {MAX_BYTES // 1_000_000} MB.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{name} is not UTF-8 (byte {error.start + 1:,}): save it as “CSV UTF-8”, or as text "
            "in UTF-8."
        ) from error
    ending = PurePath(name).suffix.lower()
    if ending in (".csv", ".tsv"):
        return _check_lines(_table_lines(text, name, "\t" if ending == ".tsv" else ""), models)
    if ending == ".jsonl":
        return _check_lines(_jsonl_lines(text), models)
    return read_lines(text.replace("\r\n", "\n").replace("\r", "\n"), models=models)


def write_lines(lines: Sequence[BatchLine]) -> str:
    """Return the sentences and gold answers as text for `read_lines`."""
    rows = ((" ".join(line.text.split()), line.gold or "") for line in lines)
    return "\n".join(f"{text}\t{gold}" if gold or "|" in text else text for text, gold in rows)


def _table_lines(text: str, name: str, separator: str) -> list[BatchLine]:
    delimiter = separator or max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines = []
    try:
        header = [cell.strip().lower() for cell in next(reader, [])]
        if not set(TEXT_COLUMNS) & set(header):
            columns = ", ".join(header)[:200] or "nothing"
            raise UserError(
                f"{name} has no column 'text' in its first line, which has: {columns}. Name the "
                "column of the sentences 'text'."
            )
        next_number = reader.line_num + 1
        for cells in reader:
            number, next_number = next_number, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                fault = f"The line has {len(cells)} cells, the first line {len(header)}."
                lines.append(BatchLine(number, delimiter.join(cells), fault=fault))
            else:
                row = dict(zip(reversed(header), reversed(cells), strict=True))
                lines.append(_line(number, *_text_and_gold(row)))
    except csv.Error as error:
        raise UserError(
            f"Cannot read {name} as a table from line {reader.line_num} on ({error}): check its "
            "quotes."
        ) from error
    return lines


def _text_and_gold(row: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return a row's values of the first of `TEXT_COLUMNS` and of `GOLD_COLUMNS` that it has."""
    text = next((row[name] for name in TEXT_COLUMNS if name in row), None)
    return text, next((row[name] for name in GOLD_COLUMNS if row.get(name) is not None), "")


def _jsonl_lines(text: str) -> list[BatchLine]:
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        fault = "The line needs a field 'text'; 'text' and 'gold' must be strings."
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value, fault = None, "The line is not a JSON object."
        sentence, gold = _text_and_gold(value if isinstance(value, dict) else {})
        if isinstance(sentence, str) and isinstance(gold, str):
            lines.append(_line(number, sentence, gold))
        else:
            lines.append(BatchLine(number, line.strip(), fault=fault))
    return lines


def _line(number: int, text: str, gold: str) -> BatchLine:
    """Return a line, with its fault if it is invalid for every model."""
    line = BatchLine(number, " ".join(text.split()), " ".join(gold.split()) or None)
    try:
        check_gold(gold)
        line.query()
    except UserError as error:
        return replace(line, fault=str(error))
    return line


def fill_lines(
    model: BlankFiller,
    lines: Sequence[BatchLine],
    candidates: Candidates,
    *,
    context: Context | None = None,
    columns: Columns | None = None,
    limits: Limits = UNLIMITED,
    on_progress: OnProgress = ignore,
    **options: Any,
) -> BatchModelAnswers:
    """Return one model's first answer to each line, the same as `query_model` returns.

    Sentences for which a causal model rescores words are queried one at a time. If the time limit
    is reached before one of them (except the first), its line and all later lines are dropped. A
    line that doesn't fit the model has the reason in place of an answer.

    Args:
        model: The model.
        lines: The sentences.
        candidates: The candidates.
        context: As for `query_model`.
        columns: As for `query_model`.
        limits: Limits on each rescored sentence, and on each batch of `BATCH_SIZE` others.
        on_progress: Called with the number of finished lines.
        **options: Further options of `query_in_batches`.
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
            is_slow = rescores(model, line.query(), gold=line.gold, **shared)
        except UserError as error:
            answers[row] = LineAnswer(fault=str(error))
            continue
        (alone if is_slow else together).append(row)

    def query_rows(rows: Sequence[int]) -> None:
        on_progress(Progress(model.name, len(answers), len(lines), "sentences"))
        queries, golds = [lines[row].query() for row in rows], [lines[row].gold for row in rows]
        found = query_in_batches(model, queries, candidates, gold=golds, **shared, **options)
        for row, answer in zip(rows, found, strict=True):
            answers[row] = LineAnswer(answer.blanks[0], answer.context)

    end = len(lines)
    for number, row in enumerate(alone):
        if number and time.monotonic() > until:
            end = row
            break
        query_rows([row])
    together = [row for row in together if row < end]
    for first in range(0, len(together), BATCH_SIZE):
        query_rows(together[first : first + BATCH_SIZE])
    return BatchModelAnswers(
        n_candidates=len(columns.words),
        answers=tuple(answers[row] for row in range(end)),
        **model_fields(model),
    )


def join_answers(parts: Sequence[BatchModelAnswers]) -> BatchModelAnswers:
    """Join one model's answers to consecutive parts of a batch; at least one part."""
    return replace(parts[0], answers=tuple(answer for part in parts for answer in part.answers))
