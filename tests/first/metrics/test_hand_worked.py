"""Eight facts, worked by hand: every figure of a run as arithmetic.

Candidates in order: Rome, Paris, Berlin, Oslo, Madrid. P19 asks four people, P47 one land with
three neighbours and one with one.

    fact                    scores, best first                           raw  filtered
    Anna  born  Rome        Rome -0.1                                      1     1
    Ben   born  Paris       Rome -0.2, Paris -1.0                          2     2
    Cleo  born  Rome        Rome -1.0, Paris -1.0 (tie)                    1     1
    Dan   born  Oslo        Rome -0.5, Paris -0.6, Berlin -0.7, Oslo -0.8  4     4
    Land  next  Berlin      Berlin -0.3, Rome -0.9, Paris -1.2, Madrid -2  1     1
    Land  next  Paris       the same                                       3     2
    Land  next  Madrid      the same                                       4     2
    Isle  next  Oslo        Rome -1, Paris -2, Berlin -3, Madrid -4, Oslo  5     5
"""

from dataclasses import replace
from math import exp, isnan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from data_files import write_lama
from probe_fakes import TableFiller, with_facts

from lama_core import metrics
from lama_core.errors import UserError
from lama_core.metrics.intervals import share_intervals
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.plan import plan
from lama_core.runs.execute import execute
from lama_core.runs.info import Run

WORDS = ("Rome", "Paris", "Berlin", "Oslo", "Madrid")
LAND = {"Berlin": -0.3, "Rome": -0.9, "Paris": -1.2, "Madrid": -2.0, "Oslo": -5.0}
ANSWERS = {
    "Anna was born in [MASK] .": {"Rome": -0.1, "Paris": -3.0},
    "Ben was born in [MASK] .": {"Rome": -0.2, "Paris": -1.0},
    "Cleo was born in [MASK] .": {"Rome": -1.0, "Paris": -1.0},
    "Dan was born in [MASK] .": {"Rome": -0.5, "Paris": -0.6, "Berlin": -0.7, "Oslo": -0.8},
    "Land borders on [MASK] .": LAND,
    "Isle borders on [MASK] .": {
        "Rome": -1.0,
        "Paris": -2.0,
        "Berlin": -3.0,
        "Madrid": -4.0,
        "Oslo": -6.0,
    },
}
# A second model: right about Ben and Dan, wrong about Anna; the rest as the first.
OTHER = ANSWERS | {
    "Anna was born in [MASK] .": {"Paris": -0.1, "Rome": -3.0},
    "Ben was born in [MASK] .": {"Paris": -0.2, "Rome": -1.0},
    "Dan was born in [MASK] .": {"Oslo": -0.5},
}
FACTS = {
    "P19": [("Anna", "Rome"), ("Ben", "Paris"), ("Cleo", "Rome"), ("Dan", "Oslo")],
    "P47": [("Land", "Berlin"), ("Land", "Paris"), ("Land", "Madrid"), ("Isle", "Oslo")],
}
# Where some of the facts are from; see test_origins.
ORIGINS = {
    "Anna": "CIA World Factbook and GeoNames, which agree",
    "Ben": "WordNet 3.0",
    "Cleo": "written by hand",
    "Dan": "WordNet 3.0",
}
RELATIONS = [
    {"relation": "P19", "template": "[X] was born in [Y] .", "type": "N-1"},
    {"relation": "P47", "template": "[X] borders on [Y] .", "type": "N-M"},
]


def make_run(folder: Path, name: str, answers: dict[str, dict[str, float]]) -> Run:
    facts = {
        relation: [
            {"uuid": str(n), "sub_label": subject, "obj_label": word}
            | ({"origin": ORIGINS[subject]} if subject in ORIGINS else {})
            for n, (subject, word) in enumerate(pairs)
        ]
        for relation, pairs in FACTS.items()
    }
    data = write_lama(folder / "eight", RELATIONS, facts)

    def load(reference: str, *, precision: str) -> TableFiller:
        return TableFiller(answers, WORDS, reference)

    (spec,) = plan(ProbeRequest(str(data), (name,), candidates="full"), load=load)
    return execute(spec, folder=folder / "runs", load=load)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("first"), "first", ANSWERS)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("other"), "other", OTHER)


