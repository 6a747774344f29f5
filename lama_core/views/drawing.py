"""Draw a figure for a paper with matplotlib, as SVG, PDF or PNG.

The size of the file follows from the texts: first the titles, the legend and the caption are broken
into lines that fit the width, then the chart gets the room that its labels leave, and the height is
what all of them need. So nothing is cut off at any width and font size.
"""

import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lama_core.progress import OnNote, log_note
from lama_core.views.figure import MOST_BARS, Axis, Baseline, Figure
from lama_core.views.figure_files import FONT_SIZE, WIDTH, FigureFormat, check_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Style = dict[str, Any]  # keyword arguments of matplotlib
DOTS = 300  # of PNG files, per inch
INCH, POINT = 2.54, 1 / 72  # cm in an inch, inches in a point
GREY, DARK, FAINT = "#808080", "#1b2430", "#d9dce0"
LOW, HIGH = "#a8431f", "#1f6aa5"  # the ends of the colours of heat maps
EDGE = 0.1  # inches of white around everything
UPRIGHT = ("lines", "columns", "heat map")  # shapes whose horizontal axis is `by`
MOST_POINTS = 30  # of a line that shows its points
MOST_NAMES = 0.38  # of the width, for the names of rows
SYMBOLS = ("D", "s", "^", "o")  # of published series
FONT = "DejaVu Sans"  # comes with matplotlib
SETTINGS: Any = {
    "font.family": [FONT],
    "svg.fonttype": "none",  # texts stay texts
    "pdf.fonttype": 42,  # embedded TrueType fonts
    "svg.hashsalt": "lama",  # the same file for the same figure
    "text.parse_math": False,  # a dollar sign is a dollar sign
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "hatch.linewidth": 0.8,
}
# matplotlib's settings are those of the process, and pages are drawn in threads.
_LOCK = Lock()
_SHAPES: dict[str, Callable[["_Chart"], None]] = {}


