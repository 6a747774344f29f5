"""Naming and removing runs: the user's own, whole, and nothing else."""

import json
from pathlib import Path

import pytest

from lama_core.errors import UserError
from lama_core.runs.find import bundled_dir, list_runs, load_run, runs_dir
from lama_core.runs.info import RUN_FILE
from lama_core.runs.keeping import delete_run, list_kept, rename_run
from lama_core.runs.locks import locked
from tools.bench.pages import make_runs


@pytest.fixture
def run_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The user's one run."""
    monkeypatch.setenv("LAMA_HOME", str(tmp_path / "home"))
    first, *others = make_runs(runs_dir(), n_relations=2, n_facts=20)
    for run in others:
        delete_run(run.info.id)
    return first.info.id


def test_a_run_is_called_by_its_title_and_stays_the_same_run(run_id: str) -> None:
    before = load_run(run_id).info
    bytes_before = (before.folder / RUN_FILE).read_bytes()
    renamed = rename_run(run_id, " Before the change ")
    assert (renamed.title, renamed.label) == ("Before the change", "Before the change")
    assert (renamed.id, renamed.digest) == (before.id, before.digest)
    assert (before.folder / RUN_FILE).read_bytes() == bytes_before
    assert "title" not in json.loads(bytes_before)
    assert rename_run(run_id, "") == before


@pytest.mark.parametrize("title", ("two\nlines", "x" * 81, "\x1b[31m"))
def test_a_title_is_one_short_line(run_id: str, title: str) -> None:
    with pytest.raises(UserError, match="one line of at most 80"):
        rename_run(run_id, title)


def test_a_removed_run_is_gone_with_its_bytes_and_leaves_nothing(run_id: str) -> None:
    (kept,) = [one for one in list_kept() if not one.bundled]
    assert (kept.name, kept.state, kept.n_bytes > 1000) == (run_id, "whole", True)
    assert delete_run(run_id) == kept.n_bytes
    assert list(runs_dir().iterdir()) == []
    with pytest.raises(UserError, match="no run"):
        delete_run(run_id)


def test_a_run_that_is_being_made_is_said_and_stays(run_id: str) -> None:
    part = runs_dir() / "begun-m-manual-0123456789.part"
    (part / "parts").mkdir(parents=True)
    (part / "parts" / "00000.parquet").write_bytes(b"12345")
    with locked(["begun-m-manual-0123456789"], runs_dir()):
        assert {one.name: one.state for one in list_kept()}[part.name] == "being made"
        with pytest.raises(UserError, match="Another process"):
            delete_run(part.name)
    (found,) = [one for one in list_kept() if one.name == part.name]
    assert (found.state, found.n_parts, found.n_bytes) == ("unfinished", 1, 5)
    assert delete_run(part.name) == 5
    assert [run.name for run in runs_dir().iterdir()] == [run_id]


def test_nothing_but_ones_own_runs_can_be_removed(run_id: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / RUN_FILE).write_text("{}")
    (runs_dir() / "link").symlink_to(outside)
    (runs_dir() / "notes").mkdir()  # no run
    bundled = next(bundled_dir().glob("*/run.json")).parent.name
    for name in ("../../outside", str(outside), "link", "notes", ".", "", run_id[:-1], bundled):
        with pytest.raises(UserError):
            delete_run(name)
    assert (outside / RUN_FILE).is_file() and (runs_dir() / "notes").is_dir()


def test_what_a_link_in_a_run_leads_to_stays(run_id: str, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    (runs_dir() / run_id / "link").symlink_to(tmp_path)
    delete_run(run_id)
    assert (tmp_path / "precious").is_file()


def test_a_damaged_run_is_listed_and_can_be_removed(run_id: str) -> None:
    (runs_dir() / run_id / RUN_FILE).write_text("{")
    (kept,) = [one for one in list_kept() if not one.bundled]
    assert kept.state == "can't be read"
    delete_run(run_id)
    assert not list_runs().problems
