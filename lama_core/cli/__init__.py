"""The command line: a command is a line in `COMMANDS`, which names the module that makes it.

A module is imported when its command is called, so that `--help` is immediate.
"""

import contextlib
import signal
import sys

from cyclopts import App, CycloptsError
from cyclopts.exceptions import MissingArgumentError, UnknownOptionError, UnusedCliTokensError

from lama_core import __version__
from lama_core.cli import commands, exit_codes, output
from lama_core.errors import UserError, did_you_mean
from lama_core.requests import PROGRAM
from lama_core.runs.locks import clear_killed

STOPPED = 128 + signal.SIGINT
LONGEST = 60  # characters of a word that an error repeats
# name -> where it is made, and what it does
COMMANDS: dict[str, tuple[str, str]] = {
    "models": ("models:models", "List models; fetch, add, convert, look up or forget one."),
    "cloze": ("queries:cloze", "Fill the blanks of a text with each model's best words."),
    "relation": ("queries:relation", "Query a relation and a subject in every wording."),
    "rank": ("queries:rank", "Rank answers of any length at a text's blank."),
    "inspect": ("queries:inspect", "Show how models come to their answer: layers, or tokens."),
    "batch": ("queries:batch", "Fill the blank of each sentence of a file."),
    "sentences": ("queries:sentences", "Compare whole sentences, such as minimal pairs."),
    "analogy": ("analogy:analogy", "Solve analogies, score pairs, probe models with analogies."),
    "data": ("data:data", "List knowledge sources; fetch, import, rename or delete one."),
    "probe": ("runs:probe", "Probe models with a dataset's cloze queries."),
    "statements": ("runs:statements", "Rank each relation's answers by their likelihood."),
    "ask": ("generation:ask", "Ask a question and compare the models' texts."),
    "generate": ("generation:generate", "Ask about a dataset's facts and match the texts."),
    "extract": ("runs:extract", "Extract relations from sentences: LAMA's RE_n and RE_o."),
    "read": ("runs:read", "Find answers in a text with question-answering models."),
    "results": ("results:results", "Score finished runs: P@1, P@10, MRR, mean rank."),
    "compare": ("results:compare", "Compare two runs on the same facts."),
    "reproduce": ("papers:reproduce", "Reproduce a paper's tables and figures."),
    "runs": ("runs:runs", "List the runs, finished or not; rename or delete one."),
    "prompts": ("prompts:prompts", "Mine, paraphrase, select, weight and analyse prompts."),
    "app": ("app:app", "Open the web app."),
    "bench": ("bench:bench", "Measure speed and memory next to alternatives and limits."),
}


def make_app() -> App:
    """Return the whole command line."""
    app = App(
        name=PROGRAM,
        help="What do language models know? Cloze queries, analogies and probing runs.",
        version=__version__,
        help_flags=["--help", "-h"],
        help_format="plaintext",
    )
    app.default(commands.make_help(app))
    for name, (place, about) in COMMANDS.items():
        app.command(f"lama_core.cli.{place}", name=name, help=about)
    return app


def call(*words: str) -> None:
    """Run a command in this process. Raises UserError for a mistake in the words."""
    app = make_app()
    try:
        app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise UserError(f"{_sentence(app, error, words)} See --help.") from error


def _sentence(app: App, error: CycloptsError, words: tuple[str, ...]) -> str:
    """What is wrong with the words that were typed."""
    if isinstance(error, MissingArgumentError) and error.argument:
        name = error.keyword or error.argument.name
        return f"{name} {'needs a value' if name in words else 'is missing'}."
    if isinstance(error, UnusedCliTokensError):
        word = (error.unused_tokens or ["?"])[0]
        known = [name for name in error.app or app if not name.startswith("-")]
        what = "command" if known else "argument"
        return f"Unexpected {what} {word[:LONGEST]!r}{did_you_mean(word, known)}."
    if isinstance(error, UnknownOptionError) and "--" in words:
        word = error.token.keyword or error.token.value
        if word in words[words.index("--") :]:  # where nothing is an option
            return f"Unexpected argument {word[:LONGEST]!r}."
    return " ".join(str(error).split())


def _end(number: int, _frame: object) -> None:
    """Leave a command that is ended from outside through its blocks, which remove half files."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not stop the removal
    sys.exit(128 + number)


def main() -> None:
    """Run the command line, and exit.

    The status is 0; 2 for a user's mistake, which is one line on standard error, and for what the
    machine refuses; 130 when stopped; 1 for a fault of the program.
    """
    signal.signal(signal.SIGTERM, _end)
    exit_codes.open_streams()
    try:
        status = _run()
    except KeyboardInterrupt:
        status = STOPPED
    except BrokenPipeError:
        status = 0  # the reader of a pipe (`| head`) went away
    except Exception as error:  # noqa: BLE001 - the one place where any fault becomes a sentence
        status = _explain(error)
    if status == STOPPED:
        _complain("Stopped. Finished parts are kept; the same command resumes.")
    _flush()
    raise SystemExit(status)


def _run() -> int:
    """The exit status of the command that was typed."""
    exit_codes.check_arguments(sys.argv[1:])
    exit_codes.check_home()
    clear_killed()
    try:
        call(*sys.argv[1:])
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
        _complain(f"Cannot write to standard output: {reason}.")
        return 2
    if sentence := exit_codes.sentence_of(error):
        _complain(sentence)
        return 2
    _complain(exit_codes.fault_sentence(error))
    return 1


def _complain(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # standard error is closed, too
        output.complain(text)


def _flush() -> None:
    """Write what is left; what can't be is dropped, else the interpreter complains of it."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            exit_codes.silence(number)
