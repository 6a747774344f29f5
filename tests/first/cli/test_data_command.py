"""`lama-explorer data`: what it prints and how it ends."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from calling import call

from lama_core.datasets import load_dataset

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("list")`: the exit status, the output and the errors of a `data` command."""
    monkeypatch.setenv("LAMA_HOME", str(tmp_path))
    return lambda *words: call("data", *words)


def test_the_list_names_what_can_be_had_with_licence_and_citation(run: Run) -> None:
    rows = json.loads(run("list", "--json")[1])
    assert {"name", "installed", "n_relations", "n_facts", "licence", "citation"} <= set(rows[0])
    by_name = {row["name"]: row for row in rows}
    assert by_name["starter"]["installed"] and by_name["starter"]["n_facts"] >= 5_000
    published = {
        "lama", "lama-uhn", "negated-lama", "lpaqa", "pararel", "bear", "bats", "google-analogies",
        "popqa", "entity-questions", "counterfact", "zsre",
    }  # fmt: skip
    assert published <= set(by_name)
    assert not any(by_name[name]["installed"] for name in published)
    assert all(by_name[name]["licence"] and by_name[name]["citation"] for name in published)


def test_a_table_is_imported_by_its_columns_with_a_template(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cities.csv"
    path.write_text("Country,City\nPeru,Lima\nChile,Santiago\n")
    template = "The capital of [X] is [Y] ."
    words = ("--subject", "country", "--object", "City", "--template", template)
    status, out, error = run("import", str(path), *words)
    assert (status, out.splitlines()[0]) == (0, "cities: 1 relation, 2 facts"), error
    dataset = load_dataset("cities")  # the columns are kept with the imported table
    assert [fact.object for fact in dataset.facts] == ["Lima", "Santiago"]
    assert dataset.relations[0].prompts[0].template == template
    status, _, error = run("import", str(tmp_path), "--name", "x", "--subject", "Country")
    assert status == 2 and "is not a table: import it without columns" in error
