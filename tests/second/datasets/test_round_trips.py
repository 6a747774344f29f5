"""Tables of known cells, as other libraries write them, are read exactly.

A cell of text means itself, without the spaces around it; a blank one is missing. A row that can't
be read is reported, and no other row is read in its place.
"""

import csv
import gzip
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from lama_core.datasets import binary_rows, records
from lama_core.datasets.line_reader import Reading, parse_json
from lama_core.datasets.records import read_records

EXAMPLES = 12  # of each form

Table = Sequence[Sequence[Any]]  # a header and rows
Writer = Callable[[Table], bytes]


def frame_of(table: Table) -> pd.DataFrame:
    header, *rows = table
    return pd.DataFrame(rows, columns=list(header), dtype=object)


def dicts(table: Table) -> list[dict[str, Any]]:
    header, *rows = table
    return [dict(zip(header, row, strict=True)) for row in rows]


def csv_of_pandas(encoding: str = "utf-8", **options: Any) -> Writer:
    def write(table: Table) -> bytes:
        text: str = frame_of(table).to_csv(index=False, **options)
        return text.encode(encoding)

    return write


def json_of_pandas(orient: str, **options: Any) -> Writer:
    def write(table: Table) -> bytes:
        text: str = frame_of(table).to_json(orient=orient, **options)  # type: ignore[call-overload]
        return text.encode()

    return write


def json_text(shape: Callable[[Table], Any], **options: Any) -> Writer:
    return lambda table: json.dumps(shape(table), **options).encode()


def viewer(table: Table) -> Any:
    rows = [
        {"row_idx": at, "row": row, "truncated_cells": []} for at, row in enumerate(dicts(table))
    ]
    return {"features": [{"name": name} for name in table[0]], "rows": rows}


def spare_fields(table: Table) -> Any:
    numbers = (math.nan, math.inf, -math.inf)
    return [{**row, "spare": numbers[at % 3]} for at, row in enumerate(dicts(table))]


def arrow(kind: str) -> Writer:
    def write(table: Table) -> bytes:
        columns = {
            name: [None if cell == "" else cell for cell in column]
            for name, column in zip(table[0], zip(*table[1:], strict=True), strict=True)
        }
        found = pa.table(columns)
        out = io.BytesIO()
        if kind == "parquet":
            parquet.write_table(found, out)
        else:
            make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
            with make(out, found.schema) as writer:
                writer.write_table(found, max_chunksize=2)
        return out.getvalue()

    return write


def workbook(titles: int = 0, sheets: int = 1) -> Writer:
    def write(table: Table) -> bytes:
        book = openpyxl.Workbook()
        sheet = book.active
        assert sheet is not None
        for number in range(1, sheets):
            book.create_sheet(f"other {number}").append(["something", "else"])
        for number in range(titles):
            sheet.append([f"Title {number}"])
        for row in table:
            sheet.append([None] * len(row))
            for at, cell in enumerate(row, start=1):
                if cell != "":
                    made = sheet.cell(sheet._current_row, at)
                    made.value = cell
                    if isinstance(cell, str):
                        made.data_type = "s"  # else `=a` is a formula
        out = io.BytesIO()
        book.save(out)
        return out.getvalue()

    return write


def zipped(writer: Writer) -> Writer:
    def write(table: Table) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("inner", writer(table))
        return out.getvalue()

    return write


