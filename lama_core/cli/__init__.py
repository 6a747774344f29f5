"""The command line: one file a command, each with `register(app)`, in the order of the help.

Torch is imported only inside the commands that need it.
"""

import contextlib
import signal
import sys

import typer

from lama_core.cli import endings, show


def make_app() -> typer.Typer:
    """The whole command line as a Typer app."""
    # Imported here, so that whatever goes wrong in an import, or stops it, ends in a sentence.
    from lama_core.cli import (
        analogy,
        bench,
        cloze,
        corpus,
        data,
        finding,
        models,
        probe,
        prompts,
        reproducing,
        results,
        runs,
        statements,
    )

    app = typer.Typer(
        name="lama_core",
        help="What do language models know? Cloze queries, analogies and probing runs.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for command in (
        models,
        cloze,
        data,
        corpus,
        probe,
        statements,
        finding,
        results,
        reproducing,
        bench,
        runs,
        analogy,
        prompts,
    ):
        command.register(app)
    return app


def _end(number: int, _frame: object) -> None:
    """Ended from outside, a command leaves its blocks, so that half-made files are removed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not stop the removal
    sys.exit(128 + number)


def main() -> None:
    """Run the command line, and exit: 0; 2 for a user's mistake, which is one line on standard
    error, and for what the machine refuses; 130 when stopped; 1 for a fault of ours.
    """
    signal.signal(signal.SIGTERM, _end)
    endings.open_streams()
    try:
        status = _run()
    except KeyboardInterrupt:
        status = STOPPED
    except BrokenPipeError:
        # The reader of a pipe (`| head`) went away: not a fault.
        status = 0
    except Exception as error:  # noqa: BLE001 - the one place where any fault becomes a sentence
        status = _explain(error)
    if status == STOPPED:
        _complain("Stopped. What was finished is kept; the same command goes on from there.")
    _flush()
    raise SystemExit(status)


STOPPED = 128 + signal.SIGINT


def _run() -> int:
    """The exit status of the command that was typed."""
    endings.check_arguments(sys.argv[1:])
    endings.check_home()
    from lama_core.runs.locks import clear_killed

    clear_killed()
    try:
        make_app()()
    except SystemExit as end:
        status = end.code
    else:
        status = 0
    sys.stdout.flush()
    return status if isinstance(status, int) else 0


def _explain(error: Exception) -> int:
    """Say what went wrong; the exit status that goes with it."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as unwritten:
        reason = unwritten.strerror if isinstance(unwritten, OSError) else unwritten
        _complain(f"Standard output can't be written: {reason}: lead it elsewhere.")
        return 2
    if sentence := endings.sentence_of(error):
        _complain(sentence)
        return 2
    _complain(endings.fault_sentence(error))
    return 1


def _complain(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody can be told where nothing can be said
        show.complain(text)


def _flush() -> None:
    """Write what is left; what can't be is dropped, else the interpreter complains of it."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            endings.silence(number)
