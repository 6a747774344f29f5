"""`probe`, `results`, `compare` and `reproduce` keep their contract and the library's numbers."""

import json
from pathlib import Path

import pytest
from calling import call, printed, told
from probe_fakes import CITIES, HashFiller, write_dataset

from lama_core.runs.find import list_runs, runs_dir


def fake_load(reference: str, *, precision: str = "fp32", on_progress: object = None) -> HashFiller:
    return HashFiller(CITIES, name=reference, broken="" if reference != "broken" else "Question")


@pytest.fixture
def data(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("lama_core.models.cache.load_model", fake_load)
    return write_dataset(tmp_path / "toy", n_facts=30)


def probe(data: Path, *more: str) -> tuple[str, ...]:
    return ("probe", "--dataset", str(data), "--candidates", "full", "--json", *more)


def test_how_a_run_was_computed_is_said_where_it_is_unusual(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, plain, _ = call(*probe(data)[:-1], "--model", "one")
    assert " one " in plain and "fp32" not in plain and "cpu" not in plain
    monkeypatch.setattr(HashFiller, "device", "cuda:1")
    monkeypatch.setattr(HashFiller, "precision", "bf16")
    _, said, _ = call(*probe(data)[:-1], "--model", "two")
    assert " two, bf16 on cuda:1 " in said
    _, listed, _ = call("runs", "list", "--json")
    found = {line["model"]: (line["precision"], line["device"]) for line in json.loads(listed)}
    assert (found["one"], found["two"]) == (("fp32", "cpu"), ("bf16", "cuda:1"))


def test_a_relation_and_a_source_without_a_counted_fact_have_no_interval(data: Path) -> None:
    (data / "ConceptNet").mkdir()
    fact = {"uuid": "c", "sub": "a", "obj": "two words", "obj_label": "two words", "pred": "IsA",
            "masked_sentences": ["An a is a [MASK] ."]}  # fmt: skip
    (data / "ConceptNet" / "test.jsonl").write_text(json.dumps(fact) + "\n")
    assert call(*probe(data, "--model", "one"))[0] == 0
    _, out, _ = call("results", "toy")
    line = next(line for line in out.splitlines() if line.startswith("IsA"))
    assert line.split()[-3:] == ["one", "0", "1"]
    assert "one, ConceptNet: no mean, because all facts are excluded" in out


def test_results_by_source_name_the_source(data: Path) -> None:
    _, out, _ = call(*probe(data, "--model", "one"))
    run = json.loads(out)[0]["run"]
    _, out, _ = call("results", run[:-2], "--by", "source", "--json")
    lines = json.loads(out)
    assert [line["source"] for line in lines] == ["TREx", "Squad"]
    assert "relation" not in lines[0]
    assert lines[0]["n"] == 60
    assert "mean P@1 over 2 relations" in call("results", run)[1]


def test_a_mean_over_some_of_a_sources_relations_says_of_how_many() -> None:
    """No year is a single token of SmolLM2, so that date_of_birth has no fact that counts."""
    run = ("results", "starter-minilm_mlm-manual")
    by_source = printed(*run, "--by", "source")
    assert "Google_RE (2 of 3 relations)" in " ".join(by_source.split())
    assert "TREx (" not in by_source
    assert "minilm-mlm, Google_RE: mean P@1 over 2 of 3 relations" in printed(*run)
    lines = told(*run, "--by", "source")
    assert [(one["n_relations"], one["of_relations"]) for one in lines[:2]] == [(2, 3), (42, 42)]


def test_out_keeps_the_runs_in_another_folder(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "there"
    call(*probe(data, "--model", "one", "--out", str(out)))
    assert len(list_runs([out])) == 1 and not runs_dir().exists()


def test_a_probe_that_fails_says_what_was_kept(data: Path) -> None:
    status, _, error = call(*probe(data, "--model", "broken"))
    assert status == 2 and "parts are kept" in error and "Traceback" not in error