def test_ranks_are_as_worked_by_hand(run: Run) -> None:
    assert run.facts["rank_raw"].tolist() == [1, 2, 1, 4, 1, 3, 4, 5]
    assert run.facts["rank_filtered"].tolist() == [1, 2, 1, 4, 1, 2, 2, 5]


def test_first_answers_and_what_they_are(run: Run) -> None:
    facts = run.facts
    assert facts["first"].tolist() == ["Rome"] * 4 + ["Berlin"] * 3 + ["Rome"]
    assert facts["first_filtered"].tolist() == ["Rome"] * 4 + ["Berlin", "Rome", "Rome", "Rome"]
    # Berlin is a right neighbour of Land, but not the one that two of its facts name.
    assert facts["first_is_valid"].tolist() == [False] * 5 + [True, True, False]
    assert facts["first_is_object"].tolist() == [True] * 7 + [False]
    assert facts["object_count"].tolist() == [2, 1, 2, 1, 1, 1, 1, 1]
    assert facts["n_valid"].tolist() == [1, 1, 1, 1, 3, 3, 3, 1]
    assert run.top.words[4].tolist()[:5] == ["Berlin", "Rome", "Paris", "Madrid", "Oslo"]
    assert run.top.words[4].tolist()[5:] == [None] * 5


def test_the_table_by_relation(run: Run) -> None:
    table = metrics.score_table([run], k=2).set_index("relation")
    assert table["p_at_1"].to_dict() == {"P19": 2 / 4, "P47": 1 / 4}
    assert table["p_at_10"].to_dict() == {"P19": 4 / 4, "P47": 4 / 4}
    assert table["p_at_k"].to_dict() == {"P19": 3 / 4, "P47": 3 / 4}
    assert table["mrr"].to_dict() == pytest.approx(
        {"P19": (1 + 1 / 2 + 1 + 1 / 4) / 4, "P47": (1 + 1 / 2 + 1 / 2 + 1 / 5) / 4}
    )
    # Rome is right both times, Paris and Oslo never; of P47's four objects Berlin alone.
    assert table["macro_p_at_1"].to_dict() == pytest.approx(
        {"P19": (2 / 2 + 0 + 0) / 3, "P47": (1 + 0 + 0 + 0) / 4}
    )
    assert table["mean_rank"].to_dict() == {"P19": (1 + 2 + 1 + 4) / 4, "P47": (1 + 2 + 2 + 5) / 4}
    assert table["median_rank"].to_dict() == {"P19": (1 + 2) / 2, "P47": (2 + 2) / 2}
    assert table["n"].to_dict() == {"P19": 4, "P47": 4}


def test_the_freq_baseline(run: Run) -> None:
    # P19: Rome twice of four. P47: Berlin, Paris, Madrid, Oslo once each, in that order; filtered,
    # each of Land's three is first once the others are removed.
    filtered = metrics.score_table([run]).set_index("relation")["freq"].to_dict()
    raw = metrics.score_table([run], ranking="raw").set_index("relation")["freq"].to_dict()
    assert filtered == {"P19": 2 / 4, "P47": 3 / 4}
    assert raw == {"P19": 2 / 4, "P47": 1 / 4}


def test_a_source_is_the_unweighted_mean_over_its_relations(run: Run) -> None:
    row = metrics.score_table([run], by="source").iloc[0]
    assert row["p_at_1"] == (2 / 4 + 1 / 4) / 2
    assert row["mean_rank"] == (8 / 4 + 10 / 4) / 2
    assert (row["n"], row["n_relations"], row["source"]) == (8, 2, "TREx")
    raw = metrics.score_table([run], by="source", ranking="raw").iloc[0]
    assert raw["mean_rank"] == (8 / 4 + 13 / 4) / 2


