"""Answers side by side, on the eight facts worked by hand in test_hand_worked."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from probe_fakes import with_facts
from test_hand_worked import ANSWERS, OTHER, make_run

from lama_core.metrics.confusion import confusion
from lama_core.metrics.fact_answers import (
    AnswerFilter,
    JoinedAnswers,
    as_written,
    fallbacks,
    join_answers,
    wrong_kinds,
)
from lama_core.metrics.slices import slice_table
from lama_core.runs.find import load_run
from lama_core.runs.info import Run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return make_run(folder, "a", ANSWERS), make_run(folder, "b", OTHER)


@pytest.fixture(scope="module")
def joined(runs: tuple[Run, Run]) -> JoinedAnswers:
    return join_answers(runs)


def subjects(joined: JoinedAnswers, chosen: AnswerFilter) -> list[str]:
    return [str(name) for name in joined.facts["subject"].iloc[joined.select(chosen)]]


def test_filters_choose_the_facts(joined: JoinedAnswers) -> None:
    assert subjects(joined, AnswerFilter()) == (
        ["Anna", "Ben", "Cleo", "Dan", "Land", "Land", "Land", "Isle"]
    )
    assert subjects(joined, AnswerFilter(counting="excluded")) == []
    assert subjects(joined, AnswerFilter(right=(0,), wrong=(1,))) == ["Anna"]
    assert subjects(joined, AnswerFilter(right=(1,), wrong=(0,))) == ["Ben", "Dan"]
    assert subjects(joined, AnswerFilter(right=(0,), wrong=(1,), k=2)) == []
    assert subjects(joined, AnswerFilter(rank_min=4, rank_max=5)) == ["Dan", "Isle"]
    assert subjects(joined, AnswerFilter(of=1, rank_min=4, rank_max=5)) == ["Isle"]
    confidence = float(joined.runs[0].confidence[0])  # Anna's: exp(-0.1)
    assert confidence == pytest.approx(np.exp(-0.1))
    assert "Anna" in subjects(joined, AnswerFilter(confidence_max=confidence))
    assert "Anna" not in subjects(joined, AnswerFilter(confidence_min=confidence)), "the lower end"
    assert subjects(joined, AnswerFilter(relations=("P47",), right=(0,))) == ["Land"]
    assert subjects(joined, AnswerFilter(types=("N-1",), wrong=(0,))) == ["Ben", "Dan"]
    assert subjects(joined, AnswerFilter(types=("",))) == []
    assert subjects(joined, AnswerFilter(sources=("Squad",))) == []
    assert subjects(joined, AnswerFilter(answer="rome", wrong=(0,))) == (
        ["Ben", "Dan", "Land", "Land", "Isle"]
    )
    assert subjects(joined, AnswerFilter(text="OSLO")) == ["Dan", "Isle"]
    assert subjects(joined, AnswerFilter(gold="OSLO", answer="rome")) == ["Dan", "Isle"]
    assert subjects(joined, AnswerFilter(gold="Osl")) == []
    assert subjects(joined, AnswerFilter(count_min=2)) == ["Anna", "Cleo"]
    pieces = int(joined.runs[1].pieces.max())
    for every, none in (
        (AnswerFilter(contained=False), AnswerFilter(contained=True)),  # gold inside its subject
        (AnswerFilter(words_min=1, words_max=1), AnswerFilter(words_min=2)),
        (AnswerFilter(of=1, pieces_max=pieces), AnswerFilter(of=1, pieces_min=pieces + 1)),
    ):
        assert (len(subjects(joined, every)), subjects(joined, none)) == (8, [])


def test_raw_ranking_shows_answers_that_are_right_otherwise(runs: tuple[Run, Run]) -> None:
    raw = join_answers(runs, ranking="raw")
    # Paris and Madrid are asked for, Berlin is said, which is a neighbour of Land too.
    assert wrong_kinds(raw.runs[0])["another valid"].tolist() == [False] * 5 + [True, True, False]


def test_fallbacks_count_the_wrong_words(joined: JoinedAnswers) -> None:
    table = fallbacks(joined, joined.select(AnswerFilter()))
    first = table[table["number"] == 0].iloc[0]
    # A is wrong on Ben, Dan, Land twice and Isle, and says Rome each time.
    assert (first["answer"], first["n"], first["share"]) == ("Rome", 5, 1.0)
    assert first["n_relations"] == 2
    assert first["right_type"] == 2 / 5


def test_a_word_with_which_many_names_begin_is_not_a_whole_word_of_a_causal_model() -> None:
    """SmolLM2 answers `new` most often: the beginning of New York, New Zealand, ..."""
    causal, masked = map(load_run, ("starter-smollm2_135m-manual", "starter-minilm_mlm-manual"))
    words = ["new", "south", "january", "germany", "Python"]
    assert as_written(causal, words) == ["new …", "south …", *words[2:]]
    assert as_written(masked, words) == words


def test_a_run_on_fewer_facts_has_gaps_and_loses_none(runs: tuple[Run, Run]) -> None:
    shorter = with_facts(runs[1], runs[1].facts.iloc[2:])
    both = join_answers([shorter, runs[0]])
    assert len(both.facts) == 8
    ranks = dict(zip(both.facts["fact_id"], both.runs[0].rank, strict=True))
    assert np.isnan(ranks["P19:0"]) and ranks["P19:3"] == 1
    whole = dict(zip(both.facts["fact_id"], both.runs[1].rank, strict=True))
    assert whole["P19:0"] == 1
    assert both.runs[0].at[list(both.facts["fact_id"]).index("P19:0")] == -1
    ab, ba = join_answers(runs), join_answers(runs[::-1])
    assert ab.runs[0].rank.tolist() == ba.runs[1].rank.tolist(), "in another order"


def test_golds_by_answers_count_every_fact_once(joined: JoinedAnswers) -> None:
    # A says Rome to all but Land's Berlin; the golds are Rome, Paris and Oslo twice each, Berlin
    # and Madrid once.
    found = confusion(joined, joined.select(AnswerFilter()), n=2)
    assert (found.golds, found.answers) == (("Rome", "Paris"), ("Rome", "Berlin"))
    assert found.counts.tolist() == [[2, 0], [2, 0], [3, 1]], "the last row holds the other golds"
    assert (found.n_golds, found.n_answers, found.n) == (5, 2, 8)
    said = "A is right on 37.5 % of 8 facts; most often it answers “Rome” instead of “"
    assert found.conclusion("A").startswith(said)
    one_each = joined.select(AnswerFilter())[:2]
    assert confusion(joined, one_each).conclusion("A").endswith("occurs more than once")
    pairs = found.pairs.to_dict("records")
    assert {"gold": "Berlin", "answer": "Berlin", "n": 1, "share": 1.0} in pairs
    for line in pairs:
        there = AnswerFilter(gold=line["gold"], answer=line["answer"])
        assert len(joined.select(there)) == line["n"]


@pytest.mark.parametrize("n", [4, 8, 20])
def test_every_row_has_its_right_answers_and_the_worst_pair_is_shown(n: int) -> None:
    # Each of 24 golds has six facts with different answers, one right; "rare" has Z five times.
    words = [f"w{number}" for number in range(24)]
    golds = [*words * 6, *["rare"] * 5]
    said = [word for step in range(6) for word in np.roll(words, step).tolist()] + ["Z"] * 5
    runs = (SimpleNamespace(answer=pd.Categorical(said)),)
    answers = SimpleNamespace(facts=pd.DataFrame({"object": pd.Categorical(golds)}), runs=runs)
    found = confusion(cast(JoinedAnswers, answers), np.arange(len(golds)), n=n)
    assert set(found.golds) - {"rare"} <= set(found.answers) and len(found.answers) == n
    assert found.counts[found.golds.index("rare"), found.answers.index("Z")] == 5
    assert found.n == len(golds) and "“Z” instead of “rare” (5 times)" in found.conclusion("A")


def test_slices_are_worked_by_hand(joined: JoinedAnswers) -> None:
    table = slice_table(joined).set_index(["number", "by", "slice"])
    whole = table.loc[0, "all", "all facts"]
    # Anna, Cleo and Land's Berlin are right; of five wrong answers Ben's and Dan's are objects.
    assert (whole["n"], whole["p_at_k"], whole["n_wrong"]) == (8, 3 / 8, 5)
    assert (whole["right_type"], whole["another_valid"], whole["neither"]) == (2 / 5, 0, 3 / 5)
    assert whole["low"] < 3 / 8 < whole["high"]
    twice = table.loc[0, "gold's frequency", "2 to 5"]
    assert (twice["n"], twice["p_at_k"]) == (2, 1.0) and np.isnan(twice["right_type"])
    assert table.loc[1, "type of relation", "N-1"]["p_at_k"] == 3 / 4
    assert slice_table(joined, k=2).loc[0, "p_at_k"] == 6 / 8


def test_tags_are_found_in_the_run_that_has_them(
    joined: JoinedAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"a": {("P19:1", 0): ("wrong gold",)}}
    monkeypatch.setattr(
        "lama_core.metrics.fact_answers.read_tags",
        lambda info: kept["a"] if info.id == joined.runs[0].run.info.id else {},
    )
    assert subjects(joined, AnswerFilter(tags=("ambiguous", "wrong gold"))) == ["Ben"]
    assert subjects(joined, AnswerFilter(tags=("ambiguous",))) == []
    assert subjects(joined, AnswerFilter(of=1, tags=("wrong gold",))) == []
