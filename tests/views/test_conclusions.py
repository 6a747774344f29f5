"""The sentences that say what a view shows: the numbers of the table, for the right runs."""

from lama_core.rounding import percent
from lama_core.views.compare import compare
from lama_core.views.conclusions import as_share, listed
from lama_core.views.curves import curves
from lama_core.views.known_by import known_by
from lama_core.views.ranks import ranks
from lama_core.views.relation_types import relation_types
from lama_core.views.view import Shown, show

A, B = "starter-minilm_mlm-manual-9295c55a27", "starter-smollm2_135m-manual-a31de53809"


def test_values_are_listed_best_first_and_of_many_the_last_one_too() -> None:
    names = dict(zip("abcde", "ABCDE", strict=True))
    two = {"a": 0.1, "b": 0.25, "c": float("nan")}
    assert listed(names, two) == "25.0 % (B), 10.0 % (A)"
    many = dict(zip("abcde", (5.0, 1.0, 4.0, 3.0, 2.0), strict=True))
    ranked = listed(names, many, lambda value: f"{value:.0f}", lowest_first=True)
    assert ranked == "1 (B), 2 (E), ..., 5 (A)"


def test_curves_name_the_run_that_is_most_often_right() -> None:
    shown = show(curves.view, curves.request(runs=(A, B)))
    at_1 = shown.frame[shown.frame["k"] == 1].set_index("run")
    best = at_1["p_at_k"].idxmax()
    assert shown.conclusion.startswith(shown.names[best])
    assert as_share(at_1.loc[best, "p_at_k"]) in shown.conclusion


def test_ranks_say_how_often_the_answer_is_first_and_late() -> None:
    shown = show(ranks.view, ranks.request(runs=(A,)))
    late = shown.frame[shown.frame["low"] > 100]["share"].sum()
    assert as_share(shown.frame["share"].iloc[0]) in shown.conclusion
    assert f"after rank 100 for {as_share(late)}" in shown.conclusion


def test_types_name_the_best_and_the_worst_one_of_the_best_run() -> None:
    shown = show(relation_types.view, relation_types.request(runs=(A, B)))
    means = shown.frame[shown.frame["relation"].isna()]
    best = means.groupby("run")["p_at_k"].mean().idxmax()
    ours = means[means["run"] == best].set_index("type")["p_at_k"]
    assert f"best on {ours.idxmax()} relations" in shown.conclusion
    assert f"worst on {ours.idxmin()} relations" in shown.conclusion


def test_known_by_states_shares_of_all_facts() -> None:
    shown = show(known_by.view, known_by.request(runs=(A, B)))
    n = shown.frame.set_index("right")["n"]
    assert f"{percent(n[''] / n.sum())} % to none" in shown.conclusion


def test_a_comparison_counts_the_relations_with_a_clear_difference() -> None:
    shown: Shown = show(compare.view, compare.request(run_a=A, run_b=B))
    clear = (shown.frame["low"] > 0).sum()
    assert f"and {shown.names[shown.infos[1].id]} in {clear:,};" in shown.conclusion
