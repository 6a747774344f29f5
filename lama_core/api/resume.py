"""Unfinished runs: the request that began each, to be made again."""

from pathlib import Path

from lama_core.api.prompts import select_prompts, study
from lama_core.api.runs import analogy_probe, extract, own_folder, probe, read, statements
from lama_core.errors import UserError
from lama_core.requests import Request, from_record
from lama_core.runs.unfinished import read_begun

_FUNCTIONS = (probe, statements, analogy_probe, extract, read, select_prompts, study)
REQUESTS: dict[str, type[Request]] = {one.request.python: one.request for one in _FUNCTIONS}


def begun_request(name: str) -> tuple[Request, Path]:
    """Return the request that began an unfinished run, and the folder that its paths count from.

    Args:
        name: The folder's name, such as `starter-minilm_mlm-manual-0123456789.part`.

    Raises:
        UserError: If there is no such run of the user's own, or its request wasn't kept.
    """
    begun = read_begun(own_folder(name))
    if begun.function not in REQUESTS:
        raise UserError(f"This version can't resume a run of {begun.function!r}: begin it again.")
    return from_record(REQUESTS[begun.function], begun.fields), Path(begun.folder)


__all__ = ["begun_request"]
