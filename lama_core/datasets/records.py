"""Records: the rows of any file that people have, recognised by its content, not by its name.

    text            separated by commas, semicolons, tabs or bars; SPARQL's TSV
    JSON            an object per line, a list, an object with one list, pandas' layouts, the rows
                    of the hub's viewer, SPARQL's results
    binary          Parquet, Arrow (Feather), spreadsheets (xlsx, xls, xlsb, ods)

Also compressed with gzip, alone in a zip, or in parts named `-00000-of-00002`. Text is UTF-8,
UTF-16 or UTF-32, or has the encoding that the user names: other encodings can't be told from each
other in short texts.

A record has the cells that aren't missing: empty and blank texts, null and NaN are missing. A quote
in a TSV is text, unless a cell begins and ends with one, or quotes enclose a tab. A cell of a CSV
may have line breaks if it is in quotes, unless one of its lines looks like a whole row. A row that
can't be read is excluded alone: the next row is read from the next line.

A spreadsheet can have several sheets, and rows with titles above its header; see `read_records`.
"""

import codecs
import csv
import io
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Literal

from lama_core.datasets import binary_rows
from lama_core.datasets.line_reader import (
    MAX_LINE_BYTES,
    JsonObject,
    Reading,
    Rejected,
    as_object,
    parse_json,
)
from lama_core.errors import UserError, reason_of
from lama_core.files import format_bytes
from lama_core.paths import IMPORT_ROOT

