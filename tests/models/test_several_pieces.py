"""Words of several pieces, and the tokens of whole texts, against plain references."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import CAUSAL, FAMILIES, MASKED, SEQ2SEQ, sentinel_of

from lama_core.candidates.columns import Candidates
from lama_core.models.vocabulary import CONTINUATION
from lama_core.scoring.blanks import parse_query

Models = Callable[..., Any]
TEXT = "The capital of France is [MASK] , said Ann."
WORD = "Parisland"


@pytest.mark.parametrize("family", MASKED)
def test_a_masked_word_of_several_pieces_is_filled_left_to_right(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    model, (plain, tokenizer) = tiny_model(family), plain_model(family)
    pieces = model.vocabulary.pieces(WORD)
    assert len(pieces) > 1
    masks = tokenizer.mask_token * len(pieces)
    ids = tokenizer(TEXT.replace("[MASK]", masks), return_tensors="pt")["input_ids"]
    places = (ids[0] == tokenizer.mask_token_id).nonzero()[:, 0].tolist()
    expected = 0.0
    for place, piece in zip(places, pieces, strict=True):
        with torch.no_grad():
            expected += float(plain(input_ids=ids).logits[0, place].log_softmax(-1)[piece])
        ids[0, place] = piece
    score = model.word_log_prob(parse_query(TEXT), 0, WORD, "both")
    assert score.log_prob == pytest.approx(expected, abs=2e-4)
    assert len(score.pieces) == len(pieces)


@pytest.mark.parametrize("context", ("left", "both"))
@pytest.mark.parametrize("family", CAUSAL)
def test_a_causal_word_of_several_pieces_follows_the_chain_rule(
    family: str, context: Any, tiny_model: Models, plain_model: Models
) -> None:
    model, (plain, tokenizer) = tiny_model(family), plain_model(family)
    query = parse_query(TEXT)
    left = tokenizer(query.parts[0].rstrip())["input_ids"]
    whole = tokenizer(query.text(WORD))["input_ids"]
    through = tokenizer(query.parts[0] + WORD)["input_ids"]
    end = len(whole) if context == "both" else len(through)
    with torch.no_grad():
        log_probs = plain(input_ids=torch.tensor([whole])).logits[0].log_softmax(-1)
    expected = sum(float(log_probs[at - 1, whole[at]]) for at in range(len(left), end))
    normaliser = 0.0
    if context == "both":
        columns = Candidates("full", None).columns(model.vocabulary)
        scores = model.blank_log_probs([model.encode(query, "both")], columns)
        assert scores.normaliser is not None
        normaliser = float(scores.normaliser[0])
        expected -= float(np.logaddexp(expected, normaliser))
    score = model.word_log_prob(query, 0, WORD, context, normaliser)
    assert score.log_prob == pytest.approx(expected, abs=3e-4)
    assert len(score.pieces) > 1


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_a_word_of_several_pieces_is_said_by_the_decoder_piece_by_piece(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    model, (plain, tokenizer) = tiny_model(family), plain_model(family)
    query = parse_query(TEXT)
    pieces = tokenizer(f"Paris {WORD}", add_special_tokens=False)["input_ids"]
    pieces = pieces[len(tokenizer("Paris", add_special_tokens=False)["input_ids"]) :]
    labels = torch.tensor([[sentinel_of(tokenizer), *pieces, sentinel_of(tokenizer, 1)]])
    ids = torch.tensor([model.encode(query).token_ids])
    with torch.no_grad():
        log_probs = plain(input_ids=ids, labels=labels).logits[0].log_softmax(-1)
    expected = sum(float(log_probs[1 + n, piece]) for n, piece in enumerate(pieces))
    assert len(pieces) > 1
    score = model.word_log_prob(query, 0, WORD, "both")
    assert score.log_prob == pytest.approx(expected, abs=1e-4)
    assert len(score.pieces) == len(pieces)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_pieces_of_a_word_written_together_give_the_word(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    pieces = model.vocabulary.show_text(model.vocabulary.pieces(WORD))
    written = "".join(piece.removeprefix(CONTINUATION) for piece in pieces)
    assert written == (WORD if FAMILIES[family].cased else WORD.lower())
    assert all(piece.startswith(CONTINUATION) for piece in pieces[1:])


@pytest.mark.parametrize("family", ("bert-cased", "electra", "xlm-roberta", "t5"))
def test_a_word_the_model_cannot_write_has_no_probability(family: str, tiny_model: Models) -> None:
    score = tiny_model(family).word_log_prob(parse_query(TEXT), 0, "🙂", "both")
    assert score.log_prob == -np.inf
