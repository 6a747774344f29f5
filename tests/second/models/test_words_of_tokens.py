"""A tokenizer's tokens as words: nothing of its marks is seen, and words go there and back."""

from collections.abc import Callable
from typing import Any

import pytest
from tiny_models import FAMILIES, MASKED

from lama_core.scoring.blanks import parse_query

Models = Callable[..., Any]
METASPACES = ("xlm-roberta", "albert", "deberta-v3", "llama")
BYTE_LEVEL = ("roberta", "deberta", "modernbert", "gpt2", "pythia", "opt", "smollm2", "qwen2")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_words_that_are_one_token_are_those_that_the_tokenizer_reads_as_one(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    single = set(model.vocabulary.single_words())
    before = model.tokenizer("a", add_special_tokens=False)["input_ids"]
    texts = {model.vocabulary.entry(token) for token in model.vocabulary.tokens()}
    for word in (text for text, begins in texts if begins and text.strip() == text != ""):
        ids = model.tokenizer(f"a {word}", add_special_tokens=False)["input_ids"]
        is_one = ids[: len(before)] == before and len(ids) == len(before) + 1
        assert (word in single) == (is_one and model.vocabulary.entry(ids[-1]) == (word, True))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_mark_of_a_tokenizer_is_shown(family: str, tiny_model: Models) -> None:
    shown = tiny_model(family).vocabulary.tokens()
    marks = {"##"} if family not in (*METASPACES, *BYTE_LEVEL) else {"▁", "Ġ", "Ċ"}
    for number, text in shown.items():
        assert text, number
        assert not any(mark in text for mark in marks) or len(text) == 1, text
        assert text == text.strip()


@pytest.mark.parametrize("family", FAMILIES)
def test_special_tokens_and_padding_rows_are_no_words(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    shown = model.vocabulary.tokens()
    assert not set(shown) & set(model.tokenizer.all_special_ids)
    assert max(shown) < len(model.tokenizer) <= model.vocabulary.size


@pytest.mark.parametrize("family", FAMILIES)
def test_cased_says_whether_capitals_survive(family: str, tiny_model: Models) -> None:
    assert tiny_model(family).vocabulary.cased is FAMILIES[family].cased


@pytest.mark.parametrize("family", MASKED)
def test_control_tokens_in_a_text_are_read_as_text(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    control = model.tokenizer.sep_token
    plain = model.encode(parse_query("Ann said a to [MASK]."), "both")
    hostile = model.encode(parse_query(f"Ann said {control} to [MASK]."), "both")
    special = set(model.tokenizer.all_special_ids)
    count = [sum(token in special for token in one.token_ids) for one in (plain, hostile)]
    unknown = model.tokenizer.unk_token_id
    assert count[1] - sum(token == unknown for token in hostile.token_ids) <= count[0]
    assert len(hostile.positions) == 1
    # Right of the control text everything stands as it does without it.
    assert hostile.token_ids[-3:] == plain.token_ids[-3:]
    assert hostile.token_ids[hostile.positions[0] - 1] == plain.token_ids[plain.positions[0] - 1]
