"""What a lesson's steps showed, and the reader's predictions beside it."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from lama_core.errors import did_you_mean
from lama_core.lessons.lesson import Lesson, Predict
from lama_core.rounding import percent

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a step showed, to be shown again on paper.

    title: above the rest. heads, rows: a table of texts. shares: one of each row, between 0 and 1,
    to be drawn as bars; or none. notes: below the table. firsts: (row, model) -> first answer, of
    rows that are queries.
    values: (row, model) -> share.
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
    """A prediction beside its answer. answer: empty where nothing has shown it."""

    question: str
    predicted: str
    answer: str
    right: bool


def judge(step: Predict, predicted: str, shown: Shown | None) -> Judged:
    """A prediction beside its answer. shown: by the step after it, where that has been seen.

    A word is right if it is the model's first answer, whatever its case; a range if the number,
    unrounded, lies in it, its lower end included; a row if no other of the choices has more.
    """
    answer, detail = step.answer, ""
    if not answer and shown is not None:
        if step.between:
            value = _of(shown.values, step)
            if value is not None:
                # A share is compared as one: 100 * 0.29 is less than 29.
                ends = [end / 100 for end in step.between]
                answer = step.options[bisect_right(ends, value)]
                detail = f" ({percent(value)} %)"
        elif shown.values:
            of_rows = {row: _of(shown.values, step, row) for row in step.choices}
            known = {row: value for row, value in of_rows.items() if value is not None}
            if len(known) == len(step.choices):
                most = [row for row in known if known[row] == max(known.values())]
                answer = predicted if predicted in most else most[0]
                detail = f" ({percent(known[answer])} %)"
        else:
            answer = _of(shown.firsts, step) or ""
    right = bool(answer) and predicted.strip().casefold() == answer.strip().casefold()
    return Judged(step.question, predicted, answer + detail, right)


def whose(step: Predict, shown: Shown | None) -> str:
    """The model whose word or number answers a prediction; empty where none does."""
    if step.answer or shown is None:
        return ""
    return next(_places(shown.values or shown.firsts, step, step.row), ("", ""))[1]


def judged(
    lesson: Lesson, predicted: Mapping[int, str], shown: Mapping[int, Shown]
) -> Iterator[Judged]:
    """The lesson's predictions that were made, in order. Both are by the steps' numbers, from 1."""
    for number, step in enumerate(lesson.steps, start=1):
        if isinstance(step, Predict) and number in predicted:
            yield judge(step, predicted[number], shown.get(number + 1))


def first_to_predict(lesson: Lesson, predicted: Mapping[int, str], number: int) -> int | None:
    """The first step before `number` whose question hasn't been answered yet; None if all have."""
    for at, step in enumerate(lesson.steps[: number - 1], start=1):
        if isinstance(step, Predict) and at not in predicted:
            return at
    return None


def without_line(step: Predict, shown: Shown | None) -> str:
    """Which of a question's rows is no line of the chart after it, in a sentence; or empty."""
    lines = list(dict.fromkeys(row for row, _ in shown.values)) if shown is not None else []
    rows = (step.row,) if step.between else step.choices
    for row in rows if lines else ():
        if row and row not in lines:
            hint = did_you_mean(row, lines) or f" (one is {lines[0]!r})"
            return f"The answer can't be shown: {row!r} is no line of this chart{hint}."
    return ""


def _of(found: Mapping[tuple[str, str], Value], step: Predict, row: str = "") -> Value | None:
    """What is found for a prediction's row and model, by default the first's that are there."""
    return next((found[place] for place in _places(found, step, row or step.row)), None)


def _places(
    found: Mapping[tuple[str, str], object], step: Predict, row: str
) -> Iterator[tuple[str, str]]:
    """Where a prediction's row and model are found; any row, any model for an empty one."""
    for of_row, of_model in found:
        if row in ("", of_row) and step.model in ("", of_model):
            yield of_row, of_model