def draw(
    figure: Figure,
    file_format: FigureFormat,
    inks: Mapping[str, str],
    *,
    width: float = WIDTH,
    font_size: float = FONT_SIZE,
    on_note: OnNote = log_note,
) -> bytes:
    """Return a figure as a file, on a white page.

    Args:
        figure: The figure.
        file_format: `svg` or `pdf`, with texts as texts, or `png`, with 300 dots per inch.
        inks: Series -> colour as `#rrggbb`; others are grey.
        width: The width in cm, from 6 to 60.
        font_size: The size of labels in points, from 5 to 24.
        on_note: Called with the letters that no installed font has.

    Raises:
        UserError: If the format is unknown, or width or font size are out of bounds.
    """
    check_figure(file_format, width, font_size)
    from matplotlib import rc_context, rcParams  # slow to import (0.3 s)
    from matplotlib.text import Text

    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    about = {"Title": figure.title, **dates[file_format]}
    file = io.BytesIO()
    with _LOCK, rc_context(SETTINGS | {"font.size": font_size}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        made = make(figure, inks, width=width, font_size=font_size)
        texts = "".join(one.get_text() for one in made.findobj(Text))
        fonts, missing = _fonts_for({ord(sign) for sign in texts if sign.isprintable()})
        if len(fonts) > 1:
            rcParams["font.family"] = fonts
            made = make(figure, inks, width=width, font_size=font_size)
        made.savefig(file, format=file_format, dpi=DOTS, metadata=about)
    if missing and file_format != "svg":  # a viewer of SVG brings its fonts
        on_note(f"No installed font has the letters {missing[:20]}: the file shows boxes instead.")
    return file.getvalue()


def _fonts_for(codes: set[int]) -> tuple[list[str], str]:
    """Return fonts that together have the most of some letters, `FONT` first, and the others."""
    from matplotlib.font_manager import fontManager, get_font

    found, left = [], codes
    for one in sorted(fontManager.ttflist, key=lambda one: (one.name != FONT, one.name)):
        if left and not one.name.startswith("Last Resort"):  # it has a box for each letter
            has = left & get_font(one.fname).get_charmap().keys()
            found += [one.name] if has or one.name == FONT else []
            left = left - has
    return list(dict.fromkeys(found)), "".join(map(chr, sorted(left)))


@dataclass
class _Chart:
    """A figure while it is drawn. `table` has the columns at, value, name, low, high."""

    figure: Figure
    axes: "Axes"
    table: pd.DataFrame
    inks: Mapping[str, str]  # name of the series -> colour
    em: float  # inches
    bar: Any = None  # of colours
    handles: tuple[Any, ...] = ()

    @property
    def scale(self) -> float:
        return 100.0 if self.figure.value.share else 1.0


def make(figure: Figure, inks: Mapping[str, str], *, width: float, font_size: float) -> "Canvas":
    """Return a figure as matplotlib's; call it with matplotlib's settings `SETTINGS`.

    See `draw` for the arguments.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(width / INCH, 40), dpi=72)
    FigureCanvasAgg(canvas)
    axes = canvas.add_axes((0.2, 0.2, 0.6, 0.6))
    scale = 100 if figure.value.share else 1
    by = figure.frame[figure.by.column]
    table = figure.frame.assign(
        at=100 * by if figure.by.share else by,
        value=scale * figure.frame[figure.value.column],
        name=figure.frame[figure.series].map(figure.names),
        low=scale * figure.frame[figure.low] if figure.low else np.nan,
        high=scale * figure.frame[figure.high] if figure.high else np.nan,
    )
    shown = set(figure.frame[figure.series])
    colours = {name: inks.get(key, GREY) for key, name in figure.names.items() if key in shown}
    chart = _Chart(figure, axes, table, colours, font_size * POINT)
    _SHAPES[figure.shape](chart)
    for place, line in ((figure.zero, "-"), (figure.guide, ":")):
        if place is not None:
            at = place * (chart.scale if line == "-" else 1)
            axes.axvline(at, color=GREY, linewidth=0.8, linestyle=line, zorder=1)
    _lay_out(canvas, chart)
    return canvas


# Layout


def _lay_out(canvas: "Canvas", chart: _Chart) -> None:
    """Place the title, the legend, the chart and the caption below each other."""
    from matplotlib.text import Text

    figure, axes, em = chart.figure, chart.axes, chart.em
    width = canvas.get_figwidth()
    size = em / POINT
    room = width - 2 * EDGE
    title = canvas.text(0, 0, "", fontsize=1.15 * size, fontweight="bold", va="top")
    _fit_text(canvas, title, figure.title, room)
    caption = canvas.text(0, 0, "", fontsize=0.85 * size, va="top", color="#4b5563")
    _fit_text(canvas, caption, figure.caption, room)
    legend = _legend(canvas, chart, room)
    for text in canvas.findobj(Text):
        text.set_fontfeatures(["-liga"])  # PDF files have no letters for ligatures
    top = _height(canvas, title) + 0.5 * em
    top += _height(canvas, legend) + 0.3 * em if legend is not None else 0
    bottom = _height(canvas, caption) + 0.8 * em if figure.caption else 0.0
    inner = [0.2 * width, 0.95 * width]  # left and right edge of the axes, in inches
    tall = _inner_height(chart, width)
    high = canvas.get_figheight()
    above = below = 0.0
    for _ in range(4):
        base = high / 2
        _place(canvas, chart, inner, base, tall)
        _fit_text(
            canvas,
            axes.xaxis.label,
            figure.by.title if figure.shape in UPRIGHT else figure.value.title,
            max(inner[1] - inner[0], 6 * em),
        )
        side = {
            "bars": figure.by.title,
            "points": figure.by.title,
            "boxes": figure.by.title,
            "heat map": figure.rows,
        }.get(figure.shape, figure.value.title)
        _fit_text(canvas, axes.yaxis.label, side, max(tall, 8 * em))
        _turn_labels(canvas, chart, inner)
        box = _extent(canvas, chart)
        inner = [inner[0] + EDGE - box[0], inner[1] - (box[2] - (width - EDGE))]
        inner[1] = max(inner[1], inner[0] + 4 * em)
        below, above = base - box[1], box[3] - base - tall
    total = EDGE + top + above + tall + below + bottom + EDGE
    canvas.set_size_inches(width, total)
    _place(canvas, chart, inner, EDGE + bottom + below, tall)
    _fit_cells(canvas, chart)
    y = total - EDGE
    title.set_position((EDGE / width, y / total))
    y -= _height(canvas, title) + 0.5 * em
    if legend is not None:
        legend.set_loc("upper left")
        legend.set_bbox_to_anchor((EDGE / width, y / total), transform=canvas.transFigure)
    caption.set_position((EDGE / width, (EDGE + bottom - 0.8 * em) / total))


def _fit_cells(canvas: "Canvas", chart: _Chart) -> None:
    """Make the texts in the cells of a heat map small enough for the cells."""
    renderer = canvas.canvas.get_renderer()  # type: ignore[attr-defined]
    room = chart.axes.get_window_extent(renderer).width / max(1, len(chart.figure.places))
    wide = [text.get_window_extent(renderer).width for text in chart.axes.texts]
    share = 0.9 * room / max(wide, default=1)
    for text in chart.axes.texts if share < 1 else ():
        text.set_fontsize(share * float(text.get_fontsize()))


def _inner_height(chart: _Chart, width: float) -> float:
    """Return the height of the axes in inches."""
    n_rows, shape = len(chart.axes.get_yticks()), chart.figure.shape
    if shape in ("bars", "points"):
        bars = shape == "bars" and len(chart.inks) <= MOST_BARS
        lines = max(
            1,
            max(
                (name.get_text().count("\n") + 1 for name in chart.axes.get_yticklabels()),
                default=1,
            ),
        )
        return chart.em * n_rows * max(0.8 + 1.0 * len(chart.inks) if bars else 1.8, 1.3 * lines)
    if shape == "boxes":
        return chart.em * 3.2 * max(1, len(chart.table))
    if shape == "heat map":
        return chart.em * 2.6 * max(1, len(chart.figure.names))
    return 0.5 * width


def _place(
    canvas: "Canvas", chart: _Chart, inner: Sequence[float], base: float, tall: float
) -> None:
    """Place the axes; inner: left and right edge in inches, base: the bottom edge."""
    width, high = canvas.get_figwidth(), canvas.get_figheight()
    left, right = inner
    if chart.bar is not None:
        place = (right - 0.8 * chart.em) / width
        chart.bar.ax.set_position((place, base / high, 0.8 * chart.em / width, tall / high))
        right -= 2 * chart.em
    chart.axes.set_position((left / width, base / high, (right - left) / width, tall / high))


def _extent(canvas: "Canvas", chart: _Chart) -> tuple[float, float, float, float]:
    """Return left, bottom, right and top of the axes with all texts, in inches."""
    renderer = canvas.canvas.get_renderer()  # type: ignore[attr-defined]
    every = [chart.axes, *([chart.bar.ax] if chart.bar is not None else [])]
    boxes = [one.get_tightbbox(renderer) for one in every]
    dots = canvas.dpi
    return (
        min(box.x0 for box in boxes) / dots,
        min(box.y0 for box in boxes) / dots,
        max(box.x1 for box in boxes) / dots,
        max(box.y1 for box in boxes) / dots,
    )


def _height(canvas: "Canvas", artist: Any) -> float:
    """Return the height of a text or legend in inches; 0 for an empty text."""
    if hasattr(artist, "get_text") and not artist.get_text():
        return 0.0
    renderer = canvas.canvas.get_renderer()  # type: ignore[attr-defined]
    return float(artist.get_window_extent(renderer).height / canvas.dpi)


def _fit_text(canvas: "Canvas", text: Any, content: str, room: float) -> None:
    """Set the content of a text, broken into lines no longer than `room` in inches."""
    text.set_text(_broken(canvas, content, room, text.get_fontsize(), text.get_fontweight()))


def _broken(
    canvas: "Canvas", content: str, room: float, size: float, weight: str | int = "normal"
) -> str:
    """Return a text broken at spaces, and inside words that are longer than a line."""
    from matplotlib.font_manager import FontProperties

    font = FontProperties(family=FONT, size=size, weight=weight)
    renderer = canvas.canvas.get_renderer()  # type: ignore[attr-defined]

    def fits(line: str) -> bool:
        wide, _, _ = renderer.get_text_width_height_descent(line, font, False)
        return bool(wide / canvas.dpi <= room)

    lines: list[str] = []
    for word in content.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and fits(longer):
            lines[-1] = longer
            continue
        while not fits(word) and len(word) > 1:
            end = next(n for n in range(len(word) - 1, 0, -1) if n == 1 or fits(word[:n]))
            lines.append(word[:end])
            word = word[end:]
        lines.append(word)
    return "\n".join(lines)


def _turn_labels(canvas: "Canvas", chart: _Chart, inner: Sequence[float]) -> None:
    """Turn the names of places if they don't fit next to each other."""
    if chart.figure.shape not in ("columns", "heat map"):
        return
    labels = chart.axes.get_xticklabels()
    renderer = canvas.canvas.get_renderer()  # type: ignore[attr-defined]
    for label in labels:
        label.set_rotation(0)
        label.set_horizontalalignment("center")
    widest = max((one.get_window_extent(renderer).width for one in labels), default=0)
    each = (inner[1] - inner[0]) / max(1, len(labels))
    if widest / canvas.dpi + 0.3 * chart.em > each:
        for label in labels:
            label.set_rotation(45)
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")


def _legend(canvas: "Canvas", chart: _Chart, room: float) -> Any:
    """Return the legend, in as many columns as fit; None without entries."""
    handles = list(chart.handles)
    if not handles:
        return None
    renderer = canvas.canvas.get_renderer()  # type: ignore[attr-defined]
    size = chart.em / POINT
    labels = [_broken(canvas, str(one.get_label()), room - 4 * chart.em, size) for one in handles]
    for n_columns in range(len(handles), 0, -1):
        legend = canvas.legend(
            handles, labels, ncols=n_columns, frameon=False, loc="upper left", borderpad=0,
            borderaxespad=0, handlelength=1.6, columnspacing=1.5,
        )  # fmt: skip
        if legend.get_window_extent(renderer).width / canvas.dpi <= room or n_columns == 1:
            return legend
        legend.remove()
    return None


# Shapes


def _numbers(value: float, _: int = 0) -> str:
    """Return a number of an axis."""
    return f"{value:,.10g}".replace("-", "−")


def _set_axis(axis: Any, given: Axis, *, grid: bool = True) -> None:
    """Set the scale, the ends and the labels of an axis of numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    which = axis.axis_name
    scale = 100 if given.share else 1
    if given.log:
        getattr(axis.axes, f"set_{which}scale")("log")
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(_numbers))
    if given.ticks:
        axis.set_major_locator(FixedLocator([scale * place for place in given.ticks]))
        axis.set_ticklabels(list(given.ticks.values()))
    limits = getattr(axis.axes, f"set_{which}lim")
    if given.ends:
        limits(*(scale * end for end in given.ends))
    elif given.share:
        low, high = axis.get_view_interval()
        limits(min(0, low), max(0, high))
    if given.reversed:
        axis.set_inverted(True)
    axis.axes.grid(grid, axis=which)


def _key(label: str, **style: Any) -> Any:
    """Return an entry of the legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **{"linestyle": "none", **style})


