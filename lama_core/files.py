"""Files and folders, written, replaced and removed whole or not at all.

What isn't whole yet, or is being removed, lies in a hidden folder `.work-*` beside its place. Its
maker holds the lock in it; one that nobody holds was left by a process that was killed, and is
cleared by the next process that works in the same place.
"""

import gzip
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from lama_core.errors import UserError

WORK = ".work-"
LOCK = ".lock"
MAX_FILE = 64 << 20
MAX_UNPACKED = 1 << 30  # of lines in gzip
MAX_LINE = 1 << 16
_REPLACING = ".replacing.lock"
_OLD = ".old"  # a folder whose replacement is under way
_CHUNK = 1 << 20


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """A hidden folder in `parent` to make something in; it goes with all that is left in it."""
    parent.mkdir(parents=True, exist_ok=True)
    _clear_once(parent.absolute())
    while True:
        folder = Path(tempfile.mkdtemp(prefix=WORK, dir=parent))
        lock = FileLock(folder / LOCK)
        try:
            lock.acquire(timeout=0)
            break
        except (Timeout, FileNotFoundError):
            continue  # another process took it for a leftover before it was locked
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


@cache
def _clear_once(parent: Path) -> None:
    clear_leftovers(parent)


def clear_leftovers(parent: Path) -> None:
    """Remove what processes that were killed left half-made or half-removed in a folder."""
    for left in parent.glob(f"{WORK}*"):
        try:
            with FileLock(left / LOCK).acquire(timeout=0):
                shutil.rmtree(left, ignore_errors=True)
        except (Timeout, OSError):
            continue  # at work; or of a place that can't be written, where it harms nobody


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path that becomes `path` when the block ends without an error."""
    with work_folder(path.parent) as folder:
        part = folder / path.name
        part.touch()
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(path)


def given_path(given: str | Path) -> Path:
    """A path as a person gives it, with `~` expanded.

    Raises UserError for one that no file can have, and for the home of somebody who isn't here.
    """
    try:
        path = Path(given).expanduser()
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return path
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{str(given)[:60]!a} can't be a path: {reason}.") from error
    return path


def open_file(path: Path, max_bytes: int | None = None) -> BufferedReader:
    """A plain file, opened to be read.

    Raises UserError if it can't be, for one of more than `max_bytes`, and for a folder, pipe,
    socket or device, whose end may never come.
    """
    try:
        # Without waiting: a pipe would hold the caller until somebody writes into it.
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        status = os.fstat(number)
        if stat.S_ISREG(status.st_mode) and (max_bytes is None or status.st_size <= max_bytes):
            return os.fdopen(number, "rb")
        os.close(number)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise cant_be_read(path, error) from error
    if stat.S_ISREG(status.st_mode):
        raise _too_large(path, max_bytes or 0)
    raise UserError(f"{path} is no plain file: it can't be read.")


def cant_be_read(path: Path, error: OSError | ValueError) -> UserError:
    """What is said of a file that the system doesn't give."""
    reason = error.strerror if isinstance(error, OSError) else error
    return UserError(f"{path} can't be read: {reason}.")


def _too_large(path: Path, max_bytes: int) -> UserError:
    return UserError(f"{path} is larger than {bytes_text(max_bytes)}, the most that is read.")


def read_file(path: Path, max_bytes: int = MAX_FILE) -> bytes:
    """All bytes of a plain file, or none: a file that grows is read no further than the bound.

    Raises UserError as `open_file` does.
    """
    with open_file(path, max_bytes) as file:
        data = _read(file, path, max_bytes + 1)
    if len(data) > max_bytes:
        raise _too_large(path, max_bytes)
    return data


def copy_file(source: Path, target: Path, max_bytes: int) -> int:
    """Copy the bytes of a plain file; how many. Raises UserError as `read_file` does."""
    n_bytes = 0
    with open_file(source, max_bytes) as file, target.open("wb") as out:
        while chunk := _read(file, source, _CHUNK):
            n_bytes += len(chunk)
            if n_bytes > max_bytes:
                raise _too_large(source, max_bytes)
            out.write(chunk)
    return n_bytes


