"""The unfinished run on disk: scored batches, appended as they come, each with a checksum.

    file   = head line (JSON: which run this is) + records
    record = magic, segment, number, rows (4 bytes each), CRC-32 of the payload, payload

A record counts when it is whole and its checksum fits; reading stops at the first that doesn't, and
the file is cut there before the next is written. So a process that dies at any moment loses at most
the batch it was writing. Each record is flushed to the disk itself, which also covers power cuts.
"""

import errno
import io
import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from lama_core.errors import UserError

TOP_K = 10

# One row a scored query. Columns are of the segment's candidate list, -1 for none.
ROW = np.dtype(
    [
        ("query", "<i8"),
        ("rank_raw", "<i4"),
        ("rank_filtered", "<i4"),
        ("log_prob", "<f4"),
        ("first_filtered", "<i4"),
        ("first_filtered_log_prob", "<f4"),
        ("top", "<i4", (TOP_K,)),
        ("top_log_probs", "<f4", (TOP_K,)),
    ]
)

_HEAD = struct.Struct("<4sIIII")
_MAGIC = b"BLK1"


@dataclass(frozen=True, slots=True)
class Block:
    """One scored batch.

    segment: which candidate list it belongs to. number: the batch's place in the segment's plan.
    rows: structured [query] of `ROW`.
    """

    segment: int
    number: int
    rows: NDArray[np.void]


class BlockLog:
    """The scored batches of one run, in a file that only ever grows.

    done: the blocks that the file held when it was opened.
    """

    def __init__(self, path: Path, key: str) -> None:
        """Open or begin the log of the run called `key`.

        Raises UserError if the file belongs to another run or can't be written.
        """
        self.path = path
        self.done: list[Block] = []
        head = json.dumps({"run": key, "row_bytes": ROW.itemsize}).encode() + b"\n"
        try:
            # Unbuffered: a write that fails leaves nothing behind to fail again at close.
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise UserError(f"{path}: the run can't be written: {error.strerror}.") from error
        self._file.seek(0)
        first = self._file.readline()
        if first == head:
            self.done = list(_read_records(self._file))
            end = len(head) + sum(_HEAD.size + block.rows.nbytes for block in self.done)
        elif not first.endswith(b"\n"):
            end = 0
        else:
            self._file.close()
            raise UserError(f"{path}: this part belongs to another run: move the folder away.")
        self._file.seek(end)
        self._file.truncate()
        if end == 0:
            self._write(head)

    def append(self, block: Block) -> None:
        """Write one block, down to the disk.

        Raises UserError when the disk is full; what was written before stays whole.
        """
        payload = block.rows.astype(ROW, copy=False).tobytes()
        head = _HEAD.pack(_MAGIC, block.segment, block.number, len(block.rows), zlib.crc32(payload))
        self._write(head + payload)

    def _write(self, data: bytes) -> None:
        try:
            if self._file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())
        except OSError as error:
            why = "the disk is full" if error.errno == errno.ENOSPC else str(error.strerror)
            raise UserError(
                f"{self.path}: the run can't be written on: {why}. What was scored so far is kept; "
                "make room and give the same command again."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        """The log itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file, whatever happened."""
        self.close()


def _read_records(file: io.FileIO) -> Iterator[Block]:
    """The whole records from where the file stands, up to the first broken one."""
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        magic, segment, number, n_rows, checksum = _HEAD.unpack(head)
        if magic != _MAGIC:
            return
        payload = file.read(n_rows * ROW.itemsize)
        if len(payload) != n_rows * ROW.itemsize or zlib.crc32(payload) != checksum:
            return
        yield Block(segment, number, np.frombuffer(payload, dtype=ROW))
