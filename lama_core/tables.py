"""Tables: the columns of a result, declared once.

The class of a table's rows is a frozen dataclass. An annotation of a field declares its column:

    log_prob: Annotated[float, Column("Sum of the tokens' log-probabilities.", "total log-prob.")]

From the columns follow the values of `--json` (`json_row`), the DataFrame and the CSV
(`frame_row`), and the printed table (`make_table`). A table whose columns depend on its content,
such as one column for each model, is a `Table` with columns given by hand. A table of a DataFrame
has such columns, too (`table_of_frame`): `count`, `share`, `points`, `number` and `interval` make
them.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    get_args,
    get_origin,
    get_type_hints,
)

from lama_core.rounding import fixed, percent

if TYPE_CHECKING:
    import pandas as pd

Line = Mapping[Any, Any]  # a row of a DataFrame, by column
# What a page makes of a cell: text, a whole number, a percentage, a number, or two percentages.
CellKind = Literal["text", "count", "share", "number", "interval"]


class FirstAnswer(NamedTuple):
    """An answer with its natural log-probability; begins: the longer word that it starts.

    rank: None if the answer isn't ranked.
    """

    rank: int | None
    text: str
    log_prob: float | None
    begins: str | None = None


FirstAnswers = tuple[FirstAnswer, ...]  # best first


def as_text(value: Any) -> str:
    """Return a cell's value as text; empty for None."""
    return "" if value is None else str(value)


def decimals(n: int, *, none: str = "", signed: bool = False) -> Callable[[float | None], str]:
    """Return the format of numbers with `n` decimals; none: text of an unknown number."""

    def written(value: float | None) -> str:
        return none if value is None else fixed(value, n, signed=signed)

    return written


def thousands(value: int | None) -> str:
    """Return a whole number with separators; empty for None."""
    return "" if value is None else f"{value:,}"


def plain(value: Any) -> Any:
    """Return a value for JSON: None for NaN and infinity, a list for a tuple."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        help: What its cells hold, in one sentence.
        label: Its head for readers. Default: the name.
        format: A cell's value -> its text for readers.
        json: A cell's value -> its value in JSON.
        in_json: Whether `--json` has it.
        in_frame: Whether the DataFrame and the CSV have it.
        name: Its key in JSON and in the DataFrame. Default: the name of the row's field.
        kind: What a page makes of its cells.
        digits: Decimals of a number.
        of_run: Whether each run has its own value, in a table with a column for each run.
        cell: A row of a DataFrame -> the cell's value. Default: the value in the column `name`.
    """

    help: str
    label: str = ""
    format: Callable[[Any], str] = as_text
    json: Callable[[Any], Any] = plain
    in_json: bool = True
    in_frame: bool = True
    name: str = ""
    kind: CellKind = "text"
    digits: int = 1
    of_run: bool = False
    cell: Callable[[Line], Any] | None = None

    @property
    def head(self) -> str:
        """The head of the column."""
        return self.label or self.name

    def value(self, line: Line) -> Any:
        """Return the cell's value in a row of a DataFrame."""
        return self.cell(line) if self.cell else line.get(self.name)


@dataclass(frozen=True, slots=True)
class Table:
    """A table for readers. rows: the values of the cells, in the order of the columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str = ""

    def cells(self) -> list[list[str]]:
        """Return the text of every cell."""
        return [
            [column.format(value) for column, value in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]


def table_of(heads: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> Table:
    """Return a table whose columns are given by hand. heads: the heads of the columns."""
    columns = tuple(Column("", head) for head in heads)
    return Table(columns, tuple(map(tuple, rows)), title)


def text(name: str, label: str = "", help_text: str = "", **more: Any) -> Column:
    """Return a column of texts of a DataFrame; `more` are further fields of `Column`."""
    return Column(help_text, label, _known(str), name=name, **more)


def count(name: str, label: str = "", help_text: str = "", **more: Any) -> Column:
    """Return a column of whole numbers of a DataFrame."""
    return Column(help_text, label, _known("{:,.0f}".format), name=name, kind="count", **more)


def share(name: str, label: str = "", help_text: str = "", **more: Any) -> Column:
    """Return a column of shares of a DataFrame, shown in percent with one decimal."""
    return Column(help_text, label, _known(percent), name=name, kind="share", **more)


def points(name: str, label: str = "", help_text: str = "", **more: Any) -> Column:
    """Return a column of differences of shares, in percentage points with a sign."""
    form = _known(lambda value: percent(value, signed=True))
    return Column(help_text, label, form, name=name, **more)


def number(
    name: str,
    digits: int,
    label: str = "",
    help_text: str = "",
    *,
    signed: bool = False,
    **more: Any,
) -> Column:
    """Return a column of numbers of a DataFrame, shown with `digits` decimals."""
    form = _known(lambda value: fixed(value, digits, signed=signed))
    return Column(help_text, label, form, name=name, kind="number", digits=digits, **more)


def interval(
    label: str = "95 % interval",
    help_text: str = "",
    *,
    name: str = "interval",
    ends: tuple[str, str] = ("low", "high"),
    signed: bool = False,
    **more: Any,
) -> Column:
    """Return a column of intervals of shares: `12.0 to 15.5`.

    ends: The columns of the ends. signed: Whether they are of differences: `-1.2 to +3.4`.
    """

    def read(line: Line) -> tuple[float, float]:
        low, high = (line[end] for end in ends)
        return low, high

    def written(pair: tuple[float, float]) -> str:
        if pair[0] != pair[0]:
            return ""
        return " to ".join(percent(end, signed=signed) for end in pair)

    return Column(
        help_text,
        label,
        written,
        name=name,
        kind="text" if signed else "interval",  # pages write intervals without signs
        cell=read,
        **more,
    )


def _known(form: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a format whose text of an unknown value (None, NaN or infinity) is empty."""

    def written(value: Any) -> str:
        is_number = isinstance(value, float)
        return "" if value is None or (is_number and not math.isfinite(value)) else form(value)

    return written