def _read(file: BinaryIO, path: Path, n_bytes: int) -> bytes:
    try:
        return file.read(n_bytes) or b""  # None: a file of the system's that would wait
    except OSError as error:
        raise cant_be_read(path, error) from error


def write_text_whole(path: Path, text: str) -> None:
    """Write a UTF-8 text file whole or not at all."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_packed_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines in gzip, whole or not at all; the same lines give the same bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as stream:
        stream.writelines(f"{line}\n".encode() for line in lines)
    with whole_file(path) as part:
        part.write_bytes(buffer.getvalue())


def read_packed_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file in gzip. Raises UserError if it unpacks to more than a GB.

    Of a file that is none: OSError, EOFError, zlib.error, UnicodeDecodeError.
    """
    n_bytes = 0
    with open_file(path, MAX_FILE) as packed, gzip.open(packed) as stream:
        while line := stream.readline(MAX_LINE):
            n_bytes += len(line)
            if n_bytes > MAX_UNPACKED:
                raise UserError(f"{path} unpacks to more than {bytes_text(MAX_UNPACKED)}")
            yield line.decode().rstrip("\n")


def folder_bytes(folder: Path) -> int:
    """Bytes of all files in a folder, which may be growing or shrinking; links aren't followed."""
    sizes = 0
    for parent, _folders, names in os.walk(folder):
        for name in names:
            try:
                sizes += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue  # renamed between the listing and the look
    return sizes


def bytes_text(n_bytes: int) -> str:
    """Bytes as a person reads them: `93 MB`."""
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= step:
            return f"{n_bytes / step:.3g} {unit}"
    return f"{n_bytes} B"


def remove_folder(folder: Path) -> None:
    """Remove a folder and all in it: out of sight at once, then file by file.

    Links in it are removed, not what they lead to.
    Raises UserError if the folder is a link itself, or can't be removed.
    """
    if folder.is_symlink():
        raise UserError(f"{folder} is a link: remove it where it was made.")
    try:
        with work_folder(folder.parent) as gone:
            folder.rename(gone / folder.name)
    except OSError as error:
        raise UserError(f"{folder} can't be removed: {error.strerror}.") from error


def replace_folder(new: Path, place: Path) -> None:
    """Put the folder `new` at `place`, in the stead of what is there.

    A process that is killed meanwhile leaves the old one or the new one, whole, where
    `kept_folder` finds it.
    """
    with changing(place):
        if place.exists():
            place.rename(_set_aside(place))
        new.rename(place)
        end_replacement(place)


@contextmanager
def changing(place: Path) -> Iterator[None]:
    """Alone in changing what stands at `place`; a replacement that was killed is ended first."""
    lock = FileLock(place.parent / _REPLACING)
    with lock:
        end_replacement(place)
        try:
            yield
        finally:
            Path(lock.lock_file).unlink(missing_ok=True)  # while it is held


def end_replacement(place: Path) -> None:
    """Remove the old folder where the new one has come, else put it back. To be called alone."""
    old = _set_aside(place)
    if old.exists() and place.exists():
        remove_folder(old)
    elif old.exists():
        old.rename(place)


def kept_folder(place: Path) -> Path:
    """`place`, or where what belongs there is since its replacement was killed."""
    old = _set_aside(place)
    return old if old.is_dir() and not place.exists() else place


def kept_names(parent: Path) -> tuple[str, ...]:
    """Names of the folders in `parent`, sorted, of those whose replacement was killed too.

    Hidden ones aren't named, and no links. Raises UserError if `parent` can't be read.
    """
    found = (child.name for child in folders_in(parent))
    names = (
        name[1 : -len(_OLD)] if name.startswith(".") and name.endswith(_OLD) else name
        for name in found
    )
    return tuple(sorted({name for name in names if name and not name.startswith(".")}))


def folders_in(parent: Path) -> list[Path]:
    """The folders in `parent`, in order of their names, no links; none if it isn't there.

    Raises UserError if `parent` can't be read.
    """
    try:
        children = sorted(parent.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise cant_be_read(parent, error) from error
    return [child for child in children if child.is_dir() and not child.is_symlink()]


def _set_aside(place: Path) -> Path:
    return place.with_name(f".{place.name}{_OLD}")
