"""`python -m lama_core`: the command line, with the project's tools where they are beside it."""

import importlib.util
from typing import TYPE_CHECKING

from lama_core.cli import main

if TYPE_CHECKING:
    import typer


def add_tools(app: "typer.Typer") -> None:
    """Add the commands of the project's tools, where they are."""
    if importlib.util.find_spec("tools") and importlib.util.find_spec("tools.commands"):
        from tools.commands import register

        register(app)


if __name__ == "__main__":
    main(add_tools)
