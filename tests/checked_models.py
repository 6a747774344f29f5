"""Models of these tests are checked each time they are loaded."""

import os
from pathlib import Path

import pytest

from lama_core.models.hf import passed_checks
from lama_core.paths import cache_dir


@pytest.fixture(autouse=True)
def own_checks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember passed checks in the home of the test, or else in a folder of its own."""
    folder, shared = tmp_path_factory.mktemp("checks"), os.environ["LAMA_HOME"]

    def place() -> Path:
        return folder if os.environ.get("LAMA_HOME") == shared else cache_dir()

    monkeypatch.setattr(passed_checks, "cache_dir", place)
