"""What every reproduction of a paper gives: its tables and figures, ours beside the paper's.

A paper is what is prepared once (data, models, runs) and its tables, each made from that. What
can't be had is listed with the reason and the command that brings it. The difference of two
numbers is given only where data, relations, limits and model are the paper's; else it is said what
isn't.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Generic, Literal, Protocol, TypeVar

from lama_core import rounding
from lama_core.asking import settings
from lama_core.errors import UserError, choose
from lama_core.progress import OnNote, OnProgress, Progress, silent
from lama_core.requests import Request, argument, option

Value = float | str | None
Shape = Literal["lines", "bars", "boxes", "points"]
Unit = Literal["percent", "correlation", "rank", "log-probability", "text", "share", "number"]


@dataclass(frozen=True)
class ReproduceOptions(Request):
    """A paper's tables to reproduce: the fields of `reproduce`."""

    command: ClassVar[tuple[str, ...]] = ("reproduce",)
    python: ClassVar[str] = "reproduce"

    paper: Annotated[str, argument("petroni2019, jiang2020, rezaee2022 or wiland2024.")] = field(
        default="", kw_only=True
    )
    dataset: Annotated[
        str | None,
        option(
            "A dataset's name or folder. Default: the paper's data, fetched; if unavailable, the "
            "starter data (not for wiland2024)."
        ),
    ] = None
    models: Annotated[
        Sequence[str],
        option("Also this model, without a published value; repeat for several.", name="--model"),
    ] = ()
    limit: settings.Limit = None
    tables: Annotated[
        Sequence[str],
        option(
            "Only this table or figure (table2, figure3, leaderboard); repeat for several.",
            name="--table",
        ),
    ] = ()
    html: Annotated[
        Path | None, option("HTML file with the charts to write. Default: in the user's data.")
    ] = None


@dataclass(frozen=True, slots=True)
class ReproducedRow:
    """One cell of a table done again, in the table's unit.

    what: the line and the column. n: what counts in ours. ours: None when it could not be had, and
    `reason` says why. published: None when the paper has none. differs: what of data, relations,
    limits and model is not the paper's, in a word; "" where all is. interval: of 95%, about ours;
    None of what has none.
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
        """Ours less the paper's; None where either is missing, no number, or of another thing."""
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


@dataclass(frozen=True, slots=True)
class Made:
    """What a table holds: its cells, its charts, what a reader should know, what is missing."""

    rows: tuple[ReproducedRow, ...]
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    absent: tuple[Absent, ...] = ()


class Prepared(Protocol):
    """What a paper's tables are made from. Runs are made when a table asks for them, and once."""

    @property
    def notes(self) -> Sequence[str]:
        """What is so of all tables: the data, the ranking, the candidates."""
        ...


P = TypeVar("P", bound=Prepared)


@dataclass(frozen=True, slots=True)
class PaperTable(Generic[P]):
    """A table or figure that can be computed.

    id: `table2`, `figure3`. unit: of all its values. counts: what n counts ("facts"). digits:
    behind the point, as the paper prints them.
    """

    id: str
    title: str
    unit: Unit
    counts: str
    make: Callable[[P], Made]
    digits: int = 1

    @property
    def name(self) -> str:
        """`Table 2`; of an id without a number, its word alone."""
        kind = self.id.rstrip("0123456789")
        return f"{kind.capitalize()} {self.id[len(kind) :]}".rstrip()


@dataclass(frozen=True, slots=True)
class ReproducedTable:
    """A table or figure, done again."""

    id: str
    name: str
    title: str
    unit: Unit
    counts: str
    digits: int
    made: Made

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

    @property
    def about(self) -> str:
        """What its values are, and what n counts."""
        counted = f"; n counts {self.counts}" if self.counts else ""
        return f"unit: {self.unit}{counted}"

    def remarks(self) -> tuple[tuple[str, ...], list[int | None]]:
        """Why rows have no number or no difference, each once, and which one is each row's."""
        each = [row.reason or row.differs for row in self.made.rows]
        listed = tuple(dict.fromkeys(filter(None, each)))
        return listed, [listed.index(one) if one else None for one in each]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """All tables that were asked for, and what is so of all of them."""

    paper: str
    citation: str
    notes: tuple[str, ...]
    tables: tuple[ReproducedTable, ...]

    @property
    def absent(self) -> tuple[Absent, ...]:
        """What is missing in any of the tables, each once."""
        return tuple(dict.fromkeys(one for table in self.tables for one in table.made.absent))


