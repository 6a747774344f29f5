"""Safe unpacking of untrusted archives: only into the given folder, within limits of size.

Refused before or during unpacking: absolute paths and `..`, links and devices, encrypted members,
unsafe names, and more members, bytes or levels of nested archives than allowed. An archive and the
archives nested in it share one budget. Declared sizes are not trusted: bytes are counted as they
are read and written.
"""

import bz2
import gzip
import lzma
import os
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from lama_core.errors import UserError, reason_of
from lama_core.files import open_file
from lama_core.progress import OnProgress, Progress, ignore

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_MEMBERS = 50_000
MAX_DEPTH = 3
MAX_FOLDERS_DEEP = 32
MAX_NAME_BYTES = 255  # of a folder or file; the limit of common file systems
MAX_RATIO = 200  # of unpacked to packed bytes; text doesn't reach it, zip bombs do
_FREE_BYTES = 64 << 20
_CHUNK = 1 << 20
_SMALL_CHUNK = 1 << 12
_MAX_HEADER = 16 << 20
_OPENERS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open))

# What the standard library raises for invalid archives.
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,  # includes UnicodeError
    LookupError,
    OverflowError,
    MemoryError,
    RuntimeError,  # includes NotImplementedError and RecursionError
)


def is_archive(path: Path) -> bool:
    """Whether the file has a suffix that `unpack` supports."""
    return path.name.lower().endswith(SUFFIXES)


@dataclass
class Budget:
    """Limits for an archive with its nested archives, and the amounts used so far.

    name: name of the outermost archive or folder, for errors. written: bytes written to files.
    read: bytes read from tar archives, after decompression. members: files and folders.
    """

    name: str
    max_bytes: int
    on_progress: OnProgress = ignore
    written: int = 0
    read: int = 0
    members: int = 0

    def check(self, n_bytes: int) -> None:
        """Raise UserError if `n_bytes` exceeds `max_bytes`."""
        if n_bytes > self.max_bytes:
            raise UserError(
                f"{self.name} unpacks to more than {self.max_bytes:,} bytes; nothing was kept"
            )

    def spend(self, n_bytes: int) -> None:
        """Count written bytes. Raises UserError above the limit."""
        self.written += n_bytes
        self.check(self.written)
        self.on_progress(Progress(f"Unpacking {self.name}", self.written, unit="bytes"))

    def spend_read(self, n_bytes: int) -> None:
        """Count decompressed bytes of a tar. Raises UserError above 2 * `max_bytes` + 64 MiB."""
        self.read += n_bytes
        # Headers and padding are read but not written, so more may be read than written.
        if self.read > 2 * self.max_bytes + _FREE_BYTES:
            self.check(self.read)

    def count(self, n_members: int = 1) -> None:
        """Count files and folders. Raises UserError above the limit."""
        self.members += n_members
        if self.members > MAX_MEMBERS:
            raise UserError(f"{self.name} has more than {MAX_MEMBERS:,} files; nothing was kept")

    def make_folder(self, folder: Path) -> None:
        """Make a folder and its missing parents, and count them."""
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for parent in reversed(missing):
            self.count()
            parent.mkdir()


def unpack(
    archive: Path, folder: Path, *, max_bytes: int, on_progress: OnProgress = ignore
) -> None:
    """Unpack `archive` and the archives nested in it into the new folder `folder`.

    Args:
        archive: The archive.
        folder: Must not exist yet; removed after an error.
        max_bytes: Maximum number of bytes to write.
        on_progress: Called with the number of bytes written so far.

    Raises:
        UserError: If the archive is broken, too large or unsafe.
    """
    with open_file(archive) as file:
        n_packed = os.fstat(file.fileno()).st_size
    most = min(max_bytes, _FREE_BYTES + MAX_RATIO * n_packed)
    budget = Budget(_shown(archive.name), most, on_progress)
    folder.mkdir(parents=True)
    try:
        unpack_into(archive, folder, budget)
        unpack_nested(folder, budget)
    except UserError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def unpack_nested(folder: Path, budget: Budget) -> None:
    """Replace the archives in a folder by their content, such as LPAQA's TREx_train.tar.gz.

    Raises UserError for more than `MAX_DEPTH` levels of nested archives.
    """
    queue = [(path, 1) for path in _archives_in(folder)]
    while queue:
        inner, depth = queue.pop(0)
        if depth > MAX_DEPTH:
            raise UserError(
                f"{budget.name} has more than {MAX_DEPTH} levels of nested archives: unpack it, "
                "and give the folder with the data"
            )
        try:
            unpacked = Path(tempfile.mkdtemp(dir=inner.parent))
            unpack_into(inner, unpacked, budget)
            inner.unlink()
            for child in sorted(unpacked.iterdir()):
                target = inner.parent / child.name
                if not target.exists():  # existing files are kept
                    child.rename(target)
                    queue += [(path, depth + 1) for path in _archives_in(target)]
            shutil.rmtree(unpacked)
        except OSError as error:
            raise UserError(f"{budget.name} can't be unpacked: {_reason(error)}") from error


