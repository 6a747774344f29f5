"""The command line: one file a command, each with `register(app)`, in the order of the help.

Torch is imported only inside the commands that need it.
"""

import signal
import sys
from collections.abc import Callable

import typer

from lama_core.cli import analogy, cloze, data, models, probe, prompts, results, runs, show
from lama_core.errors import UserError
from lama_core.runs.locks import clear_killed

COMMANDS = (models, cloze, data, probe, results, runs, analogy, prompts)


def make_app(more: Callable[[typer.Typer], None] | None = None) -> typer.Typer:
    """The whole command line as a Typer app. more: adds commands that the library doesn't hold."""
    app = typer.Typer(
        name="lama_core",
        help="What do language models know? Cloze queries, analogies and probing runs.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for command in COMMANDS:
        command.register(app)
    if more is not None:
        more(app)
    return app


def _end(number: int, _frame: object) -> None:
    """Ended from outside, a command leaves its blocks, so that half-made files are removed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not stop the removal
    sys.exit(128 + number)


def main(more: Callable[[typer.Typer], None] | None = None) -> None:
    """Run the command line; a user's mistake is one line on standard error and exit status 2."""
    signal.signal(signal.SIGTERM, _end)
    try:
        clear_killed()
        make_app(more)()
    except UserError as error:
        show.complain(str(error))
        raise SystemExit(2) from None
    except BrokenPipeError:
        # The reader of a pipe (`| head`) went away: not a fault. Standard output is closed here,
        # so that the interpreter doesn't complain when it flushes it.
        sys.stderr.close()
        raise SystemExit(0) from None
