"""`statements` prints what the library says of its runs."""

import json
from pathlib import Path

import pytest
from calling import call
from written_statements import CITIES, StatementTable, hashed, write_many

from lama_core import metrics
from lama_core.runs.find import load_run


def load(reference: str, *, precision: str = "fp32", on_progress: object = None) -> StatementTable:
    return hashed(reference)


@pytest.fixture
def data(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("lama_core.models.cache.load_model", load)
    return write_many(tmp_path / "many", n_facts=30)


def test_one_object_a_relation_with_the_librarys_numbers(data: Path) -> None:
    command = ("statements", "--dataset", str(data), "--model", "one", "--json")
    status, out, _ = call(*command)
    assert status == 0
    lines = json.loads(out)
    assert [(line["relation"], line["n"], line["n_excluded"]) for line in lines] == [
        ("P1", 30, 0),
        ("P2", 30, 0),
    ]
    run = load_run(lines[0]["run"])
    assert run.info.kind == "statements" and run.words is not None
    table = metrics.score_table([run], ranking="filtered").set_index("relation")
    for line in lines:
        for name in ("p_at_1", "p_at_10", "mrr", "macro_p_at_1", "mean_rank"):
            assert line[name] == pytest.approx(table.loc[line["relation"], name])
        assert len(run.words[line["relation"]]) == len(CITIES)
    assert json.loads(call("results", lines[0]["run"], "--json")[1]) == lines
