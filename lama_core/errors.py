"""The one exception for mistakes that a user can mend."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake in what the user gave: one sentence that names the culprit and the remedy.

    The command line prints it and exits with status 2; a page shows it as a message. Anything
    else that is raised is a fault of ours.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name nearest to `name`, or an empty string."""
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""
