"""The command line: `COMMANDS` lists the commands and the modules that define them.

A module is imported when its command is called, so that `--help` is fast. Commands of plug-ins are
added only for a word that isn't in `COMMANDS`, and to the list of all.
"""

import contextlib
import re
import signal
import sys

from cyclopts import App, CycloptsError
from cyclopts.exceptions import MissingArgumentError, UnknownOptionError, UnusedCliTokensError

from lama_core import __version__
from lama_core.cli import commands, exit_codes, output
from lama_core.errors import UserError, did_you_mean, reason_of
from lama_core.plugins import missing
from lama_core.requests import PROGRAM
from lama_core.runs.locks import clear_killed

STOPPED = 128 + signal.SIGINT
LONGEST = 60  # characters of a word that an error shows
_OPTION = re.compile(r"-[a-zA-Z]|--[a-zA-Z][\w-]*(=.*)?", re.DOTALL)
# name -> module:object, and help text
COMMANDS: dict[str, tuple[str, str]] = {
    "models": ("models:models", "List models; fetch, add, convert, look up or forget one."),
    "cloze": ("queries:cloze", "Fill the blanks of a text with each model's most probable words."),
    "relation": ("queries:relation", "Query models for a relation of a subject, in every wording."),
    "rank": ("queries:rank", "Rank answers of any length by their likelihood at a blank."),
    "inspect": ("queries:inspect", "Show how models reach their answer, by one of several lenses."),
    "grid": ("queries:grid", "Compare the words at the blank of similar sentences."),
    "batch": ("queries:batch", "Fill the blank of each sentence of a file."),
    "sentences": ("queries:sentences", "Compare whole sentences, such as minimal pairs."),
    "analogy": ("analogy:analogy", "Solve analogies, score pairs, answer questions, probe models."),
    "data": ("data:data", "List knowledge sources; fetch, import, rename or delete one."),
    "probe": ("runs:probe", "Probe models with a dataset's cloze queries."),
    "statements": (
        "runs:statements",
        "Rank each relation's answers by the likelihood of the statement.",
    ),
    "trace": ("runs:trace", "Average causal traces over a relation's facts, by token role."),
    "ask": ("queries:ask", "Ask a question and compare the models' texts."),
    "generate": (
        "runs:generate",
        "Ask models free-text questions about a dataset's facts.",
    ),
    "results": ("results:results", "Score finished runs: P@1, P@10, MRR, mean rank."),
    "compare": ("results:compare", "Compare two runs on the same facts, with significance tests."),
    "runs": ("runs:runs", "List finished and unfinished runs; rename or delete one."),
    "prompts": ("prompts:prompts", "Mine, paraphrase, select, weight and analyse prompts."),
    "app": ("app:app", "Open the web app."),
    "plugins": ("plugins:plugins", "List the installed plug-ins; write a new one."),
    "bench": ("bench:bench", "Say where the benchmarks of speed and memory are."),
}


def make_app(*words: str) -> App:
    """Return the whole command line. words: of the command, to leave out plug-ins if possible."""
    app = App(
        name=PROGRAM,
        help="Find out what language models know: cloze queries, analogies and probing runs.",
        version=__version__,
        help_flags=["--help", "-h"],
        help_format="plaintext",
    )
    app.default(commands.make_help(app))
    for name, (target, help_text) in COMMANDS.items():
        app.command(f"lama_core.cli.{target}", name=name, help=help_text)
    if not words or words[0] not in COMMANDS:
        from lama_core.cli.plugins import add_commands

        add_commands(app, known=COMMANDS)
    return app


def call(*words: str) -> None:
    """Run a command in this process.

    Args:
        *words: The words after `lama-explorer`.

    Raises:
        UserError: If a command, option or value is invalid.
    """
    app = make_app(*words)
    if words and words[0] not in COMMANDS and (why := missing(words[0])):
        raise UserError(why)
    try:
        app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise UserError(f"{_usage_error(app, error, words)} See --help.") from error


def _usage_error(app: App, error: CycloptsError, words: tuple[str, ...]) -> str:
    """Return the message for a mistake in the command line."""
    if isinstance(error, MissingArgumentError) and error.argument:
        name = error.keyword or error.argument.name
        return f"{name} {'needs a value' if name in words else 'is missing'}."
    known = [name for name in error.app or app if not name.startswith("-")]
    unused = error.unused_tokens if isinstance(error, UnusedCliTokensError) else None
    if known and isinstance(error, UnknownOptionError) and not commands.takes_words(error.app):
        after = words[len(error.command_chain or ()) :]
        unused = [word for word in after[:1] if not word.startswith("-")]  # its options are unknown
    if unused:
        word = unused[0]
        what = "command" if known else "argument"
        return f"Unexpected {what} {word[:LONGEST]!r}{did_you_mean(word, known)}."
    if isinstance(error, UnknownOptionError):
        word = error.token.keyword or error.token.value
        if "--" in words and word in words[words.index("--") :]:  # words after it are arguments
            return f"Unexpected argument {word[:LONGEST]!r}."
        if not _OPTION.fullmatch(word):
            return (
                f"{word[:LONGEST]!r} begins like an option: write the options first, then -- and "
                "the text."
            )
    return " ".join(str(error).split())


def _end(number: int, _frame: object) -> None:
    """Exit by an exception when the process is terminated, so that unfinished files are deleted."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the exit
    sys.exit(128 + number)


def main() -> None:
    """Run the command line, and exit.

    The exit status is 0; 2 for a user's mistake or a system error such as a full disk, with one
    line on standard error; 130 if the user stopped the command; 1 for a bug in the program.
    """
    signal.signal(signal.SIGTERM, _end)
    exit_codes.open_streams()
    status = 0
    try:
        exit_codes.check_arguments(sys.argv[1:])
        exit_codes.check_home()
        clear_killed()
        try:
            call(*sys.argv[1:])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = STOPPED
    except BrokenPipeError:
        status = 0  # the reader of the pipe (`| head`) has closed it
    except Exception as error:  # noqa: BLE001 - the only place that reports any exception
        status = _report(error)
    if status == STOPPED:
        _print_error("Stopped. Finished parts are kept; the same command resumes.")
    flush()
    raise SystemExit(status)


def _report(error: Exception) -> int:
    """Print the message for an exception; return the exit status."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as write_error:
        _print_error(f"Cannot write to standard output: {reason_of(write_error)}.")
        return 2
    if message := exit_codes.expected_error(error):
        _print_error(message)
        return 2
    _print_error(exit_codes.bug_message(error))
    return 1


def _print_error(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # standard error is closed
        output.print_error(text)


def flush() -> None:
    """Flush both outputs; discard data that can't be written, so that Python prints no error."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            exit_codes.silence(number)