FileForm = Literal["csv", "tsv", "jsonl", "json", "parquet", "arrow", "xlsx"]
# The ends of names of tables only; other files can be tables, too.
SUFFIXES = (
    *(".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather"),
    *(".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
)
GZIP = ".gz"
MAX_BYTES = 512 << 20  # of a file that is read as a whole
MAX_UNPACKED = 2 << 30  # of the rows of a Parquet or Arrow table
MAX_ROW_LINES = 100  # lines of a row whose cells have line breaks
SAMPLED = 20  # rows by which the separator and the header are recognised
SEPARATORS = (",", "\t", ";", "|")
CHILD_FORMS: dict[FileForm, str] = {
    "parquet": binary_rows.PARQUET,
    "arrow": binary_rows.ARROW,
    "xlsx": binary_rows.SHEET,
}

NumberedRows = Iterator[tuple[int, JsonObject]]
IsHeader = Callable[[Sequence[str]], bool]
# `"text"@en`, `"12"^^<type>` and `<address>`, as SPARQL servers write values in TSV.
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>|\^\^\S+)?')
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
_PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\..+)?")
_MARKS = (  # the longer ones first: that of UTF-16 begins that of UTF-32
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NOT_TABLES = {
    b"%PDF": "a PDF",
    b"<!DOCTYPE": "a web page",
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"<table": "a web page",
    b"<?xml": "XML",
}
csv.field_size_limit(MAX_LINE_BYTES)


@dataclass(frozen=True)
class Records:
    """The records of a file.

    Attributes:
        header: The columns in order, as written; () for JSON, where each record has its own fields.
        rows: Number of the line (of the item or row, for JSON that isn't lines, and for binary
            forms) and the record's cells that aren't missing, by column. A row that can't be read
            is reported to the `Reading` instead.
    """

    header: tuple[str, ...]
    rows: NumberedRows


def has_table_name(name: str) -> bool:
    """Whether a file's name ends like that of a table, such as `.csv` or `.CSV.gz`."""
    return _plain_name(name).endswith(SUFFIXES)


def _plain_name(name: str) -> str:
    return name.lower().removesuffix(GZIP)


def no_header(_: Sequence[str]) -> bool:
    """Return False: no columns are needed."""
    return False


def parts_of(path: Path) -> list[Path]:
    """Return the parts of the table that a file is a part of, in order; else the file alone.

    Raises:
        UserError: If a part isn't in the file's folder.
    """
    found = _PART.fullmatch(path.name)
    if not found:
        return [path]
    stem, _, total, end = found.groups("")
    parts = [path.with_name(f"{stem}-{n:05d}-of-{total}{end}") for n in range(int(total))]
    if missing := [part.name for part in parts if not part.is_file()]:
        raise UserError(
            f"{path.name} is one of {len(parts)} parts of a table, and {missing[0]} isn't in its "
            "folder: give the folder or an archive with all parts."
        )
    return parts


def single_table(files: Sequence[Path]) -> Path | None:
    """Return the only table among files that are tables, or its first part; None for several."""
    return files[0] if files and list(files) == parts_of(files[0]) else None


def read_records(
    reading: Reading,
    form: FileForm | None = None,
    is_header: IsHeader = no_header,
    *,
    alone: bool = False,
) -> Records:
    """Return the records in the reading's file.

    Args:
        reading: Has the file, and what the user says of it; excluded rows are reported to it.
        form: The form. Default: recognised by the file's content.
        is_header: Whether a row has the columns that the caller needs. It chooses the sheet, if
            there are several, and the header, if titles are above it.
        alone: Read only this file, even if it is a part of a table: for callers that read each file
            of a folder.

    Raises:
        UserError: If the file is empty, can't be read, or is not a table.
    """
    is_alone = alone or reading.data is not None
    first, *others = [reading.root] if is_alone else parts_of(reading.root)
    found = _read(replace(reading, root=first), form, is_header)
    if not others:
        return found

    def rows() -> NumberedRows:
        yield from found.rows
        for path in others:
            part = _read(replace(reading, root=path), form, is_header)
            if part.header != found.header:
                raise UserError(f"{path.name} has other columns than {first.name}.")
            yield from part.rows

    return replace(found, rows=rows())


def _read(reading: Reading, form: FileForm | None, is_header: IsHeader) -> Records:
    name = reading.root.name
    if not reading.head(reading.root).strip():
        raise UserError(f"{reading.root} is empty.")
    reading = in_utf8(_out_of_zip(reading))
    head = reading.head(reading.root)
    form = form or recognised_form(head, reading.root.name)
    for mark, what in _NOT_TABLES.items():
        if head.lstrip().startswith(mark):
            raise UserError(f"{name} is {what}, not a table: save it as CSV or xlsx.")
    if form in CHILD_FORMS:
        return _from_child(reading, form, is_header)
    if form in ("json", "jsonl"):
        return _json(reading, form, is_header)
    return _separated(reading, form, is_header)


def recognised_form(head: bytes, name: str = "") -> FileForm:
    """Return the form of a file by its first bytes; its name decides only between CSV and TSV."""
    if form := _binary_form(head):
        return form
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"{") or (text.startswith(b"[") and text[1:].lstrip()[:1] in b"{[]\"'"):
        line, _, rest = text.partition(b"\n")
        return "jsonl" if line.rstrip().endswith(b"}") and rest.strip() else "json"
    first = text.partition(b"\n")[0].decode("utf-8", "replace")
    if _plain_name(name).endswith((".tsv", ".tab")) and "\t" in first:
        return "tsv"
    rows = text.decode("utf-8", "replace").splitlines()
    complete = rows[:-1] if len(rows) > 1 and len(head) >= Reading.HEAD_BYTES else rows
    return "tsv" if _separator(complete[: SAMPLED + 1]) == "\t" else "csv"


def _binary_form(head: bytes) -> FileForm | None:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    return "xlsx" if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")) else None


def _out_of_zip(reading: Reading) -> Reading:
    """Return the reading of the only file in a zip; another file unchanged."""
    if not reading.head(reading.root).startswith(b"PK\x03\x04"):
        return reading
    try:
        with zipfile.ZipFile(io.BytesIO(reading.content(reading.root, MAX_BYTES))) as archive:
            inner = [one for one in archive.namelist() if not one.endswith("/")]
            inner = [one for one in inner if not one.startswith("__MACOSX/")]
            if {"[Content_Types].xml", "content.xml"} & set(inner):
                return reading  # a spreadsheet
            if len(inner) != 1:
                raise UserError(f"{reading.root.name} has {len(inner)} files: give one of them.")
            with archive.open(inner[0]) as file:
                data = file.read(MAX_BYTES + 1)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise UserError(f"{reading.root.name} is a damaged or encrypted zip: {error}.") from error
    if len(data) > MAX_BYTES:
        raise UserError(f"{inner[0]} has more than {format_bytes(MAX_BYTES)}: split it")
    return replace(reading, root=reading.root.with_name(Path(inner[0]).name), data=data)


