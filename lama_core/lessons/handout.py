"""Lessons for printing, as self-contained HTML files.

All text is escaped; `markup` formats the texts of lessons.
"""

from collections.abc import Mapping, Sequence
from html import escape

from lama_core import __version__
from lama_core.lessons.lesson import (
    SHOWING,
    Explain,
    Lesson,
    ModelStep,
    Predict,
    Step,
)
from lama_core.lessons.markup import as_html
from lama_core.lessons.step_results import (
    Judged,
    StepResult,
    answering_model,
    judge,
    judged_predictions,
)
from lama_core.models.sources.catalog import find_model
from lama_core.reports.html import grid, whole_page

STYLE = """
<style>
.step { break-inside: avoid; border-top: 1px solid #e3e6ea; margin-top: 1.2rem }
.bar { background: #e8ecf0; width: 14rem; height: .8rem }
.bar div { background: #1f6aa5; height: .8rem; print-color-adjust: exact;
           -webkit-print-color-adjust: exact }
.asked { border-left: 3px solid #1f6aa5; padding-left: .8rem }
.line { border-bottom: 1px solid #1b2430; min-width: 9rem; height: 1.4rem }
@media print { body { margin: 0; max-width: none; font-size: 11pt } }
</style>
"""
# Opens the browser's print dialog with the file.
PRINT = "<script>addEventListener('load', () => print())</script>"
HEADS = ("question", "you predicted", "answer", "as predicted")


def handout(lesson: Lesson, predicted: Mapping[int, str], shown: Mapping[int, StepResult]) -> str:
    """Return a handout with the reader's predictions and the results, as HTML.

    Args:
        lesson: The lesson.
        predicted: Number of a step, from 1 -> the reader's prediction.
        shown: Number of a step, from 1 -> what it showed.
    """
    summary = list(judged_predictions(lesson, predicted, shown))
    parts = [
        f"<h1>{escape(lesson.title)}</h1>",
        f"<p><b>{escape(lesson.question)}</b></p>",
        *(
            _step(number, step, predicted, shown)
            for number, step in enumerate(lesson.steps, start=1)
        ),
    ]
    if summary:
        parts.append(f"<h2>{summary_title(predicted)}</h2>{summary_table(summary)}")
    if lesson.takeaway:
        parts.append(f"<p><b>{escape(lesson.takeaway)}</b></p>")
    if lesson.sources:
        parts.append("<h2>Sources</h2>")
        parts += [f"<p>{escape(source)}</p>" for source in lesson.sources]
    return _page(lesson, parts, STYLE)


def sheet(lesson: Lesson, shown: Mapping[int, StepResult] | None = None) -> str:
    """Return a worksheet to print before the lesson, as HTML.

    shown: Number of a step, from 1 -> what it shows, for the teacher's sheet with the answers; None
    makes the students' sheet, with room to write and the explanations on a page at the end.
    """
    later: list[str] = []
    parts = [f"<h1>{escape(lesson.title)}</h1>", f"<p><b>{escape(lesson.question)}</b></p>"]
    for number, step in enumerate(lesson.steps, start=1):
        body = ""
        if isinstance(step, Predict):
            answer = "<p>Answer: <span class=line style='display:inline-block'></span></p>"
            if shown is not None:
                found = judge(step, "", shown.get(number + 1))
                answer = f"<p>Answer: <b>{escape(found.answer or 'not shown')}</b></p>"
            body = _asked(step, answer)
        elif isinstance(step, SHOWING):
            body = _empty(step) if shown is None else _table(shown.get(number, StepResult()))
        section = _section(number, step, body)
        if shown is None and isinstance(step, Explain):
            later.append(section)
            section = f"<p class=note>Step {number}: read it afterwards, on the last page.</p>"
        parts.append(section)
    if later:
        parts += ['<h1 style="break-before: page">Read afterwards</h1>', *later]
    return _page(lesson, parts, STYLE + PRINT)


