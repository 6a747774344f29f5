"""Unpacking of archives from elsewhere: nothing leaves the folder, nothing fills disk or memory.

Refused, before or while unpacking: absolute paths and `..`, links and devices, encrypted members,
names that no folder should have, more members, more bytes or more archives within archives than the
budget that all of them share. The sizes that an archive declares are not trusted: bytes are counted
as they are read and written.
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
from typing import IO, BinaryIO, cast

from lama_core.errors import UserError
from lama_core.files import open_file

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_MEMBERS = 50_000
MAX_DEPTH = 3
MAX_FOLDERS_DEEP = 32
MAX_NAME_BYTES = 255  # of one folder or file, on every file system
# No text packs better; what does was made to fill a disk.
MAX_RATIO = 200
_FREE_BYTES = 64 << 20
_CHUNK = 1 << 20
_SMALL_CHUNK = 1 << 12
_MAX_HEADER = 16 << 20
_OPENERS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open))

# Whatever the readers of the standard library raise for bytes that are no sound archive.
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,  # with UnicodeError
    LookupError,
    OverflowError,
    MemoryError,
    RuntimeError,  # with NotImplementedError and RecursionError
)

OnBytes = Callable[[int], None]


def is_archive(path: Path) -> bool:
    """Whether the file's name ends like an archive that `unpack` reads."""
    return path.name.lower().endswith(SUFFIXES)


@dataclass
class Budget:
    """What an archive and all that is packed in it may bring, and what they brought so far.

    name: of the outermost archive or folder. max_members: files and folders. on_bytes: called with
    the number of bytes written so far.
    """

    name: str
    max_bytes: int
    max_members: int = MAX_MEMBERS
    on_bytes: OnBytes | None = None
    written: int = 0
    read: int = 0
    members: int = 0

    def check(self, n_bytes: int) -> None:
        """Raise UserError if so many bytes are more than may be written."""
        if n_bytes > self.max_bytes:
            raise UserError(
                f"{self.name} unpacks to more than {self.max_bytes:,} bytes; nothing was kept"
            )

    def spend(self, n_bytes: int) -> None:
        """Count bytes that were written."""
        self.written += n_bytes
        self.check(self.written)
        if self.on_bytes:
            self.on_bytes(self.written)

    def spend_read(self, n_bytes: int) -> None:
        """Count bytes that came out of a packed stream, whether they are written or not."""
        self.read += n_bytes
        if self.read > 2 * self.max_bytes + _FREE_BYTES:
            self.check(self.read)

    def count(self, n_members: int = 1) -> None:
        """Count files and folders."""
        self.members += n_members
        if self.members > self.max_members:
            raise UserError(
                f"{self.name} holds more than {self.max_members:,} files; nothing was kept"
            )

    def make_folder(self, folder: Path) -> None:
        """Make a folder and those above it, each counted once."""
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for one in reversed(missing):
            self.count()
            one.mkdir()


def unpack(
    archive: Path,
    folder: Path,
    *,
    max_bytes: int,
    max_members: int = MAX_MEMBERS,
    on_bytes: OnBytes | None = None,
) -> None:
    """Unpack `archive`, and what is packed in it, into the new folder `folder`.

    max_bytes: the most that may be written. on_bytes: called with the number so far.
    Raises UserError for an archive that is broken, truncated, too large or unsafe; the folder is
    removed again then.
    """
    with open_file(archive) as file:
        n_packed = os.fstat(file.fileno()).st_size
    most = min(max_bytes, _FREE_BYTES + MAX_RATIO * n_packed)
    budget = Budget(_shown(archive.name), most, max_members, on_bytes)
    folder.mkdir(parents=True)
    try:
        unpack_into(archive, folder, budget)
        unpack_nested(folder, budget)
    except UserError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def unpack_nested(folder: Path, budget: Budget) -> None:
    """Unpack archives within a folder, each in its place (LPAQA's TREx_train.tar.gz).

    Raises UserError for more than `MAX_DEPTH` archives within one another.
    """
    waiting = [(path, 1) for path in _archives_in(folder)]
    while waiting:
        inner, depth = waiting.pop(0)
        if depth > MAX_DEPTH:
            raise UserError(
                f"{budget.name} holds archives within archives, more than {MAX_DEPTH} deep; "
                "unpack it and give the folder with the data"
            )
        try:
            brought = _unpack_in_place(inner, budget)
        except OSError as error:
            raise UserError(f"{budget.name} can't be unpacked: {_reason(error)}") from error
        waiting += [(path, depth + 1) for one in brought for path in _archives_in(one)]


def _unpack_in_place(inner: Path, budget: Budget) -> list[Path]:
    """Put what an archive holds in its stead; what came. Files that were there before stay."""
    beside = Path(tempfile.mkdtemp(dir=inner.parent))
    unpack_into(inner, beside, budget)
    inner.unlink()
    brought = []
    for child in sorted(beside.iterdir()):
        target = inner.parent / child.name
        if not target.exists():
            brought.append(child.rename(target))
    shutil.rmtree(beside)
    return brought


