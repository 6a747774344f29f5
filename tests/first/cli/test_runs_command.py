"""`lama-explorer runs`: what it lists, and what it asks for before it removes anything."""

import json
from pathlib import Path

import pytest
from calling import printed

from lama_core.errors import UserError
from lama_core.runs.find import list_runs, runs_dir
from tools.bench.made_up import make_runs


@pytest.fixture
def run_id(home: Path) -> str:
    return make_runs(runs_dir(), n_relations=2, n_facts=20)[0].info.id


def test_every_run_is_listed_with_its_name_size_and_place(run_id: str) -> None:
    printed("runs", "rename", run_id, "The first")
    rows = {row["run"]: row for row in json.loads(printed("runs", "list", "--json"))}
    assert set(rows) == {info.id for info in list_runs()}
    row = rows[run_id]
    assert (row["called"], row["place"], row["state"]) == ("The first", "own", "whole")
    folder = runs_dir() / run_id
    assert row["n_bytes"] == sum(path.stat().st_size for path in folder.iterdir())


def test_a_run_is_removed_only_with_a_yes(run_id: str) -> None:
    with pytest.raises(UserError, match=r"permanently deletes .* Pass --yes to confirm"):
        printed("runs", "delete", run_id)
    assert (runs_dir() / run_id).is_dir()
    printed("runs", "delete", run_id, "--yes")
    assert not (runs_dir() / run_id).exists()
