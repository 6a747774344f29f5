"""Atomic operations on files and folders: write, replace and remove.

Files that are being written or removed are in a hidden folder `.work-*` next to the target. The
process that uses this folder holds the lock in it. A folder whose lock is free was left by a killed
process; the next process that works in the same parent folder deletes it.
"""

import gzip
import io
import os
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from lama_core.errors import UserError, reason_of

WORK = ".work-"
LOCK = ".lock"
MAX_FILE = 64 << 20
MAX_TABLE = 4 << 30  # bytes of a table of a run
MAX_UNPACKED = 1 << 30  # bytes of an unpacked gzip file
MAX_LINE = 1 << 16
MAX_FOLDERS = 256  # of a path; the standard library makes missing parents recursively
_REPLACING = ".replacing.lock"
_OLD = ".old"  # suffix of a folder that is being replaced
_CHUNK = 1 << 20
LOCK_SECONDS = 10.0


@contextmanager
def hold_lock(file: Path, what: str, *, seconds: float | None = None) -> Iterator[None]:
    """Hold a lock between processes.

    Args:
        file: The lock file.
        what: What a process that holds the lock does, such as `is changing FOLDER`.
        seconds: How long to wait for another process; None: `LOCK_SECONDS`.

    Raises:
        UserError: If another process still holds the lock then; it names the process.
    """
    try:
        held = FileLock(file).acquire(timeout=LOCK_SECONDS if seconds is None else seconds)
    except Timeout as error:
        raise UserError(
            f"Another process{_holder(file)} {what}. Wait for it or stop it, then try again."
        ) from error
    with held:
        yield


def _holder(file: Path) -> str:
    """Return the process that has a lock file open, in brackets; empty if it isn't known."""
    import psutil  # slow to import

    path = os.path.realpath(file)
    # On Windows, listing open files can take without end.
    for process in psutil.process_iter() if sys.platform != "win32" else ():
        with suppress(psutil.Error, OSError):
            if any(one.path == path for one in process.open_files()):
                command = " ".join(shlex.join(process.cmdline()).split())[:200]
                is_stopped = process.status() == psutil.STATUS_STOPPED
                return f" ({process.pid}: {command}{', stopped' if is_stopped else ''})"
    return ""


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """Yield a new hidden folder in `parent`; it and its contents are deleted after the block."""
    parent.mkdir(parents=True, exist_ok=True)
    _clear_once(parent.absolute())
    while True:
        folder = Path(tempfile.mkdtemp(prefix=WORK, dir=parent))
        lock = FileLock(folder / LOCK)
        try:
            lock.acquire(timeout=0)
            break
        except (Timeout, FileNotFoundError):
            continue  # another process deleted it as a leftover before it was locked
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def clear_leftovers(parent: Path) -> None:
    """Delete the work folders that killed processes left in `parent`."""
    for leftover in parent.glob(f"{WORK}*"):
        try:
            with FileLock(leftover / LOCK).acquire(timeout=0):
                shutil.rmtree(leftover, ignore_errors=True)
        except (Timeout, OSError):
            continue  # in use, or in a read-only folder


_clear_once = cache(clear_leftovers)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path, renamed to `path` when the block ends without an error.

    A link is followed. To a device or pipe, the bytes are written instead.

    Raises:
        OSError: If the file can't be written; it names `path`.
    """
    try:
        with suppress(FileNotFoundError):
            path.stat()  # raises OSError if links form a loop
        if path.exists() and not path.is_file() and not path.is_dir():
            with tempfile.TemporaryDirectory() as folder:
                yield (part := Path(folder) / path.name)
                # Non-blocking: opening a pipe would wait for a reader.
                number = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
                with os.fdopen(number, "wb") as out, part.open("rb") as written:
                    if sys.platform != "win32":
                        os.set_blocking(number, True)
                    shutil.copyfileobj(written, out)
            return
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        with work_folder(target.parent) as work:
            part = work / target.name
            part.touch()
            yield part
            with part.open("rb") as written:
                os.fsync(written.fileno())
            part.replace(target)
    except OSError as error:  # perhaps without a file name, or with one in the work folder
        if error.filename is None or WORK in str(error.filename):
            error.filename, error.filename2 = str(path), None
        raise


def check_path(given: str | Path) -> None:
    """Raise UserError for an empty path, or one with more than `MAX_FOLDERS` folders."""
    if not str(given).strip():
        raise UserError("The path is empty: name a file or folder.")
    if (n_folders := len(Path(given).parts)) > MAX_FOLDERS:
        raise UserError(
            f"{str(given)[:60]!a}... has {n_folders} folders inside each other; the maximum is "
            f"{MAX_FOLDERS}."
        )


def user_path(given: str | Path) -> Path:
    """Return a path that the user typed, with `~` expanded; the path doesn't have to exist.

    Raises:
        UserError: If no file can have this path, `~NAME` isn't a user of this machine, or as
            `check_path`.
    """
    check_path(given)
    try:
        path = Path(given).expanduser()
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return path
    except (OSError, ValueError, RuntimeError) as error:
        raise UserError(f"{str(given)[:60]!a} can't be a path: {reason_of(error)}.") from error
    return path


def open_file(path: Path, max_bytes: int | None = None) -> BufferedReader:
    """Open a regular file for reading.

    Raises:
        UserError: If the file can't be read, has more than `max_bytes`, or is a folder, pipe,
            socket or device.
    """
    try:
        # Non-blocking: opening a pipe would wait for a writer.
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        status = os.fstat(number)
        if stat.S_ISREG(status.st_mode) and (max_bytes is None or status.st_size <= max_bytes):
            return os.fdopen(number, "rb")
        os.close(number)
    except (OSError, ValueError) as error:  # ValueError: an invalid file name
        raise read_error(path, error) from error
    if stat.S_ISREG(status.st_mode):
        raise _too_large(path, max_bytes or 0)
    raise UserError(f"{path} can't be read: not a regular file.")


def read_error(path: Path, error: OSError | ValueError) -> UserError:
    """Return the error for a file that the operating system can't open or read."""
    return UserError(f"{path} can't be read: {reason_of(error)}.")