def in_utf8(reading: Reading) -> Reading:
    """Return the reading of a text in UTF-8.

    Raises:
        UserError: If the text has another encoding that the user hasn't named.
    """
    head = reading.head(reading.root)
    if _binary_form(head):
        return reading
    encoding = next((name for mark, name in _MARKS if head.startswith(mark)), reading.encoding)
    zeros = head[:64:2].count(0), head[1:64:2].count(0)
    if not encoding and max(zeros) > 8 and not min(zeros):  # letters of UTF-16 have a zero byte
        encoding = "utf-16-be" if zeros[0] else "utf-16-le"
    if encoding:
        text = reading.content(reading.root, MAX_BYTES)
        try:
            return replace(reading, data=text.decode(encoding).encode())
        except (LookupError, ValueError) as error:
            raise UserError(f"{reading.root.name} isn't {encoding[:40]}: {error}.") from error
    lines = [line for line in head.split(b"\n")[:-1] if not line.isascii()]
    broken = [line for line in lines if _first_word(line, "utf-8") is None]
    if len(broken) > max(1, len(lines) / 2) and not head.startswith(b"{"):  # JSON is UTF-8
        words = {name: _first_word(broken[0], name) for name in ("cp1252", "cp1250", "cp1251")}
        shown = ", ".join(f"{name} ({word!r})" for name, word in words.items() if word)
        raise UserError(
            f"{reading.root.name} isn't UTF-8. Save it as “CSV UTF-8”, or name its encoding "
            f"(--encoding), such as {shown or 'shift_jis'}."
        )
    return reading


def _first_word(line: bytes, encoding: str) -> str | None:
    """Return the first word with a letter that isn't ASCII, or ""; None in another encoding."""
    try:
        words = re.findall(r"\w+", line.decode(encoding))
    except UnicodeDecodeError:
        return None
    return next((word for word in words if not word.isascii()), "")


def _separator(lines: Sequence[str]) -> str:
    """Return the separator by which most of the first rows have as many cells as the header."""

    def fit(separator: str) -> tuple[int, int]:
        n_cells, *others = [len(_cells(line, separator) or ()) for line in lines]
        return (sum(n == n_cells for n in others) if n_cells > 1 else -1), n_cells

    return max(SEPARATORS, key=fit) if lines else ","


def _cells(record: str, separator: str, **dialect: Any) -> list[str] | None:
    """Return the cells of a row; None if its quotes aren't closed, [] if they are wrong."""
    if '"' not in record and "\n" not in record and "\r" not in record:
        return record.split(separator)
    lines = io.StringIO(record, newline="")
    try:
        rows = list(csv.reader(lines, delimiter=separator, strict=True, **dialect))
    except csv.Error as error:
        return None if "end of data" in str(error) else []
    return rows[0] if len(rows) == 1 else []


def _tab_cells(record: str, n_cells: int | None = None) -> list[str]:
    """Return the cells of a row of a TSV; n_cells: how many the header has."""
    quoted = _cells(record, "\t")
    if quoted is not None and len(quoted) == n_cells:
        return quoted
    return [_unquoted(cell) for cell in record.split("\t")]


def _unquoted(cell: str) -> str:
    is_quoted = len(cell) > 1 and cell.startswith('"') and cell.endswith('"')
    return cell[1:-1].replace('""', '"') if is_quoted else cell


def _separated(reading: Reading, form: FileForm, is_header: IsHeader) -> Records:
    lines = reading.lines(reading.root, stripped=False)
    first = next((line for line in lines if line[1].strip()), None)
    if reading.dropped or not first:
        reason = reading.dropped[0].reason if reading.dropped else "it is empty"
        raise UserError(f"{reading.root}: the first line can't be read: {reason}.")
    following = list(islice(lines, SAMPLED))
    for end in range(len(following)):  # names with line breaks
        whole = "\n".join([first[1], *(text for _, text in following[:end])])
        if any(_cells(whole, separator) for separator in SEPARATORS):
            first, following = (first[0], whole), following[end:]
            break
    sample = [first, *(line for line in following if line[1].strip())]
    if said := re.fullmatch(r'"?sep=(.)"?', sample[0][1].strip(" \r")):  # as Excel writes it
        separator = said[1]
        del sample[0]
    elif form == "tsv":
        separator = "\t"
    else:
        separator = _separator([line for _, line in sample])
        separator = "," if separator == "\t" else separator
    rows = [_tab_cells(line) if form == "tsv" else _cells(line, separator) for _, line in sample]
    at = _header_at([row or [] for row in rows], is_header, titles=False)
    header = rows[at] if rows else None
    if not header:
        raise UserError(f"{reading.root}: the quotes of the first line, its header, are wrong.")
    _name_titles(reading, sample[at][0], [line for _, line in sample[:at]])
    header = [cell.strip() for cell in header]
    is_sparql = form == "tsv" and all(re.fullmatch(r"\?\w+", name) for name in header)
    if is_sparql:
        header = [name[1:] for name in header]
    others = rows[at + 1 :]
    if others and all(row and len(row) == len(header) + 1 for row in others):
        header = ["", *header]  # R writes row names without a name for their column
    check_names(reading, header)
    body = [line for line in following if line[0] > sample[at][0]]
    found = _separated_rows(reading, chain(body, lines), header, separator)
    if is_sparql:
        found = (
            (number, {name: _term(str(cell)) for name, cell in row.items()})
            for number, row in found
        )
    return Records(tuple(header), found)


