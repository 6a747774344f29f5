"""How a command ends that can't go on: what is said of it, and where the details are kept."""

import errno
import io
import os
import platform
import re
import shlex
import sys
import time
import traceback
from importlib import metadata
from pathlib import Path

from lama_core import __version__, paths
from lama_core.errors import UserError
from lama_core.files import write_text_whole

FAULTS = "faults"
KEPT = 20
LIBRARIES = ("torch", "transformers", "numpy", "pandas", "pyarrow", "cyclopts")
ELSEWHERE = "or set LAMA_HOME to a folder elsewhere"

# What the system says no to, with the remedy: of the machine or the user, and no fault of ours.
REASONS = {
    errno.ENAMETOOLONG: "the name is too long (255 bytes at most): choose a shorter one",
    errno.ENOSPC: f"the disk is full: free some of it, {ELSEWHERE}",
    errno.EDQUOT: f"your share of the disk is full: free some of it, {ELSEWHERE}",
    errno.EFBIG: f"no file may grow so large here: raise `ulimit -f`, {ELSEWHERE}",
    errno.EROFS: f"the disk is read-only: make it writable, {ELSEWHERE}",
    errno.EACCES: f"you have no permission: get it, {ELSEWHERE}",
    errno.EPERM: f"you have no permission: get it, {ELSEWHERE}",
    errno.EIO: "the disk doesn't answer as it should: look whether it is whole",
    errno.EEXIST: "something of that name is there already: choose another",
    errno.EBUSY: "something else holds it: try again when it is done",
    errno.ENXIO: "it is a device or pipe that nothing stands behind: choose another",
    errno.ENODEV: "it is no device that can do this: choose another",
    errno.ENOTDIR: "a part of the path is no folder: choose another",
    errno.EISDIR: "it is a folder: name a file",
    errno.ELOOP: "its links lead in a circle: mend them, or choose another path",
    errno.EMFILE: "too many files are open: raise `ulimit -n`",
    errno.ENFILE: "too many files are open on this machine: close some programs",
}
NO_MEMORY = (
    "There is not enough memory for this: choose a smaller model, ask for less at once, or close "
    "other programs."
)


def open_streams() -> None:
    """Make the standard streams such that whatever is said can be written to them.

    Where one was closed, nothing stands in its place: no file is taken for it. A sign that an
    output's encoding lacks is written by its number.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            silence(number)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence(number: int) -> None:
    """Lead a standard stream to nowhere: what it still holds can't fail a second time."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def check_arguments(words: list[str]) -> None:
    """Raises UserError for a word that is no text: a file name in another encoding, mostly."""
    for word in words:
        if not _is_text(word):
            raise UserError(f"{word[:60]!r} is not in UTF-8: write it so, or rename the file.")


def check_home() -> None:
    """Raises UserError for a LAMA_HOME that can't be a folder. It need not be there yet."""
    home = os.environ.get("LAMA_HOME")
    if home is None:
        return
    remedy = "set it to a folder of your own, or not at all"
    if not home.strip():
        raise UserError(f"LAMA_HOME is empty: {remedy}.")
    if not _is_text(home):
        raise UserError(f"LAMA_HOME {home[:60]!r} is not in UTF-8: {remedy}.")
    if home.startswith("~"):
        raise UserError(f"LAMA_HOME is {home[:60]!r}: `~` means nothing here, {remedy}.")
    path = Path(home)
    try:
        # The nearest that there is: below it, the folder is made when it is needed.
        there = next(one for one in (path, *path.absolute().parents) if os.path.lexists(one))
        fits = there.is_dir()
        os.stat(there)
        long = max(len(os.fsencode(part)) for part in path.parts) > 255
    except OSError as error:
        raise UserError(f"LAMA_HOME {home[:60]!r}: {error.strerror}: {remedy}.") from error
    if not fits:
        raise UserError(f"LAMA_HOME is {home[:60]!r}, which is no folder: {remedy}.")
    if long:
        raise UserError(f"LAMA_HOME {home[:60]!r}: a name has over 255 bytes: {remedy}.")


def sentence_of(error: Exception) -> str | None:
    """What is said of a user's mistake, or of what the machine refused; None for a fault of ours.

    Libraries in Rust tell the system's number in the text of their errors, and PyTorch raises
    RuntimeError when memory is short.
    """
    if isinstance(error, UserError):
        return str(error)
    said = str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in said:
        return NO_MEMORY
    if isinstance(error, RuntimeError) and "home directory" in said:
        word = next((word for word in sys.argv[1:] if _has_no_home(word)), "~")
        return f"{word[:60]!r}: there is no such user here: write the path in full."
    if isinstance(error, OSError):
        return _of_system(error.errno, _name(error.filename2 or error.filename))
    number = re.search(r"\(os error (\d+)\)", said)
    return _of_system(int(number[1]), "") if number else None


def keep_details(error: Exception) -> Path:
    """Write a log file for a fault of ours, beside the last of those before; where it is.

    Raises OSError if it can't be written.
    """
    folder = paths.cache_dir() / FAULTS
    moment = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
    log = folder / f"{moment}-{os.getpid()}.log"
    lines = [
        f"command: {shlex.join(sys.argv)}",
        f"versions: lama_core {__version__}, Python {platform.python_version()}, "
        + ", ".join(f"{name} {_version(name)}" for name in LIBRARIES),
        f"machine: {platform.platform()}",
        "".join(traceback.format_exception(error)),
    ]
    text = "\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8")
    write_text_whole(log, text)
    for old in sorted(folder.glob("*.log"))[:-KEPT]:
        old.unlink(missing_ok=True)
    return log


def fault_sentence(error: Exception) -> str:
    """What is said of a fault of ours, and where its details are."""
    said = f"{type(error).__name__}: {error}"[:300]
    try:
        kept = f"the details are in {keep_details(error)}"
    except OSError as no:
        kept = f"the details can't be kept ({no.strerror})"
    return f"A fault of ours, please report it: {said}; {kept}."


def _of_system(number: int | None, name: str) -> str | None:
    if number == errno.ENOENT and name and _home_is_missing(name):
        return f"{name} can't be made: set LAMA_HOME to a folder that can."
    if number not in REASONS:
        return None
    return f"{_short(name) or 'The output or a file'} can't be read or written: {REASONS[number]}."


def _name(given: object) -> str:
    if isinstance(given, bytes):
        given = os.fsdecode(given)
    return given if isinstance(given, str) else str(given) if isinstance(given, Path) else ""


def _short(name: str) -> str:
    return f"{name[:60]}…" if len(name) > 255 else name


def _home_is_missing(name: str) -> bool:
    """Whether a path that isn't there is the user's own folder, or above or below it."""
    home = os.environ.get("LAMA_HOME")
    return (
        bool(home)
        and not os.path.isdir(str(home))
        and os.path.commonpath([os.path.abspath(name), os.path.abspath(str(home))])
        in (os.path.abspath(name), os.path.abspath(str(home)))
    )


def _has_no_home(word: str) -> bool:
    path = re.sub(r"^(--[\w-]+=)?(file:)?", "", word)
    return path.startswith("~") and os.path.expanduser(path) == path


def _is_text(word: str) -> bool:
    return word.encode("utf-8", "replace").decode("utf-8") == word


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"
