"""Tables as CSV and JSON have the bytes of Python's `csv` and `json`."""

import csv
import io
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lama_core.reports import table_files
from lama_core.reports.table_files import csv_of, json_of_table

WORDS = ["a", "b,c", 'say "x"', "two\nlines", "\t", "\x01", "é…", "", "back\\slash", "-5", "a\rb"]
NUMBERS = [0.1, 1.0, -0.0, 1e-5, 1e16, 123456789012345678.0, 2.5e-300, 1 / 3, np.nan, 1e15, -7.25]
TABLE = pd.DataFrame(
    {
        "text": pd.Series(WORDS, dtype="str"),
        "word": pd.Categorical([None, *WORDS[1:]]),
        "missing": pd.Series([None, *WORDS[1:]], dtype="str"),
        'float "64"': NUMBERS,
        "float32": np.array(NUMBERS, np.float32),
        "integer": np.arange(-5, 6, dtype=np.int16),
        "rank": pd.array([None, *range(10)]).astype("Int64"),
        "flag": [True, False] * 5 + [True],
        "mixed": [None, 1, 2.5, "x,y", True, ["a", 1], "=1", np.int64(3), np.nan, "", 1e-7],
    }
)


def plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as plain Python values; missing values are None."""
    cells = table.astype(object)
    rows = cells.where(cells.notna(), None).to_dict("records")
    return [
        {str(name): v.item() if hasattr(v, "item") else v for name, v in row.items()}
        for row in rows
    ]


@pytest.mark.parametrize("rows", (11, 1, 0))
def test_json_has_the_bytes_of_the_json_module(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "BLOCK", 4)
    table = TABLE.head(rows)
    document = {"made_with": {"k": 1}, "rows": plain(table)}
    expected = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
    assert json_of_table(table, {"made_with": {"k": 1}}).decode() == expected


def test_csv_has_the_bytes_of_the_csv_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "BLOCK", 4)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(TABLE))
    writer.writeheader()
    for row in plain(TABLE):
        risky = (name for name, v in row.items() if isinstance(v, str) and v[:1] in tuple("=-\t"))
        writer.writerow(row | {name: f"'{row[name]}" for name in risky if row[name]})
    assert csv_of(TABLE).decode() == out.getvalue()


def test_an_infinite_number_is_not_written_as_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_of_table(pd.DataFrame({"x": [0.5, np.inf]}), {})
