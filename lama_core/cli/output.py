"""What the commands share: how results, numbers and progress look in a terminal.

Results go to standard output, everything else to standard error.
"""

import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from lama_core import rounding
from lama_core.files import bytes_text
from lama_core.progress import OnProgress, Pace, Progress, describe

LONGEST = 2000  # characters of what went wrong: a name may be a page long
_NUMBER = re.compile(r"[-+]?\d[^A-Za-z]*(e[-+]\d+)?( ([kMG]?B|to .*))?$")


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output; what is not a number is null."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=2, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # an output of another encoding, or a name that is no text
        text = json.dumps(plain(value), indent=2, allow_nan=False)
    print(text)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str = "",
) -> None:
    """Print a table on standard output. Cells are text, never markup; numbers stand right."""
    table = Table(box=None, pad_edge=False)
    shown = [["" if cell is None else str(cell) for cell in row] for row in rows]
    for number, column in enumerate(columns):
        cells = [row[number] for row in shown if row[number]]
        numbers = bool(cells) and all(_NUMBER.match(cell) for cell in cells)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in shown:
        table.add_row(*map(Text, row))
    console = Console(width=None if sys.stdout.isatty() else 160)
    if title:
        console.print(Text(title))
    console.print(table)


def size(n_bytes: int | None) -> str:
    """Bytes as a person reads them; empty where they aren't known."""
    return "" if n_bytes is None else bytes_text(n_bytes)


def say(text: str) -> None:
    """Tell the user a sentence, on standard error."""
    _emit("note", text) if _for_programs() else print(text, file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """Tell the user what went wrong, on standard error: one line, whatever names are in it."""
    line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
    _emit("error", line) if _for_programs() else print(f"Error: {line}", file=sys.stderr)


def plain(value: object) -> object:
    """A value as JSON takes it: plain numbers, null for what is not a number, a path as text."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {_key(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _key(key: object) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def percent(value: object) -> str:
    """A share in per cent with one decimal; empty for what is no number."""
    return rounding.percent(value) if isinstance(value, float) and math.isfinite(value) else ""


@contextmanager
def progress() -> Iterator[OnProgress]:
    """A bar on standard error, as the callback that the library reports to.

    With LAMA_PROGRESS=json, a JSON line a report instead, which a page can follow.
    """
    if _for_programs():
        yield _report
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    pace = Pace()
    console = Console(stderr=True)
    # Where nobody watches it, a transient bar would only leave an empty line.
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None, visible=False)

        def report(step: Progress) -> None:
            if step.result is not None:
                return
            pace.see(step)
            if step.total is None:
                bar.tasks[0].total = None
            bar.update(
                task,
                description=describe(step, pace),
                completed=step.done,
                total=step.total,
                visible=True,
            )

        yield report


def _report(step: Progress) -> None:
    """Write a step, or what it finished, for a program that follows this one."""
    if step.result is not None:
        _emit("result", asdict(step.result))
        return
    known = asdict(step)
    del known["result"]
    _emit("progress", known)


def _for_programs() -> bool:
    return os.environ.get("LAMA_PROGRESS") == "json"


def _emit(key: str, value: object) -> None:
    print(json.dumps({key: value}, ensure_ascii=False), file=sys.stderr, flush=True)
