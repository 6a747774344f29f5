"""`bench`: the project's benchmarks, each next to its alternative and its limit."""

from typing import TYPE_CHECKING, Annotated

import typer

from lama_core.cli import options, show
from lama_core.errors import choose
from lama_core.progress import Progress

if TYPE_CHECKING:
    from lama_core.bench import BenchRow

EXAMPLE = """
Example: python -m lama_core bench cloze --json
"""
COLUMNS = ("what", "unit", "ours", "peer", "ours / peer", "limit", "ours / limit")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EXAMPLE)(bench)


def bench(
    name: Annotated[
        str | None, typer.Argument(help="A benchmark, such as cloze; without a name, all of them.")
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(help="How often each way is measured; the median counts.", min=1)
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="How many queries are measured, where there are any.", min=1)
    ] = None,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Measure speed and memory; what one run measures can be compared, on any machine."""
    from lama_core.bench.table import BENCHMARKS, measure  # with torch

    chosen = tuple(BENCHMARKS) if name is None else (choose(name, BENCHMARKS, "benchmark"),)
    rows: list[BenchRow] = []
    with show.progress() as on_progress:
        for number, one in enumerate(chosen):
            on_progress(Progress(f"Measuring {one}", number, len(chosen)))
            rows += measure(one, repetitions=repetitions, n_queries=queries)
    if as_json:
        show.print_json([row.to_json() for row in rows])
    else:
        show.print_table(COLUMNS, [_cells(row) for row in rows])


def _cells(row: "BenchRow") -> tuple[str, ...]:
    ratios = row.to_json()
    return (
        row.what,
        row.unit,
        _number(row.ours),
        _number(row.peer, row.peer_name),
        _number(ratios["ours_to_peer"]),
        _number(row.limit, row.limit_name),
        _number(ratios["ours_to_limit"]),
    )


def _number(value: float | None, name: str = "") -> str:
    if value is None:
        return ""
    return f"{value:.3g} ({name})" if name else f"{value:.3g}"
