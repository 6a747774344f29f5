"""Naming and removing runs: the user's own, whole, and nothing else."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calling import call

from lama_core.errors import UserError
from lama_core.files import work_folder
from lama_core.runs.find import bundled_dir, list_runs, load_run, runs_dir
from lama_core.runs.info import FACTS_FILE, RUN_FILE, write_info
from lama_core.runs.locks import locked
from lama_core.runs.manage import delete_run, list_kept, rename_run
from tools.bench.made_up import make_runs


@pytest.fixture
def run_id(home: Path) -> str:
    """The user's one run."""
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
    for title in ("two\nlines", "x" * 81, "\x1b[31m"):
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


def put_back(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: put_back(run / RUN_FILE, "[" * 200_000),
        lambda run: put_back(
            run / RUN_FILE, re.sub('"n": [0-9]+', '"n": "many"', (run / RUN_FILE).read_text())
        ),
        lambda run: (run / RUN_FILE).unlink(),
        lambda run: ((run / RUN_FILE).unlink(), os.mkfifo(run / RUN_FILE)),
        lambda run: os.truncate(run / RUN_FILE, 100 << 30),
    ],
)
def test_a_damaged_run_is_shown_as_that_and_stops_no_other(
    run_id: str, damage: Callable[[Path], object]
) -> None:
    n_before = len(list_runs())
    damage(runs_dir() / run_id)
    listing = list_runs()
    assert len(listing) == n_before - 1
    (problem,) = listing.problems
    assert RUN_FILE in problem and "elete the run and make it again" in problem
    assert {one.name: one.state for one in list_kept()}[run_id] == "can't be read"
    with pytest.raises(UserError, match="elete the run and make it again"):
        load_run(run_id)
    delete_run(run_id)
    assert list_runs().problems == ()


def test_rows_that_state_more_than_a_run_has_are_refused_unread(run_id: str) -> None:
    nulls = pa.table({"fact_id": pa.nulls(3_000_000, pa.string())})
    rows = runs_dir() / run_id / FACTS_FILE
    with pq.ParquetWriter(rows, nulls.schema) as writer:
        for _ in range(7):
            writer.write_table(nulls)
    assert rows.stat().st_size < 1 << 20
    write_info(load_run(run_id).info, runs_dir() / run_id)
    with pytest.raises(UserError, match="21,000,000 rows"):
        _ = load_run(run_id).facts


def test_rows_of_other_kinds_are_refused(run_id: str) -> None:
    pq.write_table(pa.table({"fact_id": [1, 2]}), runs_dir() / run_id / FACTS_FILE)
    write_info(load_run(run_id).info, runs_dir() / run_id)
    with pytest.raises(UserError, match="the column fact_id has type int64"):
        _ = load_run(run_id).facts
    with pytest.raises(UserError, match="the column top_words is missing"):
        _ = load_run(run_id).top


def test_the_next_command_clears_what_a_killed_one_left(run_id: str) -> None:
    (runs_dir() / ".work-left").mkdir()
    (runs_dir() / f".{run_id}.lock").touch()
    begun = runs_dir() / "begun-m-manual-0123456789.part"
    begun.mkdir()
    with locked(["begun-m-manual-0123456789"], runs_dir()), work_folder(runs_dir()) as work:
        assert call("runs", "list")[0] == 0
        left = {path.name for path in runs_dir().iterdir()}
    assert left == {run_id, begun.name, ".begun-m-manual-0123456789.lock", work.name}
