"""The one exception for mistakes that a user can mend."""

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

Choice = TypeVar("Choice", bound=str)


class UserError(Exception):
    """A mistake in what the user gave: one sentence that names the culprit and the remedy.

    The command line prints it and exits with status 2; a page shows it as a message. Anything
    else that is raised is a fault of ours.
    """


class NotFetched(UserError):
    """Something of a published source that isn't here yet.

    what: it, for people, with its verb (`LPAQA's prompts are`). source: the source's name, by which
    it can be fetched.
    """

    def __init__(self, what: str, source: str) -> None:
        super().__init__(
            f"{what} not here yet: `data get {source}` fetches it, `data import PATH` takes a copy "
            "of yours."
        )
        self.what = what
        self.source = source


@dataclass(frozen=True, slots=True)
class Impossible:
    """Why a choice can't be made, shortly. source: to be fetched for it, or empty."""

    reason: str
    source: str = ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the known name nearest to `name`, or an empty string."""
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean {nearest[0]!r}?)" if nearest else ""


def choose(name: str, known: Iterable[Choice], what: str) -> Choice:
    """The one of the known names that `name` is; what: the choice is called, for people.

    Raises UserError for any other name, with the nearest one.
    """
    names = tuple(known)
    for one in names:
        if name == one:
            return one
    listed = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    hint = did_you_mean(name, names)
    raise UserError(f"Unknown {what} {name[:60]!r}{hint}: choose {listed}.")


def positive(variable: str, default: int) -> int:
    """A whole number of the environment. Raises UserError for anything else."""
    given = os.environ.get(variable, "").strip()
    if given and not (given.isdecimal() and len(given) <= 15):
        raise UserError(f"{variable} is {given[:40]!r}: write a whole number.")
    return int(given) if given else default
