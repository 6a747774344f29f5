"""`python -m tools.bench`: run the project's benchmarks."""

import sys
from typing import Annotated

from cyclopts import App, Parameter, validators

from lama_core.cli import commands, output
from lama_core.errors import UserError, choose
from lama_core.models.cpu import find_cpu
from lama_core.models.devices import use_device
from lama_core.progress import Progress
from tools.bench.measuring import BenchRow
from tools.bench.report import BENCHMARKS, measure

AtLeastOne = validators.Number(gte=1)


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
            validator=AtLeastOne,
        ),
    ] = None,
    queries: Annotated[
        int | None,
        Parameter(
            help="Number of queries (or facts, statements, rows) of the workload.",
            validator=AtLeastOne,
        ),
    ] = None,
    runs: Annotated[
        int | None, Parameter(help="Number of made-up runs of `pages`.", validator=AtLeastOne)
    ] = None,
    device: commands.Device = None,
    json: commands.Json = False,
) -> None:
    """Measure speed and memory, next to an alternative and the best possible value (limit)."""
    if device is not None:
        use_device(device)
    output.print_note(f"CPU: {find_cpu()}")
    chosen = tuple(BENCHMARKS) if name is None else (choose(name, BENCHMARKS, "benchmark"),)
    rows: list[BenchRow] = []
    with output.progress() as on_progress:
        for number, benchmark in enumerate(chosen):
            on_progress(Progress(f"Measuring {benchmark}", number, len(chosen)))
            for row in measure(benchmark, repetitions=repetitions, n_queries=queries, n_runs=runs):
                rows.append(row)
                if json:
                    output.print_note(str(row))
                else:
                    print(row, flush=True)
    if json:
        output.print_json([row.to_json() for row in rows])


def main() -> None:
    """Run the command, and exit: with status 2 and one line for a mistake of the user."""
    app = App(name="python -m tools.bench", help_flags=["--help", "-h"], version_flags=[])
    app.default(run)
    try:
        app(sys.argv[1:])
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
