"""Answers of several models to one text, as page and command line show them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lama_core.asking.blanks import parse_query
from lama_core.asking.scoring import score_cloze
from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import common_vocabulary
from lama_core.errors import UserError
from lama_core.probes.cloze.ask import (
    MAX_TOP_K,
    BlankAnswer,
    ModelAnswer,
    Prediction,
    agreement,
    ask,
    ask_all,
)

Models = Callable[..., Any]
TEXT = "The capital of France is [MASK]."
FULL = Candidates("full", None)


def scores(model: Any, candidates: Candidates) -> dict[str, float]:
    columns = candidates.columns(model.vocabulary)
    (block,) = score_cloze(model, [parse_query(TEXT)], columns)
    return dict(zip(columns.words, block.log_probs[0].tolist(), strict=True))


@pytest.mark.parametrize("family", ("bert-cased", "bert-uncased", "xlm-roberta", "gpt2", "llama"))
def test_the_answers_are_the_best_candidates_in_order(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    candidates = common_vocabulary([model.vocabulary])
    (blank,) = ask(model, parse_query(TEXT), candidates, top_k=7).blanks
    every = scores(model, candidates)
    best = sorted(every, key=lambda word: -every[word])[:7]
    assert [item.token for item in blank.predictions] == best
    assert [item.rank for item in blank.predictions] == [1, 2, 3, 4, 5, 6, 7]
    for item in blank.predictions:
        assert item.log_prob == pytest.approx(every[item.token], abs=1e-5)
        assert item.prob == pytest.approx(np.exp(item.log_prob))


def test_a_cased_models_word_beside_an_uncased_one_is_the_sum_over_its_case_variants(
    tiny_model: Models,
) -> None:
    cased, uncased = tiny_model("roberta"), tiny_model("bert-uncased")
    both = common_vocabulary([cased.vocabulary, uncased.vocabulary])
    alone, folded = scores(cased, FULL), scores(cased, both)
    assert {"Poet", "poet", "Singer", "singer"} <= set(alone)
    for word in ("poet", "singer"):
        variants = [key for key in alone if key.lower() == word]
        total = sum(np.exp(alone[key]) for key in variants)
        assert len(variants) >= 2
        assert np.exp(folded[word]) == pytest.approx(total, rel=1e-4)


def test_renormalised_probabilities_sum_to_one_over_the_candidates(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    candidates = Candidates("x", ("Paris", "London", "Berlin"))
    (plain,) = ask(model, parse_query(TEXT), candidates).blanks
    (shared,) = ask(model, parse_query(TEXT), candidates, renormalise=True, gold="London").blanks
    assert sum(item.prob for item in plain.predictions) < 1
    assert sum(item.prob for item in shared.predictions) == pytest.approx(1, abs=1e-5)
    assert [item.token for item in shared.predictions] == [item.token for item in plain.predictions]
    (london,) = (item for item in shared.predictions if item.token == "London")
    assert shared.gold is not None
    assert shared.gold.log_prob == pytest.approx(london.log_prob)
    assert shared.gold.rank == london.rank


@pytest.mark.parametrize("family", ("bert-cased", "gpt2"))
def test_each_blank_gets_its_own_list(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    query = parse_query("[MASK] is a city in [MASK], said Ann.")
    candidates = common_vocabulary([model.vocabulary])
    answer = ask(model, query, candidates, context="left", gold="Paris")
    first, second = answer.blanks
    assert len(first.predictions) == len(second.predictions) == 5
    assert first.predictions != second.predictions
    assert first.gold is not None and second.gold is not None
    if model.kind == "causal":  # the second is asked with the first filled in
        filled = parse_query(f"{first.predictions[0].token} is a city in [MASK], said Ann.")
        (again,) = ask(model, filled, candidates, context="left", gold="Paris").blanks
        assert again == second


@pytest.mark.parametrize("context", ("left", "both"))
@pytest.mark.parametrize("family", ("bert-cased", "bert-uncased", "gpt2", "smollm2", "albert"))
def test_the_gold_among_the_answers_has_the_same_rank_and_log_prob(
    family: str, context: Any, tiny_model: Models
) -> None:
    model = tiny_model(family)
    query = parse_query("Anna lives in [MASK], said Ann.")
    candidates = common_vocabulary([model.vocabulary])
    (blank,) = ask(model, query, candidates, context=context).blanks
    for item in blank.predictions:
        (asked,) = ask(model, query, candidates, context=context, gold=item.token).blanks
        assert asked.gold is not None and asked.gold.in_candidates
        assert asked.gold.rank == item.rank
        assert asked.gold.log_prob == pytest.approx(item.log_prob, abs=1e-4)


@pytest.mark.parametrize("family", ("bert-cased", "bert-uncased", "gpt2"))
def test_a_gold_of_several_pieces_is_never_cut_to_its_first(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    candidates = common_vocabulary([model.vocabulary])
    (blank,) = ask(model, parse_query(TEXT), candidates, gold="Parisland").blanks
    assert blank.gold is not None and not blank.gold.in_candidates
    assert len(blank.gold.pieces) > 1
    assert blank.gold.log_prob is not None
    every = scores(model, candidates)
    better = sum(value > blank.gold.log_prob for value in every.values())
    assert blank.gold.rank == 1 + better


def test_a_gold_that_the_model_cannot_write_stands_last_without_a_probability(
    tiny_model: Models,
) -> None:
    model = tiny_model("bert-cased")
    candidates = Candidates("x", ("Paris", "London"))
    (blank,) = ask(model, parse_query(TEXT), candidates, gold="🙂").blanks
    assert blank.gold is not None
    assert (blank.gold.rank, blank.gold.log_prob) == (3, None)


def test_a_gold_that_a_causal_model_did_not_rescore_still_has_a_rank(tiny_model: Models) -> None:
    model = tiny_model("gpt2")
    query = parse_query("Anna lives in [MASK], said Ann.")
    candidates = common_vocabulary([model.vocabulary])
    columns = candidates.columns(model.vocabulary)
    ranks = []
    for word in columns.words:
        (blank,) = ask(model, query, candidates, context="both", gold=word, n_rescored=5).blanks
        assert blank.gold is not None
        assert (blank.gold.log_prob is None) == (blank.gold.rank > 5)
        ranks.append(blank.gold.rank)
    assert sorted(ranks) == list(range(1, len(columns.words) + 1))


@pytest.mark.parametrize("top_k", (0, -1, MAX_TOP_K + 1))
def test_a_number_of_answers_out_of_range_is_refused(top_k: int, tiny_model: Models) -> None:
    with pytest.raises(UserError, match="choose a number from 1 to 100"):
        ask(tiny_model("bert-cased"), parse_query(TEXT), FULL, top_k=top_k)


def test_json_has_the_fields_that_scripts_rely_on(tiny_model: Models) -> None:
    models = [tiny_model("bert-uncased"), tiny_model("gpt2")]
    candidates = common_vocabulary([model.vocabulary for model in models])
    seen: list[str] = []
    answer = ask_all(
        models, parse_query(TEXT), candidates, top_k=2, gold="Paris",
        on_model=lambda one: seen.append(one.name),
    )  # fmt: skip
    told = answer.to_json()
    assert seen == ["bert-uncased", "gpt2"]
    assert set(told) == {"text", "candidates", "models"}
    assert candidates.words is not None
    assert told["candidates"] == {"name": "common", "size": len(candidates.words)}
    masked, causal = told["models"]
    assert (masked["kind"], masked["context"]) == ("masked", "both")
    assert (causal["kind"], causal["context"]) == ("causal", "left")
    for model in told["models"]:
        (blank,) = model["blanks"]
        assert set(blank["gold"]) == {"word", "rank", "log_prob", "pieces", "in_candidates"}
        assert [set(item) for item in blank["predictions"]] == [
            {"rank", "token", "log_prob", "prob"}
        ] * 2
    without = ask(models[0], parse_query(TEXT), candidates)
    assert "gold" not in ask_all([models[0]], parse_query(TEXT), candidates).to_json()["models"][0][
        "blanks"][0]  # fmt: skip
    assert without.blanks[0].gold is None


def answer(name: str, *words: str) -> ModelAnswer:
    predictions = tuple(
        Prediction(rank, word, -float(rank), 0.1) for rank, word in enumerate(words, start=1)
    )
    return ModelAnswer(name, "masked", "both", 9, (BlankAnswer(predictions),))


def test_agreement_names_the_words_that_models_share_the_most_shared_first() -> None:
    answers = [
        answer("a", "Paris", "Rome", "paris"),
        answer("b", "rome", "Oslo", "Paris"),
        answer("c", "Rome", "Lima"),
    ]
    assert agreement(answers) == [("rome", ("a", "b", "c")), ("paris", ("a", "b"))]


def test_models_that_share_nothing_agree_on_nothing() -> None:
    assert agreement([answer("a", "Paris"), answer("b", "Rome")]) == []
