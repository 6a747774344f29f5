"""A reproduction as one self-contained HTML file with its charts.

All text is escaped, also in the charts, because Plotly interprets tags.
"""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import count
from typing import TYPE_CHECKING

from lama_core.reports.tables import Chart, ReproducedTable, Reproduction

if TYPE_CHECKING:
    import plotly.graph_objects as go

OURS = ("#1f6aa5", "#d1731d", "#2a8a5f", "#8a5fb0", "#b3455a", "#5f6b76")
PAPER = ("#9aa1a9", "#6b737c", "#c3c8cd", "#3f464d")
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1b2430; background: #fff;
       max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.5rem }
table { border-collapse: collapse; margin: .6rem 0 }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #e3e6ea; text-align: left;
         vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.wide { overflow-x: auto } .note { color: #5f6b76 } code { overflow-wrap: anywhere }
"""
HEADS = ("model", "what", "n", "ours", "paper", "difference", "")
WITH_INTERVALS = ("model", "what", "n", "ours", "95 % interval", "paper", "difference", "")


def as_html(found: Reproduction, command: str) -> str:
    """Return a reproduction as an HTML file; command: the command that made it."""
    script = _script() if any(table.made.charts for table in found.tables) else ""
    number = count()
    parts = [
        f"<h1>{escape(found.paper)}, reproduced</h1>",
        f"<p>{escape(found.citation)}</p>",
        f"<p class=note>Made with <code>{escape(command)}</code></p>",
        _listed(found.notes),
        *(_section(table, number) for table in found.tables),
    ]
    if found.absent:
        rows = [(item.what, item.reason, item.command) for item in found.absent]
        parts += [
            "<h2>Not available</h2>",
            grid(("item", "reason", "command that fetches it"), rows),
        ]
    return whole_page(f"{found.paper}, reproduced", "".join(parts), head=script)


def whole_page(title: str, body: str, *, head: str = "") -> str:
    """Return an HTML file; title is plain text, body and head are HTML."""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>{head}</head>"
        f"<body>{body}</body></html>\n"
    )


def _section(table: ReproducedTable, number: "count[int]") -> str:
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
    heads = WITH_INTERVALS if table.has_intervals else HEADS
    numbers = () if table.unit == "text" else range(2, len(heads) - 1)
    notes = [*table.made.notes, *(f"[{n}] {remark}" for n, remark in enumerate(remarks, start=1))]
    charts = "".join(_drawn(chart, f"chart{next(number)}") for chart in table.made.charts)
    return (
        f"<h2 id={escape(table.id, quote=True)}>{escape(table.name)}: {escape(table.title)}</h2>"
        f"<p class=note>{escape(table.about.capitalize())}.</p>"
        + (grid(heads, rows, numbers) if rows else "")
        + _listed(notes)
        + charts
    )


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return rows of text as an HTML table, escaped; numbers: the right-aligned columns."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' * (column in numbers)}>{escape(text)}</{tag}>"
            for column, text in enumerate(texts)
        )

    head = cells("th", heads)
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"


def _listed(lines: Sequence[str]) -> str:
    return "".join(f"<p class=note>{escape(line)}</p>" for line in lines)


def _script() -> str:
    from plotly.offline import get_plotlyjs

    return f"<script>{get_plotlyjs()}</script>"


def _drawn(chart: Chart, name: str) -> str:
    drawn: str = figure(chart).to_html(
        full_html=False, include_plotlyjs=False, div_id=name, config={"displaylogo": False}
    )
    return f'<div role=img aria-label="{escape(chart.title)}">{drawn}</div>'


def figure(chart: Chart) -> "go.Figure":
    """Return a chart as a Plotly figure: our series in colours, the paper's in greys."""
    import plotly.graph_objects as go

    drawn = go.Figure()
    ours, papers = (iter(shades * len(chart.series)) for shades in (OURS, PAPER))
    for series in chart.series:
        colour = next(papers if series.published else ours)
        name = escape(series.name)
        x = [escape(value) if isinstance(value, str) else value for value in series.x]
        if chart.shape == "bars":
            drawn.add_bar(name=name, x=x, y=series.y, marker_color=colour)
        elif chart.shape == "boxes":
            drawn.add_box(name=name, x=x, y=series.y, marker_color=colour, boxpoints=False)
        else:
            dash = "dash" if series.published else "solid"
            drawn.add_scatter(
                name=name,
                x=x,
                y=series.y,
                mode=chart.shape if chart.shape == "lines" else "markers",
                marker={"color": colour},
                line={"color": colour, "dash": dash},
            )
    drawn.update_layout(
        title={"text": escape(chart.title), "font": {"size": 15}},
        template="plotly_white",
        height=420,
        barmode="group",
        boxmode="group",
        showlegend=True,
        margin={"l": 50, "r": 20, "t": 50, "b": 50},
    )
    drawn.update_xaxes(title_text=escape(chart.x_title), type="log" if chart.log_x else None)
    drawn.update_yaxes(title_text=escape(chart.y_title))
    return drawn
