"""Draw a chart given as data (`lama_core.views.figure`) with Plotly.

A mark's `customdata` is its row in the figure's frame, so that a click can open the facts behind
it.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd

from lama_core.views.figure import MOST_BARS, Axis, Baseline, Figure
from pages.ui.shared import charts
from pages.ui.shared.cache import cached
from pages.ui.shared.charts import Colours
from pages.ui.shared.plotly_chart import PlotlyChart, Style
from pages.ui.shared.style import theme

# What other modules may use: `plot` draws a figure, `specification` is the same as JSON, `mark_of`
# finds the clicked row of its frame.

MARK = ("mark",)  # the column of `customdata`
TICK_SIZE = {"bars": 11, "points": 14}
LETTER = 8  # pixels of a letter of an axis title, with room for the legend on a phone
MOST_MARKS = 30  # of a line with a marker at each value
SYMBOLS = {"tick": "line-ns-open", "diamond": "diamond-open"}  # of baselines


def plot(figure: Figure, inks: Colours) -> PlotlyChart:
    """Draw a figure; inks: series -> colour. Series without a colour are grey."""
    frame, scale = figure.frame, 100 if figure.value.share else 1
    columns: dict[str, Any] = {
        "mark": range(len(frame)),
        "key": frame[figure.series],
        "name": frame[figure.series].map(figure.names),
        "hover": [_hover(text) for text in frame["said"]],
        "at": _values(frame, figure.by),
        "value": _values(frame, figure.value),
    }
    for end in ("low", "high"):
        column = getattr(figure, end)
        columns[end] = scale * frame[column] if column else np.nan
    table = pd.DataFrame(columns)
    # The rows of a series are taken from columns of objects in a tenth of the time of texts.
    texts: list[str] = table.select_dtypes("string").columns.tolist()
    table = table.astype(dict.fromkeys(texts, object))
    shown = set(table["key"])
    colours = {
        name: inks.get(key, charts.GREY) for key, name in figure.names.items() if key in shown
    }
    drawn = SHAPES[figure.shape](figure, table, colours)
    if figure.zero is not None:
        drawn.add_line(scale * figure.zero, color=charts.GREY, width=1)
    if figure.guide is not None:
        drawn.add_line(figure.guide, color=charts.GREY, width=1, dash="dot")
    return drawn


def ready(
    figure: Figure,
    inks: Colours,
    picture: str,
    *,
    zooms: bool = False,
    least_height: int = 0,
    legend: bool | None = None,
) -> charts.TitledChart:
    """Return a figure with its title and caption, ready to be drawn; arguments: see `draw_figure`.

    It is kept, because Plotly takes longer to make a chart than everything else on a page that is
    drawn again.
    """
    return _ready(figure, dict(inks), picture, zooms, least_height, legend, theme())


@cached(64)
def _ready(
    figure: Figure,
    inks: dict[str, str],
    picture: str,
    zooms: bool,
    least_height: int,
    legend: bool | None,
    theme: str,
) -> charts.TitledChart:
    """Make the chart of `ready`; theme: that of the page, which the chart's inks depend on."""
    drawn = plot(figure, inks)
    layout = drawn.layout
    layout["showlegend"] = legend
    if layout["height"] < least_height:  # the gaps become wider, not the bars
        layout["bargap"] = 1 - (1 - layout.get("bargap", 0)) * layout["height"] / least_height
        layout["height"] = least_height
    return charts.ready(
        drawn, title=figure.title, footnote=figure.caption, picture=picture, zooms=zooms
    )


def specification(figure: Figure, inks: Colours) -> str:
    """A figure with its title as JSON, for people who restyle it with Plotly."""
    drawn = plot(figure, inks).update(title=escape(figure.title))
    return str(drawn.update(meta={"caption": figure.caption}).figure.to_json())


def _hover(text: str) -> str:
    """Lines of plain text as HTML, the first in bold."""
    first, *others = map(escape, text.split("\n"))
    return "<br>".join((f"<b>{first}</b>", *others))


def _values(frame: pd.DataFrame, axis: Axis) -> "pd.Series[Any]":
    column = frame[axis.column]
    return 100 * column if axis.share else column


def _axis(axis: Axis) -> Style:
    """Plotly's settings of an axis."""
    scale = 100 if axis.share else 1
    style: Style = {"title": axis.title}
    if axis.log:
        style["type"] = "log"
    if axis.order:
        style |= {"categoryorder": "array", "categoryarray": [*axis.order]}
    if axis.ticks:
        places = [scale * place for place in axis.ticks]
        style |= {"tickvals": places, "ticktext": [*axis.ticks.values()]}
    if axis.ends:
        ends = [scale * end for end in axis.ends]
        style["range"] = [float(np.log10(end)) for end in ends] if axis.log else ends
    elif axis.reversed:
        style["autorange"] = "reversed"
    elif axis.share or axis.from_zero:
        style["rangemode"] = "tozero"
    return style


