"""The command line, called as from a terminal."""

import sys

import pytest

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
