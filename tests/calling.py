"""The command line, called as from a terminal."""

import sys

import pytest
import typer
from typer.testing import CliRunner

from lama_core import cli


def call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, str, str]:
    """The exit status, and what is printed: to the output, and to the errors."""
    monkeypatch.setattr(sys, "argv", ["lama_core", *arguments])
    try:
        cli.main()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    out, error = capsys.readouterr()
    return status, out, error


def printed(*words: str, app: typer.Typer | None = None) -> str:
    """What a command of the app prints, with a mistake raised as it is."""
    result = CliRunner().invoke(app or cli.make_app(), words)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout
