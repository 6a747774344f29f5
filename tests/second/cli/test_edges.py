"""Paths that are gone, are devices or have no room: one sentence, and exit status 2."""

import os
import stat
from functools import partial
from pathlib import Path

import pytest
from calling import call

from lama_core.downloads import transfer

pytestmark = pytest.mark.usefixtures("home")
PROBE = ("probe", "--dataset", "starter", "--relation", "P36", "--model", "minilm-mlm", "--limit=1")


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