@dataclass(frozen=True, slots=True)
class Paper(Generic[P]):
    """A paper that can be done again. name: `petroni2019`.

    prepare: makes ready what the tables are made from; raises UserError where there is nothing.
    """

    name: str
    citation: str
    tables: tuple[PaperTable[P], ...]
    prepare: Callable[[ReproduceOptions, OnProgress, OnNote], P]

    def reproduce(
        self,
        options: ReproduceOptions,
        *,
        on_progress: OnProgress = silent,
        on_note: OnNote = silent,
    ) -> Reproduction:
        """The tables that were asked for; one that can't be made says why.

        Raises UserError for a table that the paper doesn't have here.
        """
        named = {table.id: table for table in self.tables}
        asked = [choose(_plain(name), named, "table") for name in options.tables] or list(named)
        prepared = self.prepare(options, on_progress, on_note)
        made = []
        for name in dict.fromkeys(asked):
            table = named[name]
            on_progress(Progress(f"{table.name}: {table.title}"))
            try:
                found = table.make(prepared)
            except UserError as error:
                found = Made((), absent=(Absent(table.name, str(error)),))
            made.append(
                ReproducedTable(
                    table.id,
                    table.name,
                    table.title,
                    table.unit,
                    table.counts,
                    table.digits,
                    found,
                )
            )
        return Reproduction(self.name, self.citation, tuple(prepared.notes), tuple(made))


def _plain(name: str) -> str:
    """A table's name as its id: `Table 2`, `table-2` and `2` are `table2`."""
    short = "".join(sign for sign in name.lower() if sign.isalnum())
    return f"table{short}" if short.isdigit() else short


def differing(
    *,
    data: str = "",
    relations: tuple[int, int] | None = None,
    facts: tuple[int, int] | None = None,
    limit: int | None = None,
    model: str = "",
) -> str:
    """What isn't the paper's, in a word, for `ReproducedRow.differs`; "" where all is the same.

    data: its name where it is other data ("starter facts"). relations, facts: how many are here,
    and how many the paper has. limit: facts a relation. model: the paper's, where another is asked.
    """
    words = [data] if data else []
    for counted, name in ((relations, "relations"), (facts, "facts")):
        if not data and counted and counted[0] != counted[1]:
            words.append(f"{counted[0]:,} of {counted[1]:,} {name}")
    if limit is not None:
        words.append(f"at most {limit:,} a relation")
    if model:
        words.append(f"not {model}")
    return "; ".join(words)


@dataclass(frozen=True, slots=True)
class Data:
    """What a paper's tables are made on.

    name: a dataset's name or folder. other: what it is where it isn't the paper's data or the
    user's own choice ("starter facts"). absent: the paper's own data, where it can't be had.
    """

    name: str
    other: str = ""
    absent: tuple[Absent, ...] = ()


def find_data(
    asked: str | None,
    *,
    own: str,
    installed: tuple[str, ...],
    instead: Data,
    on_progress: OnProgress = silent,
) -> Data:
    """The data that a user asked for; else the paper's, fetched; else the ones instead.

    own: the name of the paper's data. installed: the names of what is here.
    """
    from lama_core.datasets.library.download import get_dataset

    if asked is not None:
        return Data(asked)
    if own not in installed:
        try:
            get_dataset(own, on_progress=on_progress)
        except UserError as error:
            missing = Absent(own, str(error), f"python -m lama_core data get {own}")
            return Data(instead.name, instead.other, (missing,))
    return Data(own)