def _patch(label: str, **style: Any) -> Any:
    from matplotlib.patches import Patch

    return Patch(label=label, **style)


def _baseline(chart: _Chart, baseline: Baseline) -> pd.DataFrame:
    """Return the marks of a baseline; the column `line` has their places."""
    values = chart.figure.frame[baseline.column].to_numpy(dtype=float)
    rows = chart.table.assign(line=chart.scale * values)[values >= baseline.least]
    return rows if baseline.each else rows.drop_duplicates(["at", "line"])


def _rows(chart: _Chart) -> None:
    """Draw a row for each value of `by`, with horizontal bars or points."""
    axes, figure = chart.axes, chart.figure
    places = figure.places
    row_of = {place: row for row, place in enumerate(places)}
    published = [figure.names[key] for key in figure.names if key in figure.published]
    ours = {name: ink for name, ink in chart.inks.items() if name not in published}
    bars = figure.shape == "bars" and len(ours) <= MOST_BARS
    thick = 0.8 / max(1, len(ours))
    handles = []
    for number, (name, ink) in enumerate(ours.items()):
        rows = chart.table[chart.table["name"] == name]
        shift = (number - (len(ours) - 1) / 2) * thick if bars else 0.0
        y = rows["at"].map(row_of) + shift
        if bars:
            axes.barh(y, rows["value"], 0.92 * thick, color=ink, zorder=2)
            handles.append(_patch(name, color=ink))
        else:
            hollow = rows[figure.hollow].to_numpy(dtype=bool) if figure.hollow else False
            faces = np.where(hollow, "#ffffff", ink) if figure.hollow else ink
            axes.scatter(rows["value"], y, 22, c=faces, edgecolors=ink, zorder=4)
            handles.append(_key(name, marker="o", color=ink))
        inks = ((4, "#ffffff"), (1.3, DARK)) if bars else ((1.2, ink),)
        for line, colour in inks:
            known = rows["high"].notna().to_numpy()
            if known.any():
                chart.axes.hlines(
                    np.asarray(y)[known], rows["low"][known], rows["high"][known],
                    colors=colour, linewidth=line, zorder=3 if line > 2 else 5,
                )  # fmt: skip
    if figure.text:
        ends = chart.table["high"].fillna(chart.table["value"])
        for x, place, text in zip(ends, chart.table["at"], figure.frame[figure.text], strict=True):
            style: Style = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
            axes.annotate(str(text), (x, row_of[place]), fontsize=0.9 * chart.em / POINT, **style)
    for name, marker in zip(published, cycle(SYMBOLS), strict=False):
        rows = chart.table[chart.table["name"] == name]
        look: Style = {"marker": marker, "color": DARK, "markerfacecolor": "#ffffff"}
        axes.plot(rows["value"], rows["at"].map(row_of), linestyle="none", zorder=6, **look)
        handles.append(_key(name, **look))
    if figure.hollow_name:
        style = {"marker": "o", "color": GREY, "markerfacecolor": "#ffffff"}
        handles.append(_key(figure.hollow_name, **style))
    for baseline in figure.baselines:
        rows = _baseline(chart, baseline)
        _mark(axes, baseline, rows["line"], rows["at"].map(row_of))
    chart.handles = (*handles, *_baseline_keys(chart))
    _name_rows(chart, places)
    _set_axis(axes.xaxis, figure.value)


