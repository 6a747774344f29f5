"""Statements are scored as plain passes score them: within words, one by one, and by answers."""

import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import CAUSAL, FAMILIES, MASKED, SEQ2SEQ, sentinel_of

from lama_core.models.protocols import HIDINGS, Statement

Models = Callable[..., Any]
ANSWERS = ("Paris", "Oslo", "Kraków", "Saint Petersburg", "Ouagadougou", "tokenization")
LEFT, RIGHT = "The capital of Norway is ", ", they say."
STATEMENTS = [
    Statement(LEFT + answer + RIGHT, len(LEFT), len(LEFT) + len(answer)) for answer in ANSWERS
]


def folded(text: str) -> str:
    """Lower case without accents, as uncased models read it."""
    letters = unicodedata.normalize("NFKD", text.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def words_of(tokenizer: Any, text: str) -> tuple[list[int], list[int | None]]:
    """The text with special tokens, and which word each token is of."""
    encoded = tokenizer(text)
    return list(encoded["input_ids"]), encoded.word_ids(0)


def end_of_word(words: list[int | None], at: int) -> int:
    end = at + 1
    while end < len(words) and words[end] == words[at] is not None:
        end += 1
    return end


def tokens_of_the_answer(tokenizer: Any, statement: Statement) -> list[int]:
    """The tokens of the framed text that hold a character of the answer."""
    spans = tokenizer(statement.text, return_offsets_mapping=True)["offset_mapping"]
    return [
        at
        for at, (first, end) in enumerate(spans)
        if first < statement.end and end > statement.start
    ]


def plain_masked(plain: tuple[Any, Any], statement: Statement, hiding: str) -> list[float]:
    """One unbatched pass for each token that is no special one."""
    model, tokenizer = plain
    ids, words = words_of(tokenizer, statement.text)
    answer = tokens_of_the_answer(tokenizer, statement)
    values = []
    for at, word in enumerate(words):
        if word is None:
            continue
        end = end_of_word(words, at)
        if hiding == "original":
            end = at + 1
        elif hiding == "rest-of-sentence":
            end = len(ids)
        elif hiding == "rest-of-answer" and at in answer:
            end = answer[-1] + 1
        hidden = torch.tensor([[*ids[:at], *[tokenizer.mask_token_id] * (end - at), *ids[end:]]])
        with torch.no_grad():
            log_probs = model(input_ids=hidden).logits[0, at].log_softmax(-1)
        values.append(log_probs[ids[at]].item())
    return values


@pytest.mark.parametrize("hiding", HIDINGS)
@pytest.mark.parametrize("family", MASKED)
def test_masked_statements_equal_one_pass_a_token(
    family: str, hiding: Any, tiny_model: Models, plain_model: Models
) -> None:
    found = tiny_model(family).statement_log_probs(STATEMENTS, hiding=hiding)
    for statement, scores in zip(STATEMENTS, found, strict=True):
        wanted = plain_masked(plain_model(family), statement, hiding)
        np.testing.assert_allclose(scores.log_probs, wanted, atol=1e-4)


def test_the_two_ways_of_hiding_differ_within_a_word_alone(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    (within,) = model.statement_log_probs([STATEMENTS[4]])
    (original,) = model.statement_log_probs([STATEMENTS[4]], hiding="original")
    same = np.isclose(within.log_probs, original.log_probs, atol=1e-5)
    assert within.in_answer.sum() > 1
    assert same[np.flatnonzero(within.in_answer)[-1]], "nothing of the word stands behind its end"
    assert not same[within.in_answer][:-1].any()


@pytest.mark.parametrize("family", CAUSAL)
def test_causal_statements_begin_with_the_start_token(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    model, tokenizer = plain_model(family)
    found = tiny_model(family).statement_log_probs(STATEMENTS)
    for statement, scores in zip(STATEMENTS, found, strict=True):
        body = tokenizer(statement.text, add_special_tokens=False)["input_ids"]
        whole = tokenizer(statement.text)["input_ids"]
        start = whole[: len(whole) - len(body)]
        if not start and tokenizer.bos_token_id is not None:
            start = [tokenizer.bos_token_id]
        ids = [*start, *body]
        with torch.no_grad():
            log_probs = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
        wanted = [
            log_probs[at - 1, ids[at]].item() if at else np.nan for at in range(len(ids))
        ][len(start) :]  # fmt: skip
        np.testing.assert_allclose(scores.log_probs, wanted, atol=1e-4)


@pytest.mark.parametrize("hiding", [name for name in HIDINGS if name != "original"])
@pytest.mark.parametrize("family", SEQ2SEQ)
def test_encoder_decoders_say_what_is_left_out_token_by_token(
    family: str, hiding: Any, tiny_model: Models, plain_model: Models
) -> None:
    model, tokenizer = plain_model(family)
    found = tiny_model(family).statement_log_probs(STATEMENTS, hiding=hiding)
    for statement, scores in zip(STATEMENTS, found, strict=True):
        ids, words = words_of(tokenizer, statement.text)
        if hiding == "rest-of-sentence":
            words = [None if word is None else 0 for word in words]
        if hiding == "rest-of-answer":
            answer = tokens_of_the_answer(tokenizer, statement)
            words = [-1 if at in answer else word for at, word in enumerate(words)]
        wanted, at = [], 0
        while at < len(ids):
            if words[at] is None:
                at += 1
                continue
            end = end_of_word(words, at)
            left_out = torch.tensor([[*ids[:at], sentinel_of(tokenizer), *ids[end:]]])
            labels = torch.tensor([[sentinel_of(tokenizer), *ids[at:end]]])
            with torch.no_grad():
                log_probs = model(input_ids=left_out, labels=labels).logits[0].log_softmax(-1)
            wanted += [log_probs[1 + n, ids[at + n]].item() for n in range(end - at)]
            at = end
        np.testing.assert_allclose(scores.log_probs, wanted, atol=1e-4)


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
        chosen = scores.in_answer
        np.testing.assert_allclose(answer.log_probs[chosen], scores.log_probs[chosen], atol=1e-4)


def test_an_answer_that_cannot_be_written_is_told(tiny_model: Models) -> None:
    answers = ("Paris", "日本")
    statements = [Statement(f"It is {word}.", 6, 6 + len(word)) for word in answers]
    found = tiny_model("bert-cased").statement_log_probs(statements)
    assert [one.unknown for one in found] == [False, True]


def test_an_answer_that_leaves_no_token_is_told_as_well(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")  # its tokenizer takes control characters out
    nothing = "\u200b"
    (scores,) = model.statement_log_probs([Statement(f"It is {nothing} now.", 6, 7)])
    assert scores.unknown and not scores.in_answer.any()
    assert not model.vocabulary.can_write(nothing) and model.vocabulary.can_write("Paris")


def test_statements_whose_hidden_answer_leaves_the_same_text_are_computed_once(
    tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("bert-cased")
    rows = []
    plain = model.logits_at
    monkeypatch.setattr(
        model, "logits_at", lambda ids, at: (rows.extend(ids.tolist()), plain(ids, at))[1]
    )
    statements = [Statement(f"It is {word}.", 6, 6 + len(word)) for word in ("Paris", "Oslo")]
    found = model.statement_log_probs(statements)
    n_tokens = sum(len(one.tokens) for one in found)
    assert len(rows) == n_tokens - 1, "`It is [MASK].` is asked once for both"


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
