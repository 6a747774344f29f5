"""`.ci/install` with a pip and a `lama-explorer` that only report how they were called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from project_files import ROOT

INSTALL = ROOT / ".ci" / "install"
CALL = "models get smollm2-135m"
WITHOUT = "The app works without this model; a button on its page Ask downloads it."


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose programs append their arguments to `calls`."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / ".ci").mkdir()
    shutil.copy(INSTALL, tmp_path / ".ci" / "install")
    (tmp_path / "requirements.txt").write_text("torch==1\n")
    for name, status in (("pip", "0"), ("lama-explorer", "$FETCHED")):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho "$*" >> "{tmp_path}/calls"\nexit {status}\n')
        program.chmod(0o755)
    return tmp_path


def install(checkout: Path, fetched: int, **more: str) -> tuple[int, list[str], bool]:
    """The exit status, the printed lines, and whether SmolLM2 was to be fetched.

    fetched: exit status of `lama-explorer models get`.
    """
    environment = {"PATH": os.environ["PATH"], "FETCHED": str(fetched), **more}
    done = subprocess.run(
        [checkout / ".ci" / "install"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    calls = (checkout / "calls").read_text().splitlines()
    assert any(call.startswith("install") for call in calls)
    return done.returncode, done.stdout.splitlines(), CALL in calls


def test_the_installation_fetches_smollm2_and_goes_on_if_that_cant_be_had(checkout: Path) -> None:
    said = "Installing requirements.lock"
    assert install(checkout, 0) == (0, [said], True)
    assert install(checkout, 2) == (0, [said, WITHOUT], True)
    for status in (1, 130):  # a bug; Ctrl+C
        assert install(checkout, status) == (status, [said], True)
    (checkout / "calls").unlink()
    assert not install(checkout, 0, LAMA_SKIP_DOWNLOADS="1")[2]
