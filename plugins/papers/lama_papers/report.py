"""A reproduction as one self-contained HTML file with its charts.

All text is escaped. A chart is an SVG picture whose marks have their text for mouse and screen
reader. The file has no script, and its policy lets browsers neither run one nor fetch anything.
"""

import re
from collections.abc import Sequence
from html import escape

from lama_core.reports.html import grid, whole_page
from lama_core.views import vega
from lama_core.views.colours import model_colours
from lama_core.views.figure import Figure
from lama_papers.tables import ReproducedTable, Reproduction

POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
)
# A mark of Vega's pictures with its text; an attribute's value can have any sign but ".
MARK = re.compile(r'(<path aria-label="([^"]*)"(?: [\w-]+="[^"]*")*)/>')


def as_html(found: Reproduction, command: str) -> str:
    """Return a reproduction as an HTML file; command: the command that made it."""
    parts = [
        f"<h1>{escape(found.paper)}, reproduced</h1>",
        f"<p>{escape(found.citation)}</p>",
        f"<p class=note>Made with <code>{escape(command)}</code></p>",
        _listed(found.notes),
        *map(_section, found.tables),
    ]
    if found.absent:
        parts += [
            "<h2>Not available</h2>",
            grid(
                ("item", "reason", "command that fetches it"),
                [(item.what, item.reason, item.command) for item in found.absent],
            ),
        ]
    return whole_page(f"{found.paper}, reproduced", "".join(parts), head=POLICY)


def _section(table: ReproducedTable) -> str:
    """Return a table with its description, notes and charts."""
    remarks, which = table.remarks()
    rows = [
        (
            row.model,
            row.what,
            f"{row.n:,}" if row.n else "",
            table.shown(row.ours),
            *table.shown_interval(row),
            table.shown(row.published),
            table.shown(row.difference, signed=True),
            "" if remark is None else f"[{remark + 1}]",
        )
        for row, remark in zip(table.made.rows, which, strict=True)
    ]
    interval = ["95 % interval"] * table.has_intervals
    heads = ("model", "what", "n", "ours", *interval, "paper", "difference", "")
    numbers = () if table.unit == "text" else range(2, len(heads) - 1)
    notes = [*table.made.notes, *(f"[{n}] {remark}" for n, remark in enumerate(remarks, start=1))]
    return (
        f"<h2 id={escape(table.id, quote=True)}>{escape(table.name)}: {escape(table.title)}</h2>"
        f"<p class=note>{escape(table.about.capitalize())}.</p>"
        + (grid(heads, rows, numbers) if rows else "")
        + _listed(notes)
        + "".join(map(_drawn, table.made.charts))
    )


def _listed(lines: Sequence[str]) -> str:
    return "".join(f"<p class=note>{escape(line)}</p>" for line in lines)


def _drawn(figure: Figure) -> str:
    """Return a chart as SVG; browsers show a mark's text under the mouse."""
    import vl_convert  # takes longer to load than the other modules of a command

    made = vega.specification(
        figure, model_colours([*figure.names]), vega.Look(width=720, legend=True)
    )
    picture = MARK.sub(r"\1><title>\2</title></path>", vl_convert.vegalite_to_svg(made))
    return f'<figure class=wide aria-label="{escape(figure.title)}">{picture}</figure>'