def _empty(step: ModelStep) -> str:
    """Return a table to fill in, a row per query and a column per model; lines for a chart."""
    if not step.requests:
        return "<p>Write down what the chart shows:</p>" + 3 * "<div class=line></div>"
    heads = "".join(f"<th>{escape(find_model(name).title)}</th>" for name in step.models)
    cells = "<td><div class=line></div></td>" * len(step.models)
    lines = "".join(f"<tr><td>{escape(row)}</td>{cells}</tr>" for row in step.requests)
    return f"<table><tr><th>query</th>{heads}</tr>{lines}</table>"


def _page(lesson: Lesson, parts: list[str], head: str) -> str:
    note = f"<p class=note>Made with LAMA Explorer {escape(__version__)}.</p>"
    return whole_page(lesson.title, "".join(parts) + note, head=head)


def summary_table(verdicts: Sequence[Judged]) -> str:
    """Return questions with their predictions, if there are any, and answers, as HTML."""
    rows = [_summary_row(one) for one in verdicts]
    if any(one.predicted for one in verdicts):
        return grid(HEADS, rows)
    return grid((HEADS[0], HEADS[2]), [(row[0], row[2]) for row in rows])


def _summary_row(result: Judged) -> tuple[str, str, str, str]:
    """Return a prediction and its answer as a row under `HEADS`."""
    verdict = ("yes" if result.right else "no") if result.answer and result.predicted else ""
    predicted = result.predicted or "no prediction made"
    return (result.question, predicted, result.answer or "not shown", verdict)


def summary_title(predicted: Mapping[int, str]) -> str:
    """Return the title of `summary_table`."""
    return "Your predictions" if predicted else "Questions and answers"


def _step(
    number: int, step: Step, predicted: Mapping[int, str], shown: Mapping[int, StepResult]
) -> str:
    body = ""
    if isinstance(step, Predict):
        body = _question(step, predicted.get(number), shown.get(number + 1))
    elif number in shown:
        body = _table(shown[number])
    elif isinstance(step, SHOWING):
        body = "<p class=note>This step was not shown before printing.</p>"
    return _section(number, step, body)


def _section(number: int, step: Step, body: str) -> str:
    """Return a step with its title and text; body: the HTML of its question or results."""
    title = step.title or ("Predict" if isinstance(step, Predict) else "")
    source = f"<p class=note>{escape(step.source)}</p>" if isinstance(step, Explain) else ""
    head = f"<h2>{escape(f'{number}. {title}'.strip())}</h2>{as_html(step.text)}"
    return f"<section class=step>{head}{body}{source}</section>"


def _question(step: Predict, predicted: str | None, shown: StepResult | None) -> str:
    text = ""
    if predicted is not None:
        answer = judge(step, predicted, shown).answer
        model = answering_model(step, shown)
        label = f"Answer of {escape(model)}" if model else "Answer"
        text = f"<p>Predicted: <b>{escape(predicted)}</b>."
        text += f" {label}: <b>{escape(answer)}</b>.</p>" if answer else "</p>"
    return _asked(step, text)


def _asked(step: Predict, below: str) -> str:
    """Return a question with its options; below: the HTML under them."""
    options = "".join(f"<li>{escape(option)}</li>" for option in step.options)
    listed = f"<ul>{options}</ul>" if options else ""
    return f"<div class=asked><p>{escape(step.question)}</p>{listed}{below}</div>"


def _table(shown: StepResult) -> str:
    title = f"<p><b>{escape(shown.title)}</b></p>" if shown.title else ""
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in shown.notes)
    if not shown.rows:
        return title + notes
    if not shown.shares:
        return title + grid(shown.heads, shown.rows) + notes
    head = "".join(f"<th>{escape(text)}</th>" for text in shown.heads)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}"
        f'<td><div class=bar><div style="width:{100 * min(1.0, max(0.0, share)):.1f}%"></div></div>'
        "</td></tr>"
        for row, share in zip(shown.rows, shown.shares, strict=True)
    )
    return f"{title}<div class=wide><table><tr>{head}<th></th></tr>{rows}</table></div>{notes}"
