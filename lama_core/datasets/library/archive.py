"""Unpacking of archives from elsewhere: nothing leaves the folder, nothing fills the disk.

Refused, before or while unpacking: absolute paths and `..`, links and devices, encrypted members,
more members or more bytes than stated. The sizes that an archive declares are not trusted: bytes
are counted as they are written.
"""

import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO

from lama_core.errors import UserError

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_MEMBERS = 50_000
_CHUNK = 1 << 20

OnBytes = Callable[[int], None]


def is_archive(path: Path) -> bool:
    """Whether the file's name ends like an archive that `unpack` reads."""
    return path.name.lower().endswith(SUFFIXES)


def unpack(
    archive: Path,
    folder: Path,
    *,
    max_bytes: int,
    max_members: int = MAX_MEMBERS,
    on_bytes: OnBytes | None = None,
) -> None:
    """Unpack `archive` into the new folder `folder`; on a failure the folder is removed again.

    max_bytes: the most that may be written. on_bytes: called with each number of bytes written.
    Raises UserError for an archive that is broken, truncated, too large or unsafe.
    """
    folder.mkdir(parents=True)
    budget = _Budget(archive.name, max_bytes, on_bytes)
    try:
        if archive.name.lower().endswith(".zip"):
            _unpack_zip(archive, folder, budget, max_members)
        else:
            _unpack_tar(archive, folder, budget, max_members)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(f"{archive.name} can't be unpacked: {_reason(error)}") from error
    except UserError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


class _Budget:
    """Counts the bytes written and refuses more than the stated size."""

    def __init__(self, archive: str, max_bytes: int, on_bytes: OnBytes | None) -> None:
        self.archive = archive
        self.max_bytes = max_bytes
        self.on_bytes = on_bytes
        self.written = 0

    def check(self, n_bytes: int) -> None:
        if n_bytes > self.max_bytes:
            raise UserError(
                f"{self.archive} unpacks to more than {self.max_bytes:,} bytes; nothing was kept"
            )

    def spend(self, n_bytes: int) -> None:
        self.written += n_bytes
        self.check(self.written)
        if self.on_bytes:
            self.on_bytes(n_bytes)


def _unpack_zip(archive: Path, folder: Path, budget: _Budget, max_members: int) -> None:
    with zipfile.ZipFile(archive) as opened:
        members = opened.infolist()
        _check_count(archive, len(members), max_members)
        # What it declares may be a lie, but an honest bomb needn't be unpacked first.
        budget.check(sum(member.file_size for member in members))
        for member in members:
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise UserError(f"{archive.name} holds a link or device, {member.filename!r}")
            if member.flag_bits & 0x1:
                raise UserError(f"{archive.name} is encrypted: unpack it and import the folder")
            target = _inside(archive, folder, member.filename)
            if member.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            with opened.open(member) as source:
                _copy(source, target, budget)


def _unpack_tar(archive: Path, folder: Path, budget: _Budget, max_members: int) -> None:
    with tarfile.open(archive, "r:*") as opened:
        for count, member in enumerate(opened, start=1):
            _check_count(archive, count, max_members)
            if not (member.isfile() or member.isdir()):
                raise UserError(f"{archive.name} holds a link or device, {member.name!r}")
            target = _inside(archive, folder, member.name)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            source = opened.extractfile(member)
            if source is not None:
                with source:
                    _copy(source, target, budget)


def _check_count(archive: Path, count: int, max_members: int) -> None:
    if count > max_members:
        raise UserError(f"{archive.name} holds more than {max_members:,} files; nothing was kept")


def _inside(archive: Path, folder: Path, name: str) -> Path:
    """Where the member `name` goes. Raises UserError if that lies outside `folder`."""
    path = PurePosixPath(name.replace("\\", "/"))
    drive = path.parts and path.parts[0].endswith(":")
    if path.is_absolute() or ".." in path.parts or drive or "\0" in name:
        raise UserError(f"{archive.name} holds the path {name!r}, which leads out of its folder")
    return folder.joinpath(*path.parts)


def _copy(source: IO[bytes], target: Path, budget: _Budget) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        while chunk := source.read(_CHUNK):
            budget.spend(len(chunk))
            file.write(chunk)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f"{error.strerror or error} (what was there before is untouched)"
    return f"it is broken or truncated ({error})"
