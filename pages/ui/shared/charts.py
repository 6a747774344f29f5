"""Plotly charts made from DataFrames, with one trace per run in the run's colour.

A mark's `customdata` identifies it, so that a click can open the facts behind it. Its hover text is
made from its row of the table, as HTML. Backgrounds are transparent and texts have no colour:
Streamlit's theme colours them and overwrites the layout of templates. Whiskers and marks on bars
have an edge, dark on white or, on dark pages, white on dark, which makes them visible on bars of
any colour. Texts from data or models are escaped, because Plotly interprets HTML tags.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from lama_core.metrics.confusion import Confusion
from lama_core.rounding import fixed, percent
from pages.ui.shared.plotly_chart import PlotlyChart, Style, UncheckedFigure, merged
from pages.ui.shared.style import theme
from pages.ui.shared.text import short

Colours = Mapping[str, str]
CLEAR = "rgba(0,0,0,0)"
FAINT = "rgba(128,128,128,0.25)"
GREY = "#808080"  # visible on dark and on white pages
DARK = "#1b2430"
MUTED = {"light": "#535e6b", "dark": "#a9b4c1"}  # of axes, by theme
EDGE = "#ffffff"
LOW, MIDDLE, HIGH = "#a8431f", "#7a838e", "#1f6aa5"  # white text is readable on all three
SCALE = [[0.0, LOW], [0.5, MIDDLE], [1.0, HIGH]]
COUNTED = [[0.0, "#7a838e"], [1.0, "#a8431f"]]  # a scale for counts
RIGHT = [[0.0, "#5c7f74"], [1.0, "#17704f"]]  # a scale for counts of right answers
TOTALS = [[0.0, "#5d6670"], [1.0, "#5d6670"]]
MOST_NUMBERED = 24  # most columns of a heat map that shows a number in each cell
MOST_LETTERS = 30  # maximum length of a label
MOST_BARS = 3  # more runs are drawn as points instead of bars
MOST_WHISKERS = 4  # lines over training steps with intervals; more would overlap
# Training steps from early to late, visible on dark and on white pages.
STEPS = [[0.0, "#b9a7d6"], [0.5, "#5a93cf"], [1.0, "#1aa179"]]
LINE = 90  # characters per line of a title in a picture
FOOT = 140  # characters per line of a footnote in a picture
TITLE_ROW, TITLE_SIZE, TEXT_SIZE, FOOT_SIZE = 22, 14, 12, 11  # pixels
ASCENT = 0.7  # height of letters above the baseline, as Plotly estimates it
PICTURE = 900  # the width of a saved picture, in pixels
INTERVAL = "95 % interval"
ZOOMS = ("zoom", "pan", "select", "lasso", "autoScale", "zoomIn", "zoomOut", "resetScale")
OUTLINE = {"width": 1, "color": GREY}  # of points
BARS = {"bargap": 0.28, "bargroupgap": 0.05}  # of horizontal bars
SYMBOLS = ("diamond", "square", "triangle-up", "circle")  # of published models


@dataclass(frozen=True)
class TitledChart:
    """A chart with its title and footnote, ready to be drawn.

    Attributes:
        figure: The chart.
        title: The title, which is also the alternative text.
        above: The title as HTML.
        below: The footnote as HTML, or empty.
        config: Plotly's settings of buttons and pictures.
    """

    figure: UncheckedFigure
    title: str
    above: str
    below: str
    config: Mapping[str, Any]


def draw_chart(chart: PlotlyChart, key: str, *, title: str, **options: Any) -> list[dict[str, Any]]:
    """Draw a chart and return the clicked marks; options: as for `ready`."""
    return draw_ready(ready(chart, title=title, **options), key)


def draw_ready(chart: TitledChart, key: str) -> list[dict[str, Any]]:
    """Draw a chart and return the clicked marks, as dictionaries with `customdata`.

    key: The widget's key.
    """
    with st.container(gap=None):
        st.html(chart.above)
        event = st.plotly_chart(
            chart.figure,
            key=key,
            on_select="rerun",
            selection_mode="points",
            alt=chart.title,
            config=dict(chart.config),
        )
        if chart.below:
            st.html(chart.below)
    return list(event.selection.points)


def ready(
    chart: PlotlyChart,
    *,
    title: str,
    footnote: str = "",
    picture: str = "png",
    enlarged: float = 1.0,
    zooms: bool = False,
) -> TitledChart:
    """Return a chart with its title and footnote; the chart is changed.

    Args:
        chart: The chart.
        title: The title, which is also the alternative text and the file name of the picture.
        footnote: How the chart was made; also part of the picture.
        picture: The file format of the picture, `png` or `svg`.
        enlarged: A factor for the sizes of letters and marks.
        zooms: Whether dragging zooms into the values, and a double click on an empty place
            resets it.
    """
    layout, axis = chart.layout, chart.layout.get("xaxis", {})
    named = layout.get("showlegend")
    if named is None:
        named = sum(trace.get("showlegend") is not False for trace in chart.data) > 1
    footlines = _wrapped(footnote, FOOT)
    below = round(enlarged * (22 + 1.3 * FOOT_SIZE * len(footlines))) if footlines else 0
    height = enlarged * (layout.get("height") or 400) + below
    room = _add_title(chart, title, height, enlarged, named=named)
    top, bottom = room + (40 if named else 8), round(40 * enlarged) + below
    on_top = axis.get("side") == "top"  # with the footnote
    if on_top:
        bottom = 8
        if text := _text_of(axis):  # below the chart's title and its buttons
            chart.update(xaxis_title=f"\u00a0<br>{text}")
    chart.update(
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        modebar={"bgcolor": CLEAR, "color": GREY, "activecolor": ink()},
        margin={"l": 8, "r": 12, "t": top, "b": bottom},
        height=height + room,
        barcornerradius=2,
        hoverlabel={"align": "left"},
        dragmode="zoom" if zooms else False,
    )
    _set_fonts(chart, enlarged)
    if footlines:
        _add_footnote(chart, footlines, enlarged)
    style = f"font-size:{enlarged * TITLE_SIZE}px;margin-bottom:-{room}px"
    style += ";padding-right:7.2rem" * zooms  # a button more than `style.css` leaves room for
    above = f'<div class="lx-title" style="{style}" aria-hidden="true">{escape(title)}</div>'
    foot_style = f"font-size:{enlarged * FOOT_SIZE}px;margin-top:-{0 if on_top else below - 12}px"
    foot = f'<div class="lx-foot" style="{foot_style}">{escape(footnote)}</div>'
    removed = [f"{name}2d" for name in ZOOMS if not (zooms and name == "resetScale")]
    return TitledChart(
        chart.unchecked,
        title,
        above,
        foot * bool(footlines),
        {
            "displaylogo": False,
            "modeBarButtonsToRemove": removed,
            "toImageButtonOptions": {
                "filename": title.lower().replace(" ", "-"),
                "scale": 2 if picture == "png" else 1,
                "width": PICTURE,
                "format": picture,
            },
        },
    )


def _text_of(axis: Style) -> str:
    """The title of an axis."""
    title = axis.get("title") or {}
    return title.get("text") or ""


def _set_fonts(chart: PlotlyChart, enlarged: float) -> None:
    """Set the fonts of axes, scales and the legend, and the lines of the axes."""
    font: Style = {"size": enlarged * TEXT_SIZE, "color": muted_ink()}
    scale: Style = {"tickfont": font, "title": {"font": font}}
    axis: Style = {"zeroline": False, "gridcolor": FAINT, "automargin": True} | scale
    chart.update(xaxis=axis, yaxis=axis, legend={"font": font | {"color": ink()}})
    for trace in chart.data:
        if trace["type"] == "heatmap":
            merged(trace, {"colorbar": scale})
    if enlarged != 1:
        chart.update(hoverlabel={"font": {"size": enlarged * TEXT_SIZE}})


def _add_footnote(chart: PlotlyChart, lines: Sequence[str], enlarged: float) -> None:
    """Add the footnote to pictures; the page hides it (`style.css`) and has it as a text."""
    size = enlarged * FOOT_SIZE
    note = f'<span style="font-size:{size}px">{"<br>".join(map(escape, lines))}</span>'
    axis = chart.layout["yaxis"]
    named = axis.get("type") == "category" or "categoryarray" in axis
    if named or any(
        trace.get("orientation") == "h" for trace in chart.data
    ):  # at the right edge, because the names leave little room
        annotation: Style = {
            "text": note,
            "font": {"color": muted_ink()},
            "x": 1,
            "y": 0,
            "xref": "paper",
            "yref": "paper",
            "xanchor": "right",
            "yanchor": "top",
            "yshift": -58 * enlarged,
            "align": "right",
            "showarrow": False,
        }
        chart.layout.setdefault("annotations", []).append(annotation)
    else:  # below the axis title, wherever long tick labels put it
        texts = (_text_of(chart.layout["xaxis"]), note)
        chart.update(xaxis_title="<br>".join(filter(None, texts)))


def _wrapped(text: str, letters: int) -> list[str]:
    return textwrap.wrap(text, letters, break_on_hyphens=False)


def _add_title(
    chart: PlotlyChart, title: str, height: float, enlarged: float, *, named: bool
) -> int:
    """Put the title at the top left, above a legend; return the title's height in pixels.

    Plotly doesn't wrap it, so the page hides it (`style.css`) and has it as a text in its place.
    Saved pictures and full screens show it. height: that of the chart without its title.
    """
    size = enlarged * TITLE_SIZE
    lines = [escape(line) for line in _wrapped(title, LINE)]
    room = round(enlarged * TITLE_ROW * max(1, len(lines)))
    # Plotly aligns a single line by its top, but the first of several lines by its baseline.
    above = 4 if len(lines) < 2 else 4 + ASCENT * size
    heading: Style = {
        "text": f"<b>{'<br>'.join(lines)}</b>",
        "font": {"size": size, "color": ink()},
        "x": 0,
        "xref": "container",
        "xanchor": "left",
        "y": 1,
        "yref": "container",
        "yanchor": "top",
        "pad": {"l": 2, "t": above},
    }
    place = {"x": 0, "xref": "container", "yref": "container", "yanchor": "top"}
    legend = place | {"orientation": "h", "y": 1 - room / (height + room)}
    chart.update(title=heading, showlegend=named, legend=legend)
    return room


def step_colours(n: int) -> list[str]:
    """Colours of `n` training steps, from early to late."""
    from plotly.colors import sample_colorscale

    return list(sample_colorscale(STEPS, np.linspace(0.0, 1.0, n) if n > 1 else [1.0]))


def with_hover(table: pd.DataFrame, text: Callable[[Any], str], *shares: str) -> pd.DataFrame:
    """Add the column `hover`, made by `text` from each row as HTML; convert `shares` to percent."""
    hover = [text(row) for row in table.itertuples()]
    return table.assign(hover=hover, **{name: 100 * table[name] for name in shares})


def add(
    chart: PlotlyChart,
    kind: str,
    rows: pd.DataFrame,
    x: str,
    y: str,
    data: Sequence[str] = (),
    **style: Any,
) -> None:
    """Add a trace with one mark per row.

    Args:
        chart: The chart.
        kind: The trace's type, such as `bar`.
        rows: A table with the column `hover`, unless `hoverinfo` is `skip`.
        x: The column of the horizontal position.
        y: The column of the vertical position.
        data: The columns of `customdata`.
        style: Further properties of the trace.
    """
    if style.get("hoverinfo") != "skip":
        style |= {
            "hovertext": rows["hover"].tolist(),
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
    if data:
        style["customdata"] = list(zip(*(rows[name].tolist() for name in data), strict=True))
    chart.add(kind, x=rows[x].tolist(), y=rows[y].tolist(), **style)


def add_runs(
    chart: PlotlyChart,
    kind: str,
    table: pd.DataFrame,
    colours: Colours,
    x: str,
    y: str,
    data: Sequence[str] = (),
    *,
    by_row: Mapping[str, str] | None = None,
    group: str = "name",
    **style: Any,
) -> None:
    """Add one trace per run in the run's colour; the column `name` names the run.

    by_row: style argument -> the column with its value for each mark. group: traces with the same
    value in this column share a position and are hidden together. Other arguments as for `add`.
    """
    for name, colour in colours.items():
        rows = table[table["name"] == name]
        if len(rows):
            each = {key: rows[column].tolist() for key, column in (by_row or {}).items()}
            groups = dict.fromkeys(("offsetgroup", "legendgroup"), rows[group].iloc[0])
            ink = {"name": escape(name), "marker_color": colour}
            add(chart, kind, rows, x, y, data, **ink, **groups, **each, **style)


def whiskers(rows: pd.DataFrame, axis: str, colour: str, thickness: float) -> dict[str, Any]:
    """Plotly's error bars from the columns `low` to `high`; {} if no row has an interval."""
    value, low, high = (rows[name].to_numpy(dtype=float) for name in (axis, "low", "high"))
    if not np.isfinite(high).any():
        return {}
    ends = {"type": "data", "array": high - value, "arrayminus": value - low}
    return ends | {"thickness": thickness, "width": 3, "color": colour}