TEXTS: dict[str, Writer] = {
    "csv": csv_of_pandas(),
    "csv in UTF-16": csv_of_pandas("utf-16"),
    "semicolons": csv_of_pandas(sep=";"),
    "bars": csv_of_pandas(sep="|"),
    "tabs in UTF-16": csv_of_pandas("utf-16", sep="\t", lineterminator="\r\n"),
    "tabs with all quoted": csv_of_pandas(sep="\t", quoting=csv.QUOTE_ALL),
    "csv in a zip": zipped(csv_of_pandas()),
    "packed csv": lambda table: gzip.compress(csv_of_pandas()(table)),
}
OBJECTS: dict[str, Writer] = {
    **{
        f"pandas {orient}": json_of_pandas(orient)
        for orient in ("records", "columns", "index", "split", "table")
    },
    "pandas index, indented": json_of_pandas("index", indent=2, force_ascii=False),
    "pandas lines": json_of_pandas("records", lines=True),
    "list": json_text(dicts),
    "object with a list": json_text(lambda table: {"version": 2, "data": dicts(table)}),
    "NaN in spare fields": json_text(spare_fields),
    "lines": lambda table: b"".join(json.dumps(row).encode() + b"\n" for row in dicts(table)),
    "viewer": json_text(viewer),
}
BINARY: dict[str, Writer] = {
    "parquet": arrow("parquet"),
    "arrow file": arrow("file"),
    "arrow stream": arrow("stream"),
    "xlsx": workbook(),
    "xlsx with titles": workbook(titles=2),
    "xlsx with sheets": workbook(sheets=3),
}
WRITERS = TEXTS | OBJECTS | BINARY

SIGNS = "aé北Z '\"`,;|/\\[]{}()<>:#@=?!.-+*%_&\u00a0\u200b“«0€"
WORDS = ["NA", "null", "None", "1.0", "007", "[UNK]", "[]", "a, b", '5"', "'t", "Paris", "-", "?x"]
WORD = st.text(st.sampled_from(SIGNS), max_size=7) | st.sampled_from(WORDS)


LONG = st.lists(WORD, min_size=1, max_size=3).map("\n".join)


@pytest.fixture(autouse=True, scope="module")
def _in_this_process() -> Iterator[None]:
    """Read binary files here: starting a process takes longer than reading one."""

    def values(reading: Reading, form: str) -> Iterator[Any]:
        Path(folder, "table").write_bytes(reading.content(reading.root, 1 << 30))
        for value in binary_rows.read_rows(form, str(Path(folder, "table"))):
            yield parse_json(binary_rows.encode(value))

    with (
        pytest.MonkeyPatch.context() as patch,
        __import__("tempfile").TemporaryDirectory() as folder,
    ):
        patch.setattr(records, "_child_values", values)
        yield


def is_header(names: Sequence[str]) -> bool:
    return {"subject", "object"} <= set(names)


def rows_of(data: bytes, name: str = "any name") -> tuple[list[dict[str, Any]], Reading]:
    reading = Reading(Path(name), data)
    return [row for _, row in read_records(reading, is_header=is_header).rows], reading


def plain(cell: object) -> object:
    """A cell as it is compared: spaces around a text, and how a line ends, don't count."""
    return cell.replace("\r\n", "\n").strip() if isinstance(cell, str) else cell


def filled(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: plain(cell) for name, cell in row.items() if plain(cell) not in ("", None)}
        for row in rows
    ]


HEADER = ("subject", "object", "note")


@pytest.mark.parametrize("form", sorted(WRITERS))
def test_cells_are_read_as_they_were_written(form: str) -> None:
    cell = LONG if form in TEXTS else LONG | st.integers(-(2**53), 2**53) | st.booleans()
    if form in BINARY:
        cell = LONG

    @settings(max_examples=EXAMPLES)
    @given(rows=st.lists(st.tuples(cell, cell, cell), min_size=1, max_size=5))
    def check(rows: list[tuple[Any, ...]]) -> None:
        assume(any(plain(one) != "" for row in rows for one in row))
        found, reading = rows_of(WRITERS[form]([HEADER, *rows]))
        for row in found:
            row.pop("spare", None), row.pop("index", None)
        right = [row for row in filled(dicts([HEADER, *rows])) if row]
        if not reading.dropped:
            assert [row for row in filled(found) if row] == right
        else:
            left = iter(right)
            assert all(row in left for row in filled(found))

    check()
