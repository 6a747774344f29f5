"""Rows of a table file in any form that people make, recognised by its content, not by its name.

Forms: CSV (separated by commas or semicolons), TSV, a JSON object per line, a JSON list of objects,
SPARQL results (TSV or JSON), Parquet, and Excel (first sheet); text also compressed with gzip.

A quote in a TSV is text, unless a cell begins and ends with one, or quotes enclose a tab. A cell
of a CSV may have line breaks if it is in quotes, unless one of its lines looks like a whole row. A
row that can't be read is excluded alone: the next row is read from the next line.
"""

import csv
import io
import re
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, islice
from typing import Any, Literal

import orjson

from lama_core.datasets.line_reader import JsonObject, Reading, Rejected, as_object
from lama_core.errors import UserError
from lama_core.files import format_bytes

FileForm = Literal["csv", "tsv", "jsonl", "json", "parquet", "xlsx"]
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".xlsx")  # of tables only
GZIP = ".gz"
MAX_JSON_BYTES = 512 << 20
MAX_SHEET_BYTES = 256 << 20  # of an Excel file, unpacked
MAX_ROWS = 5_000_000
MAX_ROW_LINES = 100  # lines of a row whose cells have line breaks
SAMPLED = 20  # rows by which the separator is recognised
SEPARATORS = (",", "\t", ";")

NumberedRows = Iterator[tuple[int, JsonObject]]
# `"text"@en`, `"12"^^<type>` and `<address>`, as SPARQL servers write values in TSV.
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>|\^\^\S+)?')
_RESULTS = re.compile(rb'\{\s*"head"\s*:\s*\{')  # the beginning of SPARQL's JSON
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True)
class TableFile:
    """The rows of a table file.

    Attributes:
        form: Its form.
        header: The columns in order, as written; () for JSON, where each row has its own fields.
        rows: Number of the line (of the item or row, for a JSON list, Parquet or Excel) and the
            row's values that aren't empty, by column. A row that can't be read is reported to the
            `Reading` instead.
    """

    form: FileForm
    header: tuple[str, ...]
    rows: NumberedRows


def has_table_name(name: str) -> bool:
    """Whether a file's name ends like that of a table, such as `.csv` or `.CSV.gz`."""
    return _plain_name(name).endswith(SUFFIXES)


def _plain_name(name: str) -> str:
    return name.lower().removesuffix(GZIP)


def read_table(reading: Reading, form: FileForm | None = None) -> TableFile:
    """Return the table in the reading's file.

    Args:
        reading: Has the file; excluded rows are reported to it.
        form: The form. Default: recognised by the file's content.

    Raises:
        UserError: If the file is empty, can't be read, or is not a table.
    """
    head = reading.head(reading.root)
    if not head.strip():
        raise UserError(f"{reading.root} is empty.")
    form = form or recognised_form(head, reading.root.name)
    if form == "parquet":
        return _parquet(reading)
    if form == "xlsx":
        return _excel(reading)
    if form == "json":
        return TableFile("json", (), _json_rows(reading))
    if form == "jsonl":
        return TableFile("jsonl", (), reading.objects(reading.root))
    return _separated(reading, form)