def add_band(chart: PlotlyChart, rows: pd.DataFrame, name: str, colour: str) -> None:
    """Add a band of intervals around the line of a series; nothing if no row has an interval."""
    known = rows[np.isfinite(rows["high"])]
    x, y = ([*known[up], *known[down][::-1]] for up, down in (("at", "at"), ("high", "low")))
    chart.add(
        "scatter",
        x=x,
        y=y,
        fill="toself",
        fillcolor=colour,
        opacity=0.18,
        mode="lines",
        line_width=0,
        hoverinfo="skip",
        showlegend=False,
        legendgroup=name,
    )


def add_whiskers(
    chart: PlotlyChart, kind: str, rows: pd.DataFrame, x: str, y: str, **style: Any
) -> None:
    """Add whiskers with an edge, so that they are visible on bars; give the bars' `orientation`."""
    horizontal = style.get("orientation") == "h"
    marker = {"color": CLEAR, "line": {"width": 0}}
    for line, thickness in zip(line_inks(), (4.5, 1.7), strict=True):
        if error := whiskers(rows, x if horizontal else y, line, thickness):
            style |= {"hoverinfo": "skip", "showlegend": False, "marker": marker}
            style["error_x" if horizontal else "error_y"] = error
            add(chart, kind, rows, x, y, **style)


