"""Whatever is missing, damaged or can't be written, every page opens and the rest of it works."""

import json
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from disks import mounted
from opening import SCREENS, open_page
from project_files import ROOT

from lama_core.paths import ASSETS


def full(home: Path) -> None:
    with pytest.raises(OSError, match="No space left"), (home / "fill").open("wb") as file:
        file.write(b"x" * (1 << 20))
        file.flush()


def damaged(home: Path) -> None:
    """Runs, a study, data sets and the list of models, each cut off or not what it should be."""
    data, results = home / "data", ASSETS / "results"
    for name, record in (("cut", "{"), ("half", json.dumps({"name": "half", "kind": "facts"}))):
        (data / "datasets" / name).mkdir(parents=True)
        (data / "datasets" / name / "source.json").write_text(record)
    runs = data / "runs"
    (runs / "no-run").mkdir(parents=True)
    (runs / "no-run" / "run.json").write_text("[1]")
    shutil.copytree(next(results.glob("starter-minilm_mlm-manual*")), runs / "cut-rows")
    (runs / "cut-rows" / "facts.parquet").write_bytes(b"PAR1")
    shutil.copytree(next(results.glob("starter-minilm_mlm-study*")), runs / "cut-study")
    (runs / "cut-study" / "details.json").write_text("{")
    (data / "models.json").write_text('["/no/such/model", 3')


def gone(home: Path) -> None:
    """Models that were added and whose folders are no models, or no more."""
    (home / "data").mkdir()
    (home / "data" / "models.json").write_text(json.dumps(["/no/such/model", "/etc", "a/b"]))


def no_folder(home: Path) -> None:
    home.rmdir()
    home.write_text("a file", encoding="utf-8")


def as_it_is(home: Path) -> None:
    """Nothing is in it."""


# What is the matter with the home -> how its disk is mounted, if it is one, and what is in it.
HOMES = {
    "read-only": ("ro", as_it_is),
    "full": ("size=64k", full),
    "damaged": ("", damaged),
    "models gone": ("", gone),
    "no folder": ("", no_folder),
}


@pytest.fixture(params=HOMES)
def home(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    folder = tmp_path / "home"
    folder.mkdir()
    options, make = HOMES[request.param]
    with mounted(folder, options) if options else nullcontext(folder) as place:
        if place is None:
            pytest.skip("no disk of its own can be had here")
        make(folder)
        monkeypatch.setenv("LAMA_HOME", str(folder))
        monkeypatch.chdir(ROOT)
        yield folder


def test_every_page_opens(home: Path) -> None:
    answered = 0
    for page, params in SCREENS:
        app = open_page(page, models="minilm-mlm", **params)
        assert not any("This did not work" in one.value for one in app.error), (page, params)
        answered += any("MiniLM-MLM" in str(one.proto) for one in app.get("html"))
    assert answered >= 3  # the models answer all the same