def test_a_mean_says_of_how_many_relations_it_is_where_one_has_no_fact_that_counts(
    run: Run,
) -> None:
    whole = metrics.score_table([run], by="source").iloc[0]
    assert metrics.relations_counted(whole["n_relations"], whole["of_relations"]) == ""
    no_ranks = run.facts.assign(
        **{
            name: run.facts[name].where(run.facts["relation"] != "P47")
            for name in ("rank_raw", "rank_filtered")
        }
    )
    row = metrics.score_table([with_facts(run, no_ranks)], by="source").iloc[0]
    assert row["p_at_1"] == 2 / 4, "the mean of P19 alone"
    assert metrics.relations_counted(row["n_relations"], row["of_relations"]) == "1 of 2 relations"
    assert metrics.relations_counted(0, 2) == "", "there is no mean"


def test_conceptnets_total_is_over_its_relations_or_over_its_facts(run: Run) -> None:
    # Two relations: three facts with ranks 1, 1, 2, and one fact with rank 2.
    figures = metrics.relation_figures(run).assign(
        source="ConceptNet", n=[3, 1], p_at_1=[2 / 3, 0 / 1], mrr=[(1 + 1 + 1 / 2) / 3, 1 / 2]
    )
    shares = np.array([2 / 3, 0 / 1])
    ends = share_intervals(np.array([2, 0]), np.array([3, 1]))
    precision = pd.DataFrame(
        {"p_at_k": shares, "low": ends.low, "high": ends.high, "chance": np.nan}
    )
    over_relations = metrics.summarise([(figures, precision)], by="source").iloc[0]
    assert over_relations["p_at_1"] == over_relations["p_at_k"] == (2 / 3 + 0) / 2
    assert over_relations["mean_over"] == "relations"
    for by in ("source", "type"):
        over_facts = metrics.summarise(
            [(figures.assign(type=None), precision)], by=by, conceptnet="facts"
        ).iloc[0]
        assert over_facts["p_at_1"] == over_facts["p_at_k"] == pytest.approx(2 / 4)
        assert over_facts["mrr"] == pytest.approx((1 + 1 + 1 / 2 + 1 / 2) / 4)
        assert (over_facts["mean_over"], over_facts["n"], over_facts["n_relations"]) == (
            "facts", 4, 2
        )  # fmt: skip
        half = sqrt(Z2 * (1 / 2 * 1 / 2 / 4 + Z2 / (4 * 4**2))) / (1 + Z2 / 4)
        assert (over_facts["low"], over_facts["high"]) == pytest.approx(
            (1 / 2 - half, 1 / 2 + half), abs=1e-6
        )
    # The other sources have one total, whatever is asked of ConceptNet.
    other = metrics.summarise(
        [(figures.assign(source="TREx"), precision)], by="source", conceptnet="facts"
    ).iloc[0]
    assert (other["p_at_1"], other["mean_over"]) == ((2 / 3 + 0) / 2, "relations")


def test_types_stand_apart(run: Run) -> None:
    table = metrics.score_table([run], by="type").set_index("type")
    assert table["p_at_1"].to_dict() == {"N-1": 2 / 4, "N-M": 1 / 4}


Z2 = 1.959964**2


def test_intervals_are_wilsons_over_the_facts_of_a_relation(run: Run) -> None:
    row = metrics.score_table([run]).iloc[0]
    half = sqrt(Z2 * (1 / 2 * 1 / 2 / 4 + Z2 / (4 * 4**2))) / (1 + Z2 / 4)
    assert (row["low"], row["high"]) == pytest.approx((1 / 2 - half, 1 / 2 + half), abs=1e-6)


def test_the_interval_of_a_source_is_that_of_the_mean_over_its_relations(run: Run) -> None:
    row = metrics.score_table([run], by="source").iloc[0]
    # 2 of 4 and 1 of 4; s_r = (4 x 1/4 + 3 V) / 6 and (4 x 3/16 + 3 V) / 6, V = 15/64 + v.
    v = (1 / 4 + 3 / 16 + 6 / 4 * 15 / 64) / 6 / 4 / (1 - 6 / 4 / 6 / 4)
    n = (15 / 64 + v) / v
    centre = (3 / 8 + Z2 / (2 * n)) / (1 + Z2 / n)
    half = sqrt(Z2 * (15 / 64 / n + Z2 / (4 * n * n))) / (1 + Z2 / n)
    assert (row["low"], row["high"]) == pytest.approx((centre - half, centre + half))
    curve = metrics.precision_curves([run], k_max=2).iloc[0]
    assert (curve["low"], curve["high"]) == (row["low"], row["high"])
    assert (curve["n"], curve["n_relations"]) == (8, 2)


