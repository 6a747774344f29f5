"""The exception for mistakes that a user can fix, and functions that check names."""

import copyreg
import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

Choice = TypeVar("Choice", bound=str)


class UserError(Exception):
    """A mistake that the user can fix: what is wrong, then what to do.

    The command line prints the message and exits with status 2; a page shows the message. Any other
    exception that reaches the user is a bug in this project.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep message and attributes when the scoring process pickles it."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


def reason_of(error: Exception) -> str:
    """Return why the operating system refused something, without file names, for a sentence.

    Libraries raise OSError without the system's text, or without its number.
    """
    if isinstance(error, OSError):
        text = error.strerror or (os.strerror(error.errno) if error.errno else "")
        if text:
            return text
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


class WindowError(UserError):
    """A text has more tokens than the model's window."""


class NoStartTokenError(UserError):
    """A text begins with the scored word, and the model has no start token."""

    def __init__(self, model: str) -> None:
        super().__init__(
            f"{model} has no start token, so it can't score the first word of a text: write a word "
            "before the blank."
        )
        self.model = model


class TextRefusedError(UserError):
    """A server refuses one text, which is too long for it or which its content filter stops.

    Attributes:
        reason: The reason that the server gives.
        remedy: What to do.
    """

    def __init__(self, reason: str, remedy: str = "shorten or remove it") -> None:
        super().__init__(f"The server refuses the text ({reason}): {remedy}.")
        self.reason, self.remedy = reason, remedy

    @property
    def excluded(self) -> str:
        """Why a fact with this text is excluded."""
        return f"refused by the server ({self.reason})"


class TimeOverError(UserError):
    """The time limit was reached before a model had rescored all proposed words."""

    def __init__(self, name: str, n_done: int, n_words: int) -> None:
        super().__init__(
            f"{name} rescored {n_done:,} of {n_words:,} words in the time that a query may take "
            "here, so there is no ranking. Try again, or rescore fewer words (Options)."
        )


class ControlTokenError(UserError):
    """A question contains a control token of the model, such as `<|im_end|>`."""


class NotFetchedError(UserError):
    """Data from a published source are missing on this machine.

    Attributes:
        what: The missing data and its verb, such as `LPAQA's prompts are`.
        source: Name of the source to download with `data get`.
    """

    def __init__(self, what: str, source: str) -> None:
        super().__init__(
            f"{what} not installed. Fetch it with `data get {source}`, or import your own copy "
            "with `data import PATH`."
        )
        self.what = what
        self.source = source


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a choice is unavailable.

    Attributes:
        reason: A few words, such as `not installed`.
        source: The published source that makes it available once downloaded; empty if none does.
    """

    reason: str
    source: str = ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` for the known name most similar to `name`, or ""."""
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean {nearest[0]!r}?)" if nearest else ""


def choose(name: str, known: Iterable[Choice], what: str) -> Choice:
    """Return `name`, checked to be one of the known names.

    Args:
        name: The name that the user typed.
        known: All valid names.
        what: The kind of name, such as `relation`; used in the error.

    Raises:
        UserError: If the name is unknown; suggests the most similar one and lists all.
    """
    names = tuple(known)
    if name in names:
        return names[names.index(name)]
    listed = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    hint = did_you_mean(name, names)
    raise UserError(f"Unknown {what} {name[:60]!r}{hint}: choose {listed}.")


def int_from_env(variable: str, default: int) -> int:
    """Return an environment variable's value, an integer >= 0; `default` if it isn't set.

    Raises:
        UserError: If the value isn't such a number.
    """
    text = os.environ.get(variable, "").strip()
    if text and not (text.isdecimal() and len(text) <= 15):
        raise UserError(f"{variable} is {text[:40]!r}: write a whole number.")
    return int(text) if text else default
