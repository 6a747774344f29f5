"""`bench`: the project's benchmarks, each beside its alternative and its limit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from lama_core.cli import options, show
from lama_core.errors import choose
from lama_core.progress import Progress
from tools.bench import BenchRow

EXAMPLE = """
Example: python -m lama_core bench cloze --json
"""
COLUMNS = ("what", "unit", "ours", "peer", "ours / peer", "limit", "ours / limit")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EXAMPLE)(bench)


def _analogy(**given: int) -> list[BenchRow]:
    from tools.bench import analogy

    return analogy.run(**given)


def _cloze(**given: int) -> list[BenchRow]:
    from tools.bench import cloze

    return cloze.run(**given)


def _data(**given: int) -> list[BenchRow]:
    from tools.bench import data

    return data.run(**given)


def _devices(**given: int) -> list[BenchRow]:
    from tools.bench import devices

    return devices.run(**given)


def _pages(**given: int) -> list[BenchRow]:
    from tools.bench import pages

    return pages.run(**given)


def _probe(**given: int) -> list[BenchRow]:
    from tools.bench import probe

    return probe.run(**given)


def _prompts(**given: int) -> list[BenchRow]:
    from tools.bench import prompts

    return prompts.run(**given)


def _releases(**given: int) -> list[BenchRow]:
    from tools.bench import releases

    return releases.run(**given)


def _rows(**given: int) -> list[BenchRow]:
    from tools.bench import rows

    return rows.run(**given)


def _statements(**given: int) -> list[BenchRow]:
    from tools.bench import statements

    return statements.run(**given)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """run: measures. takes: what may be chosen of it."""

    run: Callable[..., list[BenchRow]]
    takes: tuple[str, ...] = ("repetitions",)


BENCHMARKS = {
    "analogy": Benchmark(_analogy),
    "cloze": Benchmark(_cloze, ("repetitions", "n_queries")),
    "data": Benchmark(_data),
    "devices": Benchmark(_devices, ("repetitions", "n_queries")),
    "pages": Benchmark(_pages),
    "probe": Benchmark(_probe, ("repetitions", "n_queries")),
    "prompts": Benchmark(_prompts, ()),
    "releases": Benchmark(_releases, ("repetitions", "n_queries")),
    "rows": Benchmark(_rows, ("repetitions", "n_queries")),
    "statements": Benchmark(_statements, ("repetitions", "n_queries")),
}


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
    chosen = tuple(BENCHMARKS) if name is None else (choose(name, BENCHMARKS, "benchmark"),)
    given = {"repetitions": repetitions, "n_queries": queries}
    rows: list[BenchRow] = []
    with show.progress() as on_progress:
        for number, one in enumerate(chosen):
            on_progress(Progress(f"Measuring {one}", number, len(chosen)))
            measured = BENCHMARKS[one]
            taken = {key: value for key in measured.takes if (value := given[key]) is not None}
            rows += measured.run(**taken)
    if as_json:
        show.print_json([row.to_json() for row in rows])
        return
    show.print_table(COLUMNS, [_cells(row.to_json()) for row in rows])


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["what"],
        row["unit"],
        _number(row["ours"]),
        _named(row["peer"], row["peer_name"]),
        _number(row["ours_to_peer"]),
        _named(row["limit"], row["limit_name"]),
        _number(row["ours_to_limit"]),
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _named(value: float | None, name: str) -> str:
    return "" if value is None else f"{value:.3g} ({name})"
