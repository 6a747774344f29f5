"""The command line: one file a command, each with `register(app)`, found by its name here.

Torch is imported only inside the commands that need it.
"""

import importlib
import pkgutil
import signal
import sys

import typer

from lama_core.errors import UserError

# The order of the help; a command that isn't named here comes last.
ORDER = ("models", "cloze", "data", "probe", "results", "analogy", "prompts", "train", "bench")
SHARED = ("show",)  # what the commands share; no command itself


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
    names = [module.name for module in pkgutil.iter_modules(__path__) if module.name not in SHARED]
    for name in sorted(names, key=lambda name: (*ORDER, name).index(name)):
        importlib.import_module(f"lama_core.cli.{name}").register(app)
    return app


def _end(number: int, _frame: object) -> None:
    """Ended from outside, a command leaves its blocks, so that half-made files are removed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not stop the removal
    sys.exit(128 + number)


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit status 2."""
    signal.signal(signal.SIGTERM, _end)
    try:
        make_app()()
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:
        # The reader of a pipe (`| head`) went away: not a fault. Standard output is closed here,
        # so that the interpreter doesn't complain when it flushes it.
        sys.stderr.close()
        raise SystemExit(0) from None
