"""Tables and figures of a reproduction: our values next to the published ones.

The difference of two numbers is computed only if data, relations, limits and model are the paper's;
otherwise `ReproducedRow.differs` names those that aren't.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from lama_core import rounding
from lama_core.published import TableHead
from lama_core.views.figure import Figure

Value = float | str | None


@dataclass(frozen=True, slots=True)
class ReproducedRow:
    """One cell of a table, in the table's unit.

    Attributes:
        model: Name of the model.
        what: The line and column of the cell.
        n: Number of facts (or of `TableHead.counts`) in our value.
        ours: Our value; None with a `reason` if it is unavailable.
        published: The paper's value; None if the paper has none.
        reason: Why our value is unavailable.
        differs: Which of data, relations, limits and model differ from the paper's; "" if none.
        interval: The 95 % interval of our value.
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
        """Ours minus the paper's; None if either isn't a number, or they aren't comparable."""
        if self.differs or not isinstance(self.ours, float | int):
            return None
        return self.ours - self.published if isinstance(self.published, float | int) else None


@dataclass(frozen=True, slots=True)
class UnavailableItem:
    """An unavailable item, the reason, and the command that fetches it ("" if none does)."""

    what: str
    reason: str
    command: str = ""


Item = ReproducedRow | Figure | UnavailableItem | str  # a text is a note


@dataclass(frozen=True, slots=True)
class TableContents:
    """The contents of a table: cells, charts, notes and unavailable items."""

    rows: tuple[ReproducedRow, ...]
    charts: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    absent: tuple[UnavailableItem, ...] = ()

    @classmethod
    def of(cls, items: Iterable[Item]) -> "TableContents":
        """Sort items by type; drop duplicate notes and merge charts with the same title."""
        items = tuple(items)
        charts: dict[str, Figure] = {}
        for item in items:
            if isinstance(item, Figure):
                first = charts.setdefault(item.title, item)
                if first is not item:
                    charts[item.title] = replace(
                        first,
                        frame=pd.concat([first.frame, item.frame], ignore_index=True),
                        names={**first.names, **item.names},
                    )
        return cls(
            tuple(item for item in items if isinstance(item, ReproducedRow)),
            tuple(charts.values()),
            tuple(dict.fromkeys(item for item in items if isinstance(item, str))),
            tuple(item for item in items if isinstance(item, UnavailableItem)),
        )


@dataclass(frozen=True)
class ReproducedTable(TableHead):
    """A table or figure with its contents."""

    made: TableContents = TableContents(())

    def shown(self, value: Value, *, signed: bool = False) -> str:
        """Return a value with the table's digits; signed: with a plus sign."""
        if value is None or isinstance(value, str):
            return value or ""
        return rounding.fixed(value, self.digits, signed=signed)

    @property
    def has_intervals(self) -> bool:
        """Whether any row has an interval."""
        return any(row.interval for row in self.made.rows)

    def shown_interval(self, row: ReproducedRow) -> tuple[str, ...]:
        """Return a row's interval as one cell; no cell if the table has no intervals."""
        if not self.has_intervals:
            return ()
        return (" to ".join(map(self.shown, row.interval)) if row.interval else "",)

    def remarks(self) -> tuple[tuple[str, ...], list[int | None]]:
        """Return the distinct remarks on missing numbers or differing settings.

        Also returns, for each row, the index of its remark, or None.
        """
        remarks = [row.reason or row.differs for row in self.made.rows]
        distinct = tuple(dict.fromkeys(filter(None, remarks)))
        return distinct, [distinct.index(remark) if remark else None for remark in remarks]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The tables that were requested, and notes on all of them."""

    paper: str
    citation: str
    notes: tuple[str, ...]
    tables: tuple[ReproducedTable, ...]

    @property
    def absent(self) -> tuple[UnavailableItem, ...]:
        """The unavailable items of all tables, without duplicates."""
        return tuple(dict.fromkeys(item for table in self.tables for item in table.made.absent))
