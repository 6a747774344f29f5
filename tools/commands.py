"""The commands of the tools, which the library's command line shows among its own."""

import typer

from tools.bench import command as bench
from tools.stress import command as stress


def register(app: typer.Typer) -> None:
    """Add `bench` and `stress`."""
    bench.register(app)
    stress.register(app)