def add_values(
    chart: PlotlyChart, table: pd.DataFrame, colours: Colours, data: Sequence[str], *, points: bool
) -> None:
    """Add runs' values as bars or points.

    table: Columns name, value, low, high, label; with symbol, hollow points have grey whiskers and
    the legend shows full points.
    """
    for name, colour in colours.items():
        rows = table[table["name"] == name]
        if points:
            style: Style = {"mode": "markers", "marker_size": 9, "marker_line": OUTLINE}
            style |= {"error_x": whiskers(rows, "value", colour, 1.5)}
            if "symbol" in rows:
                style |= {"by_row": {"marker_symbol": "symbol"}, "marker_size": 8}
                style |= {"orientation": "h"}
                style |= {"marker_line": {"width": 2}, "showlegend": False}
                style |= {"error_x": whiskers(rows, "value", GREY, 1.3)}
            add_runs(chart, "scatter", rows, {name: colour}, "value", "label", data, **style)
            if "symbol" in rows and len(rows):
                add_key(chart, escape(name), name, size=10, color=colour)
        elif len(rows):
            bars: Style = {"orientation": "h", "showlegend": True}
            add_runs(chart, "bar", rows, {name: colour}, "value", "label", data, **bars)
            bars |= {"offsetgroup": name, "legendgroup": name}
            add_whiskers(chart, "bar", rows, "value", "label", **bars)