def _header_at(rows: Sequence[Sequence[str]], is_header: IsHeader, *, titles: bool) -> int:
    """Return which of the first rows is the header: the first one, unless titles are above it.

    titles: Whether a row with one cell above longer ones is a title.
    """
    if found := [at for at, row in enumerate(rows[:SAMPLED]) if is_header(row)]:
        return found[0]
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows[:SAMPLED]]
    if titles and max(filled, default=0) > 1:
        return next(at for at, n in enumerate(filled) if n > 1)
    return 0


def _name_titles(reading: Reading, number: int, above: Sequence[str]) -> None:
    if above:
        reading.notes.append(
            f"The header is line {number}. Above it, not used: {'; '.join(above)[:200]}"
        )


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
        cells = _cells(text, separator)
        taken: list[tuple[int, str]] = []
        if cells is None:  # perhaps a cell with line breaks: read on until its quotes are closed
            record, are_rows = text, n > 1 and text.count(separator) == n - 1
            while cells is None and len(taken) < MAX_ROW_LINES and (more := following()):
                taken.append(more)
                record += f"\n{more[1]}"
                are_rows &= len(_cells(more[1], separator) or more[1].split(separator)) == n
                if len(record) > MAX_LINE_BYTES or (are_rows and separator == "\t"):
                    break
                cells = _cells(record, separator) if '"' in more[1] else None
            if cells is not None and len(cells) == n and are_rows and separator != "\t":
                for at, _ in [line, *taken]:
                    reason = "the quotes of a cell enclose whole rows: a quote may be missing"
                    reading.drop(reading.root, at, reason, text)
                continue
            if cells is None or len(cells) != n or are_rows:
                waiting.extendleft(reversed(taken))
                cells, taken = None, []
        if separator == "\t" and not taken:
            cells = _tab_cells(text, n)
        if (cells is None or len(cells) != n) and '"' in text:  # other ways to write quotes
            ways: list[dict[str, Any]] = []
            ways += [{"skipinitialspace": True}] if f'{separator} "' in text else []
            ways += [{"escapechar": "\\", "doublequote": False}] if '\\"' in text else []
            read = (_cells(text, separator, **way) for way in ways)
            cells = next((row for row in read if row and len(row) == n), cells)
        if cells is not None and len(cells) > n and not any(map(str.strip, cells[n:])):
            cells = cells[:n]
        if not cells:
            reason = "its quotes are wrong: a quote in a cell is written twice"
            reading.drop(reading.root, number, reason, text)
        elif len(cells) != n:
            reason = f"{len(cells)} cells, but the header has {n}"
            reading.drop(reading.root, number, reason, text)
        else:
            pairs = zip(header, cells, strict=True)
            yield number, {key: cell for key, cell in pairs if key and cell.strip()}


def _term(cell: str) -> str:
    """Return the value of a cell of SPARQL's TSV: a literal without its type, or an address."""
    cell = cell.strip()
    if cell.startswith("<") and cell.endswith(">"):
        return cell[1:-1]
    if match := _LITERAL.fullmatch(cell):
        return re.sub(r"\\(.)", lambda sign: _ESCAPES.get(sign[1], sign[1]), match[1])
    return cell