def _too_large(path: Path, max_bytes: int) -> UserError:
    return UserError(f"{path} is larger than {format_bytes(max_bytes)}, the limit.")


def read_file(path: Path, max_bytes: int = MAX_FILE) -> bytes:
    """Return all bytes of a regular file.

    Raises:
        UserError: As `open_file`, or if the file grows beyond `max_bytes` while it is read.
    """
    with open_file(path, max_bytes) as file:
        data = _read(file, path, max_bytes + 1)
    if len(data) > max_bytes:
        raise _too_large(path, max_bytes)
    return data


def copy_file(source: Path, target: Path, max_bytes: int) -> int:
    """Copy a regular file and return its number of bytes. Raises UserError as `read_file`."""
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
        return file.read(n_bytes) or b""  # None: a special file without data yet
    except OSError as error:
        raise read_error(path, error) from error


def write_text_atomically(path: Path, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    with atomic_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_gzip_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a gzip file atomically; the same lines give the same bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as stream:
        stream.writelines(f"{line}\n".encode() for line in lines)
    with atomic_file(path) as part:
        part.write_bytes(buffer.getvalue())


def read_gzip_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a gzip file in UTF-8.

    Raises:
        UserError: If the file unpacks to more than 1 GiB.
        OSError: If the file isn't a valid gzip file; also EOFError, zlib.error, UnicodeDecodeError.
    """
    n_bytes = 0
    with open_file(path, MAX_FILE) as packed, gzip.open(packed) as stream:
        while line := stream.readline(MAX_LINE):
            n_bytes += len(line)
            if n_bytes > MAX_UNPACKED:
                raise UserError(f"{path} unpacks to more than {format_bytes(MAX_UNPACKED)}")
            yield line.decode().rstrip("\n")


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files in a folder, which may change meanwhile; follow no links."""
    n_bytes = 0
    for parent, _folders, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # renamed since the folder was listed
                n_bytes += os.lstat(os.path.join(parent, name)).st_size
    return n_bytes


def format_bytes(n_bytes: int) -> str:
    """Return a number of bytes as text, such as `93 MB`."""
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= step:
            return f"{n_bytes / step:.3g} {unit}"
    return f"{n_bytes} B"


def remove_folder(folder: Path) -> None:
    """Delete a folder and its contents: move it to a work folder, then delete file by file.

    Links inside are deleted, their targets aren't.

    Raises:
        UserError: If the folder itself is a link, or can't be deleted.
    """
    if folder.is_symlink():
        raise UserError(f"{folder} is a symbolic link. Delete the link itself.")
    try:
        with work_folder(folder.parent) as trash:
            folder.rename(trash / folder.name)
    except OSError as error:
        raise UserError(f"{folder} can't be removed: {reason_of(error)}.") from error


def replace_folder(new: Path, place: Path) -> None:
    """Move the folder `new` to `place`, replacing any folder there.

    If the process is killed before the end, `current_folder` returns either the complete old folder
    or the complete new one.
    """
    with lock_for_changes(place):
        if place.exists():
            place.rename(_set_aside(place))
        new.rename(place)
        finish_replacement(place)


@contextmanager
def lock_for_changes(place: Path) -> Iterator[None]:
    """Lock a file or folder for changes; first finish a replacement that was interrupted there.

    Hold the lock from reading to writing a small file, so that no change of another process is
    lost. There is one lock for all files in the parent folder, which is created; don't nest it.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    lock = place.parent / _REPLACING
    with hold_lock(lock, f"is changing {place.parent}"):
        finish_replacement(place)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)  # before the lock is released


def finish_replacement(place: Path) -> None:
    """Finish an interrupted replacement: delete the old folder, or move it back to a free `place`.

    Call this inside `lock_for_changes`.
    """
    old = _set_aside(place)
    if old.exists() and place.exists():
        remove_folder(old)
    elif old.exists():
        old.rename(place)


def current_folder(place: Path) -> Path:
    """Return `place`; if a replacement was interrupted, the path to which the old folder moved."""
    old = _set_aside(place)
    return old if old.is_dir() and not place.exists() else place


def current_names(parent: Path) -> tuple[str, ...]:
    """Return the sorted names of the folders in `parent`, including interrupted replacements.

    Hidden folders and links are excluded.

    Raises:
        UserError: If `parent` can't be read.
    """
    names = {
        name[1 : -len(_OLD)] if name.startswith(".") and name.endswith(_OLD) else name
        for name in (child.name for child in folders_in(parent))
    }
    return tuple(sorted(name for name in names if name and not name.startswith(".")))


def folders_in(parent: Path) -> list[Path]:
    """Return the folders in `parent` sorted by path, without links; [] if `parent` doesn't exist.

    Raises:
        UserError: If `parent` can't be read.
    """
    try:
        children = sorted(parent.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise read_error(parent, error) from error
    return [child for child in children if child.is_dir() and not child.is_symlink()]


def _set_aside(place: Path) -> Path:
    return place.with_name(f".{place.name}{_OLD}")
