"""Draw a figure with Vega-Lite: one specification for page, files and notebooks.

A mark's field `mark` is its row in the figure's frame, so that a click can open the facts behind
it; its tooltip and its text for screen readers are the frame's column `said`. Places with names are
numbers on an axis with labels, so that bars, whiskers and baselines of a series share a place.
Texts are broken into lines by the widths of Liberation Sans, which are those of Arial and
Helvetica; the fonts of pages are narrower.
"""

import itertools
import json
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd

from lama_core.rounding import counted
from lama_core.views.figure import MOST_BARS, Axis, Baseline, Figure

Spec = dict[str, Any]  # Vega-Lite's JSON
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
# A line or area has the values of its first point.
CLICK = "click[event.item && event.item.mark && !test(/line|area/, event.item.mark.marktype)]"
CLICKED, HOVERED = "clicked", "hovered"  # the selections of a page's chart
WIDTHS = (1200, 900, 680, 500, 400, 330, 0)  # for which texts of a page are broken, in pixels
GREY = "#808080"  # visible on dark and on white pages
DARK, WHITE = "#1b2430", "#ffffff"
MUTED = {False: "#535e6b", True: "#a9b4c1"}  # of axes and captions, by `Look.dark`
LOW, HIGH = "#a8431f", "#1f6aa5"  # the ends of the colours of heat maps
TICK, DIAMOND = "M0,-1L0,1", "diamond"  # of baselines
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")  # of lines
SYMBOLS = ("diamond", "square", "triangle-up", "circle")  # of published series
MOST_MARKS = 30  # of a line with a mark at each value; longer ones have them at the ticks
MOST_WHISKERS = 4  # lines with whiskers; those of more would overlap
MOST_NAMES = 0.4  # of the width, for the names of rows
TILTED = -40  # degrees, of names that have no room
UPRIGHT = ("lines", "columns")
STROKE: Any = {"shape": "stroke", "size": 200, "stroke": GREY}  # of lines in the legend
EMPTY: Spec = {"data": {"values": []}, "mark": {"type": "point", "aria": False}}  # without marks
# The channels of the legend, with the values of a symbol that has no others.
KEY: Spec = {"fill": "transparent", "stroke": "transparent", "shape": "square", "size": 90.0,
             "strokeDash": [1, 0]}  # fmt: skip
# The widths of letters in thousandths of their size; those of capitals and others are 700.
NARROW = {278: " ,./:;!|[]\\fIt", 222: "ijl'", 333: "-()r", 500: "ckJsvxyz", 556: "abdeghnopqu_?$L"}
ADVANCE = {sign: width for width, signs in NARROW.items() for sign in signs}
ADVANCE |= dict.fromkeys("0123456789", 556) | dict.fromkeys("mMW%@—…", 1000) | {"w": 722}


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a figure is drawn.

    Attributes:
        width: In the unit of `size`; None is as wide as its place on a page.
        size: Of letters: pixels on pages, points in files.
        dark: Whether the page is dark.
        page: The colour of the page, for the middle of heat maps.
        titled: Whether title and caption are part of it.
        legend: Whether there is a legend; None if there are several entries.
        height: The least height of rows, and the height of lines and columns; 0 is automatic.
        most: The greatest height.
        rows: The numbers of the rows that are drawn; None for all.
        page_number: Number of the picture and of all, for the title.
        clicks: Whether marks can be clicked, and the others fade while one is under the mouse.
    """

    width: float | None = None
    size: float = 12.0
    dark: bool = False
    page: str = ""
    font: str = FONT
    titled: bool = True
    legend: bool | None = None
    height: float = 0.0
    most: float = math.inf
    rows: range | None = None
    page_number: tuple[int, int] = (1, 1)
    clicks: bool = False

    @property
    def ink(self) -> str:
        """The colour of texts and of lines on bars."""
        return WHITE if self.dark else DARK

    @property
    def edge(self) -> str:
        """The colour around lines on bars."""
        return DARK if self.dark else WHITE


def specification(figure: Figure, inks: Mapping[str, str], look: Look = Look()) -> Spec:
    """Return a figure as a Vega-Lite specification.

    Args:
        figure: The figure.
        inks: Series -> colour as `#rrggbb`; others are grey.
        look: How it is drawn.
    """
    return _Drawing(figure, inks, look).specification()


def pages(figure: Figure, inks: Mapping[str, str], look: Look, most: float) -> list[Spec]:
    """Return a figure as specifications whose rows aren't higher than `most`, with equal axes."""
    whole = specification(figure, inks, look)
    n = math.ceil(whole["height"] / most) if figure.shape in ("bars", "points", "boxes") else 1
    if n == 1:
        return [whole]
    ends = np.linspace(0, len(figure.places), n + 1).round().astype(int).tolist()
    return [
        specification(figure, inks, replace(look, rows=range(first, end), page_number=(at, n)))
        for at, (first, end) in enumerate(itertools.pairwise(ends), start=1)
    ]


