"""The tokens of a word at a blank are those that the tokenizer writes when the word is there."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import (
    CITIES,
    COUNTRIES,
    FAMILIES,
    JOBS,
    open_family,
    save_model_folder,
)
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers import models as token_models
from tokenizers.trainers import BpeTrainer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from lama_core.candidates.columns import Candidates
from lama_core.candidates.spelling import Spelling, place_of, places_of
from lama_core.models.protocols import Statement
from lama_core.models.registry import open_model
from lama_core.models.sources.locations import LocatedModel
from lama_core.models.vocabulary import TokenVocabulary
from lama_core.queries.blank_answers import query_model
from lama_core.types import Query

Models = Callable[..., Any]
FULL = Candidates("full", None)
LEFTS = (
    "", "The capital of France is ", "Anna was a ", "The ticket costs $", "€", "#", "It is in „",
    "She said “", "l’", "about (", "¿", "「", "x=", "中国的首都是", "in 19", "she's ", "a-", "a/",
)  # fmt: skip
RIGHTS = ("", ".", " .", " in 1911.", ", said Ann.", "。", "이다.", ")", "”.", "'s", "%", "s.")
WORDS = (
    *CITIES, *COUNTRIES, *JOBS, "5", "9", "19", "1912", "the", "Ann", "Bogotá", "Bogota\u0301",
    "İs", "ın", "Pa\u00adris", "Pa\u200bris", "ﬁ", "Ｕs", "Paris²", "北京",
)  # fmt: skip


each_family = pytest.mark.parametrize("family", FAMILIES)


def in_text(model: Any, query: Query, word: str) -> tuple[list[int], np.ndarray, Statement]:
    """The tokens of a query with a word in its blank, and which of them are in the word."""
    left, right = query.parts
    statement = Statement(left + word + right, len(left), len(left) + len(word))
    found = model.tokenizer(statement.text, add_special_tokens=False, return_offsets_mapping=True)
    spans = np.array(found["offset_mapping"]).reshape(-1, 2)
    return (
        found["input_ids"],
        (spans[:, 0] < statement.end) & (spans[:, 1] > statement.start),
        (statement),
    )


def drawn(model: Any, seed: int, n: int) -> list[tuple[Query, str]]:
    """Texts with a word in each: combinations of what is left and right of it."""
    draw = random.Random(seed)
    words = (*WORDS, *draw.sample(list(model.vocabulary.single_words()), 20))
    made = []
    while len(made) < n:
        parts = (draw.choice(LEFTS), draw.choice(RIGHTS))
        if parts[0] or (parts[1].strip() and model.scores_first()):
            made.append((Query(parts), draw.choice(words)))
    return made


@each_family
def test_a_word_that_is_one_token_is_scored_alike_at_a_blank_and_in_its_text(
    family: str, tiny_model: Models
) -> None:
    """Also its log-probability: that of the token in the statement which `rank` scores."""
    model = tiny_model(family)
    context = "left" if model.kind == "causal" else "both"
    n_single = 0
    for query, word in drawn(model, 1, 200):
        tokens = Spelling(model.vocabulary).tokens(word, places_of(query)[0])
        ids, inside, statement = in_text(model, query, word)
        if not tokens:
            continue
        n_single += 1
        assert list(tokens) == [ids[at] for at in np.flatnonzero(inside)], (query, word)
        answer = query_model(model, query, FULL, gold=word, context=context).blanks[0]
        scores = model.statement_log_probs([statement], hiding="original", scored="answer")[0]
        expected = scores.log_probs[scores.in_answer][0]
        assert answer.gold is not None
        assert answer.gold.log_prob == pytest.approx(expected, abs=1e-3), (query, word)
    assert n_single > 60


@each_family
def test_every_candidate_of_a_list_has_the_tokens_of_its_place(
    family: str, tiny_model: Models
) -> None:
    vocabulary = tiny_model(family).vocabulary
    spelling = Spelling(vocabulary)
    for left in ("Anna was a ", "", "costs $", "the „", "首都是"):
        place = place_of(left)
        table = Candidates("x", WORDS).columns(vocabulary, [place]).table(place)
        words = Candidates("x", WORDS).columns(vocabulary, [place]).words
        one_by_one = [spelling.tokens(word, place) for word in words]
        assert [tuple(row[row >= 0]) for row in table.ids] == one_by_one


def byte_level(texts: Sequence[str], **options: Any) -> TokenVocabulary:
    """A byte-level tokenizer trained on texts, with added tokens."""
    tokenizer = Tokenizer(token_models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **options)
    return TokenVocabulary(wrapped, len(wrapped))


def test_a_word_of_a_text_without_spaces_is_its_token_without_a_space() -> None:
    vocabulary = byte_level(["北京，东京。我爱北京，他去东京。首都是，中国的，日本的。"] * 9)
    place = place_of("中国的首都是", "。")
    columns = Candidates("x", ("北京", "东京", "中国的")).columns(vocabulary, [place])
    assert columns.words == ("北京", "东京", "中国的")
    column = columns.find("北京", place)
    assert isinstance(column, int)
    assert vocabulary.entry(columns.tokens_of(column, place)[0]) == ("北京", False)


def test_what_the_tokenizer_normalises_is_the_same_candidate(tiny_model: Models) -> None:
    vocabulary = tiny_model("bert-uncased").vocabulary
    words = ("Paris", "Pàris", "Pa\u00adris", "London")
    columns = Candidates("x", words).columns(vocabulary)
    assert columns.words == ("paris", "london")
    assert {columns.find(word) for word in words[:3]} == {0}
    assert columns.candidate("PÀRIS") == "paris"


def test_a_padding_token_that_the_model_lacks_is_never_needed(tmp_path: Path) -> None:
    folder = save_model_folder("gpt2", tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"pad_token": "[PAD]"})
    tokenizer.save_pretrained(folder)
    located = LocatedModel(folder, "tiny-padded")
    model = open_model("padded", located, "causal", "fp32")
    plain = open_family("gpt2", tmp_path / "plain")
    assert model.notes == ["The model lacks its tokenizer's token '[PAD]', which no text needs."]
    assert "[PAD]" not in model.vocabulary.tokens().values()
    texts = [Query((left, ".")) for left in ("Anna was a ", "The [PAD] is in the town of ")]
    words = FULL.columns(model.vocabulary)
    found = model.blank_log_probs(model.encode_all(texts, "left"), words).log_probs
    assert np.isfinite(found).all()
    same = plain.blank_log_probs(plain.encode_all(texts[:1], "left"), words).log_probs
    np.testing.assert_allclose(found[:1], same, atol=1e-4)
