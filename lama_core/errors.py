"""The one exception for mistakes that a user can mend."""

import difflib
from collections.abc import Iterable
from typing import TypeVar

Choice = TypeVar("Choice", bound=str)


class UserError(Exception):
    """A mistake in what the user gave: one sentence that names the culprit and the remedy.

    The command line prints it and exits with status 2; a page shows it as a message. Anything
    else that is raised is a fault of ours.
    """


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
