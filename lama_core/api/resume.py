"""Resume unfinished runs: read the request that started each."""

from pathlib import Path

from lama_core.api.prompts import select_prompts, study
from lama_core.api.runs import analogy_probe, extract, own_folder, probe, read, statements, trace
from lama_core.errors import UserError
from lama_core.requests import Request, from_record
from lama_core.runs.unfinished import read_begun

_FUNCTIONS = (probe, statements, trace, analogy_probe, extract, read, select_prompts, study)
REQUESTS: dict[str, type[Request]] = {f.request.python: f.request for f in _FUNCTIONS}


def saved_request(name: str) -> tuple[Request, Path]:
    """Return the request that started an unfinished run, and the working folder at that time.

    Args:
        name: Name of the run's folder, such as `starter-minilm_mlm-manual-0123456789.part`.

    Returns:
        The request, and the folder that its relative paths start from.

    Raises:
        UserError: If there is no such run, it is bundled, or its request wasn't saved.
    """
    begun = read_begun(own_folder(name))
    if begun.function not in REQUESTS:
        raise UserError(
            f"This version can't resume a run of {begun.function!r}. Start the run again."
        )
    return from_record(REQUESTS[begun.function], begun.fields), Path(begun.folder)
