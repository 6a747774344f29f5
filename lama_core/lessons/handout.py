"""A lesson on paper: one HTML file with what was shown, which needs nothing else to be read.

All text is escaped; of a lesson's own texts see `words`.
"""

from collections.abc import Mapping
from html import escape

from lama_core import __version__
from lama_core.lessons.lesson import (
    SHOWING,
    Analogy,
    Ask,
    Compare,
    Explain,
    Lesson,
    Predict,
    Step,
)
from lama_core.lessons.markup import as_html
from lama_core.lessons.step_results import Judged, Shown, judge, judged, whose
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


def handout(lesson: Lesson, predicted: Mapping[int, str], shown: Mapping[int, Shown]) -> str:
    """The whole file. predicted, shown: of the steps that were seen, by their number from 1."""
    found = list(judged(lesson, predicted, shown))
    parts = [
        f"<h1>{escape(lesson.title)}</h1>",
        f"<p><b>{escape(lesson.question)}</b></p>",
        *(
            _step(number, step, predicted, shown)
            for number, step in enumerate(lesson.steps, start=1)
        ),
    ]
    if found:
        parts.append("<h2>Your predictions</h2>" + grid(HEADS, map(summary_row, found)))
    if lesson.sources:
        parts.append("<h2>Sources</h2>")
        parts += [f"<p>{escape(source)}</p>" for source in lesson.sources]
    return _page(lesson, parts, STYLE)


def sheet(lesson: Lesson, shown: Mapping[int, Shown] | None = None) -> str:
    """A lesson to print before anybody has walked through it.

    shown: of all steps that show something, for the teacher's sheet with the answers; None makes
    the students' sheet, with room to write.
    """
    parts = [f"<h1>{escape(lesson.title)}</h1>", f"<p><b>{escape(lesson.question)}</b></p>"]
    for number, step in enumerate(lesson.steps, start=1):
        body = ""
        if isinstance(step, Predict):
            answer = _LINE
            if shown is not None:
                found = judge(step, "", shown.get(number + 1))
                answer = f"<p>Answer: <b>{escape(found.answer or 'not shown')}</b></p>"
            body = _asked(step, answer)
        elif isinstance(step, SHOWING):
            body = _empty(step) if shown is None else _table(shown.get(number, Shown()))
        parts.append(_section(number, step, body))
    return _page(lesson, parts, STYLE + PRINT)


_LINE = "<p>Answer: <span class=line style='display:inline-block'></span></p>"


def _empty(step: Step) -> str:
    """A table to fill in: a row a query, a column a model. Charts are on the teacher's screen."""
    rows: tuple[str, ...] = ()
    if isinstance(step, Ask):
        rows = (step.query,)
    elif isinstance(step, Compare):
        rows = step.queries
    elif isinstance(step, Analogy):
        rows = step.rows
    if not rows:
        return "<p>Write down what the chart shows:</p>" + 3 * "<div class=line></div>"
    assert isinstance(step, Ask | Compare | Analogy)
    heads = "".join(f"<th>{escape(find_model(name).title)}</th>" for name in step.models)
    cells = "<td><div class=line></div></td>" * len(step.models)
    lines = "".join(f"<tr><td>{escape(row)}</td>{cells}</tr>" for row in rows)
    return f"<table><tr><th>query</th>{heads}</tr>{lines}</table>"


def _page(lesson: Lesson, parts: list[str], head: str) -> str:
    note = f"<p class=note>Made with LAMA Explorer {escape(__version__)}.</p>"
    return whole_page(lesson.title, "".join(parts) + note, head=head)


def summary_row(one: Judged) -> tuple[str, str, str, str]:
    """A prediction beside its answer, with `HEADS`."""
    if not one.answer:
        return (one.question, one.predicted, "not shown", "")
    return (one.question, one.predicted, one.answer, "yes" if one.right else "no")


def _step(number: int, step: Step, predicted: Mapping[int, str], shown: Mapping[int, Shown]) -> str:
    body = ""
    if isinstance(step, Predict):
        body = _question(step, predicted.get(number), shown.get(number + 1))
    elif number in shown:
        body = _table(shown[number])
    elif isinstance(step, SHOWING):
        body = "<p class=note>Not shown when this was printed.</p>"
    return _section(number, step, body)


def _section(number: int, step: Step, body: str) -> str:
    """A step with its title and text. body: HTML of what the step asks or shows."""
    title = step.title or ("Predict" if isinstance(step, Predict) else "")
    source = f"<p class=note>{escape(step.source)}</p>" if isinstance(step, Explain) else ""
    head = f"<h2>{escape(f'{number}. {title}'.strip())}</h2>{as_html(step.text)}"
    return f"<section class=step>{head}{body}{source}</section>"


def _question(step: Predict, predicted: str | None, shown: Shown | None) -> str:
    said = ""
    if predicted is not None:
        found = judge(step, predicted, shown)
        said = f"<p>Predicted: <b>{escape(predicted)}</b>"
        model = whose(step, shown)
        of = f"Answer of {escape(model)}" if model else "Answer"
        said += f". {of}: <b>{escape(found.answer)}</b>.</p>" if found.answer else ".</p>"
    return _asked(step, said)


def _asked(step: Predict, below: str) -> str:
    """A question with its options. below: HTML."""
    options = "".join(f"<li>{escape(option)}</li>" for option in step.options)
    listed = f"<ul>{options}</ul>" if options else ""
    return f"<div class=asked><p>{escape(step.question)}</p>{listed}{below}</div>"


def _table(shown: Shown) -> str:
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
