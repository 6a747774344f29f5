"""Damage to a run's files is detected, and a damaged run doesn't hide the others."""

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calling import call
from probe_fakes import hash_model, write_dataset

from lama_core.errors import UserError
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.plan import plan
from lama_core.progress import ignore
from lama_core.runs.execute import execute
from lama_core.runs.facts_table import read_top_words
from lama_core.runs.find import list_runs, runs_dir
from lama_core.runs.info import (
    FACTS_FILE,
    RUN_FILE,
    Run,
    read_info,
    write_details,
    write_info,
)
from lama_core.runs.manage import list_kept, rename_run
from lama_core.runs.parts import Folder, Parts
from lama_core.runs.tags import change_tags, read_tags

SEED = int(os.environ.get("LAMA_TEST_SEED", "30"))


@pytest.fixture
def made(home: Path, tmp_path: Path) -> Path:
    """The folder of a run of a fake model, with details, a title and tags."""
    request = ProbeRequest(str(write_dataset(tmp_path / "toy")), ("hash",), candidates="full")
    run = execute(plan(request, load=hash_model)[0], load=hash_model)
    write_details({"note": "made for this test"}, run.info.folder)
    write_info(run.info, run.info.folder)
    rename_run(run.info.id, "A first run")
    change_tags(run.info, [(str(run.facts["fact_id"].iloc[0]), 0)], add=["ambiguous"])
    return run.info.folder


def contents(folder: Path) -> list[object]:
    """Everything that can be read from a run, in a form that can be compared."""
    run = Run(read_info(folder))
    small = [run.info, sorted(read_tags(run.info).items()), run.details, run.words]
    top = [run.top.words.tolist(), run.top.log_probs.tobytes()]
    return [*small, *top, run.facts.to_csv()]


def flip(data: bytes, bit: int) -> bytes:
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)


def test_no_flipped_bit_changes_a_run_silently(made: Path) -> None:
    before = contents(made)
    files = {path: path.read_bytes() for path in sorted(made.iterdir())}
    names = ["candidates.parquet", "details.json", FACTS_FILE, RUN_FILE, "tags.json", "title.txt"]
    assert [path.name for path in files] == names
    draw = random.Random(SEED)
    detected = 0
    for number in range(1000):
        path, data = list(files.items())[number % len(files)]
        bit = draw.randrange(8 * len(data))
        path.write_bytes(flip(data, bit))
        try:
            assert contents(made) == before, f"{path.name}, bit {bit}"
        except UserError as error:
            assert "\n" not in str(error) and str(path) in str(error), str(error)
            detected += 1
        path.write_bytes(data)
    assert contents(made) == before
    assert detected > 900


def test_no_flipped_bit_changes_a_finished_part_silently(tmp_path: Path) -> None:
    rows = pa.table({"rank": list(range(50)), "word": [f"w{number}" for number in range(50)]})
    Parts(Folder(tmp_path), "run").write("00000", rows, 1.5)
    (path,) = (tmp_path / "parts").iterdir()
    data, draw = path.read_bytes(), random.Random(SEED)
    for _ in range(300):
        path.write_bytes(flip(data, draw.randrange(8 * len(data))))
        assert Parts(Folder(tmp_path), "run").load("00000", ignore) is None
    path.write_bytes(data)
    loaded = Parts(Folder(tmp_path), "run").load("00000", ignore)
    assert loaded is not None and loaded.table.equals(rows)


def test_the_part_of_another_run_is_refused(tmp_path: Path) -> None:
    Parts(Folder(tmp_path), "one").write("00000", pa.table({"rank": [1]}), 1.0)
    with pytest.raises(UserError, match="belongs to another run"):
        Parts(Folder(tmp_path), "two").load("00000", ignore)


def test_words_that_arent_utf_8_are_damage(made: Path) -> None:
    """A digest doesn't tell: whoever wrote the file can have computed it."""
    path = made / FACTS_FILE
    table, broken = pq.read_table(path), b"\xff"
    assert len(table)
    word = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(broken)]
    )
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 10 * len(table), pa.int32()), word)
    lists = pa.FixedSizeListArray.from_arrays(words, 10)
    at = table.column_names.index("top_words")
    pq.write_table(table.set_column(at, "top_words", lists), path)
    with pytest.raises(UserError, match="the run's rows are damaged"):
        read_top_words(path)


def damage_rows(folder: Path) -> None:
    (folder / FACTS_FILE).write_bytes(flip((folder / FACTS_FILE).read_bytes(), 8 * 500))


def damage_description(folder: Path) -> None:
    (folder / RUN_FILE).write_text("{")


@pytest.fixture
def two(made: Path) -> tuple[Path, Path]:
    """Two runs of the user."""
    other = made.with_name(made.name[:-10] + "0123456789")
    shutil.copytree(made, other)
    return made, other


@pytest.mark.parametrize("command", ("results", "results wording", "runs list --verify"))
def test_damaged_runs_are_named_and_the_others_are_shown(
    two: tuple[Path, Path], command: str
) -> None:
    whole, damaged = two
    undescribed = shutil.copytree(whole, whole.with_name(whole.name[:-10] + "1234567890"))
    damage_rows(damaged)
    damage_description(undescribed)
    status, out, error = call(*command.split())
    assert status == 0, error
    for folder in (damaged, undescribed):
        assert error.count(str(folder)) >= 1
    assert error.count("Delete the run and make it again") == error.count(" is damaged (") == 2
    assert "minilm" in out and (command == "results wording" or "hash" in out)


def test_verifying_finds_every_damaged_file(two: tuple[Path, Path]) -> None:
    whole, damaged = two
    damage_rows(damaged)
    states = {run.name: run.state for run in list_kept()}
    assert (states[whole.name], states[damaged.name]) == ("whole", "whole")
    verified = {run.name: run for run in list_kept(verify=True)}
    assert (verified[whole.name].state, verified[damaged.name].state) == ("whole", "damaged")
    assert FACTS_FILE in verified[damaged.name].problem
    bundled = {run.state for run in verified.values() if run.bundled}
    assert bundled == {"whole"}
    listing = list_runs([runs_dir()]).intact()
    assert [info.folder for info in listing] == [whole]
    assert str(damaged) in listing.problems[0]