def add_marks(
    chart: PlotlyChart, rows: pd.DataFrame, x: str, y: str, data: Sequence[str], **style: Any
) -> None:
    """Add open marks that are visible on bars and on pages; arguments as for `add`.

    Draws a trace in the page's ink on a wider trace with the opposite brightness.
    """
    shown = style.pop("legend", True)
    edge, line = line_inks()
    for ink, width in ((edge, 5), (line, 2)):
        style |= {"marker_color": ink, "marker_line_width": width, "legendgroup": style["name"]}
        style |= {"hoverinfo": "skip" if ink == edge else None, "mode": "markers"}
        add(
            chart,
            "scatter",
            rows,
            x,
            y,
            data if ink == line else (),
            showlegend=shown and ink == line,
            **style,
        )


def line_inks() -> tuple[str, str]:
    """The colours of the edge and of the line of marks on bars, for the page's theme."""
    return (DARK, EDGE) if theme() == "dark" else (EDGE, DARK)


def add_key(chart: PlotlyChart, name: str, group: str = "", **marker: Any) -> None:
    """Add a mark that is only in the legend; a click on it hides the traces of its group."""
    style: Style = {"mode": "markers", "marker": marker, "hoverinfo": "skip"}
    style |= {"legendgroup": group} if group else {}
    chart.add("scatter", x=[None], y=[None], name=name, **style)