def _archives_in(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if is_archive(path) else []
    return sorted(file for file in path.rglob("*") if is_archive(file) and file.is_file())


def unpack_into(archive: Path, folder: Path, budget: Budget) -> None:
    """Unpack an archive, but not its nested archives. Raises the UserErrors of `unpack`."""
    shown = _shown(archive.name)
    try:
        with open_file(archive) as raw:
            if archive.name.lower().endswith(".zip"):
                _unpack_zip(raw, shown, folder, budget)
            else:
                _unpack_tar(raw, shown, folder, budget)
    except _BROKEN as error:
        raise UserError(f"{shown} can't be unpacked: {_reason(error)}") from error


class _LimitedStream:
    """A stream that refuses reads of more than `_MAX_HEADER` bytes.

    count: called with the number of bytes of each read and each skip.

    The standard library reads headers of any declared length, even of gigabytes.
    """

    def __init__(self, stream: IO[bytes], shown: str, count: Callable[[int], None]) -> None:
        self._stream = stream
        self._shown = shown
        self._count = count

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes. Raises UserError above `_MAX_HEADER`."""
        if size > _MAX_HEADER:
            raise UserError(
                f"Refused: {self._shown} has a header of {size:,} bytes (likely malicious)"
            )
        data = self._stream.read(_MAX_HEADER + 1 if size < 0 else size)
        if len(data) > _MAX_HEADER:
            raise UserError(f"Refused: {self._shown} has an endless header (likely malicious)")
        self._count(len(data))
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek as a file does; bytes skipped forward are counted."""
        before = self._stream.tell()
        if whence == 0 and offset > before:
            self._count(offset - before)
        return self._stream.seek(offset, whence)

    def __getattr__(self, name: str) -> Any:
        """Return what else the stream can do."""
        return getattr(self._stream, name)


def _unpack_zip(raw: BinaryIO, shown: str, folder: Path, budget: Budget) -> None:
    # The file's size limits the packed bytes, so they needn't be counted.
    limited = _LimitedStream(raw, shown, lambda _: None)
    with zipfile.ZipFile(cast(IO[bytes], limited)) as opened:
        members = opened.infolist()
        if budget.members + len(members) > MAX_MEMBERS:
            budget.count(len(members))
        # Declared sizes may be wrong, but if their sum exceeds the limit, unpack nothing.
        budget.check(budget.written + sum(member.file_size for member in members))
        for member in members:
            if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise UserError(f"{shown} contains a link or device, {member.filename!r}")
            if member.flag_bits & 0x1:
                raise UserError(f"{shown} is encrypted: unpack it and import the folder")
            target = folder / safe_path(shown, member.filename)
            if member.is_dir():
                budget.make_folder(target)
                continue
            # With other methods, zipfile decompresses a whole packed chunk, so read small chunks.
            is_limited = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            with opened.open(member) as source:
                _copy(source, target, budget, _CHUNK if is_limited else _SMALL_CHUNK)


def _unpack_tar(raw: BinaryIO, shown: str, folder: Path, budget: Budget) -> None:
    first_bytes = raw.read(8)
    raw.seek(0)
    opener = next((opener for magic, opener in _OPENERS if first_bytes.startswith(magic)), None)
    stream = cast(IO[bytes], opener(raw, "rb")) if opener else raw
    limited = _LimitedStream(stream, shown, budget.spend_read)
    with tarfile.open(fileobj=cast(IO[bytes], limited), mode="r:") as opened:
        for member in opened:
            if not (member.isfile() or member.isdir()):
                raise UserError(f"{shown} contains a link or device, {member.name!r}")
            target = folder / safe_path(shown, member.name)
            if member.isdir():
                budget.make_folder(target)
                continue
            source = opened.extractfile(member)
            if source is not None:
                with source:
                    _copy(source, target, budget, _CHUNK)


def safe_path(shown: str, name: str) -> PurePath:
    """Return the relative path of a member. shown: name of the archive, for messages.

    Raises UserError if the path leaves the folder, isn't UTF-8 text, or is too long or deep.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    drive = path.parts and path.parts[0].endswith(":")
    if path.is_absolute() or ".." in path.parts or drive or "\0" in name:
        raise UserError(f"{shown} contains the unsafe path {_short(name)}, outside its folder")
    try:
        sizes = [len(part.encode()) for part in path.parts]
    except UnicodeEncodeError:
        raise UserError(
            f"{shown} contains the name {_short(name)}, which is not UTF-8 text: rename it"
        ) from None
    if len(sizes) > MAX_FOLDERS_DEEP:
        raise UserError(
            f"{shown} contains {_short(name)}, more than {MAX_FOLDERS_DEEP} folders deep"
        )
    if any(size > MAX_NAME_BYTES for size in sizes):
        raise UserError(
            f"{shown} contains {_short(name)}, longer than {MAX_NAME_BYTES} bytes: shorten the name"
        )
    return path


def _shown(name: str) -> str:
    """Return a printable form of a name, even if it is not UTF-8 text."""
    return ascii(name)[1:-1] if not name.isprintable() else name


def _short(name: str) -> str:
    return ascii(name if len(name) <= 60 else f"{name[:60]}...")


def _copy(source: IO[bytes], target: Path, budget: Budget, chunk_bytes: int) -> None:
    budget.make_folder(target.parent)
    budget.count()
    with target.open("wb") as file:
        while chunk := source.read(chunk_bytes):
            budget.spend(len(chunk))
            file.write(chunk)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f"{reason_of(error)} (existing files are unchanged)"
    lines = str(error).splitlines() or [type(error).__name__]
    return f"it is broken or truncated ({ascii(lines[0])[1:-1]})"