def test_the_curve_is_the_mean_over_relations(run: Run) -> None:
    curve = metrics.precision_curves([run], k_max=5)["p_at_k"]
    first = np.array([2, 3, 3, 4, 4]) / 4
    second = np.array([1, 3, 3, 3, 4]) / 4
    assert curve.tolist() == ((first + second) / 2).tolist()


def test_the_histogram_counts_every_fact_once(run: Run) -> None:
    bins = metrics.rank_histogram([run], bins_per_decade=3)
    # Edges 1, 2.15 -> 2, 4.64 -> 5: bins 1, 2, 3 to 5.
    assert bins[["low", "high", "n"]].to_numpy().tolist() == [[1, 1, 3], [2, 2, 3], [3, 5, 2]]


def test_box_plots_by_model(run: Run) -> None:
    row = metrics.rank_quartiles([run]).iloc[0]
    assert (row["median"], row["mean"], row["n"]) == (2, (1 + 2 + 1 + 4 + 1 + 2 + 2 + 5) / 8, 8)


def test_calibration(run: Run) -> None:
    bins = metrics.calibrate(run)
    gaps = [
        2 * abs(1 / 2 - exp(-1.0)),  # 0.3 to 0.4: Cleo right, Isle wrong
        2 * exp(-0.9),  # 0.4 to 0.5: Land for Paris and for Madrid, both answered Rome
        exp(-0.5),  # 0.6 to 0.7: Dan
        1 - exp(-0.3),  # 0.7 to 0.8: Land for Berlin
        exp(-0.2),  # 0.8 to 0.9: Ben
        1 - exp(-0.1),  # above 0.9: Anna
    ]
    assert metrics.expected_calibration_error(bins) == pytest.approx(sum(gaps) / 8, rel=1e-6)
    assert bins["n"].tolist() == [0, 0, 0, 2, 2, 0, 1, 1, 1, 1]


def test_two_runs_compared(run: Run, other: Run) -> None:
    result = metrics.compare(run, other)
    birth, border = result.relations
    # Of P19 Ben and Dan are won and Anna is lost; of P47 nothing changes.
    assert (birth.a, birth.b, birth.difference) == (2 / 4, 3 / 4, 1 / 4)
    assert (birth.only_a, birth.only_b, border.difference) == (1, 2, 0)
    # No flip among four facts isn't certainty: the score test holds up to z^2 / (n + z^2).
    most = Z2 / (4 + Z2)
    assert (border.interval.low, border.interval.high) == pytest.approx((-most, most), abs=1e-6)
    # Over facts: of eight, two are won and one is lost. Over relations: the mean of 1/4 and 0.
    facts, relations = result.over_facts, result.over_relations
    assert (facts.n, facts.a, facts.b, facts.difference) == (8, 3 / 8, 4 / 8, 1 / 8)
    assert (facts.only_a, facts.only_b, result.unit) == (1, 2, "fact")
    assert (relations.n, relations.difference) == (2, (1 / 4 + 0) / 2)
    assert (relations.ahead_a, relations.ahead_b, relations.equal) == (0, 1, 1)
    # Two values: s / sqrt(2) = 1/8, and t = 1 with one degree of freedom, which is p = 1/2.
    assert relations.p == pytest.approx(1 / 2)
    assert (relations.sample_interval.low, relations.sample_interval.high) == (-1, 1)
    assert -1 < relations.interval.low < 0 < relations.interval.high < 1
    # Two-sided: P(X <= 1 or X >= 2) of Binomial(3, 1/2) is 1.
    assert (result.over_facts.only_a, result.over_facts.only_b, result.mcnemar) == (1, 2, 1.0)
    subjects = result.run_a.facts["subject"]
    assert sorted(subjects[result.flips()["row"]]) == ["Anna", "Ben", "Dan"]
    assert len(result.flips(2)) == 2
    assert result.n_unpaired == 0