class _Drawing:
    """A figure while it is drawn.

    Attributes:
        table: Columns mark, said, name, ink, at (the place, a number), value, low, high; ahead and
            behind are the edges of bars.
        colours: Name of a series -> its colour, in the order of the legend.
        layers: The marks, from back to front.
        keys: The entries of the legend: `name`, and values of `KEY`.
        along: The axis of the places; across: that of the values.
        left: The room of the vertical axis, at least.
    """

    def __init__(self, figure: Figure, inks: Mapping[str, str], look: Look) -> None:
        self.figure, self.look = figure, look
        self.scale = 100.0 if figure.value.share else 1.0
        frame = figure.frame
        named = not pd.api.types.is_numeric_dtype(frame[figure.by.column])
        self.places = figure.places if named or figure.shape != "lines" else []
        number = {place: at for at, place in enumerate(self.places)}
        by = frame[figure.by.column]
        self.colours = {
            name: inks.get(key, GREY)
            for key, name in figure.names.items()
            if key in set(frame[figure.series])
        }
        name = frame[figure.series].map(figure.names)
        self.table = pd.DataFrame(
            {
                "mark": range(len(frame)),
                "said": frame["said"].to_numpy(),
                "name": name.to_numpy(),
                "ink": name.map(self.colours).to_numpy(),
                "at": (
                    by.map(number) if self.places else by * (100 if figure.by.share else 1)
                ).astype(float),
                "value": self.scale * frame[figure.value.column].to_numpy(dtype=float),
                "low": self.scale * frame[figure.low] if figure.low else np.nan,
                "high": self.scale * frame[figure.high] if figure.high else np.nan,
            }
        ).astype(dict.fromkeys(("said", "name", "ink"), object))  # faster than Arrow's texts
        self.layers: list[Spec] = []
        self.keys: list[Spec] = []
        self.along: Spec = {}
        self.across: Spec = {}
        self.params: list[Spec] = []
        self.height = self.left = 0.0

    def specification(self) -> Spec:
        """Draw the figure; see the function `specification`."""
        figure, look = self.figure, self.look
        draw = {"lines": self._lines, "columns": self._columns, "boxes": self._boxes,
                "heat map": self._heat_map}  # fmt: skip
        draw.get(figure.shape, self._rows)()
        upright = figure.shape in UPRIGHT
        rule: Spec = {"type": "rule", "aria": False, "color": GREY, "strokeWidth": 1}
        for place, dash in ((figure.zero, {}), (figure.guide, {"strokeDash": [2, 2]})):
            if place is not None:
                axis = self.along if dash else self.across
                datum = {"datum": place * (1 if dash else self.scale)}
                at = {"x" if bool(dash) == upright else "y": axis | datum}
                self.layers.append({"mark": rule | dash, "encoding": at})
        legend, above = self._legend()
        shown = [*legend, *self.layers]
        if look.clicks:
            marks = [one for one in self.layers if "tooltip" in one["encoding"]]
            if not marks:
                marks = [EMPTY | {"encoding": {}}]
                shown += marks
            marks[0]["params"] = [
                {"name": CLICKED, "select": {"type": "point", "fields": ["mark"], "on": CLICK}},
                {"name": HOVERED, "select": {"type": "point", "fields": ["name"],
                                             "on": "pointerover", "clear": "pointerout"}},
            ]  # fmt: skip
        texts = self._texts(above)
        width = {} if look.width is None else {"width": look.width}
        edge = 0.4 * look.size
        return {
            "$schema": SCHEMA,
            **({} if look.clicks else {"description": figure.title}),
            **width,
            "height": self.height,
            "autosize": {"type": "fit-x", "contains": "padding"},
            "padding": {
                "left": 3,
                "right": edge,
                "bottom": edge,
                "top": edge if texts else above + edge,
            },
            "background": "transparent" if look.clicks else look.page or WHITE,
            "params": self.params,
            **texts,
            "layer": shown,
            "resolve": {"scale": dict.fromkeys(KEY, "independent")},
            "config": _config(look),
            "usermeta": {"caption": figure.caption},
        }

    # Parts of all shapes

    def by_width(self, make: Callable[[float], Any]) -> Any:
        """Return what `make` returns for the width, on a page for the width that it has by then."""
        if self.look.width is not None:
            return make(self.look.width)
        *made, narrow = [(least, json.dumps(make(max(least, 280)))) for least in WIDTHS]
        wider = {value: least for least, value in made if value != narrow[1]}
        here = f"width + {round(self.left)}"  # `width` is that of the plot
        choices = "".join(f"{here} >= {least} ? {value} : " for value, least in wider.items())
        return {"expr": choices + narrow[1]}

    def mark(self, kind: str, rows: pd.DataFrame, place: Spec, **style: Any) -> None:
        """Add marks of one kind: a layer with a mark for each of some rows.

        Args:
            kind: Vega-Lite's name, such as `point`.
            rows: The rows, which have the columns of the channels.
            place: Channel -> column, for the channels of the place.
            style: Properties of the mark; channels with the name of a column begin with `by_`.
        """
        for name, power in (("size", 2), ("strokeWidth", 1)):  # given for letters of 12
            if name in style:
                style[name] *= (self.look.size / 12) ** power
        known: Any = np.isfinite(rows[list(place.values())].to_numpy(dtype=float)).all(axis=1)
        if kind == "line" and known.any():  # it breaks where a value is unknown
            known[:] = True
        if self.look.rows is not None:
            known &= rows["at"].round().isin(self.look.rows).to_numpy()
        if not known.any():
            return
        encoding: Spec = {}
        upright = self.figure.shape in UPRIGHT
        for channel, column in place.items():
            axis = self.along if (channel[0] == "x") == upright else self.across
            encoding[channel] = {"field": column} | ({} if channel[1:] else axis)
        for name in [name for name in style if name.startswith("by_")]:
            kind_of = "quantitative" if name in ("by_size", "by_strokeWidth") else "nominal"
            raw = {"scale": None} if name not in ("by_text", "by_detail") else {}
            encoding[name[3:]] = {"field": style.pop(name), "type": kind_of} | raw
        live = kind not in ("line", "area")  # which have the values of their first points
        if live:
            encoding["tooltip"] = {"field": "said", "type": "nominal"}
        if kind in ("rect", "point") and style.pop("aria", True):
            encoding["description"] = encoding["tooltip"]
        else:
            style["aria"] = False
        if self.look.clicks and len(self.colours) > 1 and self.figure.shape != "heat map":
            opacity = style.pop("opacity", 1.0)
            lit = {"param": HOVERED, "value": opacity}
            encoding["opacity"] = {"condition": lit, "value": min(0.15, opacity)}
        fields = {one["field"] for one in encoding.values() if "field" in one}
        if kind == "line":
            encoding["detail"] = {"field": "name", "type": "nominal"}
        columns = sorted(fields | {"name"} | ({"mark"} if self.look.clicks and live else set()))
        lists = []
        for name in columns:
            values = rows[name].to_numpy()[known]
            if values.dtype.kind == "f" and not np.isfinite(values).all():  # null in JSON
                values = np.where(np.isfinite(values), values.astype(object), None)
            lists.append(values.tolist())
        records = [dict(zip(columns, line, strict=True)) for line in zip(*lists, strict=True)]
        layer = {"data": {"values": records}, "encoding": encoding}
        self.layers.append(layer | {"mark": {"type": kind, **style}})

    def lined(self, kind: str, rows: pd.DataFrame, place: Spec, **style: Any) -> None:
        """Add lines or symbols that are visible on bars: with an edge."""
        before, channel = len(self.layers), "color" if kind == "rule" else "stroke"
        style |= {} if kind == "rule" else {"fill": "transparent"}
        self.mark(kind, rows, place, strokeWidth=1.5, **{channel: self.look.ink}, **style)
        for layer in self.layers[before:]:
            edge = {channel: self.look.edge, "strokeWidth": self.look.size / 3, "aria": False}
            quiet = {name: one for name, one in layer["encoding"].items() if name != "description"}
            self.layers.insert(before, {**layer, "mark": layer["mark"] | edge, "encoding": quiet})

    def param(self, name: str, value: Any) -> None:
        """Add a parameter; value: its value, or an expression."""
        of = value if isinstance(value, dict) else {"value": value}
        self.params.append({"name": name, **of})

    def key(self, name: str, **style: Any) -> None:
        """Add an entry to the legend; style: values of `KEY`."""
        self.keys.append({"name": name, **style})

    def baselines(self, place: Callable[[str], Spec]) -> None:
        """Add the marks of baselines to rows or columns, and their keys."""
        for baseline in self.figure.baselines:
            rows = self._baseline(baseline).drop_duplicates(["at", "line"])
            if len(rows):
                shape, size = (TICK, 60.0) if baseline.mark == "tick" else (DIAMOND, 40.0)
                if self.figure.shape in UPRIGHT and shape == TICK:
                    shape = "M-1,0L1,0"
                self.lined("point", rows, place("line"), shape=shape, size=size)
                self.key(baseline.name, shape=shape, stroke=self.look.ink, size=size)

    def _baseline(self, baseline: Baseline) -> pd.DataFrame:
        """Return the marks of a baseline; the column `line` has their values."""
        values = self.figure.frame[baseline.column].to_numpy(dtype=float)
        rows = self.table.assign(line=self.scale * values)[values >= baseline.least]
        return rows if baseline.each else rows.drop_duplicates(["at", "line"])

    def _series(self, rows: pd.DataFrame, thick: float, names: Sequence[str]) -> pd.DataFrame:
        """Return rows with the places of bars of several series side by side."""
        shift = {name: (at - (len(names) - 1) / 2) * thick for at, name in enumerate(names)}
        at = rows["at"] + rows["name"].map(shift).astype(float).fillna(0.0)
        return rows.assign(at=at, ahead=at - 0.46 * thick, behind=at + 0.46 * thick)

    def _values(
        self, axis: Axis, *columns: pd.Series, texts: float = 0.0, grid: bool = True
    ) -> Spec:
        """Return an axis of numbers; texts: the width of those behind the marks, 0 without."""
        scale, size = 100 if axis.share else 1, self.look.size
        vertical = self.figure.shape in UPRIGHT and axis is self.figure.value
        length = self.height if vertical else (self.look.width or 340) - 1.2 * self.left
        # Next to long names, a title has more room than the plot: it ends where the plot ends.
        title = _lines_of(axis.title, max(length, 12 * size), size)
        shown: Spec = {"title": title, "grid": grid, "format": ",~f", "labelOverlap": "greedy"}
        if vertical:  # legends begin there
            shown["minExtent"] = 2.4 * size
        every = pd.concat(columns) if columns else pd.Series(dtype=float)
        every = every[np.isfinite(every) & ((every > 0) | (not axis.log))]
        low, high = (float(every.min()), float(every.max())) if len(every) else (1.0, 10.0)
        if (axis.share or axis.from_zero) and not axis.log:
            low, high = min(0.0, low), max(0.0, high)
        if axis.ends:
            low, high = (scale * end for end in axis.ends)
        if axis.ticks:
            places = [scale * place for place in axis.ticks]
            self._labels(shown, f"ticks_{len(self.params)}", places, list(axis.ticks.values()))
        elif not axis.log:  # Vega would choose others once it knows the room
            places = _ticks(low, high, length / ((2.4 if vertical else 4.5) * size))
            shown["values"] = [one for one in places if not axis.ends or low <= one <= high]
            if low < 0 < high and not axis.ends:  # differences: without empty ends
                if self.look.width is None:  # labels without room aren't drawn
                    places = _ticks(low, high, 6)
                ends = low - 0.03 * (high - low), high + 0.03 * (high - low)
                inside = [one for one in places if ends[0] <= one <= ends[1]]
                low, high = ends if len(inside) > 1 else (places[0], places[-1])
                shown["values"] = inside if len(inside) > 1 else places
            elif not axis.ends:
                low, high = places[0], places[-1]
        most = float(every.max()) if len(every) else high

        def end(width: float) -> float:
            inner = max(width - self.left, texts + 3 * size)
            return max(high, low + 1.02 * (most - low) * inner / (inner - texts))

        made: Spec = {
            "domain": [low, high if high > low else low + 1],
            **({"domainMax": self.by_width(end)} if texts else {}),
            "nice": axis.log and not axis.ends and not axis.ticks,
        }
        made |= {"type": "log"} if axis.log else {"zero": False}
        if axis.reversed:
            made["reverse"] = True
        return {"type": "quantitative", "scale": made, "axis": shown}

    def _labels(self, axis: Spec, name: str, places: Sequence[float], labels: Any) -> None:
        """Give an axis labels at some places; they are a parameter, so that any text is a text."""
        self.param(name, labels)
        at = f"indexof({json.dumps(list(places))}, datum.value)"
        axis |= {"values": list(places), "labelExpr": f"{name}[{at}]", "tickCount": 10_000}

    def _names(self, labels: Sequence[str], step: float, title: str, apart: float = 0.0) -> None:
        """Make the axis of the rows: their names from top to bottom, broken into lines.

        apart: the room between the names and the axis.
        """
        size, width = self.look.size, self.look.width
        room = MOST_NAMES * width if width else 14 * size
        bold = [at for at, label in enumerate(labels) if label in self.figure.bold]
        lines = [_lines_of(label, room, size, bold=at in bold) for at, label in enumerate(labels)]
        if width is None:  # of an endless name, the beginning; its tooltip has all
            n = max(1, int(min(3, self.look.most / max(1, len(labels)) / (1.2 * size))))
            lines = [_first(one, n) for one in lines]
        most = max(map(len, lines), default=1)
        step = max(step, 1.2 * size * most + 0.3 * size)
        rows = self.look.rows or range(len(labels))
        self.height = min(max(step * max(1, len(rows)), self.look.height), self.look.most)
        longest = max((_wide(line, size, bold=True) for one in lines for line in one), default=0)
        longest += 0.5 * size + apart
        axis: Spec = {"grid": False, "domain": False, "minExtent": longest, "maxExtent": longest}
        axis |= {"labelPadding": 2 + apart} if apart else {}
        axis["title"] = title if title and self.height > _wide(title, size) else None
        self.left = longest + (1.6 * size if axis["title"] else 0)
        self._labels(axis, "names", rows, [lines[at] for at in rows])
        axis["labelFontWeight"] = {
            "condition": {"test": f"indexof({bold}, datum.value) >= 0", "value": "bold"},
            "value": "normal",
        }
        axis["labelOffset"] = {
            "condition": [
                {
                    "test": f"length(names[datum.value - {rows.start}]) == {n}",
                    "value": -0.6 * size * (n - 1),
                }
                for n in range(2, most + 1)
            ],
            "value": 0,
        }
        ends = {"domain": [rows.stop - 0.5, rows.start - 0.5], "nice": False, "zero": False}
        self.along = {"type": "quantitative", "scale": ends, "axis": axis}

    def _words(self, title: str) -> Spec:
        """Return the horizontal axis of the places, whose names are tilted without room."""
        size, by_width, by = self.look.size, self.by_width, self.figure.by
        labels = [str(by.ticks.get(place, place)) for place in self.places]
        side, end, start = ("top", "left", "bottom") if by.on_top else ("bottom", "right", "top")

        def room(width: float) -> float:
            return (width - self.left - 4 * size) / max(1, len(labels)) - 0.4 * size

        def broken(width: float) -> list[list[str]]:
            lines = [_lines_of(label, max(room(width), 4 * size), size) for label in labels]
            if self.look.width is None:
                lines = [_first(one, 3) for one in lines]
            most = max(map(len, lines), default=1) if by.on_top else 0
            return [["\N{NO-BREAK SPACE}"] * (most - len(one)) + one for one in lines]

        def fits(width: float) -> bool:
            words = [word for label in labels for word in label.split()]
            return max((_wide(word, size) for word in words), default=0) <= room(width)

        def shown(width: float) -> list[list[str]]:
            if fits(width):
                return broken(width)
            every = math.ceil(2.2 * size / (room(width) + 0.4 * size))  # tilted ones need this
            long = 9 * size if self.look.width is None else 0.9 * width
            short = [  # of a label that is too long, the beginning
                label
                if _wide(label, size) <= long
                else _lines_of(label, long - size, size)[0] + "…"
                for label in labels
            ]
            return [[label] if at % every == 0 else [""] for at, label in enumerate(short)]

        def above(width: float) -> float:
            lines = max(map(len, broken(width)), default=1) if fits(width) and by.on_top else 1
            return 0.7 * size + (lines - 1) * (size + 2)

        room_of_title = (self.look.width or 340) - 1.2 * self.left
        axis: Spec = {"grid": False, "labelOverlap": False, "orient": side}
        axis["title"] = _lines_of(title, room_of_title, size) if title else None
        axis["labelAngle"] = by_width(lambda width: 0 if fits(width) else TILTED)
        axis["labelAlign"] = by_width(lambda width: "center" if fits(width) else end)
        axis["labelBaseline"] = by_width(lambda width: start if fits(width) else "middle")
        axis["labelPadding"] = by_width(above)
        self._labels(axis, "words", range(len(labels)), by_width(shown))
        ends = {"domain": [-0.5, max(1, len(labels)) - 0.5], "nice": False, "zero": False}
        return {"type": "quantitative", "scale": ends, "axis": axis}

    # Shapes

    def _rows(self) -> None:
        """Draw a row for each place, with horizontal bars or points."""
        figure, look, table, size = self.figure, self.look, self.table, self.look.size
        published = [figure.names[key] for key in figure.names if key in figure.published]
        ours = [name for name in self.colours if name not in published]
        bars = figure.shape == "bars" and len(ours) <= MOST_BARS
        twice = bool(figure.hollow) and table.duplicated(["at", "name"]).any()
        thick = 0.74 / max(1, len(ours)) if bars or twice else 0.0
        step = 0.75 + 1.1 * max(1, len(ours)) if bars else max(1.9, 0.8 * twice * len(ours))
        # Marks at 0 lie on the axis: the names leave room for their half.
        room = 0.0 if bars else 0.8 * size if figure.hollow else 0.5 * size
        self._names([str(place) for place in self.places], step * size, figure.by.title, room)
        table = self._series(table, thick, ours)
        ends = [self._baseline(one)["line"] for one in figure.baselines]
        texts: list[str] = list(figure.frame[figure.text].astype(str)) if figure.text else []
        longest = max(_wide(text, size) for text in texts) + size if texts else 0.0
        ends += [pd.Series([0.0])] if bars else []
        self.across = self._values(
            figure.value, table["value"], table["low"], table["high"], *ends, texts=longest
        )
        self.across["axis"] |= {"titleAnchor": "end", "titleAlign": "right"}
        if bars:
            table = table.assign(zero=0.0)
        own = table[table["name"].isin(ours)]
        place = {"x": "value", "y": "at"}
        whiskers = {"x": "low", "x2": "high", "y": "at"}
        if bars:
            box = {"x": "value", "x2": "zero", "y": "ahead", "y2": "behind"}
            self.mark("rect", own, box, by_fill="ink")
            self.lined("rule", own, whiskers)
        else:
            hollow = own["mark"] < 0
            if figure.hollow:
                hollow = figure.frame.loc[own.index, figure.hollow].astype(bool)
            own = own.assign(face=own["ink"].where(~hollow, look.page or look.edge))
            thin = {"color": GREY} if figure.hollow else {"by_color": "ink"}
            self.mark("rule", own, whiskers, strokeWidth=1.4, **thin)
            for rows, area in ((own[hollow], 180), (own[~hollow], 64)):  # a point in an equal ring
                style = {"by_fill": "face", "by_stroke": "ink", "strokeWidth": 2}
                self.mark("point", rows, place, size=area, **style)
        symbol: Spec = {} if bars else {"shape": "circle", "size": 70}
        for name in ours:
            self.key(name, fill=self.colours[name], **symbol)
        if figure.text:
            end = table["high"].fillna(table["value"])
            texted = table.assign(end=end, text=figure.frame[figure.text].astype(str))
            style = {"align": "left", "dx": 0.4 * size, "color": look.ink, "fontSize": 0.95 * size}
            self.mark("text", texted, {"x": "end", "y": "at"}, by_text="text", **style)
        if figure.hollow_name and figure.frame[figure.hollow].any():
            self.key(figure.hollow_name, shape="circle", stroke=GREY, size=70)
        for name, shape in zip(published, cycle(SYMBOLS), strict=False):
            inked: Spec = {"fill": look.edge, "stroke": look.ink, "shape": shape, "size": 60.0}
            self.mark("point", table[table["name"] == name], place, strokeWidth=1.6, **inked)
            self.key(name, **inked)
        self.baselines(lambda column: {"x": column, "y": "at"})

    def _upright(self, *more: "pd.Series[float]") -> None:
        """Make the axes of lines and columns, with places from left to right."""
        figure, look, table = self.figure, self.look, self.table
        self.height = look.height or min((look.width or 0) * 0.5 or 27 * look.size, look.most)
        ends = [self._baseline(one)["line"] for one in figure.baselines]
        self.across = self._values(
            figure.value, table["value"], table["low"], table["high"], *ends, *more
        )
        self.left = (2.8 + 1.2 * len(self.across["axis"]["title"])) * look.size
        if self.places:
            self.along = self._words(figure.by.title)
            labels = [str(figure.by.ticks.get(place, place)) for place in self.places]
            step = ((look.width or math.inf) - self.left - 2 * look.size) / max(1, len(labels))
            tilted = [
                0.77 * _wide(one, look.size) + look.size - at * step
                for at, one in enumerate(labels)
            ]
            beyond = max(tilted, default=0) - self.left
            if self.along["axis"]["labelAngle"] == TILTED and beyond > 0:
                self.across["axis"]["minExtent"] += beyond
                self.left += beyond
        else:
            self.along = self._values(figure.by, table["at"], grid=False)

    def _lines(self) -> None:
        """Draw a line for each series; those of series without a colour are thin."""
        figure, look, table = self.figure, self.look, self.table
        self._upright()
        place = {"x": "at", "y": "value"}
        if figure.diagonal:
            ends = [0.0, self.scale]
            line = pd.DataFrame({"at": ends, "value": ends, "name": ""})
            self.mark("line", line, place, color=GREY, strokeWidth=1, strokeDash=[5, 4])
            self.key(figure.diagonal, **STROKE, strokeDash=[5, 4])
        faint = [name for name, ink in self.colours.items() if ink == GREY]
        bright = [name for name in self.colours if name not in faint]
        if faint:
            rows = table[table["name"].isin(faint)]
            self.mark("line", rows, place, color=GREY, strokeWidth=1, opacity=0.35)
            if look.clicks:
                self.mark("point", rows, place, fill=GREY, size=9, opacity=0.35)
            self.key(f"{len(faint)} others" if bright else ", ".join(faint), **STROKE)
        table = table[table["name"].isin(bright)]
        shapes = dict(zip(bright, cycle(SHAPES), strict=False))
        dense = len(table) > MOST_MARKS * len(bright) and not figure.size
        if dense or figure.bands:
            known = table[table["high"].notna()]
            style = {"by_detail": "name", "by_fill": "ink", "opacity": 0.18}
            self.mark("area", known, {"x": "at", "y": "low", "y2": "high"}, **style)
        elif table.loc[table["high"].notna(), "name"].nunique() <= MOST_WHISKERS:
            self.mark(
                "rule", table, {"x": "at", "y": "low", "y2": "high"}, by_color="ink", strokeWidth=1
            )
        table = table.assign(thick=np.where(table["name"].isin(figure.bold), 3.5, 2.0))
        self.mark("line", table, place, by_stroke="ink", by_strokeWidth="thick")
        most = max(1.0, float(figure.frame[figure.size].max())) if figure.size else 1.0

        def area_of(n: Any) -> Any:
            """Return the areas of points for letters of 12, which grow with n."""
            return (4 + 12 * np.sqrt(n / most)) ** 2

        areas = area_of(figure.frame.loc[table.index, figure.size]) if figure.size else 49
        area = areas * (look.size / 12) ** 2
        seen = table.assign(shape=table["name"].map(shapes), area=area)
        symbols = {"by_fill": "ink", "by_shape": "shape", "by_size": "area"}
        if dense:
            at = [100 * tick if figure.by.share else tick for tick in figure.by.ticks]
            at = at or list(dict.fromkeys(table["at"]))[:: len(table) // (8 * len(bright)) or 1]
            if look.clicks:
                self.mark("point", seen[~seen["at"].isin(at)], place, opacity=0.0, **symbols)
            seen = seen[seen["at"].isin(at)]
        self.mark("point", seen, place, **symbols)
        for name in bright:
            ink = self.colours[name]
            self.key(name, shape=shapes[name], fill=ink, stroke=ink)
        for baseline in figure.baselines:
            rows = self._baseline(baseline)
            rows = rows[rows["name"].isin(bright)]
            if len(rows):
                if rows.round({"line": 9}).groupby("at")["line"].nunique().max() == 1:
                    rows = rows[rows["name"] == bright[0]].assign(ink=GREY)
                style = {"by_stroke": "ink", "strokeWidth": 1.5, "strokeDash": [2, 3]}
                self.mark("line", rows, {"x": "at", "y": "line"}, **style)
                self.key(baseline.name, **STROKE, strokeDash=[2, 3])
        for n in figure.sizes:
            self.key(counted(n, figure.size_unit), shape="circle", stroke=GREY, size=area_of(n))

    def _columns(self) -> None:
        """Draw vertical bars at each place, side by side; dots lie on them."""
        figure, look = self.figure, self.look
        self._upright(pd.Series([0.0]))
        # A series that is alone at all its places, such as the embeddings of a model, is centred.
        crowded = self.table.groupby("at")["name"].transform("nunique") > 1
        names = [name for name in self.colours if name in set(self.table["name"][crowded])]
        table = self._series(self.table, 0.84 / max(1, len(names)), names).assign(zero=0.0)
        self.across["axis"]["domain"] = False

        dots, hollow = (
            figure.frame.get(column, pd.Series(data=False, index=figure.frame.index))
            .astype(bool)
            .set_axis(table.index)
            for column in (figure.dots, figure.hollow)
        )
        table = table.assign(face=table["ink"].where(~hollow, look.page or look.edge))
        bars = {"x": "ahead", "x2": "behind", "y": "value", "y2": "zero"}
        faded = 0.5 if figure.dots else 1.0
        style = {"by_fill": "face", "by_stroke": "ink", "opacity": faded, "strokeWidth": 1}
        self.mark("rect", table[~dots], bars, **style)
        style = {"by_fill": "ink", "stroke": GREY, "strokeWidth": 0.7, "size": 40}
        self.mark("point", table[dots], {"x": "at", "y": "value"}, **style)
        self.lined("rule", table[~dots], {"x": "at", "y": "low", "y2": "high"})
        if figure.text:
            texted = table.assign(end=table["high"].fillna(table["value"]))
            texted["text"] = figure.frame[figure.text].astype(str).to_numpy()
            room = 1 / max(1, len(self.places) * len(names))
            each = self.by_width(lambda width: _fitted(
                texted["text"], room * (width - self.left), 0.95 * look.size))  # fmt: skip
            above = {"baseline": "bottom", "dy": -3, "color": look.ink, "fontSize": each}
            self.mark("text", texted, {"x": "at", "y": "end"}, by_text="text", **above)
        for name, ink in self.colours.items():
            self.key(name, fill=ink)
        if figure.hollow_name and figure.frame[figure.hollow].any():
            self.key(figure.hollow_name, stroke=GREY)
        self.baselines(lambda column: {"x": "at", "y": column})

    def _boxes(self) -> None:
        """Draw a horizontal box for each row, with a diamond at the value."""
        figure, look, size = self.figure, self.look, self.look.size
        rows = [str(place) for place in figure.frame[figure.by.column]]
        self._names(rows, 3.2 * size, figure.by.title)
        quartiles = {name: figure.frame[name].to_numpy() for name in ("q1", "median", "q3")}
        table = self.table.assign(at=np.arange(len(rows)), **quartiles)
        table = table.assign(ahead=table["at"] - 0.28, behind=table["at"] + 0.28)
        self.across = self._values(figure.value, table["low"], table["high"], table["value"])
        if figure.value.log:
            low, high = (math.log10(end) for end in self.across["scale"]["domain"])
            tens = range(math.floor(low), math.ceil(high) + 1)
            room = ((look.width or 330) - self.left - 2 * size) / len(tens)
            every = math.ceil((_wide(f"{10 ** tens[-1]:,}", size) + 0.5 * size) / room)
            self.across["axis"] |= {"values": [10.0**n for n in tens[::every]], "tickCount": 1000}
        self.across["axis"] |= {"titleAnchor": "end", "titleAlign": "right"}
        line = {"color": look.ink, "strokeWidth": 1.3}
        for first, last in (("low", "q1"), ("q3", "high")):
            self.mark("rule", table, {"x": first, "x2": last, "y": "at"}, **line)
        box = {"x": "q1", "x2": "q3", "y": "ahead", "y2": "behind"}
        style = {"stroke": look.ink, "strokeWidth": 1.3, "fillOpacity": 0.5}
        self.mark("rect", table, box, by_fill="ink", **style)
        for end in ("low", "high", "median"):
            self.mark("rule", table, {"x": end, "y": "ahead", "y2": "behind"}, **line)
        style = {"shape": DIAMOND, "stroke": look.ink, "strokeWidth": 1.3, "size": 90}
        self.mark("point", table, {"x": "value", "y": "at"}, by_fill="ink", **style)

    def _heat_map(self) -> None:
        """Draw cells with colours from low to high, whose middle is that of the page."""
        figure, look, size = self.figure, self.look, self.look.size
        names = list(figure.names.values())
        # Numbers in cells say more than titles, and need the width on a phone.
        self._names(names, 2.8 * size, "" if figure.text and look.clicks else figure.rows)
        self.across = self._words("" if figure.text and look.clicks else figure.by.title)
        row = figure.frame[figure.series].map({key: at for at, key in enumerate(figure.names)})
        x = self.table["at"]
        table = self.table.assign(at=row, column=x, ahead=row - 0.48, behind=row + 0.48,
                                  left=x - 0.49, right=x + 0.49)  # fmt: skip
        values = table["value"].dropna().tolist() or [0.0]
        low, high = figure.value.ends or (min(values), max(values))
        page = look.page or look.edge
        share = ((table["value"] - low) / ((high - low) or 1)).clip(0, 1)
        table["ink"] = [between((LOW, page, HIGH), one) for one in share.fillna(0.5)]
        if figure.cell:
            table["ink"] = figure.frame[figure.cell].replace("", "transparent").to_numpy()
        table = table[table["value"].notna()]
        self.mark(
            "rect", table, {"x": "left", "x2": "right", "y": "ahead", "y2": "behind"}, by_fill="ink"
        )
        if figure.text:
            texts = figure.frame.loc[table.index, figure.text].astype(str)
            face = [look.ink if ink == "transparent" else _on(ink) for ink in table["ink"]]
            strong = figure.frame[figure.strong].astype(bool) if figure.strong else False
            table = table.assign(text=texts, face=face, strong=strong)
            place = {"x": "column", "y": "at"}
            each = self.by_width(lambda width: _fitted(
                texts, (width - self.left) / max(1, len(self.places)), 0.95 * size))  # fmt: skip
            for weight, rows in table.groupby("strong"):
                style = {"fontSize": each, "fontWeight": "bold" if weight else "normal"}
                self.mark("text", rows, place, by_text="text", by_color="face", **style)
        for axis in (self.along, self.across):
            axis["axis"] |= {"domain": False, "ticks": False}
        ticks = figure.value.ticks or {low: f"{low:g}", high: f"{high:g}"}
        if not (figure.text and look.clicks):
            for at, (place, label) in enumerate(ticks.items()):
                ink = between((LOW, page, HIGH), (place - low) / ((high - low) or 1))
                name = label if at else f"{label}, {figure.value.title}"
                self.key(name, size=110, fill=ink, stroke=GREY)

    # Texts

    def _legend(self) -> tuple[list[Spec], Any]:
        """Return a layer without marks that has the legend, and the legend's height.

        It is placed by hand below the title: Vega begins a legend where the plot begins, and
        doesn't break its texts.
        """
        look, size, keys = self.look, self.look.size, self.keys
        if not (len(keys) > 1 if look.legend is None else look.legend and keys):
            return [], 0.0

        keys = [KEY | key | {"size": (KEY | key)["size"] * (size / 12) ** 2} for key in keys]
        symbol = max(math.sqrt(key["size"]) for key in keys)

        def texts(width: float) -> list[list[str]]:
            return [_lines_of(key["name"], width - symbol - 3 * size, size) for key in keys]

        def columns(width: float) -> int:
            wide = [
                max(_wide(line, size) for line in one) + symbol + 2 * size for one in texts(width)
            ]
            for n in range(len(keys), 1, -1):
                if sum(max(wide[at::n]) for at in range(n)) <= width - size:
                    return n
            return 1

        def height(width: float) -> float:
            lines, n = [len(one) for one in texts(width)], columns(width)
            rows = [max(lines[at : at + n]) for at in range(0, len(keys), n)]
            high = [max((size + 2) * n_lines, symbol) + 0.35 * size for n_lines in rows]
            return sum(high) + 0.6 * size

        self.param("keys", self.by_width(texts))
        scale = {"type": "ordinal", "domain": list(range(len(keys)))}
        legend = {
            "title": None, "orient": "none", "labelExpr": "keys[datum.value]", "labelLimit": 0,
            "columns": self.by_width(columns), "legendX": -self.left, "direction": "horizontal",
            "legendY": self.by_width(lambda width: -height(width)), "symbolOpacity": 1,
            "columnPadding": size, "rowPadding": 0.3 * size, "padding": 0,
            "symbolStrokeWidth": 0.15 * size,
        }  # fmt: skip
        encoding = {
            channel: {
                "field": "key",
                "type": "ordinal" if channel == "size" else "nominal",
                "scale": scale | {"range": [key[channel] for key in keys]},
                "legend": legend,
            }
            for channel in KEY
        }
        return [EMPTY | {"encoding": encoding}], self.by_width(height)

    def _texts(self, above: Any) -> Spec:
        """Return the title and the caption, above the legend."""
        look, size, figure = self.look, self.look.size, self.figure
        if not look.titled:
            return {}
        number, n = look.page_number
        offset = (
            above + 0.5 * size
            if isinstance(above, float)
            else {"expr": f"({above['expr']}) + {0.5 * size}"}
        )
        title = figure.title + f" ({number} of {n})" * (n > 1)
        room = 3.5 * size if look.clicks else size  # for the chart's menu
        return {
            "title": {
                "text": self.by_width(
                    lambda width: _lines_of(title, width - room, 1.15 * size, bold=True)
                ),
                "subtitle": self.by_width(
                    lambda width: _lines_of(figure.caption, width - size, 0.9 * size)
                )
                if figure.caption
                else [],
                "anchor": "start",
                "frame": "bounds",
                "offset": offset,
                "limit": 100_000,
            }
        }


def _ticks(low: float, high: float, most: float) -> list[float]:
    """Return round numbers at equal distances from at most `low` to at least `high`.

    There are about `most` of them, from 3 to 9.
    """
    span = (high - low) or 1.0
    rough = span / min(max(most, 2.0), 8.0)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil((low + span) / step - 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def _config(look: Look) -> Spec:
    """Return the fonts, the colours and the lines of axes."""
    size, muted = look.size, MUTED[look.dark]
    text = {"labelFontSize": size, "labelColor": muted, "titleFontSize": size, "titleColor": muted,
            "titleFontWeight": "normal", "labelLimit": 0, "titleLimit": 0}  # fmt: skip
    return {
        "font": look.font,
        "axis": text
        | {
            "gridColor": "#808080",
            "gridOpacity": 0.25,
            "domainColor": GREY,
            "ticks": False,
            "labelFlush": False,
            "labelLineHeight": 1.2 * size,
            "labelPadding": 0.4 * size,
            "titlePadding": 0.5 * size,
            "labelSeparation": 4,
        },
        "legend": text | {"labelColor": look.ink, "labelOffset": 3},
        "title": {
            "fontSize": 1.15 * size,
            "color": look.ink,
            "subtitleFontSize": 0.9 * size,
            "subtitleColor": muted,
            "subtitlePadding": 0.3 * size,
            "align": "left",
        },
        "point": {"filled": True, "opacity": 1},
        "view": {"stroke": None},
    }


@lru_cache(10_000)  # the lines of a text for several widths begin alike
def _wide(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a line of text, in the unit of `size`."""
    others = [sign for sign in text if sign not in ADVANCE and not unicodedata.combining(sign)]
    wide = sum(1000 if unicodedata.east_asian_width(sign) in "WF" else 700 for sign in others)
    wide += sum(ADVANCE.get(sign, 0) for sign in text)
    return (1.08 if bold else 1.0) * size / 1000 * wide


def _lines_of(text: str, room: float, size: float, *, bold: bool = False) -> list[str]:
    """Return a text in lines that fit: broken at spaces, and inside words longer than a line."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and _wide(longer, size, bold=bold) <= room:
            lines[-1] = longer
            continue
        lines.append("")
        for sign in word:
            if lines[-1] and _wide(lines[-1] + sign, size, bold=bold) > room:
                lines.append("")
            lines[-1] += sign
    return lines or [""]


def _first(lines: list[str], n: int) -> list[str]:
    """Return at most n lines; an ellipsis replaces the others."""
    return [*lines[: n - 1], f"{lines[n - 1]} …"] if len(lines) > n else lines


def _fitted(texts: Iterable[str], room: float, size: float) -> float:
    """Return the size at which the longest text fits, at most `size`."""
    longest = max((_wide(text, size) for text in texts), default=0)
    return size * min(1.0, 0.9 * room / (longest or 1))


def between(inks: Sequence[str], share: float) -> str:
    """Return a colour from a scale of two or more, at a share of its length."""
    at = min(int(share * (len(inks) - 1)), len(inks) - 2)
    part = share * (len(inks) - 1) - at
    mixed = (
        round(
            (1 - part) * int(inks[at][of : of + 2], 16) + part * int(inks[at + 1][of : of + 2], 16)
        )
        for of in (1, 3, 5)
    )
    return "#" + "".join(f"{one:02x}" for one in mixed)


def _on(ink: str) -> str:
    """Return the colour of a text that can be read on a colour."""
    red, green, blue = (int(ink[at : at + 2], 16) for at in (1, 3, 5))
    return DARK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else WHITE
