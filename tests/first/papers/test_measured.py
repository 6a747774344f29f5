"""This project's own results on LAMA's T-REx: whole, and what is made of them."""

from collections import Counter

import pytest

from lama_core.papers.own_results import load_measured, measured_curves, measured_table
from lama_core.published import published_table


def test_all_41_relations_of_table_2_are_there_for_both_models() -> None:
    measured = load_measured()
    assert [model["model"] for model in measured["models"]] == ["minilm-mlm", "smollm2-135m"]
    types = {one["name"]: one["type"] for one in measured["relations"]}
    table = published_table("petroni2019", "table2")
    printed = {row.labels[2]: row.labels[4] for row in table.rows if row.labels[0] == "TREx"}
    for model in measured["models"]:
        kinds = Counter(types[one["relation"]] for one in model["relations"])
        assert {**kinds, None: len(model["relations"])} == printed  # 2, 23, 16 and 41
        facts = [one["n"] + one["n_excluded"] for one in model["relations"]]
        assert min(facts) > 0
        assert sum(facts) == measured["n_facts"] == 29_411


def test_a_total_is_the_unweighted_mean_of_its_relations() -> None:
    by_relation = measured_table("relation", "raw")
    capitals = by_relation[by_relation["type"] == "1-1"]
    capitals = capitals[capitals["model"] == "minilm-mlm"].set_index("relation")["p_at_1"]
    by_type = measured_table("type", "raw").set_index(["model", "type"])["p_at_1"]
    expected = (capitals["P36"] + capitals["P1376"]) / 2
    assert by_type["minilm-mlm", "1-1"] == pytest.approx(expected)
    total = measured_table("source", "raw").set_index("model")
    ours = by_relation[by_relation["model"] == "smollm2-135m"]["p_at_1"]
    assert total.loc["smollm2-135m", "p_at_1"] == pytest.approx(ours.sum() / 41)
    assert total.loc["smollm2-135m", "low"] < ours.mean() < total.loc["smollm2-135m", "high"]


def test_the_curve_begins_with_p_at_1_and_never_falls() -> None:
    curves = measured_curves("filtered")
    total = measured_table("source", "filtered").set_index("model")
    for model, part in curves.groupby("model"):
        assert part["k"].tolist() == [1, 2, 3, 5, 10, 20, 30, 50, 70, 100]
        assert part["p_at_k"].is_monotonic_increasing
        assert part["p_at_k"].iloc[0] == total.loc[model, "p_at_1"]
        assert part["p_at_k"].iloc[4] == pytest.approx(total.loc[model, "p_at_10"])
