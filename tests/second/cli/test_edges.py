"""Paths that are gone, are devices or have no room: one sentence, and exit status 2."""

import errno
import os
import stat
from functools import partial
from pathlib import Path

import pytest
from calling import call

from lama_core.cli import exit_codes
from lama_core.downloads import transfer
from lama_core.errors import UserError, reason_of
from lama_core.models.sources.catalog import add_model
from lama_core.probes.cloze.request import ProbeRequest

pytestmark = pytest.mark.usefixtures("home")
PROBE = ("probe", "--dataset", "starter", "--relation", "P36", "--model", "minilm-mlm", "--limit=1")


def test_python_refuses_the_same() -> None:
    with pytest.raises(UserError, match="The path is empty"):
        ProbeRequest("starter", models=("minilm-mlm",), out="")  # type: ignore[arg-type]


def test_a_folder_that_was_deleted_after_it_was_added_still_has_information(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    assert call("models", "info", str(folder))[0] == 2
    name = add_model(str(folder)).name
    folder.rmdir()
    assert call("models", "info", name)[0] == 0


def test_a_deleted_current_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    status, _, errors = call(*PROBE, "--out", "runs")
    assert status == 2
    assert errors == "Error: The current folder was deleted: change to another folder.\n"


def test_a_report_to_a_device_leaves_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "Patience", partial(transfer.Patience, attempts=1))
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o600, os.stat(os.devnull).st_rdev)
        os.close(os.open(device, os.O_WRONLY))
    except OSError:  # only root makes devices
        device = Path(os.devnull)
    assert call("reproduce", "wiland2024", "--html", str(device))[0] == 0
    assert stat.S_ISCHR(device.stat().st_mode)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x"), "No space left on device"),
        (OSError("no room for the table."), "no room for the table"),
        (OSError(), "OSError"),
        (ValueError("embedded null byte"), "embedded null byte"),
    ],
)
def test_a_reason_is_never_none(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason


def test_a_full_disk_without_a_file_name_is_still_a_sentence() -> None:
    message = exit_codes.expected_error(OSError(errno.ENOSPC, "No space left on device"))
    assert message and message.startswith("The output or a file can't be read or written: the disk")
