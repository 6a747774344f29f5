"""Releases in old formats, fetched from a server on this machine, converted, and cleaned up."""

import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from calling import invoke
from local_http import SilentHandler, serving
from old_releases import make_elmo, make_fconv

from lama_core.downloads import SourceFile
from lama_core.errors import UserError
from lama_core.models.cache import load_model
from lama_core.models.sources import catalog
from lama_core.models.sources.catalog import Entry, Source, find_model, known_models
from lama_core.models.sources.locations import fetch, locate

pytest.importorskip("h5py")
pytestmark = pytest.mark.usefixtures("home")
RELEASES = [entry for entry in known_models() if entry.source.how == "release"]


@dataclass
class Served:
    """Files by their names; the names of those that break off once; what was asked for."""

    folder: Path
    address: str = ""
    breaking: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server of a folder that goes on from where it is asked to."""
    found = Served(tmp_path / "served")

    class Handler(SilentHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/")
            found.asked.append((name, self.headers.get("Range", "")))
            if not (found.folder / name).is_file():
                self.send_error(404)
                return
            data = (found.folder / name).read_bytes()
            start = int(self.headers.get("Range", "bytes=0-")[6:-1])
            self.send_response(206 if "Range" in self.headers else 200)
            self.send_header("Content-Length", str(len(data) - start))
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.send_header("ETag", '"v1"')
            self.end_headers()
            rest = data[start:]
            if name in found.breaking:
                found.breaking.remove(name)
                rest = rest[: len(rest) // 2]
            with suppress(ConnectionError):  # who asked may have had enough
                self.wfile.write(rest)

    with serving(Handler) as found.address:
        yield found


def offer(
    monkeypatch: pytest.MonkeyPatch, served: Served, make: Callable[[Path], object], name: str
) -> Entry:
    """A release that the catalogue has at the server's address."""
    make(served.folder)
    files = tuple(
        SourceFile(f"{served.address}/{file.name}", file.name, max_bytes=1 << 20)
        for file in sorted(served.folder.iterdir())
    )
    entry = Entry(name, f"Tiny {name}", None, Source("release", f"{name}-original", files=files))
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


def test_a_broken_fetch_goes_on_from_where_it_broke(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = offer(monkeypatch, served, make_elmo, "tiny")
    served.breaking.add("elmo_weights.hdf5")
    fetch(entry)
    whole = (served.folder / "elmo_weights.hdf5").stat().st_size
    asked = [given for name, given in served.asked if name == "elmo_weights.hdf5"]
    assert asked == ["", f"bytes={whole // 2}-"]


def test_an_archive_is_unpacked_first(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pack(folder: Path) -> None:
        folder.mkdir()
        make_fconv(tmp_path / "wiki103_fconv_lm")
        with tarfile.open(folder / "fconv.tar.bz2", "w:bz2") as out:
            out.add(tmp_path / "wiki103_fconv_lm", "wiki103_fconv_lm")

    entry = offer(monkeypatch, served, pack, "fconv")
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


def test_what_is_another_file_than_at_first_sight_is_refused(
    served: Served, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = offer(monkeypatch, served, make_elmo, "tiny")
    shutil.rmtree(fetch(entry).folder)
    with (served.folder / "vocab.txt").open("a") as out:
        out.write("\n")
    with pytest.raises(UserError, match="has changed since its first download"):
        fetch(entry)


def test_a_page_in_the_stead_of_a_file_does_not_stay(
    served: Served, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = offer(monkeypatch, served, make_elmo, "tiny")
    whole = (served.folder / "elmo_weights.hdf5").read_bytes()
    (served.folder / "elmo_weights.hdf5").write_text("<html>Please log in</html>")
    with pytest.raises(UserError, match=r"Can't convert .*Not a complete HDF5 file"):
        fetch(entry)
    assert [one.name for one in downloads(home, "tiny-original").iterdir()] == ["checksums.json"]
    (served.folder / "elmo_weights.hdf5").write_bytes(whole)
    assert fetch(entry).folder.is_dir()


def test_a_file_that_is_too_large_is_broken_off(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = offer(monkeypatch, served, make_elmo, "tiny")
    (served.folder / "vocab.txt").write_bytes(b"a" * ((1 << 20) + 1))
    with pytest.raises(UserError, match="larger than the limit of 1,048,576 bytes"):
        fetch(entry)


@pytest.mark.parametrize("entry", RELEASES, ids=lambda entry: entry.name)
def test_releases_of_the_catalogue_say_what_they_are(entry: Entry) -> None:
    assert entry.paper == "petroni2019" and entry.source.n_bytes and entry.note
    assert "tested with a local server only" in entry.note
    assert find_model(entry.source.place) is entry
    assert all(file.url.startswith("https://") for file in entry.source.files)
    assert all(file.max_bytes <= 4_000_000_000 for file in entry.source.files)


def test_elmo_is_got_by_the_name_of_its_release() -> None:
    assert find_model("elmo-original").title == "ELMo original"
    assert {entry.source.place for entry in RELEASES} == {
        "elmo-original", "elmo-original-5.5b", "transfo-xl-wt103", "wiki103_fconv_lm",
    }  # fmt: skip
