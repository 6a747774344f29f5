"""The finished parts of an unfinished run on disk: one atomically written file per part.

    <id>.part/parts/<name>.parquet    Parquet with the run's digest in its metadata; then SHA-256
    <id>.part/parts/request.json      the run, with its request; written with the first part of
                                      each session

A part is finished if its file exists and can be read. A process that dies at any moment therefore
loses at most one part, and a part whose file is damaged is scored again.
"""

import errno
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lama_core import plugins
from lama_core.errors import UserError, reason_of
from lama_core.files import atomic_file, read_file
from lama_core.models.devices import PassSettings
from lama_core.requests import StoredRequest
from lama_core.runs.facts_table import check_rows

PART = ".part"
PARTS = "parts"
REQUEST_FILE = "request.json"
MAX_PART, MAX_REQUEST = 4 << 30, 1 << 20  # bytes
_N_DIGEST = hashlib.sha256().digest_size
_DIGEST, _SECONDS = b"lama_run", b"lama_seconds"
_THREADS, _TOKENS = b"lama_threads", b"lama_batch_tokens"
_DEVICE = b"lama_device"


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part on disk.

    Attributes:
        table: Its rows.
        seconds: The time in which they were scored.
        device: Where; "" in parts of earlier versions.
        settings: The settings of the passes; None if unknown.
    """

    table: pa.Table
    seconds: float
    device: str
    settings: PassSettings | None = None


@dataclass(frozen=True, slots=True)
class StartedRun(StoredRequest):
    """An unfinished run, with the request that started it.

    Attributes:
        kind: Kind of probe.
        model: Displayed name of the model.
        dataset: Name of the data.
        prompts: Name of the prompts, as in a finished run.
        n_parts: All parts of the run; 0 if earlier versions started it.
    """

    kind: str = ""
    model: str = ""
    dataset: str = ""
    prompts: str = ""
    n_parts: int = 0


@dataclass(frozen=True, slots=True)
class Folder:
    """The parts in a folder of this machine, or that all workers share; path: `<id>.part`.

    What a plug-in stores parts at has the same methods.
    """

    path: Path

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        file = self.path / PARTS / name
        return read_file(file, MAX_PART) if file.is_file() else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        with atomic_file(self.path / PARTS / name) as file:
            file.write_bytes(content)

    def delete(self) -> None:
        """Delete all files."""
        shutil.rmtree(self.path, ignore_errors=True)

    def __str__(self) -> str:
        return str(self.path)


def place_of(run_id: str, folder: Path, address: str = "") -> Folder:
    """Return the place of a run's parts: in the folder of the runs, or below an address.

    Raises:
        UserError: If parts can't be stored at the address.
    """
    if not address:
        return Folder(folder / (run_id + PART))
    store = plugins.find("stores", address.partition("://")[0]) or plugins.find("stores", "*")
    if store is None:
        raise UserError(f"Parts can't be stored at {address!r}: no plug-in stores parts there.")
    place: Folder = store(f"{address.rstrip('/')}/{run_id}")
    return place


class Parts:
    """The finished parts of one run.

    digest: Digest of the run. started: The run, with the request with which it is resumed.
    """

    def __init__(self, place: Folder, digest: str, started: StartedRun | None = None) -> None:
        self.place = place
        self._digest = digest.encode()
        self.started = started
        self._is_stored = started is None

    def load(self, name: str, on_note: Callable[[str], None]) -> StoredPart | None:
        """Return a part; None if it isn't finished.

        Args:
            name: Name of the part.
            on_note: Called with a message if the part is damaged.

        Raises:
            UserError: If the part belongs to another run.
        """
        path = f"{self.place}: the part {name}"
        try:
            data = self.place.read(f"{name}.parquet")
            if data is None:
                return None
            with pq.ParquetFile(
                pa.BufferReader(_checked(data)), page_checksum_verification=True
            ) as file:
                check_rows(file.metadata)
                table = file.read()
        except (pa.ArrowException, OSError, ValueError, UserError):
            on_note(f"{path} is damaged. This part is scored again.")
            return None
        metadata = dict(table.schema.metadata or {})
        if metadata.pop(_DIGEST, None) != self._digest:
            raise UserError(f"{path} belongs to another run. Move this folder elsewhere.")
        seconds = float(metadata.pop(_SECONDS, b"0"))
        device = metadata.pop(_DEVICE, b"").decode()
        threads, tokens = (int(metadata.pop(key, b"0")) for key in (_THREADS, _TOKENS))
        settings = PassSettings(threads, tokens) if threads and tokens else None
        rows = table.replace_schema_metadata(metadata or None)
        return StoredPart(rows, seconds, device, settings)

    def write(
        self,
        name: str,
        table: pa.Table,
        seconds: float,
        device: str = "",
        settings: PassSettings | None = None,
    ) -> StoredPart:
        """Write the rows of a part to disk; for the arguments see `StoredPart`.

        Raises:
            UserError: If the rows can't be written, for example because the disk is full. Earlier
                parts stay intact.
        """
        metadata = {
            **(table.schema.metadata or {}),
            _DIGEST: self._digest,
            _SECONDS: f"{seconds:.3f}".encode(),
            _DEVICE: device.encode(),
        }
        if settings:
            metadata[_THREADS] = str(settings.threads).encode()
            metadata[_TOKENS] = str(settings.batch_tokens).encode()
        memory = pa.BufferOutputStream()
        pq.write_table(
            table.replace_schema_metadata(metadata),
            memory,
            compression="none",
            write_statistics=False,
        )
        rows = memory.getvalue()
        try:
            self.place.write(f"{name}.parquet", b"".join((rows, hashlib.sha256(rows).digest())))
            if not self._is_stored:
                text = msgspec.json.format(msgspec.json.encode(self.started))
                self.place.write(REQUEST_FILE, text)
                self._is_stored = True
        except OSError as error:
            why = "the disk is full" if error.errno == errno.ENOSPC else reason_of(error)
            raise UserError(
                f"{self.place}: the run can't be stored: {why}. The scored parts are kept: "
                "free some disk space and run the same command again."
            ) from error
        return StoredPart(table, seconds, device, settings)

    def delete(self) -> None:
        """Delete the unfinished run, with its stored request."""
        self.place.delete()


def read_started(folder: Path) -> StartedRun:
    """Return the unfinished run in a folder, with its request.

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
        return msgspec.json.decode(read_file(path, MAX_REQUEST), type=StartedRun)
    except msgspec.MsgspecError as error:
        raise UserError(
            f"{path} is damaged ({error}). Choose the same settings under New run to resume it."
        ) from error


def _checked(data: bytes) -> memoryview:
    """Return the Parquet file in `data`, or raise ValueError if its digest differs."""
    rows, digest = memoryview(data)[:-_N_DIGEST], data[-_N_DIGEST:]
    if hashlib.sha256(rows).digest() != digest:
        raise ValueError("the digest differs")
    return rows