def heat_map(
    tone: Any,
    texts: Sequence[Sequence[str]],
    rows: tuple[str, Sequence[str]],
    columns: tuple[str, Sequence[str]],
    **style: Any,
) -> PlotlyChart:
    """Make a heat map with texts in the cells.

    Args:
        tone: The values that set the colours, [row, column].
        texts: The texts, [row, column].
        rows: The title of the vertical axis, and the names of the rows.
        columns: The title of the horizontal axis, and the names of the columns.
        style: Properties of Plotly's heat map. Texts are white, unless these include `diverging()`.
    """
    style = {"texttemplate": "%{text}", "textfont_color": "white", "xgap": 2, "ygap": 1} | style
    chart = PlotlyChart()
    chart.add("heatmap", z=tone, text=texts, hoverongaps=False, **style)
    for axis, (title, names) in (("yaxis", rows), ("xaxis", columns)):
        shown = [escape(short_label(name)) for name in names]
        ticks = {"tickvals": list(range(len(names))), "ticktext": shown}
        chart.update(**{axis: {"title": title, "showgrid": False} | ticks})
    # Tilted to the left, the last name stays inside the chart on a phone.
    return chart.update(xaxis_autotickangles=[0, -30, -90])


def add_clicks(chart: PlotlyChart, cells: pd.DataFrame, data: Sequence[str]) -> None:
    """Add invisible marks in the centres of a heat map's cells; data: as for `add`.

    They take hover and clicks, because cells can't be selected. cells: columns row, column, hover.
    """
    unseen = {"marker": {"opacity": 0}}
    style: Style = {
        "marker_symbol": "square",
        "marker_size": 16,
        "marker_opacity": 0,
        "selected": unseen,
        "unselected": unseen,
        "showlegend": False,
        "mode": "markers",
    }
    add(chart, "scatter", cells, "column", "row", data, **style)


def diverging() -> Style:
    """Return the style of a heat map whose middle colour is the page's background.

    Plotly chooses a dark or a light text for each cell.
    """
    page = str(st.get_option(f"theme.{theme()}.backgroundColor") or EDGE)
    scale = [[0.0, LOW], [0.5, page], [1.0, HIGH]]
    return {"colorscale": scale, "textfont_color": None}


def words(table: pd.DataFrame, colour: str, most: int) -> PlotlyChart:
    """Draw a run's most frequent wrong answers.

    Args:
        table: Columns answer, n, share, n_relations, right_type.
        colour: The run's colour.
        most: The greatest number of facts on the axis.

    Returns:
        The chart; customdata is [answer].
    """
    chart = PlotlyChart()
    table = with_hover(
        table.assign(word=table["answer"].map(str).map(escape)),
        lambda row: (
            f"<b>{row.word}</b>: wrong {row.n:,} times in {row.n_relations} relations, "
            f"{percent(row.share)} % of the model's wrong answers"
            f"<br>an object of the relation in {percent(row.right_type, 0)} % of these"
        ),
    )
    shown = [f"{n:,}" for n in table["n"]]
    style: Style = {"orientation": "h", "marker_color": colour, "text": shown, "cliponaxis": False}
    add(chart, "bar", table, "n", "word", ("answer",), textposition="outside", **style)
    axis = {"type": "category", "range": rows_down(table), "showgrid": False, "ticksuffix": "  "}
    return chart.update(
        xaxis={
            "title": "facts with this answer",
            "range": [0, 1.2 * most],  # with room for the numbers
        },
        yaxis={"title": "answer"} | axis,
        height=90 + 24 * max(1, len(table)),
    )


