"""A model behind a server gives the numbers of the same model opened from its folder."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from completions_server import QUICK, Server, serve

from lama_core.candidates.columns import Candidates
from lama_core.models.protocols import Statement
from lama_core.models.server.backend import ServerModel, open_server
from lama_core.scoring.blanks import parse_query

# The plain one; with a start token and SentencePiece's pieces; one place too early; short lists.
SERVERS = {
    "plain": Server(),
    "start token": Server(family="llama"),
    "shifted": Server(shift=True, max_list=1 << 30),
    "short lists": Server(max_list=20),
}
TEXT = "The capital of France is [MASK], said Ann."
SEVERAL = ("Oslo", "Berlin", "Kathmandu", "Zanzibar", "unheard", "it's", "São Tomé")
Models = Callable[..., Any]


@pytest.fixture(scope="module", params=SERVERS)
def pair(request: pytest.FixtureRequest, tiny_model: Models) -> Iterator[tuple[Any, Any]]:
    """A model behind a server, and the same one opened here."""
    with serve(replace(SERVERS[request.param], asked=[], keys=[])) as server:
        yield open_server(server.reference, QUICK), tiny_model(server.family)


def single(model: Any, n: int) -> tuple[str, ...]:
    """Words that are one token of a model."""
    words = (word for word in model.vocabulary.single_words() if word.isalpha())
    return tuple(sorted(words)[:n])


def several(model: ServerModel) -> tuple[str, ...]:
    """Words of several pieces; parts of characters have no text to be found by in a list."""
    return tuple(word for word in SEVERAL if word.isascii() or not model.is_shifted)


def test_candidates_of_a_short_list_have_the_models_own_log_probabilities(
    pair: tuple[Any, Any],
) -> None:
    there, here = pair
    query = parse_query(TEXT)
    words = tuple(dict.fromkeys((*single(here, 40), *several(there))))
    columns = Candidates("file", words).columns(there.vocabulary)
    found = there.blank_log_probs([there.encode(query, "left")], columns)
    expected = [here.word_log_prob(query, 0, word, "left").log_prob for word in words]
    np.testing.assert_allclose(found.log_probs[0], expected, atol=1e-4)
    assert found.n_listed is None, "every candidate is scored: no list is cut"


def test_both_sides_rescore_words_as_the_model_itself_does(pair: tuple[Any, Any]) -> None:
    there, here = pair
    words = single(here, 30)
    scores = []
    for model in (there, here):
        columns = Candidates("file", words).columns(model.vocabulary)
        encoded = model.encode(parse_query(TEXT), "both")
        scores.append(model.blank_log_probs([encoded], columns))
    np.testing.assert_allclose(scores[0].log_probs, scores[1].log_probs, atol=2e-4)
    np.testing.assert_allclose(scores[0].normaliser, scores[1].normaliser, atol=2e-4)


@pytest.mark.parametrize("context", ["left", "both"])
def test_a_word_of_several_pieces_is_scored_by_the_chain_rule(
    context: Any, pair: tuple[Any, Any]
) -> None:
    query = parse_query(TEXT)
    for word in several(pair[0]):
        found, expected = (model.word_log_prob(query, 0, word, context, -3.0) for model in pair)
        assert found.log_prob == pytest.approx(expected.log_prob, abs=2e-4)
        if word.isascii():  # a piece of a character has no text that a server could send
            assert found.pieces == expected.pieces


def test_each_token_of_a_text_has_the_models_own_log_probability(pair: tuple[Any, Any]) -> None:
    texts = [TEXT.replace("[MASK]", word) for word in several(pair[0])]
    texts += ["Zanzibar was in Ljubljana (unheard).", "Anna is."]
    there, here = (model.token_log_probs(texts) for model in pair)
    for found, expected in zip(there, here, strict=True):
        np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=2e-4)
    assert there[0].tokens == here[0].tokens


@pytest.mark.parametrize("scored", ["statement", "answer"])
def test_statements_have_the_models_own_log_probabilities(
    scored: Any, pair: tuple[Any, Any]
) -> None:
    left, right = TEXT.split("[MASK]")
    statements = [
        Statement(left + word + right, len(left), len(left) + len(word))
        for word in several(pair[0])
    ]
    there, here = (
        model.statement_log_probs(statements, scored=scored, start_token="always") for model in pair
    )
    # Without a start token before it, a text has the log-probabilities of any text.
    bare = pair[1].token_log_probs([one.text for one in statements])
    for found, begun, plain in zip(there, here, bare, strict=True):
        assert not found.unknown
        assert found.in_answer.tolist() == begun.in_answer.tolist()
        wanted = (begun if pair[0].scores_first() else plain).log_probs
        if scored == "answer":
            wanted = np.where(found.in_answer, wanted, np.nan)
        np.testing.assert_allclose(found.log_probs, wanted, atol=2e-4)