def _archives_in(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if is_archive(path) else []
    return sorted(one for one in path.rglob("*") if is_archive(one) and one.is_file())


def unpack_into(archive: Path, folder: Path, budget: Budget) -> None:
    """Unpack one archive into a folder. Raises UserError if it is broken, too large or unsafe."""
    shown = _shown(archive.name)
    try:
        with open_file(archive) as raw:
            if archive.name.lower().endswith(".zip"):
                _unpack_zip(raw, shown, folder, budget)
            else:
                _unpack_tar(raw, shown, folder, budget)
    except _BROKEN as error:
        raise UserError(f"{shown} can't be unpacked: {_reason(error)}") from error


class _Watched:
    """A stream whose single reads are bounded and whose bytes are counted.

    The standard library reads a header of the length that it states: gigabytes, if it says so.
    """

    def __init__(self, stream: IO[bytes], shown: str, count: OnBytes) -> None:
        self._stream = stream
        self._shown = shown
        self._count = count

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes. Raises UserError for more than a header needs."""
        if size > _MAX_HEADER:
            raise UserError(f"{self._shown} has a header of {size:,} bytes: it was made to do harm")
        data = self._stream.read(_MAX_HEADER + 1 if size < 0 else size)
        if len(data) > _MAX_HEADER:
            raise UserError(f"{self._shown} has no end: it was made to do harm")
        self._count(len(data))
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """As of a file; forward, the bytes on the way are counted."""
        before = self._stream.tell()
        if whence == 0 and offset > before:
            self._count(offset - before)
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """As of a file."""
        return self._stream.tell()

    def seekable(self) -> bool:
        """As of a file."""
        return True

    def close(self) -> None:
        """Nothing: who opened the stream closes it."""


def _unpack_zip(raw: BinaryIO, shown: str, folder: Path, budget: Budget) -> None:
    watched = _Watched(raw, shown, lambda _: None)  # packed bytes are bounded by the file
    with zipfile.ZipFile(cast(IO[bytes], watched)) as opened:
        members = opened.infolist()
        if budget.members + len(members) > budget.max_members:
            budget.count(len(members))
        # What it declares may be a lie, but an honest bomb needn't be unpacked first.
        budget.check(budget.written + sum(member.file_size for member in members))
        for member in members:
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise UserError(f"{shown} holds a link or device, {member.filename!r}")
            if member.flag_bits & 0x1:
                raise UserError(f"{shown} is encrypted: unpack it and import the folder")
            target = folder / safe_path(shown, member.filename)
            if member.is_dir():
                budget.make_folder(target)
                continue
            # Of other methods, a piece of the packed bytes is unpacked in one go.
            gentle = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            with opened.open(member) as source:
                _copy(source, target, budget, _CHUNK if gentle else _SMALL_CHUNK)


def _unpack_tar(raw: BinaryIO, shown: str, folder: Path, budget: Budget) -> None:
    begin = raw.read(8)
    raw.seek(0)
    opener = next((one for magic, one in _OPENERS if begin.startswith(magic)), None)
    stream = cast(IO[bytes], opener(raw, "rb")) if opener else raw
    watched = _Watched(stream, shown, budget.spend_read)
    with tarfile.open(fileobj=cast(IO[bytes], watched), mode="r:") as opened:
        for member in opened:
            if not (member.isfile() or member.isdir()):
                raise UserError(f"{shown} holds a link or device, {member.name!r}")
            target = folder / safe_path(shown, member.name)
            if member.isdir():
                budget.make_folder(target)
                continue
            source = opened.extractfile(member)
            if source is not None:
                with source:
                    _copy(source, target, budget, _CHUNK)


def safe_path(shown: str, name: str) -> PurePath:
    """The path of a member within its folder. shown: what it is in, for people.

    Raises UserError if it leads out, isn't UTF-8 text, or is longer or deeper than file systems
    take.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    drive = path.parts and path.parts[0].endswith(":")
    if path.is_absolute() or ".." in path.parts or drive or "\0" in name:
        raise UserError(f"{shown} holds the path {_short(name)}, which leads out of its folder")
    try:
        sizes = [len(part.encode()) for part in path.parts]
    except UnicodeEncodeError:
        raise UserError(
            f"{shown} holds the name {_short(name)}, which is not UTF-8 text: rename it"
        ) from None
    if len(sizes) > MAX_FOLDERS_DEEP:
        raise UserError(
            f"{shown} holds {_short(name)}, which lies more than {MAX_FOLDERS_DEEP} folders deep"
        )
    if any(size > MAX_NAME_BYTES for size in sizes):
        raise UserError(
            f"{shown} holds {_short(name)}, a name of more than {MAX_NAME_BYTES} bytes: shorten it"
        )
    return path


def _shown(name: str) -> str:
    """A name as it can be printed, even one that is not UTF-8 text."""
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
        return f"{error.strerror or error} (what was there before is untouched)"
    said = str(error).splitlines() or [type(error).__name__]
    return f"it is broken or truncated ({ascii(said[0])[1:-1]})"
