"""In every family, the scores of blanks, words and texts are those of plain passes.

The reference is transformers' own model, asked one text at a time, as its tokenizer reads it.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plain_model import Plain
from tiny_models import CAUSAL, FAMILIES, open_family

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import places_of
from lama_core.errors import UserError
from lama_core.models.proposals import turned_text
from lama_core.models.protocols import HIDINGS, Statement
from lama_core.models.vocabulary import CONTINUATION
from lama_core.scoring.blanks import parse_query
from lama_core.types import Query

Models = Callable[..., Any]
FULL = Candidates("full", None)
BLANKS = tuple(
    parse_query(text)
    for text in (
        "The capital of France is [MASK].",
        "[MASK] is a city in Germany, said Ann.",
        'Anna (the [MASK]) was born in "[MASK]", in 1912.',
        "Zürich's [MASK]",
        "[MASK]",
        "She's a [MASK] - who didn't live in Kraków: Oslo is the capital of [MASK]; not Rome!",
        "Ann (the [MASK]) is in Rome",
        "([MASK])",
    )
)
RESCORED = tuple(
    parse_query(text)
    for text in (
        "The capital of France is [MASK], said Ann.",
        "[MASK] is a city in Germany.",
        'Anna (the [MASK]) was born in "Oslo", in 1912.',
        "It's [MASK]'s capital",
    )
)
PAIRS = (("Paris", "France"), ("Oslo", "Norway"), ("Zürich", "Switzerland"), ("Kraków", "Poland"))
TEXTS = [
    f"What {a} is to {b}, {c} is to {d}."
    for first, second in permutations(PAIRS, 2)
    for (a, b), (c, d) in ((first, second), (first, second[::-1]))
]
TEXTS += ["Paris", "tokenization of words is hard", "She's born in \"Kraków\" - it's not Rome!"]
LEFT, RIGHT = "The capital of Norway is ", ", they say."
STATEMENTS = [
    Statement(LEFT + answer + RIGHT, len(LEFT), len(LEFT) + len(answer))
    for answer in ("Paris", "Oslo", "Kraków", "Saint Petersburg", "Ouagadougou", "tokenization")
]
WORD = "Parisland"  # of several pieces


@pytest.fixture
def both(family: str, tiny_model: Models, plain_model: Models) -> tuple[Any, Plain]:
    """A family's model as the library asks it, and as transformers has it."""
    model = tiny_model(family)
    return model, Plain(*plain_model(family), model.kind)


def close(found: Any, expected: Any, atol: float = 1e-4) -> None:
    np.testing.assert_allclose(found, expected, atol=atol)