def _json(reading: Reading, form: FileForm, is_header: IsHeader) -> Records:
    path = reading.root
    if form == "jsonl":
        return Records((), ((number, present(row)) for number, row in reading.objects(path)))
    text = reading.content(path, MAX_BYTES).removeprefix(codecs.BOM_UTF8)
    try:
        value = parse_json(text)
    except ValueError as error:
        lines = text.lstrip().split(b"\n", 2)
        if text.startswith(b"{") and all(line.lstrip()[:1] in b"{" for line in lines[:2]):
            return _json(reading, "jsonl", is_header)  # a line is broken: the others are read
        parts = re.split(rb"(?<=^\})[ \t\r]*\n", text.strip(), flags=re.MULTILINE)
        try:  # several objects, each in several lines
            value = [parse_json(part) for part in parts if part.strip()]
        except ValueError:
            raise UserError(f"{path} is not valid JSON ({error}).") from error
    items = _items(reading, value, is_header)

    def rows_of_items() -> NumberedRows:
        for number, item in enumerate(items, start=1):
            with reading.dropping(path, number):
                yield number, present(as_object(item))

    return Records((), rows_of_items())


def present(row: JsonObject) -> JsonObject:
    """Return a record without missing cells: null, NaN and blank text."""
    return {
        name: cell
        for name, cell in row.items()
        if cell is not None and cell == cell and not (isinstance(cell, str) and not cell.strip())
    }


def _items(reading: Reading, value: Any, is_header: IsHeader) -> Sequence[Any]:
    """Return the records of a JSON value. Raises UserError if it isn't a table."""
    if isinstance(value, list) and len(value) > 1 and all(isinstance(row, list) for row in value):
        header = [str(cell) for cell in value[0]]  # a list of rows
        check_names(reading, header)
        return [dict(zip(header, row, strict=False)) for row in value[1:]]
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        raise UserError(f"{reading.root.name} is not a table: expected a list of JSON objects.")
    results, rows, columns = value.get("results"), value.get("rows"), value.get("columns")
    if isinstance(results, dict) and isinstance(results.get("bindings"), list):  # SPARQL
        return [_bound(row) for row in results["bindings"]]
    if isinstance(rows, list) and all(isinstance(row, dict) and "row" in row for row in rows):
        cut = [at for at, row in enumerate(rows) if row.get("truncated_cells")]
        for at in cut:
            reading.drop(reading.root, at + 1, "the dataset viewer cut one of its cells")
        return [row["row"] for at, row in enumerate(rows) if at not in cut]
    if isinstance(columns, list) and isinstance(data := value.get("data"), list):  # pandas: split
        return [dict(zip(map(str, columns), row, strict=False)) for row in data]
    lists = {name: one for name, one in value.items() if isinstance(one, list)}
    tables = [one for one in lists.values() if one and all(isinstance(row, dict) for row in one)]
    if len(tables) > 1:
        tables = [one for one in tables if is_header(list(one[0]))] or tables
    if len(tables) == 1:
        return tables[0]
    if tables:
        names = ", ".join(name for name, one in lists.items() if one in tables)
        raise UserError(f"{reading.root.name} has several lists ({names}): keep one.")
    if value and len(lists) == len(value) > 1 and len(set(map(len, lists.values()))) == 1:
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    inner = list(value.values())
    if inner and all(isinstance(one, dict) and one.keys() == inner[0].keys() for one in inner):
        outer, within = list(value), list(inner[0])  # pandas: columns, or index
        is_numbered = all(name.isdecimal() for name in within)
        by_column = is_header(outer) or (not is_header(within) and is_numbered)
        if not by_column:
            return inner
        return [{name: value[name][key] for name in outer} for key in within]
    return [value]


def _bound(row: object) -> object:
    """Return a row of SPARQL's JSON with plain values."""
    if not isinstance(row, dict):
        return row
    return {
        name: cell.get("value") if isinstance(cell, dict) else cell for name, cell in row.items()
    }


