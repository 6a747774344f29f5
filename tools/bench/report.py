"""The list of benchmarks."""

from collections.abc import Callable, Iterator
from inspect import signature

from tools.bench import (
    cloze,
    cluster,
    generation,
    gpu,
    pages,
    probe,
    proposals,
    rows,
    start,
    statements,
    study,
    trace,
    views,
)
from tools.bench.measuring import BenchRow

BENCHMARKS: dict[str, Callable[..., Iterator[BenchRow]]] = {
    "cloze": cloze.run,
    "cluster": cluster.run,
    "gpu": gpu.run,
    "generation": generation.run,
    "pages": pages.run,
    "probe": probe.run,
    "proposals": proposals.run,
    "rows": rows.run,
    "start": start.run,
    "statements": statements.run,
    "study": study.run,
    "trace": trace.run,
    "views": views.run,
}


def measure(name: str, **options: int | None) -> Iterator[BenchRow]:
    """Run a benchmark, and yield each of its rows when it is measured.

    Args:
        name: Name of the benchmark.
        **options: Arguments of the benchmark's `run`. Arguments that are None or that `run`
            doesn't have are ignored.
    """
    run = BENCHMARKS[name]
    known = signature(run).parameters
    given = {key: value for key, value in options.items() if key in known and value is not None}
    return run(**given)
