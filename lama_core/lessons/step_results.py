"""The results of a lesson's steps, compared with the reader's predictions."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from lama_core.errors import did_you_mean
from lama_core.lessons.lesson import PERCENT, Lesson, Predict
from lama_core.rounding import percent
from lama_core.texts import word_key

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The content of a step as shown, for predictions and printing.

    Attributes:
        title: Title of the table.
        heads: Column heads of the table.
        rows: Rows of the table, as texts.
        shares: A share for each row, between 0 and 1, drawn as a bar; may be empty.
        notes: Notes below the table.
        firsts: (query, model) -> first answer, for steps with queries.
        values: (row, model) -> share, for charts.
    """

    title: str = ""
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    shares: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()
    firsts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    values: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """A prediction, empty if none was made, and its answer, empty if no step has shown it."""

    question: str
    predicted: str
    answer: str
    right: bool


def judge(step: Predict, predicted: str, shown: StepResult | None) -> Judged:
    """Compare a prediction with its answer.

    A word is right if it is the model's first answer, ignoring case; a range if it contains the
    unrounded number (its lower end included); a row if no other choice has a higher number.

    shown: What the next step showed; None if the reader hasn't seen it.
    """
    answer, detail = step.answer, ""
    if not answer and shown is not None:
        if step.between:
            value = _find(shown.values, step, step.row)
            if value is not None:
                # Divides the ends instead of multiplying the share: 100 * 0.29 is less than 29.
                answer = step.options[bisect_right([end / 100 for end in step.between], value)]
                detail = f" ({percent(value)}{PERCENT})"
        elif shown.values:
            found = {row: _find(shown.values, step, row) for row in step.choices}
            values = {row: value for row, value in found.items() if value is not None}
            if len(values) == len(step.choices):
                best = [row for row in values if values[row] == max(values.values())]
                answer = predicted if predicted in best else best[0]
                detail = f" ({percent(values[answer])}{PERCENT})"
        else:
            answer = _find(shown.firsts, step, step.row) or ""
    right = bool(answer) and word_key(predicted) == word_key(answer)
    return Judged(step.question, predicted, answer + detail, right)


def answering_model(step: Predict, shown: StepResult | None) -> str:
    """Return the model whose word or number answers a prediction; empty if there is none."""
    if step.answer or shown is None:
        return ""
    return next(_matching(shown.values or shown.firsts, step, step.row), ("", ""))[1]


def judged_predictions(
    lesson: Lesson, predicted: Mapping[int, str], shown: Mapping[int, StepResult]
) -> Iterator[Judged]:
    """Yield the lesson's questions with the reader's predictions, if any, and the answers.

    predicted: Number of a step, from 1 -> prediction. shown: the same -> what the step showed.
    """
    for number, step in enumerate(lesson.steps, start=1):
        if isinstance(step, Predict):
            yield judge(step, predicted.get(number, ""), shown.get(number + 1))


def first_to_predict(lesson: Lesson, predicted: Mapping[int, str], number: int) -> int | None:
    """Return the first unanswered prediction step before step `number`; None if there is none."""
    steps = enumerate(lesson.steps[: number - 1], start=1)
    unanswered = (at for at, step in steps if isinstance(step, Predict) and at not in predicted)
    return next(unanswered, None)


def missing_row_note(step: Predict, shown: StepResult | None) -> str:
    """Return a note if the chart lacks a row that a prediction needs; else an empty text."""
    lines = list(dict.fromkeys(row for row, _ in shown.values)) if shown is not None else []
    rows = (step.row,) if step.between else step.choices
    for row in rows if lines else ():
        if row and row not in lines:
            hint = did_you_mean(row, lines) or f" (one is {lines[0]!r})"
            return f"The answer can't be shown: this chart has no row {row!r}{hint}."
    return ""


def _find(found: Mapping[tuple[str, str], Value], step: Predict, row: str) -> Value | None:
    """Return the first value for a row and the prediction's model; None if there is none."""
    return next((found[key] for key in _matching(found, step, row)), None)


def _matching(
    found: Mapping[tuple[str, str], object], step: Predict, row: str
) -> Iterator[tuple[str, str]]:
    """Yield the keys for a row and the prediction's model; an empty name matches all."""
    for key in found:
        if row in ("", key[0]) and step.model in ("", key[1]):
            yield key
