"""The command line, called as from a terminal."""

import contextlib
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from cyclopts import App

from lama_core import cli


def call(*arguments: str) -> tuple[int, str, str]:
    """The exit status, and what is printed: to the output, and to the errors."""
    out, errors, status = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["lama_core", *arguments])
        try:
            cli.main()
        except SystemExit as end:
            status = int(end.code or 0)
    return status, out.getvalue(), errors.getvalue()


@dataclass(frozen=True)
class Invoked:
    """How a command ended. exit_code: 1 where it raised, which `exception` then holds."""

    stdout: str
    stderr: str
    exit_code: int
    exception: BaseException | None

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def invoke(words: Sequence[str], *, typed: str = "") -> Invoked:
    """Run a command in this process, with what it raises kept. typed: to standard input."""
    out, errors = io.StringIO(), io.StringIO()
    exception: BaseException | None = None
    code = 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()), encoding="utf-8"))
        try:
            cli.call(*words)
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception as error:  # noqa: BLE001 - a test looks at it
            exception, code = error, 1
    return Invoked(out.getvalue(), errors.getvalue(), code, exception)


def printed(*words: str) -> str:
    result = invoke(words)
    if result.exception:
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def told(*words: str) -> Any:
    """What a command prints with `--json`."""
    at = words.index("--") if "--" in words else len(words)
    return json.loads(printed(*words[:at], "--json", *words[at:]))


def options(command: App) -> set[str]:
    collection = command.assemble_argument_collection()
    return {name for one in collection for name in one.names if name.startswith("--")}