def _mark(axes: "Axes", baseline: Baseline, x: Any, y: Any) -> None:
    """Draw the marks of a baseline, dark on white, so that they are visible on bars."""
    for style in _mark_styles(baseline):
        axes.plot(x, y, zorder=6, **style)


def _mark_styles(baseline: Baseline) -> list[Style]:
    marker, size = ("D", 5.0) if baseline.mark == "diamond" else ("|", 9.0)
    shape = {"marker": marker, "markersize": size, "markerfacecolor": "none", "linestyle": "none"}
    inks = ((3.2, "#ffffff"), (1.3, DARK))
    return [shape | {"markeredgewidth": width, "markeredgecolor": ink} for width, ink in inks]


def _baseline_keys(chart: _Chart) -> Iterator[Any]:
    """Yield the legend's entries of the baselines that have marks."""
    for baseline in chart.figure.baselines:
        if len(_baseline(chart, baseline)):
            yield _key(baseline.name, **_mark_styles(baseline)[-1])


def _name_rows(chart: _Chart, places: Sequence[Any]) -> None:
    """Name the rows, with the first at the top."""
    axes = chart.axes
    canvas = axes.get_figure(root=True)
    size = chart.em / POINT
    room = MOST_NAMES * canvas.get_figwidth()  # type: ignore[union-attr]
    names = [_broken(canvas, str(place), room, size) for place in places]  # type: ignore[arg-type]
    axes.set_yticks(range(len(places)), names)
    axes.set_ylim(max(1, len(places)) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    for place, label in zip(places, axes.get_yticklabels(), strict=True):
        label.set_fontweight("bold" if place in chart.figure.bold else "normal")


def _lines(chart: _Chart) -> None:
    """Draw a line for each series."""
    axes, figure = chart.axes, chart.figure
    handles = []
    if figure.diagonal:
        end = chart.scale
        (line,) = axes.plot([0, end], [0, end], color=GREY, linewidth=0.9, linestyle="--",
                            label=figure.diagonal)  # fmt: skip
        handles.append(line)
    words = not pd.api.types.is_numeric_dtype(chart.table["at"])
    places = {place: number for number, place in enumerate(figure.places)} if words else {}
    faint = [name for name, ink in chart.inks.items() if ink == GREY]
    if faint:
        label = f"{len(faint)} others" if len(faint) < len(chart.inks) else ", ".join(faint)
        handles.append(_key(label, color=GREY, linestyle="-", linewidth=0.6))
    for name, ink in chart.inks.items():
        rows = chart.table[chart.table["name"] == name]
        x = rows["at"].map(places) if words else rows["at"]
        if name in faint:
            axes.plot(x, rows["value"], color=GREY, linewidth=0.6, alpha=0.5, zorder=2)
            continue
        (line,) = axes.plot(x, rows["value"], color=ink, linewidth=1.4, label=name, zorder=3)
        if figure.size:
            area = _area(chart, rows[figure.size].to_numpy(dtype=float))
            axes.scatter(x, rows["value"], area, color=ink, zorder=4)
        else:
            line.set(marker="o" if len(rows) <= MOST_POINTS else "", markersize=3)
        handles.append(line)
        if len(rows) > MOST_POINTS:
            axes.fill_between(x, rows["low"], rows["high"], color=ink, alpha=0.18, linewidth=0)
        elif rows["high"].notna().any():
            ends: Style = {"colors": ink, "linewidth": 0.9, "zorder": 2}
            axes.vlines(x, rows["low"], rows["high"], **ends)
        for baseline in figure.baselines:
            of_line = _baseline(chart, baseline)
            of_line = of_line[of_line["name"] == name]
            axes.plot(of_line["at"], of_line["line"], color=ink, linewidth=1.0, linestyle=":")
    for baseline in figure.baselines:
        if len(_baseline(chart, baseline)):
            handles.append(_key(baseline.name, color=GREY, linestyle=":", linewidth=1.0))
    for n in figure.sizes:
        marker = {"marker": "o", "color": GREY, "markerfacecolor": "none"}
        size = float(np.sqrt(_area(chart, np.array([float(n)]))[0]))
        handles.append(_key(figure.size_label(n), markersize=size, **marker))
    chart.handles = tuple(handles)
    if words:
        axes.set_xticks(range(len(places)), [str(place) for place in places])
    else:
        _set_axis(axes.xaxis, figure.by, grid=False)
    _set_axis(axes.yaxis, figure.value)


def _area(chart: _Chart, n: Any) -> Any:
    """Return the areas of points in square points, which grow with n."""
    return 6 + 60 * n / max(1.0, float(chart.figure.frame[chart.figure.size].max()))


def _columns(chart: _Chart) -> None:
    """Draw vertical bars at each value of `by`, side by side; dots lie on the bars."""
    axes, figure = chart.axes, chart.figure
    places = {place: number for number, place in enumerate(figure.places)}
    thick = 0.85 / max(1, len(chart.inks))
    handles = []
    for number, (name, ink) in enumerate(chart.inks.items()):
        shift = (number - (len(chart.inks) - 1) / 2) * thick
        rows = chart.table[chart.table["name"] == name]
        rows = rows.assign(x=rows["at"].map(places).astype(float) + shift)
        dots, rows = _split(rows, figure.dots)
        hollow, full = _split(rows, figure.hollow)
        face: Style = {"color": ink, "alpha": 0.5 if figure.dots else 1.0}
        axes.bar(full["x"], full["value"], thick, zorder=2, **face)
        axes.bar(hollow["x"], hollow["value"], thick, zorder=2, **_striped(ink))
        axes.scatter(
            dots["x"], dots["value"], 14, color=ink, edgecolors=GREY, linewidths=0.4, zorder=3
        )
        known = rows[rows["high"].notna()]
        for width, colour in ((4.0, "#ffffff"), (1.3, DARK)):
            ends: Style = {"colors": colour, "linewidth": width, "zorder": 4}
            axes.vlines(known["x"], known["low"], known["high"], **ends)
        handles.append(_patch(name, **face))
        for baseline in figure.baselines:
            marks = _baseline(chart, baseline)
            marks = marks[marks["name"] == name]
            _mark(axes, baseline, marks["at"].map(places).astype(float) + shift, marks["line"])
    if figure.hollow_name:
        handles.append(_patch(figure.hollow_name, **_striped(GREY)))
    chart.handles = (*handles, *_baseline_keys(chart))
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xticks(range(len(places)), [str(place) for place in places])
    axes.set_xlim(-0.6, len(places) - 0.4)
    _set_axis(axes.yaxis, figure.value)


def _split(rows: pd.DataFrame, column: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows where a column is True, and the others; without a column, all are others."""
    which = rows[column].to_numpy(dtype=bool) if column else np.zeros(len(rows), dtype=bool)
    return rows[which], rows[~which]


def _striped(ink: str) -> Style:
    return {"facecolor": "#ffffff", "edgecolor": ink, "hatch": "/////", "linewidth": 0.6}


def _boxes(chart: _Chart) -> None:
    """Draw a horizontal box for each row, with a diamond at the value."""
    axes, table = chart.axes, chart.table
    for row, line in enumerate(table.to_dict("records")):
        ends = {"med": "median", "q1": "q1", "q3": "q3", "whislo": "low", "whishi": "high"}
        box = {name: line[column] for name, column in ends.items()}
        ink = chart.inks[line["name"]]
        style: Style = {"color": DARK, "linewidth": 1.0}
        axes.bxp(
            [box],
            positions=[row],
            orientation="horizontal",
            widths=0.55,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": f"{ink}80", "edgecolor": DARK, "linewidth": 1.0},
            whiskerprops=style,
            capprops=style,
            medianprops=style,
            manage_ticks=False,
        )
        axes.plot([line["value"]], [row], marker="D", markersize=5, color=chart.inks[line["name"]],
                  markeredgecolor=DARK, zorder=5)  # fmt: skip
    _name_rows(chart, list(table["at"]))
    _set_axis(axes.xaxis, chart.figure.value)


def _heat_map(chart: _Chart) -> None:
    """Draw cells with colours from low to high, and their texts."""
    from matplotlib.colors import LinearSegmentedColormap

    axes, figure, table = chart.axes, chart.figure, chart.table
    places, names = figure.places, list(figure.names.values())
    column = table["at"].map({place: at for at, place in enumerate(places)})
    row = table["name"].map({name: at for at, name in enumerate(names)})
    tone = np.full((len(names), len(places)), np.nan)
    tone[row, column] = table["value"]
    low, high = figure.value.ends or (np.nanmin(tone), np.nanmax(tone))
    colours = LinearSegmentedColormap.from_list("lama", [LOW, "#ffffff", HIGH])
    edges: Style = {"edgecolors": "#ffffff", "linewidth": 1.5}
    cells = axes.pcolormesh(tone, cmap=colours, vmin=low, vmax=high, **edges)
    texts = [str(text) for text in figure.frame[figure.text]] if figure.text else []
    size = 0.9 * chart.em / POINT
    for x, y, value, text in zip(column, row, table["value"], texts, strict=bool(texts)):
        if text:
            red, green, blue, _ = colours((value - low) / (high - low or 1))
            light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
            style: Style = {"ha": "center", "va": "center", "fontsize": size}
            axes.text(x + 0.5, y + 0.5, text, color=DARK if light else "#ffffff", **style)
    axes.set_xticks([at + 0.5 for at in range(len(places))], [str(place) for place in places])
    axes.set_yticks([at + 0.5 for at in range(len(names))], names)
    axes.set_ylim(len(names), 0)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    canvas = axes.get_figure(root=True)
    bar_axes = canvas.add_axes((0.9, 0.2, 0.02, 0.6))  # type: ignore[union-attr]
    chart.bar = canvas.colorbar(cells, cax=bar_axes, label=figure.value.title)  # type: ignore[union-attr]
    chart.bar.outline.set_visible(False)
    if figure.value.ticks:
        chart.bar.set_ticks(list(figure.value.ticks), labels=list(figure.value.ticks.values()))


_SHAPES |= {
    "bars": _rows,
    "points": _rows,
    "lines": _lines,
    "columns": _columns,
    "boxes": _boxes,
    "heat map": _heat_map,
}
