"""Packages that pip installs into a folder, for processes that find plug-ins there."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "example-plugin"


def pip_install(source: Path, folder: Path) -> None:
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *options]
    subprocess.run([*command, str(source)], check=True, capture_output=True)


def path_with(folder: Path) -> str:
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
