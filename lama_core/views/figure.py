"""A chart as data: what is drawn, independent of what draws it.

Pages, files for papers and notebooks draw it with Vega-Lite (`lama_core.views.vega`).
A mark is a row of the frame; `View.facts` finds the facts behind it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from lama_core.rounding import percent
from lama_core.runs.info import RunInfo

if TYPE_CHECKING:
    import pandas as pd

# bars: horizontal bars, one row of the chart for each value of `by`; points: the same with points
# instead of bars; lines: `value` against `by`; columns: vertical bars, side by side if there are
# several series; boxes: a horizontal box for each row, from the columns q1, median and q3, with
# whiskers from `low` to `high` and a diamond at `value`; heat map: a cell for each value of `by`
# and each series, which is a row of the map.
Shape = Literal["bars", "points", "lines", "columns", "boxes", "heat map"]
Mark = Literal["tick", "diamond", "dotted"]
LEAST_CHANCE = 0.001  # a smaller chance level isn't drawn: its mark would be on the axis
RELATION = "kind of fact (relation)"  # the title of an axis with relations
MOST_BARS = 3  # more series are drawn as points instead of bars


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis of a chart.

    Attributes:
        column: The column of the frame.
        title: What it shows, with the unit.
        share: Whether its values are shares, which are drawn in percent.
        log: Whether it is logarithmic.
        reversed: Whether small values are at the right or at the top.
        ticks: Place -> label; empty for automatic ticks. Places with names keep their names
            without one.
        ends: The ends of the axis, in units of the frame; None for automatic ends.
        from_zero: Whether it begins at 0, which axes of shares do, too.
        order: The names on it in order, if it has names instead of numbers, or their numbers.
        on_top: Whether it is above the chart.
    """

    column: str
    title: str
    share: bool = False
    log: bool = False
    reversed: bool = False
    ticks: Mapping[Any, str] = field(default_factory=dict)
    ends: tuple[float, float] | None = None
    from_zero: bool = False
    order: tuple[str | int, ...] = ()
    on_top: bool = False


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Marks of a baseline next to the values.

    Attributes:
        column: The column with its values; NaN draws nothing.
        name: Its name in the legend.
        mark: A tick or diamond on the row of the value, or a dotted line.
        each: Whether each series has its own; else the first value of each row is drawn.
        least: Smaller values aren't drawn.
    """

    column: str
    name: str
    mark: Mark
    each: bool = False
    least: float = 0.0


CHANCE = Baseline(
    column="chance",
    name="chance (random order of the answers)",
    mark="diamond",
    each=True,
    least=LEAST_CHANCE,
)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A chart.

    Attributes:
        shape: Its shape.
        frame: A row for each mark. The column `said` holds lines of plain text about the mark.
        by: The axis of the rows or places.
        value: The axis of the values.
        series: The column that tells which series a mark belongs to, such as `run`.
        names: Series -> its name for readers, in the order of drawing.
        published: Series that are drawn as open symbols next to the bars, because others published
            them.
        low: The column with the lower ends of intervals; empty without intervals.
        high: The column with the upper ends.
        bands: Whether the intervals of lines are bands.
        bold: The rows whose names are bold, or the series whose lines are thick.
        guide: A place on the axis `by` with a dotted line; None without one.
        zero: A value with a solid line, such as 0 for differences; None without one.
        baselines: The baselines.
        diagonal: The name of a dashed line where both axes are equal; empty without one.
        size: The column with the areas of points, such as the number of facts; empty for equal
            ones.
        dots: The column that tells whether a mark is a point on the bar of its place instead of a
            bar; empty if none is.
        size_unit: What `size` counts, in the singular, for the legend.
        hollow: The column that tells whether a point or column is hollow; empty if
            none is.
        hollow_name: What hollow points or columns mean, for the legend.
        text: The column with the texts in the cells of a heat map or behind bars; empty without
            texts.
        strong: The column that tells whether a text in a cell is bold; empty if none is.
        cell: The column with the colours of cells as `#rrggbb`, empty for a cell without colour;
            by default they follow from the values.
        rows: The title of the vertical axis of a heat map.
        title: What the chart shows.
        caption: What the numbers count: data, prompts, relations, facts, ranking.
    """

    shape: Shape
    frame: "pd.DataFrame"
    by: Axis
    value: Axis
    series: str = "run"
    names: Mapping[str, str]
    published: frozenset[str] = frozenset()
    low: str = ""
    high: str = ""
    bands: bool = False
    bold: frozenset[str] = frozenset()
    guide: float | None = None
    zero: float | None = None
    baselines: tuple[Baseline, ...] = ()
    diagonal: str = ""
    size: str = ""
    size_unit: str = "fact"
    hollow: str = ""
    hollow_name: str = ""
    dots: str = ""
    text: str = ""
    strong: str = ""
    cell: str = ""
    rows: str = ""
    title: str
    caption: str = ""

    @property
    def places(self) -> list[Any]:
        """The values of `by`, in the order of the axis."""
        return list(self.by.order or dict.fromkeys(self.frame[self.by.column]))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The values of `size` that the legend shows: powers of 10."""
        if not self.size or not len(self.frame):
            return ()
        highest = 10 ** (len(str(int(self.frame[self.size].max()))) - 1)
        return tuple(dict.fromkeys((max(1, highest // 10), highest)))


def relation_label(name: str, label: str) -> str:
    """Return a relation's label for readers, beginning with its name: `P19 place of birth`."""
    same = label.lower() in ("", name.lower().replace("_", " "))
    return (label or name) if same else f"{name} {label}"


def right_title(k: int) -> str:
    """Return P@k as the title of an axis, in words that fit on a phone."""
    where = "right first answers" if k == 1 else f"right answer in the first {k}"
    return f"{where}, % (P@{k})"


def labels_of(infos: tuple[RunInfo, ...]) -> dict[str, str]:
    """Return relation -> its label, for all relations of these runs."""
    return {
        relation.name: relation_label(relation.name, relation.label)
        for info in infos
        for relation in info.relations
    }


def scored_by_all(infos: Sequence[RunInfo]) -> set[str]:
    """Return the names of the relations that have facts which count in each of these runs."""
    return set.intersection(*({one.name for one in info.relations if one.n} for info in infos))


def scored_labels(infos: tuple[RunInfo, ...], chosen: Sequence[str]) -> list[str]:
    """Return the labels of the chosen relations that `scored_by_all` returns."""
    known = scored_by_all(infos).intersection(chosen)
    return [label for name, label in labels_of(infos).items() if name in known]


def said_interval(low: float, high: float, *, signed: bool = False) -> str:
    """Return an interval of shares as a line about a mark; empty if there is none."""
    ends = f"{percent(low, signed=signed)} to {percent(high, signed=signed)}"
    return f"95 % interval: {ends}" if low == low and high == high else ""


def said(*lines: str) -> str:
    """Return lines about a mark as one text, without the empty ones."""
    return "\n".join(filter(None, lines))