def _lines(figure: Figure, table: pd.DataFrame, colours: Colours) -> PlotlyChart:
    """A line for each series; lines of series without a colour are thin."""
    drawn = PlotlyChart()
    if figure.diagonal:
        ends = [0, 100 if figure.value.share else 1]
        straight = {"mode": "lines", "line": {"color": charts.GREY, "width": 1, "dash": "dash"}}
        drawn.add("scatter", x=ends, y=ends, name=figure.diagonal, hoverinfo="skip", **straight)
    faint = [name for name, ink in colours.items() if ink == charts.GREY]
    for series in faint:
        thin: Style = {"mode": "lines+markers", "marker_size": 3, "line_width": 1, "opacity": 0.25}
        thin["showlegend"] = series == faint[0]
        charts.add_runs(drawn, "scatter", table, {series: charts.GREY}, "at", "value", MARK, **thin)
        drawn.data[-1] |= {"name": f"{len(faint)} others", "legendgroup": "others"}
    colours = {name: ink for name, ink in colours.items() if name not in faint}
    _add_series(drawn, figure, table, colours)
    for baseline in figure.baselines:
        rows = _baseline_rows(figure, table, baseline)
        same = rows.round({"line": 9}).groupby("at")["line"].nunique().max() == 1
        drawn_for = {next(iter(colours)): charts.GREY} if same else colours
        names = {name: baseline.name if same else f"{name}, {baseline.name}" for name in colours}
        style: Style = {"mode": "lines", "line_width": 1.5, "line_dash": "dot"}
        for name, ink in drawn_for.items():
            part = rows[rows["name"] == name].assign(name=names[name])
            charts.add_runs(drawn, "scatter", part, {names[name]: ink}, "at", "line", MARK, **style)
    for n in figure.sizes:
        key: Style = {"size": float(_areas(figure, n)), "color": charts.CLEAR}
        key["line"] = {"width": 1.5, "color": charts.GREY}
        charts.add_key(drawn, figure.size_label(n), **key)
    return drawn.update(
        xaxis=_axis(figure.by), yaxis=_axis(figure.value), height=470 if figure.size else 430
    )


def _add_series(drawn: PlotlyChart, figure: Figure, table: pd.DataFrame, colours: Colours) -> None:
    """Add the lines of series with a colour, with bands or whiskers for their intervals."""
    style: Style = {"mode": "lines+markers", "line_width": 2, "showlegend": True}
    dense = False
    if figure.size:
        table["area"] = _areas(figure, figure.frame[figure.size])
        style["by_row"] = {"marker_size": "area"}
    elif dense := len(table) > MOST_MARKS * len(colours) and bool(figure.by.ticks):
        table["mark size"] = 5 * table["at"].isin(figure.by.ticks)  # markers at the ticks only
        style["by_row"] = {"marker_size": "mark size"}
    else:
        style["marker_size"] = 7 if figure.low else 5
    whiskered = table[np.isfinite(table["high"])]["name"].nunique() <= charts.MOST_WHISKERS
    for name, ink in colours.items():
        rows, one = table[table["name"] == name], {name: ink}
        if dense:
            charts.add_band(drawn, rows, name, ink)
        elif whiskered and (error := charts.whiskers(rows, "value", ink, 1)):
            bars: Style = {"error_y": error, "mode": "markers", "marker_opacity": 0}
            bars |= {"showlegend": False, "hoverinfo": "skip"}
            charts.add_runs(drawn, "scatter", rows, one, "at", "value", **bars)
        charts.add_runs(drawn, "scatter", rows, one, "at", "value", MARK, **style)


def _areas(figure: Figure, n: Any) -> Any:
    """The diameters of points in pixels, whose areas grow with n; a legend shows up to 16."""
    return 4 + 12 * np.sqrt(n / max(1.0, float(figure.frame[figure.size].max())))


