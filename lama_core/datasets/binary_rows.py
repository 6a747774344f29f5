"""`python -m lama_core.datasets.binary_rows FORM FILE`: the rows of a spreadsheet or Arrow table.

A file of a few bytes can say that it has billions of cells, and the libraries that read it can end
the process. So this process has limits of memory and CPU time. It writes lines of JSON: an object
`{"sheet", "hidden", "names"}` for each sheet (names: of the columns; null for a
spreadsheet, whose header is one of its rows), a list `[number, cells]` for each row that isn't
empty, and `{"error"}` with the reason if the rest can't be read.
"""

import json
import math
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson

from lama_core.process_limits import limit_cpu, limit_memory

MEMORY = 3 << 30  # bytes
CPU_SECONDS = 300
BATCH = 1024  # rows
SHEET, PARQUET, ARROW = "sheet", "parquet", "arrow"


def read_rows(form: str, path: str) -> Iterator[Any]:
    """Yield the values to write as JSON; form: `SHEET`, `PARQUET` or `ARROW`.

    Raises whatever the libraries raise.
    """
    if form == SHEET:
        yield from _sheets(path)
        return
    import pyarrow as pa
    from pyarrow import parquet

    if form == PARQUET:
        file = parquet.ParquetFile(path)
        schema, batches = file.schema_arrow, file.iter_batches(BATCH, use_threads=False)
    else:
        source = pa.OSFile(path)
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        schema = reader.schema
        batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
    yield {"sheet": "", "hidden": False, "names": schema.names}
    number = 0
    for whole in batches:
        for start in range(0, len(whole), BATCH):
            columns = [column.to_pylist() for column in whole.slice(start, BATCH).columns]
            for cells in zip(*columns, strict=True):
                number += 1
                yield number, cells


def _sheets(path: str) -> Iterator[Any]:
    from python_calamine import CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    book = CalamineWorkbook.from_path(path)
    for about in book.sheets_metadata:
        if about.typ != SheetTypeEnum.WorkSheet:
            continue
        sheet = book.get_sheet_by_name(about.name)
        rows = sheet.to_python(skip_empty_area=False)
        for (top, left), (bottom, right) in sheet.merged_cell_ranges or []:
            for row in rows[top : bottom + 1]:
                row[left : right + 1] = [rows[top][left]] * len(row[left : right + 1])
        is_hidden = about.visible != SheetVisibleEnum.Visible
        yield {"sheet": about.name, "hidden": is_hidden, "names": None}
        for number, cells in enumerate(rows, start=1):
            if any(cell not in ("", None) for cell in cells):
                yield number, cells


def _plain(value: Any) -> Any:
    """Return a value that JSON has no form for: a date without a time as its day."""
    if isinstance(value, datetime) and value.time() == datetime.min.time():
        return value.date().isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _has_infinity(value: Any) -> bool:
    if isinstance(value, float):
        return math.isinf(value)
    if isinstance(value, dict):
        return any(map(_has_infinity, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_infinity, value))


def encode(value: Any) -> bytes:
    """Return a value as a line of JSON: NaN as null, infinity as Python writes it."""
    if _has_infinity(value):  # orjson writes null
        return json.dumps(value, default=_plain).encode()
    return orjson.dumps(value, _plain, orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS)


def main() -> None:
    """Write the rows of the file that the arguments name."""
    form, path = sys.argv[1:]
    limit_memory(MEMORY)
    limit_cpu(CPU_SECONDS)
    out = sys.stdout.buffer
    try:
        for value in read_rows(form, path):
            out.write(encode(value) + b"\n")
    except MemoryError:
        out.write(encode({"error": f"it needs more than {MEMORY >> 30} GB of memory"}) + b"\n")
    except BrokenPipeError:
        sys.exit(1)  # nobody reads on
    except Exception as error:  # noqa: BLE001 - a damaged file can raise anything
        reason = str(error).strip() or type(error).__name__
        out.write(encode({"error": reason.splitlines()[0][:200]}) + b"\n")


if __name__ == "__main__":
    main()
