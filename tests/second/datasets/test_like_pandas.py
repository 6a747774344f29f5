"""What pandas reads to cells of text without options, `records` reads to the same cells."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from lama_core.datasets.line_reader import Reading
from lama_core.datasets.records import read_records
from lama_core.errors import UserError

EXAMPLES = 150
SIGNS = ['"', '""', ",", "\n", "\r\n", "a", "Köln", " ", "5", "'", "\\", ";", "\t", "", "NA", "b,c"]


def with_pandas(text: str) -> list[list[str]] | None:
    """Return the rows as pandas reads them, without blank ones; None if it can't, or guesses."""
    try:
        frame = pd.read_csv(
            io.StringIO(text, newline=""), dtype=str, keep_default_na=False, header=None
        )
    except (ValueError, pd.errors.ParserError):
        return None
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:  # pandas reads wrong quotes somehow
        return None
    if any(row and len(row) != len(frame.columns) for row in rows):  # and fills short rows
        return None
    return [row for row in frame.to_numpy().tolist() if any(cell.strip() for cell in row)]


def plain(cell: str) -> str:
    return cell.replace("\r\n", "\n").replace("\r", "\n").strip()


@settings(max_examples=EXAMPLES)
@given(
    lines=st.lists(
        st.tuples(*[st.lists(st.sampled_from(SIGNS), max_size=4).map("".join)] * 3).map(",".join),
        min_size=1,
        max_size=5,
    )
)
def test_rows_are_those_of_pandas_or_excluded(lines: Sequence[str]) -> None:
    text = "\n".join(["x,y,z", *lines, ""])
    right = with_pandas(text)
    if right is None or len(right[0]) != 3:
        return
    reading = Reading(Path("table.csv"), text.encode())
    try:
        records = read_records(reading)
        found = [[str(row.get(name, "")) for name in records.header] for _, row in records.rows]
    except UserError:
        return
    wanted = [[plain(cell) for cell in row] for row in right[1:]]
    read = [row for row in ([plain(cell) for cell in row] for row in found) if any(row)]
    if not reading.dropped:
        assert read == wanted
    else:
        left = iter(wanted)
        assert all(row in left for row in read)
