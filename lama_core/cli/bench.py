"""`bench`: the project's benchmarks, each beside its alternative and its limit."""

import importlib
import inspect
import pkgutil
from typing import Annotated, Any

import typer

from lama_core.cli import show
from lama_core.errors import UserError, did_you_mean
from tools import bench as benchmarks

EXAMPLE = """
Example: python -m lama_core bench cloze --json
"""
COLUMNS = ("what", "unit", "ours", "peer", "ours / peer", "limit", "ours / limit")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EXAMPLE)(bench)


def names() -> tuple[str, ...]:
    """The benchmarks that there are: the modules of `tools.bench` that have a `run`."""
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


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
    json: Annotated[bool, typer.Option(help="Print JSON.")] = False,
) -> None:
    """Measure speed and memory; what one run measures can be compared, on any machine."""
    known = names()
    if name is not None and name not in known:
        raise UserError(
            f"Unknown benchmark {name!r}{did_you_mean(name, known)}: there are {', '.join(known)}."
        )
    given = {"repetitions": repetitions, "n_queries": queries}
    rows: list[benchmarks.BenchRow] = []
    with show.progress() as on_progress:
        chosen = known if name is None else (name,)
        for number, one in enumerate(chosen):
            on_progress(f"Measuring {one}", number, len(chosen))
            rows += _measured(one, given)
    if json:
        show.print_json([row.to_json() for row in rows])
        return
    show.print_table(COLUMNS, [_cells(row.to_json()) for row in rows], right=COLUMNS[2:])


def _measured(name: str, given: dict[str, int | None]) -> list[benchmarks.BenchRow]:
    run = importlib.import_module(f"tools.bench.{name}").run
    taken = inspect.signature(run).parameters
    return run(**{key: value for key, value in given.items() if value is not None and key in taken})


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