def answer_scores(table: pd.DataFrame, colour: str) -> PlotlyChart:
    """Draw all answers to one fact, best first, as bars that begin at the worst answer.

    table: columns word, score, prob, mark (`gold`, `also right` or empty), best first.
    """
    chart = PlotlyChart()
    scores = table["score"].astype(float)
    base = float(scores.min()) - 0.03 * (float(scores.max() - scores.min()) or 1.0)
    rows = [f"{at:,}" for at in range(1, len(table) + 1)]
    titles = {"": "other answers", "gold": "right answer", "also right": "also right"}
    words = [escape(short_label(str(word))) for word in table["word"]]
    shown = [
        f"<b>{word}</b>" if mark else word for word, mark in zip(words, table["mark"], strict=True)
    ]
    table = with_hover(
        table.assign(row=rows, length=scores - base, name=table["mark"].map(titles)),
        lambda row: (
            f"<b>{escape(str(row.word))}</b>, {row.name}<br>rank {row.row}, score "
            f"{fixed(row.score, 2)}<br>{percent(row.prob)} % of the answers' softmax"
        ),
    )
    table["opacity"] = table["mark"].map({"": 0.35, "gold": 1.0, "also right": 0.65})
    table["edge"] = np.where(table["mark"] != "", 2, 0)
    style: Style = {"base": base, "orientation": "h", "marker_line_color": ink()}
    style["by_row"] = {"marker_opacity": "opacity", "marker_line_width": "edge"}
    inks = dict.fromkeys(titles.values(), colour)
    add_runs(chart, "bar", table, inks, "length", "row", **style)
    return chart.update(
        **row_names(rows) | {"yaxis_ticktext": shown, "yaxis_type": "category"},
        yaxis_title="answer",
        yaxis_showgrid=False,
        barmode="overlay",
        bargap=0.2,
        xaxis_title="score, in nats (bars begin at the worst answer)",
        height=110 + 20 * len(table),
    )