@pytest.mark.parametrize(("ranking", "column"), [("raw", "first"), ("filtered", "first_filtered")])
def test_the_first_answers_compared_are_those_of_the_ranking(
    run: Run, ranking: Any, column: str
) -> None:
    counted = run.facts[run.counted]
    assert (counted["first"].astype(str) != counted["first_filtered"].astype(str)).any()
    # In the other run, each ranking's first answers are those of the other ranking.
    table = run.table(["first", "first_filtered"])
    other = Run(run.info, changed={"first": table[1], "first_filtered": table[0]})
    same = float((counted["first"].astype(str) == counted["first_filtered"].astype(str)).mean())
    assert metrics.compare(run, other, ranking=ranking).agreement.same_first == same


def test_agreement_of_two_runs(run: Run, other: Run) -> None:
    agreed = metrics.compare(run, other).agreement
    assert agreed.same_first == 5 / 8
    assert (agreed.both_right, agreed.both_wrong) == (2 / 8, 3 / 8)
    assert (agreed.only_a, agreed.only_b) == (1 / 8, 2 / 8)
    assert [metrics.compare(run, other, k=k).agreement.same_right for k in (1, 5)] == [2 / 8] * 2
    expected = 3 / 8 * 4 / 8 + 5 / 8 * 4 / 8
    assert agreed.kappa == pytest.approx((5 / 8 - expected) / (1 - expected))


def test_figure_3_correlations(run: Run) -> None:
    counts = {"Anna": 1.0, "Ben": 0.0, "Cleo": 1.0, "Dan": 0.0, "Land": 0.0, "Isle": 0.0}
    mentions = metrics.Mentions("a toy text", lambda name: counts.get(name, 3.0))

    def vectors(names: object) -> np.ndarray:
        return np.array([[1.0, 0.0] if name in counts else [1.0, 1.0] for name in names])  # type: ignore[attr-defined]

    result = metrics.correlate(run, mentions, vectors)
    with_precision = result.matrix["P@1"]
    # SM is 1 for Anna and Cleo, P@1 for Anna, Cleo and Land-Berlin: phi of that 2 x 2 table.
    assert with_precision["SM"] == pytest.approx((2 * 5 - 0 * 1) / sqrt((2 * 6) * (3 * 5)))
    assert isnan(with_precision["OM"])  # every object is mentioned three times
    assert isnan(with_precision["SOCS"])  # the cosine is 1 / sqrt(2) throughout
    assert (result.n, result.mentions) == (8, "a toy text")
    # Berlin out of the way, the first answer to Land next Paris and to Land next Madrid is Rome.
    right = np.array([1, 0, 1, 0, 1, 0, 0, 0])
    for ranking, land in (("filtered", -0.9), ("raw", -0.3)):
        first = np.array([-0.1, -0.2, -1.0, -0.5, -0.3, land, land, -1.0])
        found = metrics.correlate(run, mentions, ranking=ranking).matrix
        assert found.loc["P@1", "LPFP"] == pytest.approx(np.corrcoef(first, right)[0, 1], rel=1e-5)


def test_figure_3_is_of_t_rex_where_a_run_has_it(run: Run) -> None:
    mentions = metrics.Mentions("a toy text", lambda name: float(len(name)))
    birth, border = run.info.relations
    info = replace(run.info, relations=(birth, replace(border, source="ConceptNet")))
    mixed = Run(info)
    assert metrics.correlation_sources(info) == ("TREx", "all", "ConceptNet")
    found = {
        source: metrics.correlate(mixed, mentions, source=source)
        for source in (None, "TREx", "all", "ConceptNet")
    }
    assert [one.n for one in found.values()] == [4, 4, 8, 4]
    assert found[None].matrix.equals(found["TREx"].matrix)
    # Of the births: the first answers' log-probabilities beside right, wrong, right, wrong.
    expected = np.corrcoef([-0.1, -0.2, -1.0, -0.5], [1, 0, 1, 0])[0, 1]
    assert found[None].matrix.loc["P@1", "LPFP"] == pytest.approx(expected, rel=1e-5)
    # Chosen relations of other sources alone, or a run without T-REx: what there is.
    assert metrics.correlation_sources(info, ["P47"]) == ("ConceptNet",)
    assert metrics.correlate(mixed, mentions, relations=["P47"]).n == 4
    with pytest.raises(UserError, match="Squad"):
        metrics.correlate(mixed, mentions, source="Squad")