def recognised_form(head: bytes, name: str = "") -> FileForm:
    """Return the form of a file by its first bytes; its name decides only between CSV and TSV."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04"):
        return "xlsx"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _RESULTS.match(text):
        return "json"
    if text.startswith(b"{"):
        # The first line of one object in several lines opens brackets, such as `{` alone.
        line, end, _ = text.partition(b"\n")
        return "jsonl" if line.rstrip().endswith(b"}") or not end else "json"
    if text.startswith(b"[") and text[1:].lstrip()[:1] in (b"{", b"]"):
        return "json"
    first = text.partition(b"\n")[0].decode("utf-8", "replace")
    if _plain_name(name).endswith(".tsv") and "\t" in first:
        return "tsv"
    rows = text.decode("utf-8", "replace").splitlines()
    complete = rows[:-1] if len(rows) > 1 and len(head) >= Reading.HEAD_BYTES else rows
    return "tsv" if _separator(complete[: SAMPLED + 1]) == "\t" else "csv"


def _separator(lines: Sequence[str]) -> str:
    """Return the separator by which most of the first rows have as many cells as the header."""

    def fit(separator: str) -> tuple[int, int]:
        n_cells, *others = [len(_cells(line, separator) or ()) for line in lines]
        return (sum(n == n_cells for n in others) if n_cells > 1 else -1), n_cells

    return max(SEPARATORS, key=fit) if lines else ","


def _cells(record: str, separator: str) -> list[str] | None:
    """Return the cells of a row; None if its quotes are invalid, as in an unfinished CSV row."""
    try:
        rows = list(csv.reader(io.StringIO(record, newline=""), delimiter=separator, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def _tab_cells(record: str, n_cells: int | None = None) -> list[str]:
    """Return the cells of a row of a TSV; n_cells: how many the header has."""
    quoted = _cells(record, "\t")
    if quoted is not None and len(quoted) == n_cells:
        return quoted
    return [_unquoted(cell) for cell in record.split("\t")]


def _unquoted(cell: str) -> str:
    is_quoted = len(cell) > 1 and cell.startswith('"') and cell.endswith('"')
    return cell[1:-1].replace('""', '"') if is_quoted else cell


def _separated(reading: Reading, form: FileForm) -> TableFile:
    lines = reading.lines(reading.root, stripped=False)
    first = next((line for _, line in lines if line.strip()), "")
    if reading.dropped or not first:
        reason = reading.dropped[0].reason if reading.dropped else "it is empty"
        raise UserError(f"{reading.root}: the first line can't be read: {reason}.")
    if form == "tsv":
        separator, header = "\t", _tab_cells(first)
    else:
        sample = list(islice(lines, SAMPLED))
        lines = chain(sample, lines)
        separator = _separator([first, *(line for _, line in sample if line.strip())])
        separator = "," if separator == "\t" else separator
        cells = _cells(first, separator)
        if cells is None:
            raise UserError(f"{reading.root}: the quotes of the first line, its header, are wrong.")
        header = cells
    header = [cell.strip() for cell in header]
    is_sparql = form == "tsv" and all(re.fullmatch(r"\?\w+", name) for name in header)
    if is_sparql:
        header = [name[1:] for name in header]
    check_names(reading, header)
    rows = _separated_rows(reading, lines, header, separator)
    if is_sparql:
        rows = (
            (number, {name: _term(str(cell)) for name, cell in row.items()}) for number, row in rows
        )
    return TableFile(form, tuple(header), rows)


def check_names(reading: Reading, header: Iterable[str]) -> None:
    """Raise UserError if two columns have the same name, ignoring case; empty names may repeat."""
    seen: dict[str, str] = {}
    for name in filter(None, header):
        if name.lower() in seen:
            raise UserError(
                f"{reading.root.name} has two columns of the same name, {seen[name.lower()]!r} and "
                f"{name!r}: rename or remove one."
            )
        seen[name.lower()] = name


def _separated_rows(
    reading: Reading, lines: Iterator[tuple[int, str]], header: Sequence[str], separator: str
) -> NumberedRows:
    n = len(header)
    waiting: deque[tuple[int, str]] = deque()

    def following() -> tuple[int, str] | None:
        return waiting.popleft() if waiting else next(lines, None)

    while (line := following()) is not None:
        number, text = line
        if not text.strip():
            continue
        cells = _tab_cells(text, n) if separator == "\t" else _cells(text, separator)
        if cells is None:  # perhaps a cell with line breaks: read on until its quotes are closed
            taken: list[tuple[int, str]] = []
            record = text
            while cells is None and len(taken) < MAX_ROW_LINES and (more := following()):
                taken.append(more)
                if more[1].count('"') % 2 == 0 and len(_cells(more[1], separator) or ()) == n:
                    break  # a whole row, so a quote above is missing
                record += f"\n{more[1]}"
                cells = _cells(record, separator)
            if cells is None or len(cells) != n:
                waiting.extendleft(reversed(taken))
                cells = None
        with reading.dropping(reading.root, number):
            if cells is None:
                raise Rejected("its quotes are wrong: a quote in a cell is written twice", text)
            if len(cells) != n:
                raise Rejected(f"{len(cells)} cells, but the header has {n}", text)
            yield (
                number,
                {
                    key: cell
                    for key, cell in zip(header, cells, strict=True)
                    if key and cell.strip()
                },
            )


def _term(cell: str) -> str:
    """Return the value of a cell of SPARQL's TSV: a literal without its type, or an address."""
    cell = cell.strip()
    if cell.startswith("<") and cell.endswith(">"):
        return cell[1:-1]
    if match := _LITERAL.fullmatch(cell):
        return re.sub(r"\\(.)", lambda sign: _ESCAPES.get(sign[1], sign[1]), match[1])
    return cell


