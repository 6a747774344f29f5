"""The request of an unfinished run, stored with its finished parts so that it can be resumed.

    <id>.part/parts/request.json    written atomically with the first part of each session

The request isn't part of the run's identity. It is deleted with the parts when the run is finished.
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
    """The request that started a run.

    Attributes:
        function: Name of the function in `lama_core`, such as `probe`.
        fields: Fields of the request, as `requests.record` returns them.
        folder: The working directory to which relative paths in `fields` refer.
    """

    function: str
    fields: dict[str, Any]
    folder: str


def begun_text(request: Request) -> str:
    """Return a request as JSON, to be stored with an unfinished run."""
    begun = Begun(request.python, record(request), os.getcwd())
    return msgspec.json.format(msgspec.json.encode(asdict(begun))).decode()


def read_begun(folder: Path) -> Begun:
    """Return the request that started the unfinished run in a folder.

    Raises:
        UserError: If the file is missing, as for runs of earlier versions, or damaged.
    """
    path = folder / PARTS / REQUEST_FILE
    if not path.is_file():
        raise UserError(
            "An earlier version started this run and didn't store its settings. Choose the same "
            "settings under New run to resume it."
        )
    try:
        return msgspec.json.decode(read_file(path, MAX_BYTES), type=Begun)
    except msgspec.MsgspecError as error:
        raise UserError(
            f"{path} is damaged ({error}). Choose the same settings under New run to resume it."
        ) from error
