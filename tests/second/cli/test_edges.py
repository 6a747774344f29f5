"""A path that is gone: one sentence, and exit status 2."""

from pathlib import Path

import pytest
from calling import call

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