def frame_of(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    """Return a list of rows as a DataFrame."""
    import pandas as pd  # slow to import (0.4 s)

    return pd.DataFrame(rows)


def table_of_frame(columns: Iterable[Column], frame: "pd.DataFrame", *, title: str = "") -> Table:
    """Return the table of a DataFrame's rows."""
    chosen = tuple(columns)
    lines = frame.to_dict("records")
    cells = tuple(tuple(column.value(line) for column in chosen) for line in lines)
    return Table(chosen, cells, title)


@cache
def columns_of(kind: Any) -> dict[str, Column]:
    """Return field -> its column, for the fields of a row class that declare one."""
    return {
        name: replace(item, name=item.name or name)
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if get_origin(hint) is Annotated
        for item in get_args(hint)[1:]
        if isinstance(item, Column)
    }


def _chosen(kind: type, names: Iterable[str]) -> dict[str, Column]:
    """Return the named columns of a row class. Raises ValueError for an unknown name."""
    columns = columns_of(kind)
    unknown = [name for name in names if name not in columns]
    if unknown:
        known = ", ".join(columns)
        raise ValueError(f"{kind.__name__} has no column {unknown[0]!r}; it has {known}")
    return {name: columns[name] for name in names}


def make_table(
    kind: type,
    rows: Iterable[object],
    shown: str,
    *,
    title: str = "",
    labels: Mapping[str, str] | None = None,
) -> Table:
    """Return a table for readers.

    Args:
        kind: The class of the rows.
        rows: The rows.
        shown: The names of the fields to show, in order, separated by spaces.
        title: The line above the table.
        labels: Field -> its head, where it depends on the answer.

    Raises:
        ValueError: If the class has no such column.
    """
    columns = _chosen(kind, shown.split())
    for name, label in (labels or {}).items():
        columns[name] = replace(columns[name], label=label)
    cells = tuple(tuple(getattr(row, name) for name in columns) for row in rows)
    return Table(tuple(columns.values()), cells, title)


def json_row(row: Any) -> dict[str, Any]:
    """Return a row as JSON values."""
    columns = columns_of(row.__class__).items()
    return {
        column.name: column.json(getattr(row, name)) for name, column in columns if column.in_json
    }


def frame_row(row: Any) -> dict[str, Any]:
    """Return a row as plain values for a DataFrame or CSV; other values are their column's text."""
    columns = columns_of(row.__class__).items()
    return {
        column.name: _cell(column, getattr(row, name))
        for name, column in columns
        if column.in_frame
    }


def _cell(column: Column, value: Any) -> Any:
    is_plain = value is None or isinstance(value, str | int | float)
    return value if is_plain else column.format(value)


def first_answers(rows: Sequence[object], field: str, n: int) -> FirstAnswers:
    """Return the first answers.

    Args:
        rows: Rows with the columns `rank` and `log_prob`, and perhaps the field `begins`.
        field: The field with the answer.
        n: Number of rows.

    Raises:
        ValueError: If the class of the rows lacks one of the columns.
    """
    columns = _chosen(type(rows[0]), ("rank", field, "log_prob")) if rows else {}
    shown: Sequence[Any] = rows[:n]
    return tuple(
        FirstAnswer(
            row.rank,
            columns[field].format(getattr(row, field)),
            row.log_prob,
            getattr(row, "begins", None),
        )
        for row in shown
    )
