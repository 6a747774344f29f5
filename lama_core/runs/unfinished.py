"""The request of an unfinished run, kept with its finished parts, so that it can be resumed.

    <id>.part/parts/request.json    written whole with the first part of each sitting

It is no part of the run's identity, and goes with the parts when the run is finished.
"""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from lama_core.errors import UserError
from lama_core.files import read_file
from lama_core.requests import Request, record
from lama_core.runs.parts import PARTS, REQUEST_FILE

MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Begun:
    """What began a run.

    Attributes:
        function: Name of the function in `lama_core`, such as `probe`.
        fields: Of its request, as `requests.record` has them.
        folder: The working folder, from which relative paths in `fields` count.
    """

    function: str
    fields: dict[str, Any]
    folder: str


def begun_text(request: Request) -> str:
    """Return what is kept of a request, as JSON."""
    begun = Begun(request.python, record(request), os.getcwd())
    return msgspec.json.format(msgspec.json.encode(asdict(begun))).decode()


def read_begun(folder: Path) -> Begun:
    """Return what began the unfinished run in a folder.

    Raises:
        UserError: If it isn't there, as of a run of an earlier version, or is damaged.
    """
    path = folder / PARTS / REQUEST_FILE
    if not path.is_file():
        raise UserError(
            "An earlier version began this run and didn't keep its settings: choose the same "
            "settings under New run to resume it."
        )
    try:
        return msgspec.json.decode(read_file(path, MAX_BYTES), type=Begun)
    except msgspec.MsgspecError as error:
        raise UserError(
            f"{path} is damaged ({error}): choose the same settings under New run to resume it."
        ) from error
