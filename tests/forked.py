"""A call in a process of its own, forked from this one: how it ended, what it said, what it took.

Whatever the call does (a crash, a hang, all the memory, closed streams) this process goes on.
"""

import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from lama_core.errors import UserError

if not hasattr(os, "fork"):
    pytest.skip("this system can't fork a process", allow_module_level=True)

import resource

MAX_SECONDS = 60.0
MAX_BYTES = 4 << 30
MAX_LINE = 2100  # characters of what is said to a user


@dataclass(frozen=True, slots=True)
class Ended:
    """status: exit status; negative for a signal. peak: bytes of resident memory."""

    status: int
    out: str
    said: str
    seconds: float
    peak: int


def forked(
    call: Callable[[], object],
    *,
    killed_after: float | None = None,
    closed: Sequence[int] = (),
    full: bool = False,
    encoding: str = "utf-8",
    file_bytes: int | None = None,
    files: int | None = None,
) -> Ended:
    """How the call ends; killed, at the latest, after MAX_SECONDS.

    A UserError is printed and ends with 2. closed: numbers of the streams that are closed. full:
    standard output is a full device. file_bytes, files: limits of a file's size and of open files.
    """
    out, said = (os.memfd_create(name) for name in ("out", "said"))
    began = time.monotonic()
    child = os.fork()
    if not child:
        sys.dont_write_bytecode = True  # a file that is cut by the limit or a kill would stay
        gc.freeze()  # looking through what was forked would copy its pages
        limits = {resource.RLIMIT_FSIZE: file_bytes, resource.RLIMIT_NOFILE: files}
        given = os.open(os.devnull, os.O_RDONLY)
        taken = os.open("/dev/full", os.O_WRONLY) if full else out
        _be(call, (given, taken, said), closed, encoding, limits)
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() - began > (MAX_SECONDS if killed_after is None else killed_after):
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    seconds = time.monotonic() - began
    texts = [os.pread(fd, 1 << 26, 0).decode(encoding, "backslashreplace") for fd in (out, said)]
    os.close(out)
    os.close(said)
    return Ended(os.waitstatus_to_exitcode(status), *texts, seconds, used.ru_maxrss * 1024)


def _be(
    call: Callable[[], object],
    streams: Sequence[int],
    closed: Sequence[int],
    encoding: str,
    limits: dict[int, int | None],
) -> NoReturn:
    """What the forked process does: it never returns."""
    status = 0
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            if number in closed:
                os.close(number)
                setattr(sys, name, None)
                continue
            mode, errors = "w" if number else "r", "strict" if number < 2 else "backslashreplace"
            opened = open(number, mode, encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
            setattr(sys, name, opened)
        for limit, value in limits.items():
            if value is not None:
                resource.setrlimit(limit, (value, value))
        call()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    except UserError as error:
        status = 2
        print(f"Error: {error}", file=sys.stderr)
    except BaseException:  # noqa: BLE001 - what the interpreter would do: it must not go on
        status = 70
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                continue  # closed or full, which is what is tested
        os._exit(status)


def check(ended: Ended, given: object, *, heard: bool = True) -> None:
    """Assert that it ended with an answer (0), or one line about a mistake (2), within bounds.

    heard: whether what it says can be written, and so is looked at.
    """
    about = f"{given}: {ended.status}: {ended.said[-1500:]}"
    assert ended.seconds < MAX_SECONDS, f"a hang: {about}"
    assert "Traceback (most recent call last)" not in ended.said, about
    assert ended.status in (0, 2), about
    assert ended.peak < MAX_BYTES, f"{ended.peak:,} bytes: {about}"
    if ended.status == 2 and heard:
        lines = [line for line in ended.said.splitlines() if line.strip()]
        wrong = [line for line in lines if line.startswith(("Error:", '{"error"'))]
        assert len(wrong) == 1 and lines[-1] == wrong[0], f"not one line: {about}"
        assert len(wrong[0]) <= MAX_LINE, about


def look(*folders: Path) -> dict[str, tuple[int, int, int]]:
    """Kind, size and time of everything in the folders, by path; of folders only the kind."""
    found = {}
    for folder in folders:
        left = [os.fsencode(folder)]  # os.walk takes a frame per level
        while left:
            for entry in os.scandir(left.pop()):
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder and entry.name == b"__pycache__":
                    continue
                left += [entry.path] if is_folder else []
                state = entry.stat(follow_symlinks=False)
                about = (0, 0) if is_folder else (state.st_size, state.st_mtime_ns)
                found[os.fsdecode(entry.path)] = (state.st_mode, *about)
    return found