def _columns(figure: Figure, table: pd.DataFrame, colours: Colours) -> PlotlyChart:
    """Vertical bars at each value of `by`, side by side for several series; dots lie on them."""
    drawn = PlotlyChart()
    is_dot = figure.frame[figure.dots] if figure.dots else pd.Series(data=False, index=table.index)
    shade: Style = {"marker_opacity": 0.45} if figure.dots else {}
    if figure.hollow:
        table["stripes"] = np.where(figure.frame[figure.hollow], "/", "")
    bars, dots = table[~is_dot], table[is_dot]
    if figure.hollow:
        bars = bars.sort_values("stripes", kind="stable")  # the legend shows the first mark
        shade["by_row"] = {"marker_pattern_shape": "stripes"}
    for name, ink in colours.items():
        charts.add_runs(drawn, "bar", bars, {name: ink}, "at", "value", MARK, **shade)
        style: Style = {"mode": "markers", "marker_size": 8, "showlegend": False}
        style["marker_line"] = charts.OUTLINE
        charts.add_runs(drawn, "scatter", dots, {name: ink}, "at", "value", MARK, **style)
        for baseline in figure.baselines:
            rows = _baseline_rows(figure, table, baseline)
            rows = rows[rows["name"] == name]
            if len(rows):
                style = {"marker_symbol": SYMBOLS[baseline.mark], "marker_size": 10}
                style |= {"name": baseline.name, "legend": False, "offsetgroup": name}
                charts.add_marks(drawn, rows, "at", "line", MARK, **style)
        # Plotly draws scatter traces above all bars, so the whiskers are a scatter trace, too.
        place: Style = {"offsetgroup": name, "legendgroup": name, "mode": "markers"}
        ours = bars[bars["name"] == name]
        charts.add_whiskers(drawn, "scatter", ours, "at", "value", **place)
    if figure.hollow_name:
        striped = {"color": charts.GREY, "pattern": {"shape": "/"}}
        drawn.add("bar", x=[None], y=[None], name=figure.hollow_name, marker=striped)
    places = figure.places
    return drawn.update(
        xaxis={
            "title": figure.by.title,
            "type": "category",
            "categoryorder": "array",
            "categoryarray": places,
            "range": [-0.5, len(places) - 0.5],
            "showgrid": False,
        },
        yaxis=_axis(figure.value),
        height=420,
        bargap=0.3 if figure.dots else 0.15,
        scattermode="group",
        scattergap=0.3,
    )


def _baseline_rows(figure: Figure, table: pd.DataFrame, baseline: Baseline) -> pd.DataFrame:
    """The marks of a baseline; the column `line` has their places on the value axis."""
    values = figure.frame[baseline.column].to_numpy(dtype=float)
    scale = 100 if figure.value.share else 1
    table = table.assign(line=scale * values)
    rows = table[values >= baseline.least]
    return rows if baseline.each else rows.drop_duplicates(["at", "line"])


def _rows(figure: Figure, table: pd.DataFrame, colours: Colours) -> PlotlyChart:
    """A row for each value of `by`, with horizontal bars, or points for many series."""
    drawn = PlotlyChart()
    published = [figure.names[key] for key in figure.names if key in figure.published]
    ours = {name: ink for name, ink in colours.items() if name not in published}
    bars = figure.shape == "bars" and len(ours) <= MOST_BARS
    table = table.assign(label=table["at"])
    if figure.hollow:
        table["symbol"] = np.where(figure.frame[figure.hollow], "circle-open", "circle")
    charts.add_values(drawn, table, ours, MARK, points=not bars)
    for trace in drawn.data:
        if trace["type"] == "scatter":
            trace["cliponaxis"] = False  # points at 0 are whole
    if figure.hollow:
        mark: Style = {"size": 10, "line": {"width": 2}, "color": charts.GREY}
        charts.add_key(drawn, figure.hollow_name, symbol="circle-open", **mark)
        if table.duplicated(["label", "name"]).any():
            drawn.update(scattermode="group", scattergap=0.4)
            for drawn_trace in drawn.data:
                drawn_trace.setdefault("offsetgroup", next(iter(ours)))
    edge, stroke = charts.line_inks()
    for reference, symbol in zip(published, cycle(charts.SYMBOLS), strict=False):
        marked_rows = table[table["name"] == reference]
        look: Style = {"marker_size": 9, "marker_symbol": symbol, "mode": "markers"}
        look |= {"marker_color": edge, "marker_line": {"width": 1.6, "color": stroke}}
        charts.add(
            drawn, "scatter", marked_rows, "value", "label", MARK, name=escape(reference), **look
        )
    for baseline in figure.baselines:
        rows = _baseline_rows(figure, table, baseline).drop_duplicates(["at", "line"])
        if len(rows):
            style: Style = {
                "marker_symbol": SYMBOLS[baseline.mark],
                "marker_size": 8
                if baseline.mark == "diamond"
                else TICK_SIZE["bars" if bars else "points"],
                "name": baseline.name,
            }
            charts.add_marks(drawn, rows, "line", "label", MARK, **style)
    axis = _axis(figure.value)
    if figure.text:
        ends = table["high"].fillna(table["value"])
        texts: Style = {"text": "  " + figure.frame[figure.text], "textposition": "middle right"}
        texts |= {"mode": "text", "hoverinfo": "skip", "showlegend": False}
        drawn.add("scatter", x=ends, y=table["label"], **texts)
        axis["range"] = [0, 1.5 * ends.max()]  # with room for the texts on a phone
    labels = figure.places
    row = 9 + 13 * max(1, len(ours)) if bars else 22
    if any(len(str(label)) > charts.MOST_LETTERS for label in labels):
        row = max(row, 34)  # room for names of several lines
    bold = table["label"][table["at"].isin(figure.bold)]
    return drawn.update(
        **charts.row_names(labels, bold),
        # Of a few rows, the title would be longer than the axis.
        yaxis_title=figure.by.title if len(labels) * row > LETTER * len(figure.by.title) else None,
        yaxis_showgrid=not bars,
        xaxis=axis,
        height=120 + max(1, len(labels)) * row,
        **charts.BARS,
    )


