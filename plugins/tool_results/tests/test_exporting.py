"""Exported tables are read again with the same numbers; what can't be exported is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from data_files import write_lines

import lama_core as lama
from lama_core.errors import UserError
from lama_core.runs.find import load_run
from lama_core.runs.info import Run
from lama_tool_results.exporting import TABLE_FILE

pytestmark = pytest.mark.usefixtures("home")
ROWS = [
    {
        "relation": "../P36",
        "subject": "France",
        "object": "Paris",
        "predictions": ["Lyon", "Paris"],
    },
    {"relation": "../P36", "subject": "Peru", "object": "Lima", "predictions": ["Lima", "Cusco"]},
]


def import_one(path: Path, **fields: Any) -> Run:
    (name,) = lama.import_run(str(path), **fields)["run"]
    return load_run(name)


def test_an_exported_table_has_the_same_answers(tmp_path: Path) -> None:
    run = import_one(write_lines(tmp_path / "answers.jsonl", ROWS), model="toy")
    again = import_one(lama.export_run(run.info.id, out=tmp_path / "table"))
    assert again.facts["rank_raw"].tolist() == run.facts["rank_raw"].tolist() == [2, 1]
    assert (again.top.words == run.top.words).all()


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    run = import_one(write_lines(tmp_path / "answers.jsonl", ROWS), model="toy")
    out = tmp_path / "out"
    with pytest.raises(UserError, match="doesn't store the scores of all answers"):
        lama.export_run(run.info.id, out=out, format="lm-pub-quiz")
    with pytest.raises(UserError, match="Unknown format"):
        lama.export_run(run.info.id, out=out, format="pickle")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="exists"):
        lama.export_run(run.info.id, out=tmp_path)
    with pytest.raises(UserError, match="There is no run"):
        lama.export_run("no such run", out=out)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["answers.jsonl", "home"]
    table = lama.export_run(run.info.id, out=out) / TABLE_FILE
    assert json.loads(table.read_text().splitlines()[0])["relation"] == "../P36"
