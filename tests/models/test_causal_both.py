"""Causal models with context `both`: the best words by the left context, rescored by the sentence.

The reference reads every whole sentence anew, without a cache and without batches.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import CAUSAL

from lama_core.candidates.columns import Candidates
from lama_core.models.protocols import FIRST_RESCORED, Scores
from lama_core.scoring.blanks import parse_query
from lama_core.types import Query

Models = Callable[..., Any]
TEXTS = (
    "The capital of France is [MASK], said Ann.",
    "[MASK] is a city in Germany.",
    'Anna (the [MASK]) was born in "Oslo", in 1912.',
    "It's [MASK]'s capital",
)


def chain(model: Any, ids: list[int], first: int) -> float:
    """log P(ids[first:] | ids[:first]), the whole sequence read at once."""
    with torch.no_grad():
        log_probs = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(float(log_probs[at - 1, ids[at]]) for at in range(first, len(ids)))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("family", CAUSAL)
def test_rescored_words_have_the_normalised_probability_of_the_whole_sentence(
    family: str, text: str, tiny_model: Models, plain_model: Models
) -> None:
    model, (plain, _) = tiny_model(family), plain_model(family)
    columns = Candidates("full", None).columns(model.vocabulary)
    encoded = replace(model.encode(parse_query(text), "both"), n_rescored=30)
    scores = model.blank_log_probs([encoded], columns)
    assert scores.order is not None and scores.normaliser is not None
    left = list(encoded.token_ids)
    suffix = model.vocabulary.encode_after(encoded.suffix)
    assert suffix
    rescored = np.flatnonzero(np.isfinite(scores.log_probs[0]))
    best = np.argsort(-scores.order[0], kind="stable")[:30]
    assert sorted(best) == rescored.tolist()
    ids = columns.table(encoded.places[0]).ids[rescored, 0]
    joint = np.array([chain(plain, [*left, int(token), *suffix], len(left)) for token in ids])
    expected = joint - np.logaddexp.reduce(joint)
    np.testing.assert_allclose(scores.log_probs[0, rescored], expected, atol=2e-4)
    np.testing.assert_allclose(scores.normaliser[0], np.logaddexp.reduce(joint), atol=2e-4)


@pytest.mark.parametrize("family", CAUSAL)
def test_the_sentence_that_is_rescored_is_the_one_the_tokenizer_would_read(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    query = parse_query("The capital of France is [MASK], said Ann.")
    encoded = model.encode(query, "both")
    word = model.vocabulary.pieces("Paris")
    whole = model.tokenizer(query.text("Paris"))["input_ids"]
    assert [*encoded.token_ids, *word, *model.vocabulary.encode_after(encoded.suffix)] == whole


@pytest.mark.parametrize("family", CAUSAL)
def test_every_family_can_go_on_from_a_cache_of_the_left_context(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    encoded = model.encode(parse_query(TEXTS[0]), "both")
    where = (torch.tensor([0]), torch.tensor([len(encoded.token_ids) - 1]))
    _, output = model.forward(where, input_ids=torch.tensor([encoded.token_ids]), use_cache=True)
    assert hasattr(output.past_key_values, "batch_repeat_interleave")


@pytest.mark.parametrize("family", CAUSAL)
def test_without_a_cache_the_scores_are_the_same(
    family: str, tiny_model: Models, monkeypatch: Any
) -> None:
    model = tiny_model(family)
    columns = Candidates("full", None).columns(model.vocabulary)
    encoded = model.encode(parse_query(TEXTS[0]), "both")
    cached = model.blank_log_probs([encoded], columns)
    plain_continue = model._continue
    monkeypatch.setattr(
        model, "_continue", lambda left, _cache, words, suffix: plain_continue(
            left, None, words, suffix)
    )  # fmt: skip
    uncached = model.blank_log_probs([encoded], columns)
    np.testing.assert_allclose(uncached.log_probs, cached.log_probs, atol=2e-4)


@pytest.mark.parametrize("family", CAUSAL)
def test_rescored_log_probs_do_not_depend_on_the_batch(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    columns = Candidates("full", None).columns(model.vocabulary)
    asked = [parse_query(text) for text in TEXTS]
    encoded = model.encode_all(asked, "both")
    alone = [model.blank_log_probs([query], columns).log_probs for query in encoded]
    together = model.blank_log_probs(encoded, columns).log_probs
    np.testing.assert_allclose(together, np.concatenate(alone), atol=2e-4)


def test_the_right_context_counts(tiny_model: Models) -> None:
    model = tiny_model("gpt2")
    columns = Candidates("full", None).columns(model.vocabulary)
    one, other = (
        model.blank_log_probs([model.encode(Query(("It is ", right)), "both")], columns)
        for right in (" in Norway", " of a poet")
    )
    assert not np.allclose(one.log_probs[np.isfinite(one.log_probs)], other.log_probs[
        np.isfinite(one.log_probs)])  # fmt: skip
    np.testing.assert_allclose(one.order, other.order, atol=1e-5)


def test_the_first_words_are_reported_before_the_others_are_scored(tiny_model: Models) -> None:
    model = tiny_model("smollm2")
    columns = Candidates("full", None).columns(model.vocabulary)
    queries = [parse_query(TEXTS[0]), parse_query(f"{TEXTS[0]} Yes.")]  # one left context
    encoded = [replace(model.encode(query, "both"), n_rescored=100) for query in queries]
    reported: list[Scores] = []
    final = model.rescored_log_probs(encoded, columns, reported.append)
    (first,) = reported
    assert first.order is not None and first.normaliser is not None and final.normaliser is not None
    likeliest = np.argsort(-first.order[0], kind="stable")[:FIRST_RESCORED]
    for row in range(2):
        assert np.flatnonzero(np.isfinite(first.log_probs[row])).tolist() == sorted(likeliest)
        assert np.exp(first.log_probs[row, likeliest]).sum() == pytest.approx(1, abs=1e-5)
        sentences = [
            scores.log_probs[row, likeliest] + scores.normaliser[row] for scores in (first, final)
        ]
        np.testing.assert_allclose(*sentences, atol=1e-5)
    silent = model.blank_log_probs(encoded, columns)
    np.testing.assert_array_equal(final.log_probs, silent.log_probs)


def test_words_that_fit_in_the_first_pass_are_not_reported_twice(tiny_model: Models) -> None:
    model = tiny_model("smollm2")
    columns = Candidates("full", None).columns(model.vocabulary)
    encoded = replace(model.encode(parse_query(TEXTS[0]), "both"), n_rescored=FIRST_RESCORED)
    reported: list[Scores] = []
    model.rescored_log_probs([encoded], columns, reported.append)
    assert not reported