def confusion(found: Confusion, *, narrow: bool = False) -> PlotlyChart:
    """Draw right answers by first answers, coloured by the number of facts on a log scale.

    Cells on the diagonal, where the first answer is right, have another colour scale. The row and
    the column that group the other words have a constant colour. customdata of each cell with facts
    is [gold, answer], with "" for the other words. narrow: short names for the other words, and no
    scale of colours.
    """
    counts, others = found.counts, found.is_other
    golds = [*found.golds, *[""] * (len(counts) - len(found.golds))]
    answers = [*found.answers, *[""] * (counts.shape[1] - len(found.answers))]
    n_golds, n_answers = found.n_golds - len(found.golds), found.n_answers - len(found.answers)
    shown_golds = [short_label(gold) or f"{n_golds:,} other right answers" for gold in golds]
    shown_answers = [short_label(answer) or f"{n_answers:,} other answers" for answer in answers]
    axes = (("right answer", shown_golds), ("first answer", shown_answers))
    if narrow:
        title = "rows: right answer, columns: first answer"
        worded = [[word or "others" for word in words] for words in (golds, answers)]
        axes = (("", worded[0]), (title, worded[1]))
    with np.errstate(divide="ignore"):
        tone = np.where(counts > 0, np.log10(counts), np.nan)
    written = _thousands if narrow else "{:,}".format
    texts = [[written(n) if n else "" for n in line] for line in counts]
    style: Style = {
        "texttemplate": "%{text}" if len(answers) <= MOST_NUMBERED else "",
        "zmin": 0,
        "zmax": max(1.0, float(np.nanmax(np.where(others, np.nan, tone), initial=0.0))),
        "hoverinfo": "skip",
    }
    style |= {"textfont_size": TEXT_SIZE - 1} if narrow else {}
    most = int(counts[~others].max(initial=1))
    ticks = [10**power for power in range(int(np.log10(most)) + 1)]
    if most > 2 * ticks[-1]:  # else the labels would touch
        ticks.append(most)
    bar = {
        "tickvals": np.log10(ticks),
        "ticktext": [f"{tick:,}" for tick in ticks],
        "title": {"text": "facts"},
        "thickness": 12,
    }
    chart = heat_map(
        tone, texts, *axes, colorscale=COUNTED, colorbar=bar, showscale=not narrow, **style
    )
    for which, scale in ((found.is_right, RIGHT), (others, TOTALS)):
        cells = np.where(which, tone, np.nan)
        parts = heat_map(cells, texts, *axes, colorscale=scale, showscale=False, **style)
        chart.data += parts.data
    marks = pd.DataFrame(np.argwhere(counts), columns=["row", "column"])
    marks = with_hover(
        marks.assign(
            gold=marks["row"].map(dict(enumerate(golds))),
            answer=marks["column"].map(dict(enumerate(answers))),
            n=counts[counts > 0],
            share=(counts / counts.sum(axis=1, keepdims=True))[counts > 0],
        ),
        lambda row: (
            f"right answer <b>{escape(shown_golds[row.row])}</b><br>first answer "
            f"<b>{escape(shown_answers[row.column])}</b><br>{row.n:,} facts, "
            f"{percent(row.share)} % of this right answer's"
        ),
    )
    add_clicks(chart, marks, ("gold", "answer"))
    return chart.update(
        xaxis={"side": "top", "tickangle": -45, "range": [-0.5, len(answers) - 0.5]},
        yaxis_range=rows_down(golds),
        height=230 + 24 * len(golds),
        hoverdistance=40,
    )


def _thousands(n: int) -> str:
    """A number that fits into a narrow cell: from 10,000 in thousands."""
    return f"{n:,}" if n < 10_000 else f"{n / 1000:.0f}k"


def box_colours(colour: str) -> dict[str, Any]:
    """A box plot's style: lines in the text colour, filled with the colour, half transparent."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    line = {"color": ink(), "width": 1.6}
    return {"line": line, "fillcolor": f"rgba({red},{green},{blue},0.5)"}


def muted_ink() -> str:
    """The colour of the texts of axes; its contrast on the page is 6:1 or more."""
    return MUTED[theme()]


def ink() -> str:
    """The colour of the page's text, for lines that aren't on bars."""
    return str(st.get_option(f"theme.{theme()}.textColor") or DARK)


def row_names(labels: Sequence[str], bold: Iterable[str] = ()) -> dict[str, Any]:
    """Layout of a vertical axis with the labels from top to bottom, escaped, some in bold."""
    bold = set(bold)
    cut = {row: broken(row) for row in labels}
    shown = [f"<b>{cut[row]}</b>" if row in bold else cut[row] for row in labels]
    # Plotly infers the type from the first trace, whose only name may be a number.
    axis: Style = {"type": "category", "categoryorder": "array", "categoryarray": labels}
    axis |= {"range": rows_down(labels)}
    axis |= {"tickvals": labels, "ticktext": shown, "ticksuffix": "  "}
    return {f"yaxis_{name}": value for name, value in axis.items()}


def broken(label: str) -> str:
    """A label as HTML, in up to three lines if it is longer than `MOST_LETTERS`."""
    if len(label) <= MOST_LETTERS:
        return escape(label)
    options: dict[str, Any] = {"max_lines": 3, "placeholder": "…", "break_on_hyphens": False}
    return "<br>".join(map(escape, textwrap.wrap(label, MOST_LETTERS - 4, **options)))


def rows_down(lines: Sized) -> list[float]:
    """The range of a vertical axis of names, with the first name at the top."""
    return [len(lines) - 0.5, -0.5]


def short_label(label: str) -> str:
    """A label cut to `MOST_LETTERS`."""
    return short(label, MOST_LETTERS)