def _is_results(value: JsonObject) -> bool:
    results = value.get("results")
    return isinstance(results, dict) and isinstance(results.get("bindings"), list)


def _json_rows(reading: Reading) -> NumberedRows:
    path = reading.root
    try:
        text = reading.content(path, MAX_JSON_BYTES).removeprefix(b"\xef\xbb\xbf")
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UserError(
            f"{path} is not valid JSON ({error.msg}, line {error.lineno}, column {error.colno})."
        ) from error
    for number, item in enumerate(_items(path.name, value), start=1):
        with reading.dropping(path, number):
            yield number, as_object(item)


def _items(name: str, value: Any) -> Sequence[Any]:
    """Return the rows of a JSON file. Raises UserError if it isn't a list of objects."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and _is_results(value):
        return [_bound(row) for row in value["results"]["bindings"]]
    lists = (
        [item for item in value.values() if isinstance(item, list)]
        if isinstance(value, dict)
        else []
    )
    if len(lists) == 1 and all(isinstance(item, dict) for item in lists[0]):
        return lists[0]
    if isinstance(value, dict):
        return [value]
    raise UserError(f"{name} is not a table: expected a list of JSON objects.")


def _bound(row: object) -> object:
    """Return a row of SPARQL's JSON with plain values."""
    if not isinstance(row, dict):
        return row
    return {
        name: cell.get("value") if isinstance(cell, dict) else cell for name, cell in row.items()
    }


def _parquet(reading: Reading) -> TableFile:
    import pyarrow as pa  # slow to import
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(io.BytesIO(reading.content(reading.root, MAX_JSON_BYTES)))
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{reading.root} is not a valid Parquet file.") from error
    if file.metadata.num_rows > MAX_ROWS:
        raise UserError(f"{reading.root} has more than {MAX_ROWS:,} rows: split it")
    header = tuple(str(name) for name in file.schema_arrow.names)
    check_names(reading, header)

    def rows() -> Iterator[Sequence[Any]]:
        try:
            for batch in file.iter_batches(batch_size=1024):
                columns = [column.to_pylist() for column in batch.columns]
                yield from zip(*columns, strict=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UserError(f"{reading.root} is a damaged Parquet file.") from error

    return TableFile("parquet", header, _typed_rows(header, enumerate(rows(), start=1)))


def _excel(reading: Reading) -> TableFile:
    from python_calamine import CalamineError, CalamineWorkbook  # slow to import

    path, data = reading.root, reading.content(reading.root, MAX_JSON_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            n_bytes = sum(item.file_size for item in archive.infolist())
        if n_bytes > MAX_SHEET_BYTES:
            most = format_bytes(MAX_SHEET_BYTES)
            raise UserError(f"{path} unpacks to more than {most}: save it as CSV")
        sheet = CalamineWorkbook.from_filelike(io.BytesIO(data)).get_sheet_by_index(0)
        cells = sheet.to_python(skip_empty_area=False)
    except (zipfile.BadZipFile, CalamineError, OSError) as error:
        raise UserError(f"{path} is not a valid Excel file ({error}).") from error
    numbered = [
        (number, row)
        for number, row in enumerate(cells, start=1)
        if any(_plain(cell) not in ("", None) for cell in row)
    ]
    if not numbered:
        raise UserError(f"{reading.root} is empty.")
    header = tuple(str(_plain(cell)).strip() for cell in numbered[0][1])
    check_names(reading, header)
    return TableFile("xlsx", header, _typed_rows(header, numbered[1:]))


def _typed_rows(header: Sequence[str], rows: Iterable[tuple[int, Sequence[Any]]]) -> NumberedRows:
    for number, row in rows:
        values = ((name, _plain(cell)) for name, cell in zip(header, row, strict=True))
        yield number, {name: cell for name, cell in values if name and cell not in ("", None)}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: dates as text; None for NaN."""
    if isinstance(value, datetime):
        return (
            value.date().isoformat() if value.time() == datetime.min.time() else value.isoformat()
        )
    if isinstance(value, date | Decimal):
        return str(value)
    if isinstance(value, float) and value != value:
        return None
    return value


def lowered(row: JsonObject) -> JsonObject:
    """Return a row with lower-case names. Raises Rejected if two become the same."""
    found: JsonObject = {}
    for name, value in row.items():
        key = name.strip().lower()
        if key in found:
            raise Rejected(f"two fields are named {key!r}")
        found[key] = value
    return found