def _from_child(reading: Reading, form: FileForm, is_header: IsHeader) -> Records:
    values = _child_values(reading, CHILD_FORMS[form])
    about = next(values)
    if about["names"] is not None:
        header = [str(name) for name in about["names"]]
        check_names(reading, header)
        return Records(tuple(header), _named(header, values))
    sheets: dict[str, list[tuple[int, list[Any]]]] = {}
    hidden = set()
    for value in chain([about], values):
        if isinstance(value, dict):
            about = value
            sheets[about["sheet"]] = []
            hidden |= {about["sheet"]} if about["hidden"] else set()
        else:
            sheets[about["sheet"]].append((value[0], value[1]))
    sheets = {name: rows for name, rows in sheets.items() if rows}
    name = _chosen_sheet(reading, sheets, hidden, is_header)
    rows = sheets[name]
    texts = [["" if cell is None else str(cell) for cell in row] for _, row in rows[:SAMPLED]]
    at = _header_at(texts, is_header, titles=True)
    _name_titles(reading, rows[at][0], [" ".join(filter(None, row)) for row in texts[:at]])
    header = [cell.strip() for cell in texts[at]]
    check_names(reading, header)
    return Records(tuple(header), _named(header, iter(rows[at + 1 :])))


def _chosen_sheet(
    reading: Reading,
    sheets: dict[str, list[tuple[int, list[Any]]]],
    hidden: set[str],
    is_header: IsHeader,
) -> str:
    """Return the sheet that is named, or the only one, or the only one with the needed columns."""
    if reading.sheet in sheets:
        return reading.sheet
    names = [name for name in sheets if name not in hidden] or list(sheets)
    if reading.sheet or not names:
        what = f"no sheet {reading.sheet!r}; its sheets are: {', '.join(names)}"
        raise UserError(f"{reading.root.name} {f'has {what}' if names else 'is empty'}.")
    fitting = [
        name
        for name in names
        if any(is_header([str(cell) for cell in row]) for _, row in sheets[name][:SAMPLED])
    ]
    (chosen,) = fitting if len(fitting) == 1 else names if len(names) == 1 else [""]
    if not chosen:
        why = "have these columns" if fitting else "may have the table"
        raise UserError(
            f"{reading.root.name}: several sheets {why} ({', '.join(fitting or names)}): name one "
            "(--sheet), or save it as another file."
        )
    if len(names) > 1:
        others = ", ".join(name for name in names if name != chosen)
        reading.notes.append(f"The sheet {chosen} is read. Other sheets: {others}")
    return chosen


def _named(header: Sequence[str], rows: Iterable[tuple[int, Sequence[Any]]]) -> NumberedRows:
    for number, cells in rows:
        pairs = zip(header, cells, strict=False)
        yield number, present({name: cell for name, cell in pairs if name})


def _child_values(reading: Reading, form: str) -> Iterator[Any]:
    """Yield what the process that reads a binary file writes; it ends with this generator."""
    with tempfile.TemporaryDirectory() as folder:
        path = reading.root.absolute()
        if reading.data is not None or reading.is_packed(path):
            path = Path(folder, "table")
            path.write_bytes(reading.content(reading.root, MAX_BYTES))
        found = os.pathsep.join(filter(None, (str(IMPORT_ROOT), os.environ.get("PYTHONPATH"))))
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", binary_rows.__name__, form, str(path)],
            env=os.environ | {"PYTHONPATH": found, "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert child.stdout is not None
            n_bytes, most = 0, MAX_BYTES if form == binary_rows.SHEET else MAX_UNPACKED
            for number in count():
                if not (line := child.stdout.readline(MAX_LINE_BYTES + 1)):
                    break
                n_bytes += len(line)
                reading.check(reading.root.name, number, n_bytes, most)
                if len(line) > MAX_LINE_BYTES:
                    most_bytes = format_bytes(MAX_LINE_BYTES)
                    raise UserError(f"{reading.root.name} has a row of more than {most_bytes}.")
                value = parse_json(line)
                if isinstance(value, dict) and "error" in value:
                    raise UserError(f"{reading.root.name} can't be read: {value['error']}.")
                yield value
            if child.wait():
                raise UserError(
                    f"{reading.root.name} needs too much memory or time: save it as CSV."
                )
        except OSError as error:
            raise UserError(f"{reading.root.name} can't be read: {reason_of(error)}.") from error
        finally:
            child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()


def lowered(row: JsonObject) -> JsonObject:
    """Return a row with lower-case names. Raises Rejected if two become the same."""
    found: JsonObject = {}
    for name, value in row.items():
        key = name.strip().lower()
        if key in found:
            raise Rejected(f"two fields are named {key!r}")
        found[key] = value
    return found
