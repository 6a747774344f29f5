"""A small file that says it is huge is refused in a sentence, or read in little memory and time."""

import io
import time
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

from lama_core.datasets import records, user_table
from lama_core.datasets.line_reader import Reading
from lama_core.datasets.records import read_records
from lama_core.errors import UserError


def rows_of(name: str, data: bytes) -> list[dict[str, Any]]:
    return [row for _, row in read_records(Reading(Path(name), data)).rows]


def test_a_value_in_the_last_cell_of_a_sheet_ends_in_a_sentence() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["subject", "object", "note"])
    sheet.append(["Peru", "Lima", "x"])
    sheet["XFD1048576"] = "z"
    out = io.BytesIO()
    book.save(out)
    with pytest.raises(UserError, match=r"a\.xlsx needs too much memory or time"):
        rows_of("a.xlsx", out.getvalue())


def repeated(n: int, letters: int) -> bytes:
    """A Parquet with one long text in all rows."""
    names = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), ["x" * letters])
    out = io.BytesIO()
    parquet.write_table(pa.table({"subject": names, "object": ["Lima"] * n}), out)
    return out.getvalue()


def test_rows_that_take_more_room_than_their_file_are_bounded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(records, "MAX_UNPACKED", 1 << 20)
    (tmp_path / "a.parquet").write_bytes(repeated(5000, 1000))
    with pytest.raises(UserError, match="more than 5,000,000 lines or 1"):
        user_table.load(tmp_path / "a.parquet")


def test_quotes_that_are_never_closed_take_no_time() -> None:
    start = time.process_time()
    reading = Reading(Path("a.csv"), b"subject,object\n" + b'Peru,"Lima\n' * 20_000)
    assert list(read_records(reading).rows) == []
    assert len(reading.dropped) == 20_000
    assert time.process_time() - start < 5


def opendocument(rows: list[list[str]]) -> bytes:
    """An ODS file with the cells as texts."""
    space = "urn:oasis:names:tc:opendocument:xmlns"
    lines = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p>'
            "</table:table-cell>"
            for cell in row
        )
        + "</table:table-row>"
        for row in rows
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{space}:manifest:1.0"/>'
        )
        archive.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{space}:office:1.0" xmlns:table="{space}:'
            f'table:1.0" xmlns:text="{space}:text:1.0"><office:body><office:spreadsheet>'
            f'<table:table table:name="a">{lines}</table:table></office:spreadsheet>'
            "</office:body></office:document-content>",
        )
    return out.getvalue()


def test_opendocument_is_read() -> None:
    data = opendocument([["subject", "object"], ["Peru", "Lima"], ["Québec", "07"]])
    assert rows_of("a.ods", data) == [
        {"subject": "Peru", "object": "Lima"},
        {"subject": "Québec", "object": "07"},
    ]


@pytest.mark.parametrize("n_merged", [2, 3])
def test_merged_cells_are_filled(n_merged: int) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    rows = [["relation", "subject", "object"], ["P36", "Peru", "Lima"]]
    rows += [["", "Mali", "Bamako"], ["", "Chad", "N'Djamena"]]
    for row in rows:
        sheet.append([cell or None for cell in row])
    sheet.merge_cells(start_row=2, end_row=1 + n_merged, start_column=1, end_column=1)
    out = io.BytesIO()
    book.save(out)
    right = ["P36"] * n_merged + [""] * (3 - n_merged)
    assert [row.get("relation", "") for row in rows_of("a.xlsx", out.getvalue())] == right
