"""Tables and figures of a reproduction: our values next to the published ones.

The difference of two numbers is given only where data, relations, limits and model are the
paper's; otherwise `ReproducedRow.differs` names what isn't.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from lama_core import rounding

Value = float | str | None
Shape = Literal["lines", "bars", "boxes", "points"]
Unit = Literal["percent", "correlation", "rank", "log-probability", "text", "share", "number"]


@dataclass(frozen=True, slots=True)
class ReproducedRow:
    """One cell of a table, in the table's unit.

    what: the line and the column. n: what counts in ours. ours: None with a `reason` where it
    can't be had. published: None where the paper has none. differs: what of data, relations, limits
    and model is not the paper's; "" where all is. interval: the 95% interval of ours.
    """

    model: str
    what: str
    n: int
    ours: Value
    published: Value
    reason: str = ""
    differs: str = ""
    interval: tuple[float, float] | None = None

    @property
    def difference(self) -> float | None:
        """Ours less the paper's; None where either is no number or of another thing."""
        if self.differs or not isinstance(self.ours, float | int):
            return None
        return self.ours - self.published if isinstance(self.published, float | int) else None


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one name in a chart. x: numbers or names. published: the paper's."""

    name: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    published: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure. boxes: the values of a series are spread over its names."""

    title: str
    shape: Shape
    x_title: str
    y_title: str
    series: tuple[Series, ...]
    log_x: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """What can't be had here, why, and the command that brings it ("" where none does)."""

    what: str
    reason: str
    command: str = ""


Item = ReproducedRow | Chart | Absent | str  # a text is a note


@dataclass(frozen=True, slots=True)
class Made:
    """The contents of a table: cells, charts, notes for the reader, and what is missing."""

    rows: tuple[ReproducedRow, ...]
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    absent: tuple[Absent, ...] = ()

    @classmethod
    def of(cls, items: Iterable[Item]) -> "Made":
        """The items by their kind, in order; each note once; charts of one title become one."""
        every = tuple(items)
        charts: dict[str, Chart] = {}
        for one in every:
            if isinstance(one, Chart):
                first = charts.setdefault(one.title, replace(one, series=()))
                charts[one.title] = replace(first, series=(*first.series, *one.series))
        return cls(
            tuple(one for one in every if isinstance(one, ReproducedRow)),
            tuple(charts.values()),
            tuple(dict.fromkeys(one for one in every if isinstance(one, str))),
            tuple(one for one in every if isinstance(one, Absent)),
        )


@dataclass(frozen=True)
class TableHead:
    """What is said of a table or figure: its id (`table2`, `figure3`) and what its values are.

    unit: of all its values. counts: what n counts ("facts"). digits: after the point, as the paper
    prints them.
    """

    id: str
    title: str = ""
    unit: Unit = "percent"
    counts: str = "facts"
    digits: int = 1

    @property
    def name(self) -> str:
        """`Table 2`; of an id without a number, its word alone."""
        kind = self.id.rstrip("0123456789")
        return f"{kind.capitalize()} {self.id[len(kind) :]}".rstrip()

    @property
    def about(self) -> str:
        """What its values are, and what n counts."""
        counted = f"; n counts {self.counts}" if self.counts else ""
        return f"unit: {self.unit}{counted}"


@dataclass(frozen=True)
class ReproducedTable(TableHead):
    """A table or figure with its contents."""

    made: Made = Made(())

    def shown(self, value: Value, *, signed: bool = False) -> str:
        """A value as the paper prints it; signed: with its plus."""
        if value is None or isinstance(value, str):
            return value or ""
        return rounding.fixed(value, self.digits, signed=signed)

    @property
    def has_intervals(self) -> bool:
        """Whether one of its rows has an interval."""
        return any(row.interval for row in self.made.rows)

    def shown_interval(self, row: ReproducedRow) -> tuple[str, ...]:
        """A row's interval as a cell; no cell in a table that has none."""
        if not self.has_intervals:
            return ()
        return (" to ".join(map(self.shown, row.interval)) if row.interval else "",)

    def remarks(self) -> tuple[tuple[str, ...], list[int | None]]:
        """Why rows have no number or no difference, each once, and which one is each row's."""
        each = [row.reason or row.differs for row in self.made.rows]
        listed = tuple(dict.fromkeys(filter(None, each)))
        return listed, [listed.index(one) if one else None for one in each]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The tables that were requested, and notes on all of them."""

    paper: str
    citation: str
    notes: tuple[str, ...]
    tables: tuple[ReproducedTable, ...]

    @property
    def absent(self) -> tuple[Absent, ...]:
        """What is missing in any of the tables, each once."""
        return tuple(dict.fromkeys(one for table in self.tables for one in table.made.absent))
