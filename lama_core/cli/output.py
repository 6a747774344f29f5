"""Terminal output of all commands: JSON, tables, messages and the progress bar.

Results go to standard output, messages and progress to standard error. Texts from files, models and
servers can contain control characters, which could move the cursor, hide text or rename the window:
everything that is printed here shows them as escapes, and no command prints in another way.
"""

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import orjson
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table as RichTable
from rich.text import Text

from lama_core import rounding
from lama_core.files import format_bytes
from lama_core.progress import OnProgress, Pace, Progress, describe
from lama_core.tables import Table

LONGEST = 2000  # characters of an error message, which may contain a long name
# Control characters, line separators and marks that change the direction of all following text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NUMBER = re.compile(r"[-+]?\d[^A-Za-z]*(e[-+]\d+)?( ([kMG]?B|to .*))?$")


def printable(text: str) -> str:
    """Return a text with escapes instead of control characters; lines and tabs remain."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)  # also valid in JSON


def print_line(text: str = "") -> None:
    """Print a text on standard output."""
    print(printable(text))


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output; NaN and infinite values become null."""
    try:
        text = orjson.dumps(value, default=json_value, option=orjson.OPT_INDENT_2).decode()
        text.encode(sys.stdout.encoding or "utf-8")
    except (TypeError, UnicodeEncodeError):  # keys that aren't text, or another encoding
        text = json.dumps(json_value(value), allow_nan=False, indent=2)
    print_line(text)


def print_parts(parts: Iterable[Table | str]) -> None:
    """Print tables and lines on standard output."""
    for part in parts:
        if isinstance(part, str):
            print_line(part)
        else:
            print_table([column.head for column in part.columns], part.cells(), title=part.title)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = ""
) -> None:
    """Print a table on standard output; columns of numbers are right-aligned.

    Cells are broken at spaces; words only if the columns' longest words don't fit next to each
    other.
    """
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = RichTable(box=None, pad_edge=False)
    texts = [["" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    columns_of_texts = [
        [printable(column), *(row[number] for row in texts if row[number])]
        for number, column in enumerate(columns)
    ]
    widths = _widths(columns_of_texts, console.width - 2 * (len(columns) - 1))
    for (column, *cells), width in zip(columns_of_texts, widths, strict=True):
        is_numeric = bool(cells) and all(_NUMBER.match(cell) for cell in cells)
        justify: Literal["left", "right"] = "right" if is_numeric else "left"
        table.add_column(Text(column), justify=justify, overflow="fold", width=width)
    for row in texts:
        table.add_row(*map(Text, row))  # Text: brackets in a cell aren't markup
    if title:
        console.print(Text(printable(title)))
    console.print(table)


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int | None]:
    """Return the width of each column, so that no word is broken; None if they need more room."""
    words = [
        max(cell_len(word) for cell in cells for word in [*cell.split(), ""]) for cells in columns
    ]
    widths = [max(map(cell_len, cells)) for cells in columns]
    if sum(words) > room:
        return [None] * len(columns)
    while sum(widths) > room:
        _, widest = max((width, n) for n, width in enumerate(widths) if width > words[n])
        widths[widest] -= 1
    return [*widths]


def size(n_bytes: int | None) -> str:
    """Return a number of bytes as text; empty if unknown."""
    return "" if n_bytes is None else format_bytes(n_bytes)


def print_note(text: str) -> None:
    """Print a message on standard error."""
    if _is_json():
        _emit("note", text)
    else:
        print(printable(text), file=sys.stderr, flush=True)


def print_error(text: str) -> None:
    """Print an error on standard error, as one line of printable characters."""
    line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
    _emit("error", line) if _is_json() else print(f"Error: {line}", file=sys.stderr)


def json_value(value: object) -> object:
    """Convert a value for JSON: plain numbers, null for NaN and infinity, text for paths."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {
            " ".join(map(str, key)) if isinstance(key, tuple) else str(key): json_value(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def percent(value: object) -> str:
    """Return a share in percent with one decimal; empty for NaN, infinity and None."""
    return rounding.percent(value) if isinstance(value, float) and math.isfinite(value) else ""


@contextmanager
def progress() -> Iterator[OnProgress]:
    """Show a progress bar on standard error; yield the callback that updates it.

    Outside a terminal, print only what is waited for, once. With LAMA_PROGRESS=json, print each
    report as a line of JSON instead, for the web app's jobs.
    """
    if _is_json():
        yield _report
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    pace = Pace()
    console = Console(stderr=True)
    told: set[str] = set()
    # Outside a terminal, a transient bar would leave an empty line.
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None, visible=False)

        def report(step: Progress) -> None:
            if step.result is not None:
                return
            pace.see(step)
            if step.is_wait and not console.is_terminal and step.stage not in told:
                told.add(step.stage)
                print_note(f"{step.stage}.")
            if step.total is None:
                bar.tasks[0].total = None
            bar.update(
                task,
                description=printable(" ".join(describe(step, pace).split())),
                completed=step.done,
                total=step.total,
                visible=True,
            )

        yield report


def _report(step: Progress) -> None:
    """Print a progress report, or the result that it contains, as JSON."""
    fields = asdict(step)
    result = fields.pop("result")
    _emit("result", result) if result else _emit("progress", fields)


def _is_json() -> bool:
    return os.environ.get("LAMA_PROGRESS") == "json"


def _emit(key: str, value: object) -> None:
    print(printable(json.dumps({key: value}, ensure_ascii=False)), file=sys.stderr, flush=True)
