"""Tables as CSV and JSON files, built from whole columns: a million rows take seconds.

The bytes are those of Python's `csv` and `json` (indentation 1) for the same values.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

BLOCK = 1 << 16  # rows that are joined at a time


def csv_cell(value: Any) -> str:
    """Return a value as a cell; text that a spreadsheet would run gets an apostrophe in front."""
    text = repr(value) if isinstance(value, float) else str(value)
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        text = f"'{value}"
    quoted = '"{}"'.format(text.replace('"', '""'))
    return quoted if not {'"', ",", "\r", "\n"}.isdisjoint(text) else text


def json_cell(value: Any) -> str:
    """Return a value as JSON; text if JSON has no such type."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1, default=str)
    return text.replace("\n", "\n   ")  # lines of a list in a cell


@dataclass(frozen=True)
class _Form:
    """How cells are written.

    cell: writes any value. quote: around texts. special: regular expression of the texts that need
    `cell`. missing: a missing value.
    """

    cell: Callable[[Any], str]
    quote: str
    special: str
    missing: str


_CSV = _Form(csv_cell, "", '[",\r\n]|^[-=+@\t]', "")
_JSON = _Form(json_cell, '"', r'["\\\x00-\x1f]', "null")


def csv_of(table: pd.DataFrame) -> bytes:
    """Return a table as CSV with a header, without its index."""
    out = io.StringIO()
    csv.writer(out).writerow(map(str, table))
    between = ["", *[","] * (table.shape[1] - 1), "\r\n"]
    return _joined(out.getvalue(), table, between, _CSV).getvalue()


def json_of_table(table: pd.DataFrame, about: Mapping[str, Any]) -> bytes:
    """Return a table as JSON: the fields of `about`, then `rows`, a list of objects.

    Raises:
        ValueError: If a number is infinite.
    """
    start = json.dumps({**about, "rows": []}, ensure_ascii=False, indent=1, default=str)
    if table.empty:
        return start.encode()
    names = [f",\n   {json_cell(str(name))}: " for name in table]
    between = [f"  {{{names[0][1:]}", *names[1:], "\n  },\n"]
    out = _joined(start.removesuffix("]\n}") + "\n", table, between, _JSON)
    out.seek(-2, io.SEEK_END)
    out.write(b"\n ]\n}")
    return out.getvalue()


def json_texts(texts: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """Return texts, or the words of a dictionary, as JSON."""
    if isinstance(texts, pa.Scalar):
        return pa.scalar(_JSON.cell(texts.as_py()))
    if pa.types.is_dictionary(texts.type):
        return _texts(texts.dictionary, _JSON).take(texts.indices)
    return _texts(texts, _JSON)


def json_lines(cells: Mapping[str, pa.Array | pa.Scalar]) -> pa.Buffer:
    """Return rows as JSON, an object a line. cells: the JSON of each cell by its name."""
    starts = [f"{',' if number else '{'}{json_cell(name)}:" for number, name in enumerate(cells)]
    parts = [part for pair in zip(starts, cells.values(), strict=True) for part in pair]
    return _buffer([*parts, "}\n"], _JSON)


def _buffer(parts: Sequence[Any], form: _Form) -> pa.Buffer:
    """Return rows, each its parts in order, as bytes."""
    options = {"null_handling": "replace", "null_replacement": form.missing}
    lines = pc.binary_join_element_wise(*parts, "", **options)
    return pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")[0].as_buffer()


def _joined(start: str, table: pd.DataFrame, between: Sequence[str], form: _Form) -> io.BytesIO:
    """Return a text and the rows: `between` has the text before each cell and after the last."""
    out = io.BytesIO()
    out.write(start.encode())
    columns = [column for _, column in table.items()]
    words = [  # of categorical columns
        _texts(_array(column.cat.categories.astype("str")), form)
        if isinstance(column.dtype, pd.CategoricalDtype)
        else None
        for column in columns
    ]
    texts = [pa.scalar(text) for text in between]
    for row in range(0, len(table), BLOCK):
        parts: list[Any] = []
        for text, column, known in zip(texts, columns, words, strict=False):
            parts += [text, _cells(column.iloc[row : row + BLOCK], form, known)]
        out.write(_buffer([*parts, texts[-1]], form))
    return out


def _cells(column: "pd.Series[Any]", form: _Form, words: pa.Array | None) -> pa.Array:
    """Return a column as texts, null where missing; words: those of a categorical column."""
    if words is not None:
        codes = column.cat.codes.to_numpy()
        return words.take(pa.array(codes, mask=codes < 0))
    if isinstance(column.dtype, pd.StringDtype):
        return _texts(_array(column), form)
    if pd.api.types.is_integer_dtype(column.dtype):
        return pa.array(column).cast(pa.string())
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f":
        return _floats(column.to_numpy(dtype=np.float64), form)
    values = column.astype(object).where(column.notna(), None).tolist()
    plain = (value.item() if hasattr(value, "item") else value for value in values)
    return pa.array([None if value is None else form.cell(value) for value in plain], pa.string())


def _array(texts: "pd.Series[Any] | pd.Index[Any]") -> pa.Array:
    """Return texts in one piece."""
    found = pa.array(texts, pa.string())
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _texts(texts: pa.Array, form: _Form) -> pa.Array:
    special = pc.match_substring_regex(texts, form.special).fill_null(False)
    quoted = pc.binary_join_element_wise(form.quote, texts, form.quote, "")
    return _replaced(quoted, special, map(form.cell, texts.filter(special).to_pylist()))


def _floats(numbers: "np.ndarray[Any, np.dtype[np.float64]]", form: _Form) -> pa.Array:
    size = np.abs(numbers)
    # Arrow writes the same digits as Python, but 0.00001 for 1e-05, 1 for 1.0 and 1e+15.
    same = (size >= 1e-3) & (size < 1e15) & (numbers != np.floor(numbers))
    special = ~same & ~np.isnan(numbers)
    texts = pa.array(numbers, from_pandas=True).cast(pa.string())
    return _replaced(texts, pa.array(special), map(form.cell, numbers[special].tolist()))


def _replaced(texts: pa.Array, special: pa.Array, others: Iterable[str]) -> pa.Array:
    return pc.replace_with_mask(texts, special, pa.array(list(others), pa.string()))
