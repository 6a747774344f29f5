"""Answers of several models to one text, as page and command line show them."""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import pytest
import torch

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import common_vocabulary, named_candidates
from lama_core.errors import TimeOverError, UserError
from lama_core.models.hf.continuation import CausalBatch
from lama_core.queries.blank_answers import (
    blank_json,
    query_in_batches,
    query_model,
)
from lama_core.scoring.batches import score_cloze
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import Limits

Models = Callable[..., Any]
TEXT = "The capital of France is [MASK]."
FULL = Candidates("full", None)


def scores(model: Any, candidates: Candidates) -> dict[str, float]:
    columns = candidates.columns(model.vocabulary)
    (block,) = score_cloze(model, [parse_query(TEXT)], columns)
    return dict(zip(columns.words, block.log_probs[0].tolist(), strict=True))


@pytest.mark.parametrize(
    "family", ("bert-cased", "bert-uncased", "xlm-roberta", "gpt2", "llama", "t5")
)
def test_the_answers_are_the_best_candidates_in_order(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    candidates = common_vocabulary([model.vocabulary])
    (blank,) = query_model(model, parse_query(TEXT), candidates, top_k=7).blanks
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
    (plain,) = query_model(model, parse_query(TEXT), candidates).blanks
    (shared,) = query_model(
        model, parse_query(TEXT), candidates, renormalise=True, gold="London"
    ).blanks
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
    answer = query_model(model, query, candidates, context="left", gold="Paris|Paris")
    first, second = answer.blanks
    assert len(first.predictions) == len(second.predictions) == 5
    assert first.predictions != second.predictions
    assert first.gold is not None and second.gold is not None
    if model.kind == "causal":  # the second is asked with the first filled in
        filled = parse_query(f"{first.predictions[0].token} is a city in [MASK], said Ann.")
        (again,) = query_model(model, filled, candidates, context="left", gold="Paris").blanks
        assert again == second


@pytest.mark.parametrize("context", ("left", "both"))
@pytest.mark.parametrize(
    "family", ("bert-cased", "bert-uncased", "gpt2", "smollm2", "albert", "t5")
)
def test_the_gold_among_the_answers_has_the_same_rank_and_log_prob(
    family: str, context: Any, tiny_model: Models
) -> None:
    model = tiny_model(family)
    query = parse_query("Anna lives in [MASK], said Ann.")
    candidates = common_vocabulary([model.vocabulary])
    (blank,) = query_model(model, query, candidates, context=context).blanks
    for item in blank.predictions:
        (asked,) = query_model(model, query, candidates, context=context, gold=item.token).blanks
        assert asked.gold is not None and asked.gold.in_candidates
        assert asked.gold.rank == item.rank
        assert asked.gold.log_prob == pytest.approx(item.log_prob, abs=1e-4)


@pytest.mark.parametrize("family", ("bert-cased", "bert-uncased", "gpt2"))
def test_a_gold_of_several_pieces_is_never_cut_to_its_first(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    candidates = common_vocabulary([model.vocabulary])
    (blank,) = query_model(model, parse_query(TEXT), candidates, gold="Parisland").blanks
    assert blank.gold is not None and not blank.gold.in_candidates
    assert len(blank.gold.pieces) > 1
    assert blank.gold.log_prob is not None
    every = scores(model, candidates)
    better = sum(value > blank.gold.log_prob for value in every.values())
    assert blank.gold.rank == 1 + better


@pytest.mark.parametrize("gold_in_candidates", (True, False))
def test_a_gold_that_a_causal_model_does_not_propose_is_scored_next_to_the_list(
    gold_in_candidates: bool, tiny_model: Models
) -> None:
    model = tiny_model("gpt2")
    query = parse_query("Anna lives in [MASK], said Ann.")
    candidates = common_vocabulary([model.vocabulary])
    options: Any = {"context": "both", "n_rescored": 5, "top_k": 100}
    (without,) = query_model(model, query, candidates, **options).blanks
    shares = {item.token: item.prob for item in without.predictions}
    assert (len(shares), without.over, without.n_over) == (5, "rescored", 5)
    assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
    words = candidates.columns(model.vocabulary).words if gold_in_candidates else ("Parisland",)
    for word in words:
        (blank,) = query_model(model, query, candidates, gold=word, **options).blanks
        assert [item.token for item in blank.predictions] == list(shares)
        assert blank.gold is not None and blank.gold.log_prob is not None
        share = np.exp(blank.gold.log_prob)
        if word in shares:
            assert blank.gold.proposed and share == pytest.approx(shares[word], abs=1e-5)
            assert list(shares).index(word) + 1 == blank.gold.rank
            assert blank.is_right == (blank.gold.rank == 1)
        else:
            better = sum(prob * (1 - share) > share for prob in shares.values())
            assert blank.gold.rank == 1 + better
            assert blank.gold.proposed != gold_in_candidates
            assert blank.is_right is (None if blank.gold.rank == 1 else False)


def test_what_the_candidates_leave_out_is_said(tiny_model: Models) -> None:
    for family in ("bert-cased", "gpt2"):
        model = tiny_model(family)
        every = query_model(model, parse_query(TEXT), FULL, top_k=1).blanks[0]
        (blank,) = query_model(
            model, parse_query(TEXT), Candidates("x", ("Paris", "London"))
        ).blanks
        assert (blank.over, blank.n_over) == ("vocabulary", model.vocabulary.size)
        assert blank.outside == pytest.approx(1 - sum(item.prob for item in blank.predictions))
        assert blank.first is not None and blank.first.prob >= every.predictions[0].prob - 1e-6
        assert every.outside is None and every.first is None


@pytest.mark.parametrize("family", ("bert-cased", "bert-uncased", "roberta", "gpt2", "t5"))
@pytest.mark.parametrize("name", ("own", "own-words", "common", "few"))
def test_a_likelier_token_that_is_not_ranked_has_a_row_and_the_rank_counts(
    family: str, name: str, tiny_model: Models
) -> None:
    models = [tiny_model(family), tiny_model("llama")]
    candidates = Candidates("few", ("Paris", "London"))
    if name != "few":
        vocabularies = [model.vocabulary for model in models]
        candidates = named_candidates(name, vocabularies, models=("A", "B"))
    query, shares = parse_query(TEXT), (False, True)
    every = query_model(models[0], query, FULL, top_k=1).blanks[0].predictions[0]
    for renormalise in shares:
        (blank,) = query_model(models[0], query, candidates, renormalise=renormalise).blanks
        first = blank.predictions[0]
        (right,) = query_model(
            models[0], query, candidates, gold=first.token, renormalise=renormalise
        ).blanks
        outside = blank.likeliest_outside
        found = blank_json(blank).get("not_ranked")
        assert (outside is None) == (blank.rows == blank.predictions) == (found is None)
        assert right.is_right, "first among the candidates"
        if outside is None:
            assert not blank.describe_outside()
            continue
        assert (outside.token, outside.log_prob) == (every.token, pytest.approx(every.log_prob))
        assert blank.rows == (outside, *blank.predictions) and outside.rank is None
        assert found["reason"] == blank.why_not_ranked() != ""
        assert blank.prob_of(outside) == "all tokens of the model"


def test_a_first_token_is_continued_to_the_word_or_name_that_it_begins(
    tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("gpt2")
    vocabulary = model.vocabulary
    tokens = {vocabulary.entry(token): token for token in vocabulary.tokens()}

    def first(begins: bool, upper: bool) -> tuple[str, int]:
        return next(
            (text, token)
            for (text, starts), token in tokens.items()
            if starts == begins and text.isalpha() and text[0].isupper() == upper
        )

    (name, start), (piece, more), (other, _) = (
        first(True, True), first(False, False), first(True, False)
    )  # fmt: skip
    stop = tokens[".", False]
    script: dict[int, int] = {}

    def follow(_: Any, ids: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(len(ids), vocabulary.size)
        for row, last in zip(logits, ids[:, -1].tolist(), strict=True):
            row[script.get(last, stop)] = 20.0 if sure else 1.0
        return logits

    monkeypatch.setattr(CausalBatch, "_pass", follow)
    encoded = [model.encode(parse_query(TEXT), "left")]
    sure = True
    assert model.continue_words(encoded, [[start]]) == [None]
    script[start] = more
    assert model.continue_words(encoded, [[start]]) == [name + piece]
    script[start], script[more] = more, start  # a name of two words, then the same again
    assert model.continue_words(encoded, [[start]])[0].startswith(f"{name}{piece} {name}")
    script[more] = tokens[other, True]  # a word of its own
    assert model.continue_words(encoded, [[start]]) == [name + piece]
    script.update({start: start})
    sure = False  # another name, less likely than not
    assert model.continue_words(encoded, [[start]]) == [None]


def test_a_missing_full_stop_is_pointed_out_where_it_changes_the_first_answer(
    tiny_model: Models,
) -> None:
    changed = 0
    for family in ("bert-cased", "bert-uncased", "gpt2", "smollm2"):
        model = tiny_model(family)
        candidates = common_vocabulary([model.vocabulary])
        for text in ("[MASK] is a city", "She lives in [MASK], said", "Anna [MASK] of France"):
            (open_,) = query_model(model, parse_query(text), candidates).blanks
            (ended,) = query_model(model, parse_query(f"{text}."), candidates).blanks
            word = ended.predictions[0].token
            same = word == open_.predictions[0].token
            assert open_.with_full_stop == (None if same else word)
            assert ended.with_full_stop is None
            changed += not same
    assert changed


def test_each_blank_has_its_own_gold_and_one_that_cant_be_written_stands_last(
    tiny_model: Models,
) -> None:
    model = tiny_model("bert-cased")
    query = parse_query("[MASK] is a city in [MASK].")
    answer = query_model(model, query, FULL, gold="Paris | ")
    assert [blank.gold and blank.gold.word for blank in answer.blanks] == ["Paris", None]
    with pytest.raises(UserError, match="2 blanks, but there is 1 right answer: write one for"):
        query_model(model, query, FULL, gold="Paris")
    two = Candidates("x", ("Paris", "London"))
    (blank,) = query_model(model, parse_query(TEXT), two, gold="🙂").blanks
    assert blank.gold is not None and (blank.gold.rank, blank.gold.log_prob) == (3, None)


LONG = "[MASK] is a city in France, said Ann (the painter) in 1911."


def test_the_blanks_of_a_query_share_its_time(
    tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("smollm2")
    query = parse_query("[MASK] is a city in [MASK], said Ann.")
    with pytest.raises(UserError, match=r"filled 1 of 2 blanks in 0 seconds"):
        query_model(tiny_model("t5"), query, FULL, limits=Limits(seconds=0.0))
    untils: list[float] = []
    score = model.blank_log_probs
    monkeypatch.setattr(
        model,
        "blank_log_probs",
        lambda batch, columns: (untils.append(batch[0].until), score(batch, columns))[1],
    )
    query_model(model, query, FULL, limits=Limits(seconds=1000.0))
    assert untils[1] - untils[0] == pytest.approx(500.0)


def test_a_query_whose_time_is_over_ends_with_a_message(tiny_model: Models) -> None:
    model, query = tiny_model("smollm2"), parse_query(LONG)
    for ask in (query_model, lambda model, query, *given, **options: query_in_batches(
        model, [query] * 3, *given, **options
    )):  # fmt: skip
        with pytest.raises(TimeOverError, match="smollm2 rescored 0 of 200 words") as caught:
            ask(model, query, FULL, n_rescored=200, limits=Limits(seconds=0.0))
        again = copy(caught.value)  # as it is sent from the scoring process
        assert (type(again), str(again)) == (TimeOverError, str(caught.value))


def test_a_text_of_too_many_tokens_and_too_many_words_are_bounded(tiny_model: Models) -> None:
    model = tiny_model("smollm2")
    query = parse_query(LONG)
    for limit in (5, 12):  # its left side is short: both sides count
        with pytest.raises(UserError, match=f"the maximum here is {limit}"):
            query_model(model, query, FULL, limits=Limits(tokens=limit))
    with pytest.raises(UserError, match="the maximum here is 5"):
        query_model(tiny_model("bert-cased"), query, FULL, limits=Limits(tokens=5))
    few = query_model(model, query, FULL, n_rescored=300, limits=Limits(rescored=20)).blanks[0]
    assert few.n_over == 20
