"""The command line: one file a command, mounted here."""

import importlib
import sys

import typer

from lama_core.errors import UserError

# Each module has `register(app)`, which adds its commands; torch is imported only inside them.
COMMANDS = ("models", "cloze", "data", "probe", "results", "analogy", "prompts", "train", "bench")


def make_app() -> typer.Typer:
    """The whole command line as a Typer app."""
    app = typer.Typer(
        name="lama_core",
        help="What do language models know? Cloze queries, analogies and probing runs.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for name in COMMANDS:
        importlib.import_module(f"lama_core.cli.{name}").register(app)
    return app


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit status 2."""
    try:
        make_app()()
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
