"""Take away what Python lacks on Windows (`pytest --without-posix`).

Only for this project's code: libraries decide by the name of the system, and the tests use signals
and processes that they fork. A file or pipe that the project's code opens without an encoding is an
error, because it would be read as cp1252 there; the standard streams have that encoding.

`conftest.py` runs this file and puts its folder into PYTHONPATH, so that every Python process
that a test starts imports it, because of its name, before anything else.
"""

import builtins
import os
import socket
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

OF_OS = (
    "chown chroot fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getpgrp "
    "getpriority getsid getuid killpg lchown mkfifo mknod nice openpty posix_spawn pread preadv "
    "pwrite sched_getaffinity sched_setaffinity setgid setpgid setpriority setsid setuid statvfs "
    "sync tcgetpgrp ttyname uname wait wait3 wait4 O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK"
)
MODULES = {"crypt", "fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(str(ROOT / name) for name in ("lama_core", "plugins", "pages", "tools", "app.py"))

_import = builtins.__import__


class OnWindows(ModuleType):
    """A module without some of its names, and with other values of some."""

    def __init__(self, module: ModuleType, without: str = "", **values: object) -> None:
        super().__init__(module.__name__)
        vars(self).update(_module=module, _without=without.split(), **values)

    def __getattr__(self, name: str) -> Any:
        if name in self._without:
            raise AttributeError(f"{self.__name__} has no {name!r}, as on Windows")
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._module, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._module, name)


REPLACED = {
    "os": OnWindows(os, OF_OS),
    "socket": OnWindows(socket, "AF_UNIX"),
    "sys": OnWindows(sys, platform="win32"),
}


def import_as_on_windows(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    """Import a module for this project's code as on Windows, for other code as it is."""
    if level or not str((globals or {}).get("__file__", "")).startswith(OURS):
        return _import(name, globals, locals, fromlist, level)
    if name in MODULES:
        raise ModuleNotFoundError(f"No module named {name!r}, as on Windows")
    return REPLACED.get(name) or _import(name, globals, locals, fromlist, level)


if "LAMA_TEST_WITHOUT_POSIX" in os.environ:
    builtins.__import__ = import_as_on_windows
    vars(os).pop("mkfifo", None)  # this project opens pipes as on Windows, which would wait
    for where in ("lama_", "pages", "app", "tools"):
        warnings.filterwarnings("error", category=EncodingWarning, module=where)
