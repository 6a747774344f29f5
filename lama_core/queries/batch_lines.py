"""The lines of a batch: reading them, and a model's first answer to each, with the gold ranks.

    P@1 = sentences with the gold answer first / sentences whose gold answer is a candidate

As in a run, P@1 doesn't count a sentence whose gold answer isn't a candidate of the model, but the
gold answer's rank is returned (`query.Gold`). A file has one sentence per line, row or object; an
invalid sentence gets the reason in place of answers.

A chat server ranks no candidates: `batch_texts` makes its answers.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import Place, places_of
from lama_core.datasets.line_reader import Reading, optional_text, required_text
from lama_core.datasets.records import (
    FileForm,
    has_table_name,
    in_utf8,
    lowered,
    read_records,
    recognised_form,
)
from lama_core.errors import TextRefusedError, TimeOverError, UserError
from lama_core.models.protocols import BlankFiller, Context, GeneratedText
from lama_core.models.server.addresses import is_chat
from lama_core.progress import OnProgress, Progress, ignore
from lama_core.queries.blank_answers import (
    BlankAnswer,
    ModelAnswer,
    blank_json,
    check_gold,
    query_in_batches,
    rescores,
)
from lama_core.rounding import percent
from lama_core.scoring.blanks import NO_BLANK, parse_query
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.scoring.refusals import score_accepted
from lama_core.texts import word_key
from lama_core.types import Query

MAX_LINES = 500
MAX_BYTES = 2_000_000
BATCH_SIZE = 32
TEXT_COLUMNS = ("text", "sentence", "query", "question")
GOLD_COLUMNS = ("gold", "answer", "object", "obj_label")
BatchForm = Literal["auto", "lines", FileForm]


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
        word: The first answer, or a chat server's text; None without an answer.
        begins: The longer word that the first answer begins; None if there is none.
        log_prob: Log-probability of the answer; None if it is unknown.
        prob: Probability of the answer; None if it is unknown.
        is_right: Whether the gold answer is first, or in the text; None if it is missing or not a
            candidate.
        outside: The token that isn't a candidate and beats the first one, and why; or empty.
        fault: Why the answer is missing; empty if it isn't.
        context: The context that the model saw; None without an answer.
        blank: The answer at the blank, with only the first prediction; None if not answered, or
            answered by a chat server.
        generated: A chat server's answer.
    """

    word: str | None = None
    begins: str | None = None
    log_prob: float | None = None
    prob: float | None = None
    is_right: bool | None = None
    outside: str = ""
    fault: str = ""
    context: Context | None = None
    blank: BlankAnswer | None = None
    generated: GeneratedText | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values, or why there is none."""
        if self.generated is not None:
            return {"answer": self.word, "log_prob": self.log_prob, "right": self.is_right}
        if self.blank is None:
            return {"fault": self.fault}
        return {"context": self.context, **blank_json(self.blank)}


def line_answer(answer: ModelAnswer) -> LineAnswer:
    """Return a model's answer to a sentence with a blank."""
    blank = answer.blanks[0]
    first, gold = blank.predictions[0], blank.gold
    right = gold.rank == 1 and gold.proposed if gold and gold.in_candidates else None
    return LineAnswer(
        *(first.token, first.begins, first.log_prob, first.prob, right, blank.describe_outside()),
        context=answer.context,
        blank=blank,
    )


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
        n_answered = sum(answer.word is not None for answer in self.answers)
        text = f"{n_answered:,} of {len(self.answers):,} sentences answered"
        if self.precision_at_1 is not None:
            how = "right answers first"
            if any(answer.generated for answer in self.answers):
                how = "texts contain the right answer"
            counted = f"{self.n_right:,} of {self.n_counted:,} {how}"
            text = f"P@1 {percent(self.precision_at_1)} %: {counted}; {text}"
        texts = [answer.generated for answer in self.answers if answer.generated]
        n_incomplete = sum(one.ending != "whole" or not one.text.strip() for one in texts)
        if 2 * n_incomplete > len(texts):
            text += f"; {n_incomplete:,} of {len(texts):,} texts are empty or cut"
        if self.n_outside:
            s = "s" if self.n_outside > 1 else ""
            text += f"; {self.n_outside:,} right answer{s} not among the candidates, not counted"
        if n_beaten := sum(bool(answer.outside) for answer in self.answers):
            text += f"; in {n_beaten:,} a token that isn't a candidate is likelier than the first"
        return text


def differ(answers: Iterable[LineAnswer]) -> bool:
    """Return whether models' first answers to a line are different words.

    A token that isn't a candidate and beats the first answer is a part of the answer.
    """
    firsts = [(one.blank, one.word) for one in answers if one.word is not None]
    tokens = ((blank.rows[0].token if blank else word, word) for blank, word in firsts)
    return len({(word_key(token), word_key(word)) for token, word in tokens}) > 1


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


