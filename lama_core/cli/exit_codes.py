"""Error messages of commands that fail, and the log files for bugs."""

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

from lama_core import __version__, paths, plugins
from lama_core.errors import UserError, reason_of
from lama_core.files import write_text_atomically

LOG_FOLDER = "faults"
N_LOGS = 20
LIBRARIES = ("torch", "transformers", "numpy", "pandas", "pyarrow", "cyclopts")
ELSEWHERE = "or set LAMA_HOME to a folder on another disk"

# Errors of the operating system that aren't bugs, with their remedies.
REASONS = {
    errno.ENAMETOOLONG: "the name is too long (255 bytes at most): choose a shorter one",
    errno.ENOSPC: f"the disk is full: free some space, {ELSEWHERE}",
    errno.EDQUOT: f"your disk quota is used up: free some space, {ELSEWHERE}",
    errno.EFBIG: f"the file would exceed the size limit: raise `ulimit -f`, {ELSEWHERE}",
    errno.EROFS: f"the disk is read-only: make it writable, {ELSEWHERE}",
    errno.EACCES: f"permission denied: change the permissions, {ELSEWHERE}",
    errno.EPERM: f"permission denied: change the permissions, {ELSEWHERE}",
    errno.EIO: "input/output error: check the disk",
    errno.EEXIST: "the name is already in use: choose another",
    errno.EBUSY: "another program is using it: try again later",
    errno.ENXIO: "no such device, or a pipe without a reader: choose another",
    errno.ENODEV: "the device doesn't support this: choose another",
    errno.ENOTDIR: "a part of the path isn't a folder: choose another path",
    errno.EISDIR: "it is a folder: name a file",
    errno.ELOOP: "its symbolic links form a loop: fix them, or choose another path",
    errno.EMFILE: "too many files are open: raise `ulimit -n`",
    errno.ENFILE: "too many files are open on this machine: close some programs",
}
NO_MEMORY = (
    "Not enough memory: choose a smaller model, use fewer models or queries at once, or close "
    "other programs."
)


def open_streams() -> None:
    """Make the standard streams safe to use.

    A closed stream is connected to the null device, so that no other file gets its
    file descriptor.
    Characters that the output encoding lacks are written as escapes.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            silence(number)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence(number: int) -> None:
    """Connect a standard stream to the null device, so that flushing it can't fail again."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)


def check_arguments(words: list[str]) -> None:
    """Raise UserError for a word that isn't valid UTF-8, such as a file name in Latin-1."""
    if word := next((word for word in words if not _is_utf8(word)), ""):
        raise UserError(f"{word[:60]!r} is not in UTF-8: type it in UTF-8, or rename the file.")


def check_home() -> None:
    """Raise UserError if LAMA_HOME can't be a folder; the folder need not exist yet."""
    home = os.environ.get("LAMA_HOME")
    if home is None:
        return
    remedy = "set it to a folder, or unset it"
    if not home.strip():
        raise UserError(f"LAMA_HOME is empty: {remedy}.")
    if not _is_utf8(home):
        raise UserError(f"LAMA_HOME {home[:60]!r} is not in UTF-8: {remedy}.")
    if home.startswith("~"):
        raise UserError(f"LAMA_HOME is {home[:60]!r}: `~` is not expanded here, {remedy}.")
    path = Path(home)
    try:
        # The folder is created later, so check its nearest existing parent.
        existing = next(p for p in (path, *path.absolute().parents) if os.path.lexists(p))
        is_folder = existing.is_dir()
        os.stat(existing)
        is_long = max(len(os.fsencode(part)) for part in path.parts) > 255
    except OSError as error:
        raise UserError(f"LAMA_HOME {home[:60]!r}: {reason_of(error)}: {remedy}.") from error
    if not is_folder:
        raise UserError(f"LAMA_HOME is {home[:60]!r}, which is not a folder: {remedy}.")
    if is_long:
        raise UserError(f"LAMA_HOME {home[:60]!r}: a name has over 255 bytes: {remedy}.")


def expected_error(error: Exception) -> str | None:
    """Return the message for a user's mistake or a system error; None for a bug.

    Libraries written in Rust give the system's error number in the message, and PyTorch raises
    RuntimeError if memory runs out.
    """
    if isinstance(error, UserError):
        return str(error)
    text = str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return NO_MEMORY
    if isinstance(error, RuntimeError) and "home directory" in text:
        as_paths = [re.sub(r"^(--[\w-]+=)?(file:)?", "", word) for word in sys.argv[1:]]
        unknown = (
            word
            for word, path in zip(sys.argv[1:], as_paths, strict=True)
            if path.startswith("~") and os.path.expanduser(path) == path
        )
        return f"{next(unknown, '~')[:60]!r}: unknown user. Write the full path."
    if isinstance(error, OSError):
        name = error.filename2 or error.filename
        return _system_error(
            error.errno, os.fsdecode(name) if isinstance(name, str | bytes | Path) else ""
        )
    number = re.search(r"\(os error (\d+)\)", text)
    return _system_error(int(number[1]), "") if number else None


def write_log(error: Exception) -> Path:
    """Write a log file for a bug, delete all but the latest `N_LOGS` logs, and return its path.

    Raises:
        OSError: If the file can't be written.
    """
    folder = paths.cache_dir() / LOG_FOLDER
    now = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
    log = folder / f"{now}-{os.getpid()}.log"
    lines = [
        f"command: {shlex.join(sys.argv)}",
        f"versions: lama_core {__version__}, Python {platform.python_version()}, "
        + ", ".join(f"{name} {_version(name)}" for name in LIBRARIES),
        f"machine: {platform.platform()}",
        "".join(traceback.format_exception(error)),
    ]
    write_text_atomically(log, "\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8"))
    for old in sorted(folder.glob("*.log"))[:-N_LOGS]:
        old.unlink(missing_ok=True)
    return log


def bug_message(error: Exception) -> str:
    """Write a log for a bug; return the message that names it, and the plug-in if it is one's."""
    summary = f"{type(error).__name__}: {error}"[:300]
    try:
        details = f"the details are in {write_log(error)}"
    except OSError as write_error:
        details = f"the details can't be saved ({reason_of(write_error)})"
    if whose := plugins.blame(error):
        return f"{whose} Report it to its authors; {details}."
    return f"A bug in lama-explorer, please report it: {summary}; {details}."


def _system_error(number: int | None, name: str) -> str | None:
    home = os.environ.get("LAMA_HOME")
    if number == errno.ENOENT:
        try:
            os.getcwd()
        except FileNotFoundError:
            return "The current folder was deleted: change to another folder."
        if name and home and not os.path.isdir(home):
            both = os.path.abspath(name), os.path.abspath(home)
            if os.path.commonpath(both) in both:
                return f"{name} can't be created: set LAMA_HOME to another folder."
    if number not in REASONS:
        return None
    short = f"{name[:60]}…" if len(name) > 255 else name
    return f"{short or 'The output or a file'} can't be read or written: {REASONS[number]}."


def _is_utf8(word: str) -> bool:
    return word.encode("utf-8", "replace").decode("utf-8") == word


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"
