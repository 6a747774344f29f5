"""What the commands share: how results, numbers and progress look in a terminal.

Results go to standard output, everything else to standard error.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from lama_core.models.sources import OnProgress


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output; what is not a number is null."""
    print(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str = "",
    right: Sequence[str] = (),
) -> None:
    """Print a table on standard output. right: the columns of numbers, aligned right.

    Cells are text, never markup.
    """
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)


def size(n_bytes: int | None) -> str:
    """Bytes as a person reads them: `93 MB`."""
    if n_bytes is None:
        return ""
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= step:
            return f"{n_bytes / step:.3g} {unit}"
    return f"{n_bytes} B"


@contextmanager
def progress() -> Iterator[OnProgress]:
    """A progress bar on standard error, as the callback that the library reports to.

    With LAMA_PROGRESS=json, a JSON line a report instead, which a page can follow.
    """
    if os.environ.get("LAMA_PROGRESS") == "json":
        yield lambda *report: print(json.dumps({"progress": report}), file=sys.stderr, flush=True)
        return
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None, visible=False)
        last = ""

        def report(stage: str, done: int, total: int | None) -> None:
            nonlocal last
            if stage != last:
                bar.reset(task, visible=True)
                last = stage
            bar.update(task, description=stage, completed=done, total=total)

        yield report