def read_file(
    data: bytes,
    name: str,
    *,
    form: BatchForm = "auto",
    encoding: str = "",
    models: Sequence[str] = (),
) -> tuple[BatchLine, ...]:
    """Read the sentences of a file: a table with a column of texts, or one sentence per line.

    A table or JSON object has a `text` (or `sentence`, `query`, `question`), and optionally a
    `gold` (or `answer`, `object`, `obj_label`).

    Args:
        data: The file's bytes.
        name: The file's name, for errors.
        form: The file's form; `auto` recognises it by the content.
        encoding: Of the text, if it isn't Unicode.
        models: As for `read_lines`.

    Raises:
        UserError: If the file is unreadable or too large, or has no valid sentence.
    """
    if len(data) > MAX_BYTES:
        raise UserError(f"{name} is too large: the maximum is {MAX_BYTES // 1_000_000} MB.")
    reading = _Sentences(Path(name), data, encoding=encoding)
    if form == "lines" or (form == "auto" and not _is_table(reading)):
        content = in_utf8(reading).content(reading.root, MAX_BYTES * 4)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name} is not UTF-8 (byte {error.start + 1:,}): save it as “CSV UTF-8”, or as "
                "text in UTF-8."
            ) from error
        return read_lines(text.replace("\r\n", "\n").replace("\r", "\n"), models=models)
    table = read_records(reading, None if form == "auto" else form, _has_texts)
    if table.header and not _has_texts(table.header):
        columns = ", ".join(table.header)[:200]
        raise UserError(
            f"{name} has no column 'text' in its first line, which has: {columns}. Name the column "
            "of the sentences 'text', or give --format lines if each line is a sentence."
        )
    for number, row in table.rows:
        with reading.dropping(reading.root, number):
            fields = lowered(row)
            text, gold = required_text(fields, *TEXT_COLUMNS), optional_text(fields, *GOLD_COLUMNS)
            reading.read.append(_line(number, text, gold))
    return _check_lines(sorted(reading.read, key=lambda line: line.number), models)


def _has_texts(header: Sequence[str]) -> bool:
    return any(name.strip().lower() in TEXT_COLUMNS for name in header)


@dataclass
class _Sentences(Reading):
    """The lines of a batch while they are read; those that can't be read have the fault."""

    read: list[BatchLine] = field(default_factory=list)

    def drop(self, path: Path, line: int, reason: str, text: str = "") -> None:
        super().drop(path, line, reason, text)
        self.read.append(BatchLine(line, text, fault=f"{reason[0].upper()}{reason[1:]}."))


def _is_table(reading: _Sentences) -> bool:
    """Whether a file is a table: by its content, or by its name if it is CSV or TSV."""
    head = reading.head(reading.root)
    if not head.strip():
        return False
    name = reading.root.name
    if recognised_form(head, name) not in ("csv", "tsv") or has_table_name(name):
        return True
    try:
        return _has_texts(read_records(replace(reading, read=[]), None, _has_texts).header)
    except UserError:
        return False


def write_lines(lines: Sequence[BatchLine]) -> str:
    """Return the sentences and gold answers as text for `read_lines`."""
    rows = ((" ".join(line.text.split()), line.gold or "") for line in lines)
    return "\n".join(f"{text}\t{gold}" if gold or "|" in text else text for text, gold in rows)


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
    limits: Limits = UNLIMITED,
    on_progress: OnProgress = ignore,
    **options: Any,
) -> BatchModelAnswers:
    """Return one model's first answer to each line, the same as `query_model` returns.

    Sentences for which a causal model rescores words are queried one at a time. If the time limit
    is reached before or during one of them (except the first), its line and all later lines are
    dropped. A line that doesn't fit the model, or that a server refuses, has the reason in place of
    an answer.

    Args:
        model: The model.
        lines: The sentences.
        candidates: The candidates.
        context: As for `query_model`.
        limits: Limits on each rescored sentence, and on each batch of `BATCH_SIZE` others.
        on_progress: Called with the number of finished lines.
        **options: Further options of `query_in_batches`.
    """
    until = limits.until()
    places: list[Place] = []
    for line in lines:
        with suppress(UserError):  # invalid lines are reported below
            places += places_of(line.query())
    columns = candidates.columns(model.vocabulary, places)
    shared: dict[str, Any] = {"context": context, "columns": columns, "limits": limits}
    answers: dict[int, LineAnswer] = {}
    alone: list[int] = []  # the rows to query one at a time
    together: list[int] = []
    for row, line in enumerate(lines):
        try:
            if line.fault:
                raise UserError(line.fault)
            is_slow = rescores(model, line.query(), gold=line.gold, **shared)
            (alone if is_slow else together).append(row)
        except UserError as error:
            answers[row] = LineAnswer(fault=str(error))

    def query_together(rows: Sequence[int]) -> list[LineAnswer]:
        queries, golds = [lines[row].query() for row in rows], [lines[row].gold for row in rows]
        found = query_in_batches(model, queries, candidates, gold=golds, **shared, **options)
        return list(map(line_answer, found))

    def query_rows(rows: Sequence[int]) -> None:
        on_progress(Progress(model.name, len(answers), len(lines), "sentences"))
        for some, found in score_accepted(query_together, rows):
            if isinstance(found, TextRefusedError):
                found = [LineAnswer(fault=str(found))]
            answers.update(zip(some, found, strict=True))

    end = len(lines)
    for number, row in enumerate(alone):
        if number and time.monotonic() > until:
            end = row
            break
        try:
            query_rows([row])
        except TimeOverError:
            if not number:
                raise
            end = row
            break
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
