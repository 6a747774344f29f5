"""Files and folders, written and removed whole or not at all."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lama_core.errors import UserError

REMOVED = ".removed-"
MAX_FILE = 64 << 20


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to it when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.chmod(0o644)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def open_file(path: Path) -> BinaryIO:
    """A plain file, opened to be read.

    Raises UserError if it can't be, and for a folder, pipe, socket or device, whose end may never
    come.
    """
    try:
        # Without waiting: a pipe would hold the caller until somebody writes into it.
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        if stat.S_ISREG(os.fstat(number).st_mode):
            return os.fdopen(number, "rb")
        os.close(number)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{path} can't be read: {reason}.") from error
    raise UserError(f"{path} is no plain file: it can't be read.")


def read_file(path: Path, max_bytes: int = MAX_FILE) -> bytes:
    """All bytes of a plain file, or none: a file that grows is read no further than the bound.

    Raises UserError as `open_file` does, and for a file of more than `max_bytes`.
    """
    with open_file(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise UserError(f"{path} is larger than {bytes_text(max_bytes)}, the most that is read.")
    return data


def write_text_whole(path: Path, text: str) -> None:
    """Write a UTF-8 text file whole or not at all."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


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

    Links in it are removed, not what they lead to. What a removal that was killed left behind in
    the same place goes with it.
    Raises UserError if the folder is a link itself, or can't be removed.
    """
    if folder.is_symlink():
        raise UserError(f"{folder} is a link: remove it where it was made.")
    try:
        gone = Path(tempfile.mkdtemp(prefix=REMOVED, dir=folder.parent))
        try:
            folder.rename(gone / folder.name)
        except OSError:
            gone.rmdir()
            raise
    except OSError as error:
        raise UserError(f"{folder} can't be removed: {error.strerror}.") from error
    for left in folder.parent.glob(f"{REMOVED}*/*"):
        shutil.rmtree(left.parent, ignore_errors=True)
