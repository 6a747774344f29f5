"""`bench`: run the project's benchmarks."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from lama_core.cli import commands, output
from lama_core.errors import choose
from lama_core.progress import Progress

if TYPE_CHECKING:
    from lama_core.bench import BenchRow

COLUMNS = ("what", "unit", "ours", "peer", "ours / peer", "limit", "ours / limit")


def run(
    name: Annotated[
        str | None, Parameter(help="Name of a benchmark, such as cloze. Default: all.")
    ] = None,
    /,
    *,
    repetitions: Annotated[
        int | None,
        Parameter(
            help="Number of measurements of each method; their median is printed.",
            validator=validators.Number(gte=1),
        ),
    ] = None,
    queries: Annotated[
        int | None,
        Parameter(
            help="Number of queries (or facts, statements, rows) of the workload.",
            validator=validators.Number(gte=1),
        ),
    ] = None,
    runs: Annotated[
        int | None,
        Parameter(
            help="Number of made-up runs of `bench pages`.", validator=validators.Number(gte=1)
        ),
    ] = None,
    device: commands.Device = None,
    json: commands.Json = False,
) -> None:
    """Measure speed and memory, next to an alternative and the best possible value (limit)."""
    from lama_core.api.models import find_cpu, use_device
    from lama_core.bench.report import BENCHMARKS, measure  # slow: imports torch

    if device is not None:
        use_device(device)

    output.print_note(f"CPU: {find_cpu()}")
    chosen = tuple(BENCHMARKS) if name is None else (choose(name, BENCHMARKS, "benchmark"),)
    rows: list[BenchRow] = []
    with output.progress() as on_progress:
        for number, benchmark in enumerate(chosen):
            on_progress(Progress(f"Measuring {benchmark}", number, len(chosen)))
            rows += measure(benchmark, repetitions=repetitions, n_queries=queries, n_runs=runs)
    if json:
        output.print_json([row.to_json() for row in rows])
    else:
        output.print_table(COLUMNS, [_cells(row) for row in rows])


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


bench = commands.make_group("bench", run, "bench cloze --json")