def by_column(model: Any, query: Query, rows: torch.Tensor) -> list[np.ndarray]:
    """What plain rows give each column: the sum over the ways to write its word."""
    columns = FULL.columns(model.vocabulary)
    places = places_of(query) if model.kind == "masked" else places_of(query)[:1]
    ids = [columns.table(place).ids for place in places]
    return [
        np.logaddexp.reduce(np.where(one < 0, -np.inf, row[one]), axis=1)
        for row, one in zip(rows.numpy(), ids, strict=True)
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_blanks_are_those_of_a_plain_pass_alone_in_a_batch_and_in_any_order(
    both: tuple[Any, Plain],
) -> None:
    model, plain = both
    columns = FULL.columns(model.vocabulary)
    asked = [query for query in BLANKS if query.n_blanks == 1 or model.kind != "causal"]
    expected = [by_column(model, query, plain.at_blanks(query)) for query in asked]
    encoded = model.encode_all(asked, "left")
    for one, rows in zip(encoded, expected, strict=True):
        close(model.blank_log_probs([one], columns).log_probs, rows)
    for order in (slice(None), slice(None, None, -1)):
        together = model.blank_log_probs(encoded[order], columns).log_probs
        close(together, np.concatenate(expected[order]))
    assert model.notes == []


@pytest.mark.parametrize("family", FAMILIES)
def test_bf16_gives_finite_log_probs_near_those_of_fp32(family: str, tiny_model: Models) -> None:
    exact, rough = tiny_model(family), tiny_model(family, "bf16")
    columns = FULL.columns(exact.vocabulary)
    encoded = exact.encode_all([BLANKS[0]], "left")
    wide, narrow = (one.blank_log_probs(encoded, columns).log_probs for one in (exact, rough))
    assert narrow.dtype == np.float32
    assert np.isfinite(narrow).all()
    assert rough.identity != exact.identity
    assert np.corrcoef(wide[0], narrow[0])[0, 1] > 0.95


@pytest.mark.parametrize("family", ("bert-cased", "gpt2"))
def test_weights_that_are_not_numbers_give_one_clear_sentence(family: str, tmp_path: Path) -> None:
    model = open_family(family, tmp_path / family)
    with torch.no_grad():
        next(model.model.parameters()).fill_(float("nan"))
    columns = FULL.columns(model.vocabulary)
    with pytest.raises(UserError, match=r"aren't finite numbers.*precision fp32"):
        model.blank_log_probs([model.encode(BLANKS[0], "left")], columns)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_that_just_fills_the_window_is_scored_and_a_longer_one_refused(
    both: tuple[Any, Plain],
) -> None:
    model, plain = both
    query = parse_query("[MASK]")
    with pytest.raises(UserError, match=r"has \d+ tokens, but .* takes at most 80"):
        for n_words in range(1, 200):
            longer = Query(("France " * n_words, ""))
            model.encode(longer, "left")
            query = longer
    encoded = model.encode(query, "left")
    assert len(encoded.token_ids) >= 72
    scores = model.blank_log_probs([encoded], FULL.columns(model.vocabulary))
    close(scores.log_probs, by_column(model, query, plain.at_blanks(query)))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_word_of_several_pieces_has_the_probability_of_its_pieces(
    both: tuple[Any, Plain],
) -> None:
    model, plain = both
    query = parse_query("The capital of France is [MASK] , said Ann.")
    context = "left" if model.kind == "causal" else "both"
    found = model.word_log_prob(query, 0, WORD, context)
    pieces = model.vocabulary.pieces(WORD)
    assert found.log_prob == pytest.approx(plain.of_word(query, WORD, pieces), abs=2e-4)
    assert len(found.pieces) == len(pieces) > 1
    shown = model.vocabulary.show_text(pieces)
    written = "".join(piece.removeprefix(CONTINUATION) for piece in shown)
    assert written == (WORD if model.vocabulary.cased else WORD.lower())
    assert all(piece.startswith(CONTINUATION) for piece in shown[1:])


@pytest.mark.parametrize("family", ("bert-cased", "electra", "xlm-roberta", "t5"))
def test_a_word_the_model_cannot_write_has_no_probability(family: str, tiny_model: Models) -> None:
    assert tiny_model(family).word_log_prob(RESCORED[0], 0, "🙂", "both").log_prob == -np.inf


# Causal models with context `both`: proposed words, rescored by the sentence


@pytest.mark.parametrize("family", CAUSAL)
def test_rescored_words_have_the_normalised_probability_of_the_whole_sentence(
    both: tuple[Any, Plain],
) -> None:
    model, plain = both
    columns = FULL.columns(model.vocabulary)
    encoded = [replace(model.encode(query, "both"), n_rescored=30) for query in RESCORED]
    together = model.blank_log_probs(encoded, columns)
    for number, (query, one) in enumerate(zip(RESCORED, encoded, strict=True)):
        scores = model.blank_log_probs([one], columns)
        rescored = np.flatnonzero(np.isfinite(scores.log_probs[0]))
        turned = model.encode(Query((f"{turned_text(*query.parts)} ", "")), "left")
        for likely in (scores.order, model.blank_log_probs([turned], columns).log_probs):
            assert set(np.argsort(-likely[0], kind="stable")[:15]) <= set(rescored)
        assert len(rescored) == 30
        left = list(one.token_ids)
        n_left = len(plain.ids(query.parts[0].rstrip()))  # of an empty one, a start token is read
        right = plain.ids(query.text("Paris"))[n_left + 1 :]
        ids = columns.table(one.places[0]).ids[rescored, 0]
        joint = [sum(plain.chain([*left, int(token), *right], len(left))) for token in ids]
        whole = np.logaddexp.reduce(joint)
        close(scores.log_probs[0, rescored], np.array(joint) - whole, 2e-4)
        close(scores.normaliser[0], whole, 2e-4)
        close(together.log_probs[number], scores.log_probs[0], 2e-4)
        word = sum(plain.chain([*left, *plain.ids(query.text(WORD))[n_left:]], len(left)))
        found = model.word_log_prob(query, 0, WORD, "both", float(scores.normaliser[0]))
        assert found.log_prob == pytest.approx(word - np.logaddexp(word, whole), abs=3e-4)


# Each token of texts and of statements


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_of_texts_are_those_of_a_plain_pass_alone_and_among_others(
    both: tuple[Any, Plain],
) -> None:
    model, plain = both
    together = model.token_log_probs([*TEXTS, TEXTS[0], ""])
    for text, scores in zip([*TEXTS, TEXTS[0]], together[:-1], strict=True):
        close(scores.log_probs, plain.of_tokens(text, None, "original"))
    for text, scores in ((TEXTS[0], together[-2]), (TEXTS[-1], together[-3]), ("", together[-1])):
        (alone,) = model.token_log_probs([text])
        assert scores.tokens == alone.tokens
        close(scores.log_probs, alone.log_probs)


@pytest.mark.parametrize("hiding", HIDINGS)
@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_of_statements_are_those_of_a_plain_pass(
    both: tuple[Any, Plain], hiding: Any
) -> None:
    model, plain = both
    if model.kind != "masked" and hiding == "original":
        return  # masked models alone have it
    found = model.statement_log_probs(STATEMENTS, hiding=hiding)
    for one, scores in zip(STATEMENTS, found, strict=True):
        close(scores.log_probs, plain.of_tokens(one.text, slice(one.start, one.end), hiding))


def folded(text: str) -> str:
    """Lower case without accents, as uncased models read it."""
    letters = unicodedata.normalize("NFKD", text.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_answers_tokens_are_marked_and_can_be_asked_for_alone(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    whole = model.statement_log_probs(STATEMENTS)
    alone = model.statement_log_probs(STATEMENTS, scored="answer")
    for statement, scores, answer in zip(STATEMENTS, whole, alone, strict=True):
        text = statement.text[statement.start : statement.end]
        shown = "".join(np.array(scores.tokens)[scores.in_answer]).replace("‑", "")
        assert scores.unknown or folded(shown).replace("␠", "") == folded(text).replace(" ", "")
        np.testing.assert_array_equal(np.isnan(answer.log_probs), ~scores.in_answer)
        close(answer.log_probs[scores.in_answer], scores.log_probs[scores.in_answer])


def test_an_answer_that_cannot_be_written_is_told(tiny_model: Models) -> None:
    model, nothing = tiny_model("bert-cased"), "\u200b"  # its tokenizer takes these out
    statements = [Statement(f"It is {word} now.", 6, 6 + len(word)) for word in ("Paris", "日本")]
    found = model.statement_log_probs([*statements, Statement(f"It is {nothing} now.", 6, 7)])
    assert [one.unknown for one in found] == [False, True, True]
    assert not found[2].in_answer.any()
    assert not model.vocabulary.can_write(nothing) and model.vocabulary.can_write("Paris")


def test_what_looks_like_a_control_token_in_an_answer_is_text(tiny_model: Models) -> None:
    for family in ("bert-cased", "smollm2", "t5"):
        model = tiny_model(family)
        sign = model.vocabulary.special_texts[0]
        text = f"It is {sign} Paris {sign} now."
        at = text.index("Paris")
        (scores,) = model.statement_log_probs([Statement(text, at, at + 5)])
        shown = "".join(np.array(scores.tokens)[scores.in_answer]).replace("‑", "")
        assert "paris" in shown.lower()
        assert len(shown) < 9
