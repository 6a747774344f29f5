"""Gates at which the processes of an app under test wait while a test keeps them closed.

`gates.Gates` puts this folder on the app's PYTHONPATH: Python imports this module whenever it
starts. A gate is a file in the folder LAMA_TEST_GATES. A test closes it with an exclusive lock;
each process waits for a shared one, so that a test that ends or crashes opens its gates.

- `query`: the scoring process answers a query.
- `part`: a command goes on after it has stored a part of a run.
"""

import fcntl
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["LAMA_TEST_GATES"])


def pass_gate(name: str) -> None:
    """Return when the gate is open."""
    with (FOLDER / name).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)


def gate_before(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a gate before it."""

    @wraps(call)
    def gated(*args: Any, **options: Any) -> Any:
        pass_gate(name)
        return call(*args, **options)

    return gated


def gate_after(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a gate after it."""

    @wraps(call)
    def gated(*args: Any, **options: Any) -> Any:
        returned = call(*args, **options)
        pass_gate(name)
        return returned

    return gated


if "lama_core.service" in sys.orig_argv:
    from lama_core.service import process

    process._answer = gate_before("query", process._answer)
elif "lama_core" in sys.orig_argv:
    from lama_core.runs.parts import Parts

    Parts.write = gate_after("part", Parts.write)  # type: ignore[method-assign]
