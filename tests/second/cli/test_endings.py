"""However a command ends: in a sentence, with its status, and never in a traceback."""

import errno
import json
import sys
from pathlib import Path

import pytest
from calling import call
from forked import forked
from project_files import ROOT

from lama_core import cli
from lama_core.cli import exit_codes, output

pytestmark = pytest.mark.usefixtures("home")


def raising(error: BaseException) -> object:
    def fail(**_: object) -> None:
        raise error

    return fail


def end_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """The status and the words of a command that raises."""
    monkeypatch.setattr("lama_core.runs.manage.list_kept", raising(error))
    status, _, said = call("runs", "list")
    return status, said


def test_a_fault_of_ours_is_one_line_and_its_details_are_in_a_log(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, said = end_with(KeyError("P19"), monkeypatch)
    assert status == 1
    assert said.count("\n") == 1 and "KeyError: 'P19'" in said
    (log,) = (home / "cache" / exit_codes.LOG_FOLDER).iterdir()
    assert str(log) in said
    text = log.read_text(encoding="utf-8")
    assert "command: lama_core runs list" in text and "torch" in text
    assert "Traceback (most recent call last)" in text and "in answer" in text


def test_a_fault_is_told_even_where_no_log_can_be_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(exit_codes, "write_text_atomically", full)
    status, said = end_with(KeyError("P19"), monkeypatch)
    assert status == 1
    assert "the details can't be saved (No space left on device)" in said


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "Not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "Not enough memory"),
        (OSError(errno.ENOSPC, "No space", "/d/facts.parquet"), "/d/facts.parquet can't be"),
        (OSError(errno.EROFS, "Read-only", "/d/x"), "set LAMA_HOME to a folder on another disk"),
        (OSError(errno.ENAMETOOLONG, "Too long", "n" * 300), "255 bytes at most"),
        (OSError(errno.EMFILE, "Too many", "/d/x"), "raise `ulimit -n`"),
        (ValueError("can't write: No space left on device (os error 28)"), "the disk is full"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_the_machine_refuses_gets_its_sentence(
    error: Exception, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, said = end_with(error, monkeypatch)
    assert status == 2
    assert said.count("\n") == 1 and says in said and len(said) < 300


def test_a_stopped_command_says_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    status, said = end_with(KeyboardInterrupt(), monkeypatch)
    assert (status, said.count("\n")) == (130, 1)
    assert "Stopped" in said and "the same command resumes" in said


def test_a_home_that_cant_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMA_HOME", "/proc/none")
    words = ("data", "import", str(ROOT / "assets/datasets/starter"), "--name", "own")
    status, _, said = call(*words)
    assert status == 2 and "/proc/none" in said


def test_json_is_strict_whatever_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"a": float("nan"), "b": [float("inf")], "c": "\udcff", "d": (1, "ä")})
    printed = capsys.readouterr().out
    assert json.loads(printed, parse_constant=pytest.fail) == {
        "a": None, "b": [None], "c": "\udcff", "d": [1, "ä"]
    }  # fmt: skip


def test_signs_that_the_output_lacks_are_written_by_their_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table of names with accents, in an environment without UTF-8."""
    runs = ("starter-minilm_mlm_twin-manual", "starter-minilm_mlm-manual")
    monkeypatch.setattr(sys, "argv", ["lama_core", "compare", *runs])
    done = forked(cli.main, encoding="ascii")
    assert done.status == 0, done.said
    assert "\\xe7" in done.out or "\\xc9" in done.out


def test_a_deleted_current_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    words = ("--dataset", "starter", "--relation", "P36", "--model", "minilm-mlm", "--out", "runs")
    status, _, errors = call("probe", *words)
    assert status == 2 and "The current folder was deleted" in errors
