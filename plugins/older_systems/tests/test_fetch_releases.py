"""Releases in old formats, fetched from a server on this machine, converted, and cleaned up."""

import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from calling import invoke
from local_http import SilentHandler, serving
from old_releases import make_elmo, make_fconv

from lama_core.downloads import SourceFile
from lama_core.errors import UserError
from lama_core.models.cache import load_model
from lama_core.models.sources import catalog
from lama_core.models.sources.catalog import Entry, ModelSource
from lama_core.models.sources.locations import fetch, locate

pytest.importorskip("h5py")
pytestmark = pytest.mark.usefixtures("home")


@dataclass
class Served:
    """Files by their names, and what was asked for."""

    folder: Path
    address: str = ""
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    found = Served(tmp_path / "served")

    class Handler(SilentHandler, SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(found.folder))

        def do_GET(self) -> None:
            found.asked.append(self.path.strip("/"))
            super().do_GET()

    with serving(Handler) as found.address:
        yield found


def offer(
    monkeypatch: pytest.MonkeyPatch,
    served: Served,
    make: Callable[[Path], object],
    name: str,
    form: str = "ELMo",
) -> Entry:
    """A release that the catalogue has at the server's address."""
    make(served.folder)
    files = tuple(
        SourceFile(f"{served.address}/{file.name}", file.name, max_bytes=1 << 20)
        for file in sorted(served.folder.iterdir())
    )
    source = ModelSource("release", f"{name}-original", files=files, format=form)
    entry = Entry(name, f"Tiny {name}", None, source)
    monkeypatch.setattr(catalog, "known_models", lambda: (entry,))
    return entry


def downloads(home: Path, name: str) -> Path:
    (found,) = home.rglob(f"downloads/models/{name}")
    return found


def test_a_release_is_fetched_converted_and_cleaned_up(
    served: Served, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, served, make_elmo, "tiny")
    got = invoke(["models", "get", "tiny-original", "--json"])
    assert got.exit_code == 0, got.output
    folder = Path(json.loads(got.stdout)["folder"])
    names = sorted(file.name for file in folder.iterdir())
    assert names == ["config.json", "model.safetensors", "vocab.txt"]
    left = [one.name for one in downloads(home, "tiny-original").iterdir()]
    assert left == ["checksums.json"], "what was first seen is remembered, and nothing else kept"
    assert load_model("tiny").identity.endswith("/elmo/fp32")
    n_asked = len(served.asked)
    assert invoke(["models", "get", "tiny"]).exit_code == 0
    assert len(served.asked) == n_asked, "what is here isn't fetched again"
    ten = load_model("tiny+passes=10")
    assert ten.identity == f"{load_model('tiny').identity}/passes=10"


def test_an_archive_is_unpacked_first(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pack(folder: Path) -> None:
        folder.mkdir()
        make_fconv(tmp_path / "wiki103_fconv_lm")
        with tarfile.open(folder / "fconv.tar.bz2", "w:bz2") as out:
            out.add(tmp_path / "wiki103_fconv_lm", "wiki103_fconv_lm")

    entry = offer(monkeypatch, served, pack, "fconv", "fairseq's fconv_lm")
    assert locate(entry) is None
    assert (fetch(entry).folder / "model.safetensors").is_file()
    here = locate(entry)
    assert here is not None and here.identity == fetch(entry).identity


def test_where_an_address_is_dead_it_is_said_what_to_put_where(
    served: Served, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = offer(monkeypatch, served, make_elmo, "tiny")
    vocabulary = (served.folder / "vocab.txt").read_bytes()
    (served.folder / "vocab.txt").unlink()
    with pytest.raises(UserError) as caught:
        fetch(entry)
    place = downloads(home, "tiny-original")
    said = str(caught.value)
    assert f"{served.address}/vocab.txt could not be downloaded: the server answered 404" in said
    assert f"put it into {place} as vocab.txt, then run the same command again" in said
    assert locate(entry) is None
    (place / "vocab.txt").write_bytes(vocabulary)
    served.asked.clear()
    assert fetch(entry).folder.is_dir()
    assert served.asked == [], "what had come before is still there"
