"""Wrong answers: a row for each query, marked filters, and chosen facts on all tabs of Results."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from opening import open_page, said
from streamlit.testing.v1 import AppTest

from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.headlines import CHOSEN
from lama_core.runs.alignment import align
from lama_core.runs.chosen_facts import text_of
from lama_core.runs.find import load_run
from lama_core.runs.info import Run
from pages.ui.wrong_answers.filters import LINKED
from pages.ui.wrong_answers.rows import one_per_query

TWO = ["gpt2", "minilm-mlm"]
FORK = "starter-minilm_mlm-manual-07551b33bf"


pytestmark = pytest.mark.usefixtures("runs")


def wrong_answers(**params: str | list[str]) -> AppTest:
    return open_page("results", tab="Wrong answers", data="made-up", models=TWO, **params)


def test_a_query_with_several_right_answers_is_one_row() -> None:
    app = open_page("results", tab="Wrong answers", data="starter", models=["minilm-mlm"],
                    find="a fork", facts="all")  # fmt: skip
    (table,) = [one.value for one in app.dataframe if "gold" in one.value]
    forks = table[(table["subject"] == "a fork") & table["relation"].str.startswith("AtLocation")]
    joined = join_answers([load_run(FORK)])
    rows = joined.facts[joined.facts["subject"] == "a fork"]
    rows = rows[rows["relation"] == "AtLocation"]
    assert len(rows) == 3 and rows["query"].nunique() == 1 == len(forks)
    assert forks["gold"].tolist() == ["drawer, kitchen, restaurant"]
    ranks = joined.runs[0].rank[rows.index]
    assert forks["minilm-mlm rank"].tolist() == [ranks.min()]
    assert "in " in said(app) and "queries" in said(app)


def test_rows_of_queries_have_the_best_numbers_and_different_texts() -> None:
    table = pd.DataFrame(
        {
            "subject": ["fork", "fork", "Bonn", "fork"],
            "gold": ["drawer", "kitchen", "Germany", "kitchen"],
            "tags": [["odd"], [], ["a"], ["odd", "b"]],
            "m answer": ["road", "kitchen ✓", None, "road"],
            "m prob": [0.5, 0.25, np.nan, 0.5],
            "m rank": [9.0, 1.0, np.nan, 4.0],
        }
    )
    made = one_per_query(table, np.array([0, 0, 1, 0]))
    assert made["subject"].tolist() == ["fork", "Bonn"]
    assert made["gold"].tolist() == ["drawer, kitchen", "Germany"]
    assert made["tags"].tolist() == [["odd", "b"], ["a"]]
    assert made["m answer"].iloc[0] == "road, kitchen ✓" and made["m answer"].isna().iloc[1]
    assert made["m prob"].tolist()[0] == 0.5 and made["m rank"].tolist()[0] == 1
    many = pd.DataFrame({"gold": list("abcdef"), "m rank": range(6)})
    assert one_per_query(many, np.zeros(6, int))["gold"].tolist() == ["a, b, c, d and 2 more"]
    assert one_per_query(table, np.arange(4)) is table


def test_each_filter_of_a_link_is_a_chip_that_removes_it(gone: list[dict[str, Any]]) -> None:
    fitting = {"contained": "no", "gold": "x", "answer": "x"}
    asked = {
        name: fitting.get(name, "1" if name.endswith(("_min", "_max")) else "none")
        for name in LINKED
    }
    app = wrong_answers(facts="all", **asked)
    chips = [one for one in app.button if one.key and one.key.startswith("filter ")]
    assert len(chips) == len({name.rpartition("_m")[0] or name for name in LINKED})
    chips[0].click().run()
    assert gone[-1].items() >= {"margin_min": [], "margin_max": []}.items()


@pytest.mark.parametrize("value", ["1e999", "nan", "\N{GRINNING FACE}" * 600])
def test_a_filter_of_a_link_that_cant_be_read_is_no_filter(value: str) -> None:
    names = [name for name in LINKED if name.endswith("_min") and "margin" not in name]
    app = wrong_answers(facts="all", **dict.fromkeys(names, value))
    assert not [one for one in app.button if one.key and one.key.startswith("filter ")]


def test_listed_facts_are_chosen_with_one_click_and_hold_on_all_tabs(
    runs: dict[str, Run], gone: list[dict[str, Any]]
) -> None:
    app = wrong_answers(wrong=["gpt2"], of="gpt2")
    joined = join_answers(align([runs[name] for name in TWO]))
    wrong = joined.facts["fact_id"][joined.runs[0].rank > 1]
    (button,) = [one for one in app.button if one.label == f"Only these {len(wrong):,} facts"]
    button.click().run()
    only = gone[-1]["only"]
    assert only == text_of([runs["gpt2"]], wrong)
    wrong_ones: dict[str, Any] = {"tab": "Wrong answers", "wrong": ["gpt2"]}
    charts = ("Slices", "Rank distribution", "Calibration")
    for there in (
        {"tab": "Overview"}, {"tab": "Compare"}, wrong_ones,
        *({"tab": "More", "chart": name} for name in charts),
    ):  # fmt: skip
        page = open_page("results", data="made-up", models=TWO, only=only, **there)
        shown = " ".join((said(page), *(one.label for one in page.metric)))
        shown = shown.replace("**", "")
        n = f"{len(wrong):,}"
        assert f"{n} chosen facts" in shown or (
            "over chosen facts:" in shown and f" of {n})" in shown
        )
        assert there["tab"] != "Overview" or "ahead" not in shown
        if there["tab"] in ("Overview", "Compare"):
            assert CHOSEN in shown.replace("\N{NO-BREAK SPACE}", " ")
        (chip,) = [one for one in page.button if one.key == "all facts"]
        assert chip.label == f"Only {len(wrong):,} chosen facts"
        chip.click().run()
        assert gone[-1]["only"] == []


def test_a_link_with_damaged_facts_or_those_of_other_data_says_so_and_shows_all(
    runs: dict[str, Run],
) -> None:
    text = text_of(runs.values(), runs["gpt2"].facts["fact_id"][:9])
    other = text_of([load_run(FORK)], load_run(FORK).facts["fact_id"][:9])
    for only, said_of in (
        (text[:-6], "All facts are shown."), ("x" * 9, "All facts are shown."),
        (other, "None of the chosen facts is in these data"),
    ):  # fmt: skip
        app = open_page("results", data="made-up", models=TWO, only=only)
        assert not any(one.label.startswith("Only ") for one in app.button)
        assert said_of in app.info[0].value
