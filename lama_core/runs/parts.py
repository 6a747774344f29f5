"""The unfinished run on disk: the rows of each finished part in a file of its own, written whole.

    <id>.part/parts/<name>.parquet    with page checksums, and the run's digest in its metadata

A part counts when its file is there and can be read. So a process that dies at any moment loses at
most the part that it was in, and a file that the disk has damaged is scored again.
"""

import errno
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lama_core.errors import UserError
from lama_core.files import atomic_file, write_text_atomically
from lama_core.runs.facts_table import check_size

PART = ".part"
PARTS = "parts"
REQUEST_FILE = "request.json"
_DIGEST, _SECONDS = b"lama_run", b"lama_seconds"


class Parts:
    """The finished parts of one run.

    digest: of the run. request: what began it, as JSON, kept with the first part that is written.
    """

    def __init__(self, folder: Path, digest: str, request: str = "") -> None:
        self.folder = folder / PARTS
        self._digest = digest.encode()
        self._request = request

    def load(self, name: str, on_note: Callable[[str], None]) -> tuple[pa.Table, float] | None:
        """The rows of a part and the seconds that they took; None if it isn't finished.

        on_note: told of a part that is damaged. Raises UserError for a part of another run.
        """
        path = self._path(name)
        if not path.is_file():
            return None
        try:
            check_size(path)
            table = pq.read_table(path, page_checksum_verification=True)
        except (pa.ArrowException, OSError):
            on_note(f"{path} is damaged: this part is scored again.")
            return None
        metadata = dict(table.schema.metadata or {})
        if metadata.pop(_DIGEST, None) != self._digest:
            raise UserError(f"{path}: this part belongs to another run: move the folder away.")
        seconds = float(metadata.pop(_SECONDS, b"0"))
        return table.replace_schema_metadata(metadata or None), seconds

    def write(self, name: str, table: pa.Table, seconds: float) -> None:
        """Keep the rows of a part, down to the disk.

        Raises UserError when the disk is full; what was written before stays whole.
        """
        metadata = {
            **(table.schema.metadata or {}),
            _DIGEST: self._digest,
            _SECONDS: f"{seconds:.3f}".encode(),
        }
        try:
            with atomic_file(self._path(name)) as path:
                pq.write_table(
                    table.replace_schema_metadata(metadata),
                    path,
                    compression="none",
                    write_statistics=False,
                    write_page_checksum=True,
                )
            if self._request:
                write_text_atomically(self.folder / REQUEST_FILE, self._request)
                self._request = ""
        except OSError as error:
            full = error.errno == errno.ENOSPC
            why = "the disk is full" if full else str(error.strerror or error)
            raise UserError(
                f"{self.folder.parent}: the run can't be written on: {why}. What was scored so far "
                "is kept; make room and give the same command again."
            ) from error

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"
