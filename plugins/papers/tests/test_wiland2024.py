"""BEAR's leaderboard done again, on facts few enough to count and on BEAR's own."""

from collections.abc import Mapping
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from written_statements import StatementTable, write_bear

from lama_core.errors import UserError
from lama_core.models.sources.catalog import find_model
from lama_core.papers.bear import N_FACTS
from lama_core.published import BEAR_MODELS, published_table
from lama_papers import wiland2024 as module
from lama_papers.framework import ReproduceOptions
from lama_papers.registry import find_paper
from lama_papers.tables import ReproducedRow, Reproduction, TableContents
from lama_papers.wiland2024 import (
    BASELINE,
    ERROR,
    MEAN,
    standard_error,
)

TEMPLATES = ("[X] one [Y].", "[X] two [Y].", "[X] three [Y].")
CAPITALS = [("Peru", "Lima"), ("Chile", "Santiago"), ("Bolivia", "Lima")]
RIVERS, COLOURS = ("Lima", "Santiago"), ("red", "green", "blue", "grey")
# Which of the four facts each template gets right: three, two and one of four.
RIGHT = {"one": ("Peru", "Chile", "Bolivia"), "two": ("Peru", "Sky"), "three": ("Peru",)}
OWN = ("bert-base-cased", "minilm-mlm", "smollm2-135m")


def said() -> dict[str, dict[str, float]]:
    """What the written model says of each subject in each template."""
    table = {}
    for word, right in RIGHT.items():
        for subject, gold, answers in (
            *((subject, gold, RIVERS) for subject, gold in CAPITALS),
            ("Sky", "blue", COLOURS),
        ):
            best = -1.0 if subject in right else -9.0
            scores = {answer: -5.0 for answer in answers} | {gold: best}
            table[f"{subject} {word}"] = scores
    return table