def _boxes(figure: Figure, table: pd.DataFrame, colours: Colours) -> PlotlyChart:
    """A horizontal box for each row, with a diamond at the value."""
    drawn = PlotlyChart()
    quartiles = {name: figure.frame[name] for name in ("q1", "median", "q3")}
    table = table.assign(label=table["at"].map(escape), **quartiles)
    for row in table.to_dict("records"):
        box: Style = {name: [row[name]] for name in quartiles}
        box |= {"lowerfence": [row["low"]], "upperfence": [row["high"]], "y": [row["label"]]}
        box |= {"name": row["label"], "orientation": "h", "showlegend": False, "hoverinfo": "skip"}
        drawn.add("box", **box, **charts.box_colours(colours[row["name"]]))
    style: Style = {"mode": "markers", "marker_symbol": "diamond", "marker_size": 11}
    style |= {"marker_line": {"width": 1.4, "color": charts.ink()}, "showlegend": False}
    charts.add_runs(drawn, "scatter", table, colours, "value", "label", MARK, **style)
    rows = {"range": charts.rows_down(table), "showgrid": False, "ticksuffix": "  "}
    return drawn.update(
        xaxis=_axis(figure.value)
        | ({"dtick": 1, "tickformat": ",", "showgrid": True} if figure.value.log else {}),
        yaxis={"title": figure.by.title} | rows,
        height=120 + 46 * max(1, len(table)),
    )


def _heat_map(figure: Figure, table: pd.DataFrame, _: Colours) -> PlotlyChart:
    """Cells with a colour scale whose middle is the colour of the page."""
    places, names = figure.places, list(figure.names.values())
    table = table.assign(
        column=table["at"].map({place: at for at, place in enumerate(places)}),
        row=table["name"].map({name: at for at, name in enumerate(names)}),
    )
    tone = np.full((len(names), len(places)), np.nan)
    tone[table["row"], table["column"]] = table["value"]
    texts = np.full(tone.shape, "", dtype=object)
    if figure.text:
        texts[table["row"], table["column"]] = figure.frame[figure.text]
    bar: Style = {"title": {"text": figure.value.title, "side": "right"}, "thickness": 12}
    bar |= {"tickvals": [*figure.value.ticks], "ticktext": [*figure.value.ticks.values()]}
    low, high = figure.value.ends or (None, None)
    # Numbers in the cells say more than a colour scale and titles, and need the width on a phone.
    titles = ("", "") if figure.text else (figure.rows, figure.by.title)
    drawn = charts.heat_map(
        tone,
        texts.tolist(),
        (titles[0], names),
        (titles[1], places),
        **charts.diverging(),
        colorbar=bar | {"outlinewidth": 0},
        showscale=not figure.text,
        zmin=low,
        zmax=high,
        hoverinfo="skip",
    )
    charts.add_clicks(drawn, table, MARK)
    if figure.text:  # level names would run into each other
        drawn.update(xaxis_tickangle=-30)
    return drawn.update(
        yaxis_range=charts.rows_down(names),
        xaxis_range=[-0.5, len(places) - 0.5],
        height=160 + 40 * len(names),
        hoverdistance=40,
    )


SHAPES: Mapping[str, Callable[[Figure, pd.DataFrame, Colours], PlotlyChart]] = {
    "bars": _rows,
    "points": _rows,
    "lines": _lines,
    "columns": _columns,
    "boxes": _boxes,
    "heat map": _heat_map,
}


def mark_of(figure: Figure, points: Sequence[Mapping[str, Any]]) -> dict[Any, Any] | None:
    """The row of the figure's frame of the first clicked mark; None without one."""
    for point in points:
        if "customdata" in point:
            # As records, whose numbers are Python's: numpy's can't be compared with ().
            return figure.frame.iloc[[int(point["customdata"][0])]].to_dict("records")[0]
    return None
