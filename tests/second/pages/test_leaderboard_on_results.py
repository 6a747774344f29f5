"""BEAR's leaderboard on Results, beside a run of statements on four facts."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from opening import open_page
from project_files import ROOT
from streamlit.testing.v1 import AppTest
from written_statements import StatementTable, write_bear

from lama_core.probes.statements.plan import plan
from lama_core.probes.statements.request import StatementsRequest
from lama_core.runs.execute import execute

# Peru and Chile are right, Bolivia and the sky are not: 2 / 4 over facts, 1 / 3 over relations.
CAPITALS = [("Peru", "Lima"), ("Chile", "Santiago"), ("Bolivia", "Lima")]
CITIES, COLOURS = ("Lima", "Santiago"), ("red", "green", "blue", "grey")
SAID = {
    "Peru": {"Lima": -1.0, "Santiago": -2.0},
    "Chile": {"Lima": -2.0, "Santiago": -1.0},
    "Bolivia": {"Lima": -2.0, "Santiago": -1.0},
    "Sky": {"red": -1.0, "green": -2.0, "blue": -2.0, "grey": -2.0},
}


def load(reference: str, *, precision: str) -> StatementTable:
    return StatementTable(SAID, name=reference)


def make_run(home: Path, data: str, *models: str, **options: Any) -> None:
    folder = write_bear(home / data, CAPITALS, CITIES, relation="P36")
    write_bear(folder, [("Sky", "blue")], COLOURS, relation="P462")
    request = StatementsRequest(str(folder), models, **options)
    for spec in plan(request, load=load):
        execute(spec, folder=home / "data" / "runs", load=load)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    make_run(home, "bear", "gpt2", "minilm-mlm")
    make_run(home, "bear", "minilm-mlm", aggregate="mean", limit=1)
    make_run(home, "other", "gpt2")
    return home


@pytest.fixture(autouse=True)
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMA_HOME", str(made))
    monkeypatch.chdir(ROOT)


def board(app: AppTest) -> pd.DataFrame:
    (table,) = [frame.value for frame in app.dataframe if "published" in frame.value]
    return table.set_index("model")


def opened(**params: str) -> AppTest:
    return open_page("results", **{"data": "bear", "prompts": "statements template 0", **params})


def test_models_have_both_numbers_and_what_differs_and_the_others_stand_below_best_first() -> None:
    app = opened()
    table = board(app)
    ours = table.iloc[1]  # in the order of the choice, MiniLM-MLM first
    assert (ours.name, ours["asked"]) == ("GPT-2 small", "whole answers, first template")
    assert ours["P@1"] == 50.0  # 2 / 4; over relations it would be 33.3
    assert ours["chance"] == 43.8  # (3 / 2 + 1 / 4) / 4
    assert (ours["facts"], ours["relations"]) == (4, 2)
    assert (ours["published"], ours["± error"]) == (13.5, 0.8)
    assert ours["differs"] == "2 of 60 relations; 4 of 7,731 facts; 1 of 3 templates"
    said = [one.value.replace("\\", "") for one in app.caption if "What differs" in one.value]
    assert len(said) == 2 and said[1].endswith(f": {ours['differs']}.")
    assert len(table) == 2 + 24  # the embedded model has no published value, GPT-2 stands with it
    assert pd.isna(table.iloc[0]["published"]) and table.iloc[0]["P@1"] == 50.0
    others = table.iloc[2:]
    assert others.index[0] == "Meta-Llama-3-8B" and others.index[-1] == "Random Baseline"
    assert others["published"].is_monotonic_decreasing and others["P@1"].isna().all()
    (code,) = [one.value for one in app.code if "over_facts" in one.value]
    *lines, last = code.strip().splitlines()
    place: dict[str, Any] = {}
    exec("\n".join([*lines, f"figures = {last}"]), place)
    assert [(one.n, one.accuracy) for one in place["figures"]] == [(4, 0.5), (4, 0.5)]


def test_what_is_asked_otherwise_is_said_and_the_chosen_relations_alone_count() -> None:
    app = open_page("results", data="bear", prompts="statements template 0, mean")
    assert board(app).iloc[0]["differs"] == (
        "2 of 60 relations; 2 of 7,731 facts; at most 1 a relation; 1 of 3 templates; mean"
    )
    ours = board(opened(relations="P36")).loc["GPT-2 small"]
    assert (ours["P@1"], ours["facts"], ours["relations"]) == (66.7, 3, 1)


@pytest.mark.parametrize(
    "params", [{"data": "other"}, {"p_at": "2"}, {"figure": "MRR"}, {"data": "starter"}]
)
def test_elsewhere_there_is_no_leaderboard(params: dict[str, str]) -> None:
    if params.get("data") == "starter":
        params = params | {"prompts": "manual"}
    app = opened(**params)
    assert not [frame for frame in app.dataframe if "published" in frame.value]
    assert "leaderboard" not in " ".join(one.value for one in app.markdown)