@pytest.fixture
def data(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three capitals and one colour; BERT-base and the embedded models are here, no others."""
    folder = write_bear(tmp_path / "bear", CAPITALS, RIVERS, TEMPLATES, "P36")
    write_bear(folder, [("Sky", "blue")], COLOURS, TEMPLATES, "P462")

    def load(reference: str, *, precision: str = "auto", on_progress: object = None) -> Any:
        if reference not in OWN:
            raise UserError(f"{reference} can't be had.")
        return StatementTable(said(), name=reference)

    monkeypatch.setattr("lama_core.models.cache.load_model", load)
    monkeypatch.setattr(module, "is_here", lambda entry: entry.name in OWN)
    return folder


def as_large_as_the_leaderboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data has as many relations and facts as the leaderboard's."""
    monkeypatch.setattr("lama_core.papers.bear.N_RELATIONS", 2)
    monkeypatch.setattr("lama_core.papers.bear.N_FACTS", 4)


def done(data: Path | None, *models: str, limit: int | None = None) -> Reproduction:
    options = ReproduceOptions("", None if data is None else str(data), models, limit)
    return find_paper("wiland2024").reproduce(options)


def made(found: Reproduction) -> TableContents:
    (table,) = found.tables
    assert table.name == "Leaderboard"
    return table.made


def cells(found: TableContents, model: str) -> Mapping[str, ReproducedRow]:
    return {row.what: row for row in found.rows if row.model == model}


def test_the_mean_is_over_facts_and_then_over_the_templates(data: Path) -> None:
    rows = cells(made(done(data)), "bert-base-cased")
    accuracies = [rows[f"template {number}"].ours for number in range(3)]
    # Over relations, template 0 would be (3 / 3 + 0 / 1) / 2.
    assert accuracies == pytest.approx([100 * 3 / 4, 100 * 2 / 4, 100 * 1 / 4])
    assert rows[MEAN].ours == pytest.approx(50)
    # The deviations are 25, 0 and -25: sqrt(2 * 25^2 / 2) / sqrt(3).
    assert rows[ERROR].ours == pytest.approx(25 / sqrt(3))
    assert {row.n for row in rows.values()} == {4}
    assert rows[MEAN].published == pytest.approx(18.39348079)
    assert rows[ERROR].published == pytest.approx(0.36593149)
    assert rows[MEAN].differs == "2 of 60 relations; 4 of 7,731 facts"
    assert rows[MEAN].difference is None
    from scipy.stats import sem

    assert standard_error([3.0, 1.0, 7.0]) == pytest.approx(float(sem([3.0, 1.0, 7.0])))
    assert standard_error([3.0]) is None


def test_a_difference_stands_where_relations_facts_limit_and_model_are_the_leaderboards(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_large_as_the_leaderboard(monkeypatch)
    found = made(done(data))
    rows = cells(found, "bert-base-cased")
    assert rows[MEAN].differs == ""
    assert rows[MEAN].difference == pytest.approx(50 - 18.39348079)
    (chart,) = found.charts
    of_bert = chart.frame[chart.frame["what"] == "bert-base-cased"]
    assert [*of_bert["paper"]] == [False, True]
    rows = cells(made(done(data, limit=1)), "bert-base-cased")
    # Peru is right in every template, the sky in the second alone.
    assert rows[MEAN].ours == pytest.approx((50 + 100 + 50) / 3)
    assert (rows[MEAN].n, rows[MEAN].difference) == (2, None)
    assert rows[MEAN].differs == "2 of 4 facts; at most 1 a relation"


def test_the_chance_level_is_compared_with_the_random_baseline(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = cells(made(done(data)), BASELINE).values()
    ours = 100 * (3 * 1 / 2 + 1 / 4) / 4
    assert row.ours == pytest.approx(ours)
    assert (row.n, row.published, row.difference) == (4, pytest.approx(4.68244729), None)
    assert row.differs == "2 of 60 relations; 4 of 7,731 facts"
    as_large_as_the_leaderboard(monkeypatch)
    (row,) = cells(made(done(data)), BASELINE).values()
    assert row.differs == "" and row.difference == pytest.approx(ours - 4.68244729)


def test_embedded_models_have_no_published_value_and_models_elsewhere_no_number(data: Path) -> None:
    found = made(done(data))
    for name in ("minilm-mlm", "smollm2-135m"):
        rows = cells(found, name)
        assert rows[MEAN].ours == pytest.approx(50)
        assert all(row.published is None and not row.differs for row in rows.values())
    rows = cells(found, "opt-1.3b")
    assert rows[MEAN].published == pytest.approx(31.46207908)
    assert (rows[MEAN].ours, rows[MEAN].reason) == (None, "not on this machine")
    absent = {one.what: one for one in found.absent}
    assert set(absent) == set(BEAR_MODELS) - {"bert-base-cased"}
    assert absent["opt-1.3b"].command == "lama-explorer models get facebook/opt-1.3b"


def test_a_model_tuned_to_instructions_is_not_compared(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BEAR_MODELS, "Meta-Llama-3-8B-Instruct", "minilm-mlm")
    as_large_as_the_leaderboard(monkeypatch)
    row = cells(made(done(data)), "Meta-Llama-3-8B-Instruct")[MEAN]
    assert (row.ours, row.difference) == (pytest.approx(50), None)
    assert row.differs == "instruction-tuned, and the leaderboard doesn't state its query format"


@pytest.mark.usefixtures("data", "offline")
def test_without_bear_nothing_else_is_asked() -> None:
    reproduction = done(None)
    found = made(reproduction)
    assert all(row.ours is None and row.reason == "BEAR isn't available" for row in found.rows)
    assert len(found.rows) == 24 * 2 + 1
    (absent,) = found.absent
    assert (absent.what, absent.command) == ("bear", "lama-explorer data get bear")
    assert absent.reason == "bear can't be reached."
    assert "no other facts replace it" in " ".join(reproduction.notes)
    assert found.charts == ()


def test_every_model_of_the_leaderboard_is_one_that_can_be_named() -> None:
    rows = {str(row.labels[0]): row for row in published_table("wiland2024", "leaderboard").rows}
    expectation = pytest.approx(362 / N_FACTS, abs=5e-11)
    assert rows.pop(BASELINE).values == (expectation, None), "exactly"
    assert set(rows) == set(BEAR_MODELS)
    for name, reference in BEAR_MODELS.items():
        entry = find_model(reference)
        assert (entry.name, entry.source.how) == (reference, "hub")
        assert entry.source.place.rpartition("/")[2] == name
