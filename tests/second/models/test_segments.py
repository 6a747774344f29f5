"""Two segments are encoded as LAMA's released BERT connector encodes two sentences."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lama_core.datasets.passages import load_corpus
from lama_core.errors import UserError
from lama_core.scoring.retrieval import FoundPassage, OpenBook, with_passage
from lama_core.types import Query

Models = Callable[..., Any]
PASSAGES = ("Oslo is in Norway.", "It is the capital [MASK] ?", "Kraków, they say")
QUERIES = (Query(("The capital of Norway is ", ".")), Query(("", " is old and ", " too.")))


def two(passage: str, query: Query) -> Query:
    return with_passage(query, FoundPassage(passage, 0, 1.0), segments=True)


def released(tokenizer: Any, first: str, second: str) -> tuple[list[int], list[int]]:
    """Token ids and segment ids, as `__get_input_tensors` of the released code makes them."""
    one, other = ([*tokenizer.tokenize(text), "[SEP]"] for text in (first, second))
    tokens = ["[CLS]", *one, *other]
    return tokenizer.convert_tokens_to_ids(tokens), [0] * (1 + len(one)) + [1] * len(other)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("passage", [PASSAGES[0], PASSAGES[2]])
@pytest.mark.parametrize("family", ["bert-cased", "electra"])
def test_ids_and_token_types_are_those_of_the_released_code(
    family: str, passage: str, query: Query, tiny_model: Models, plain_model: Models
) -> None:
    model, (network, tokenizer) = tiny_model(family), plain_model(family)
    encoded = model.encode(two(passage, query))
    ids, types = released(tokenizer, passage, query.text(tokenizer.mask_token))
    assert list(encoded.token_ids) == ids
    inputs = model._on_device({"input_ids": torch.tensor([ids])})
    assert inputs["token_type_ids"].tolist() == [types]
    pair = tokenizer(passage, query.text(tokenizer.mask_token))
    assert (pair["input_ids"], pair["token_type_ids"]) == (ids, types)
    at = [n for n, token in enumerate(ids) if token == tokenizer.mask_token_id]
    assert list(encoded.positions) == at
    with torch.no_grad():
        given = {"input_ids": torch.tensor([ids]), "token_type_ids": torch.tensor([types])}
        wanted = network(**given).logits[0, at]
    longer = model.encode(two("One two three. " * 4, QUERIES[0]))  # so that rows are padded
    rows = [list(encoded.token_ids), list(longer.token_ids)]
    found = model.logits(rows, [at, list(longer.positions)])
    np.testing.assert_allclose(found[: len(at)], wanted, atol=1e-4)


def test_a_mask_sign_in_a_passage_is_text(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    encoded = model.encode(two(PASSAGES[1], QUERIES[0]))
    assert len(encoded.positions) == 1
    assert list(encoded.token_ids).count(model.separator) == 2


def test_a_model_without_two_token_types_is_refused(tiny_model: Models) -> None:
    with pytest.raises(UserError, match="Remove --segments"):
        tiny_model("roberta").encode(two(PASSAGES[0], QUERIES[0]))


@pytest.mark.usefixtures("home")
def test_segments_are_part_of_a_books_identity_only_where_they_are_asked_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "text.txt").write_text("Cairo is in Egypt.", encoding="utf-8")
    corpus = load_corpus(str(tmp_path))
    plain, parted = OpenBook(corpus), OpenBook(corpus, segments=True)
    assert len(plain.identity) == 2 and parted.identity == [*plain.identity, "segments"]
    query = Query(("Egypt is ", "."))
    assert plain.before(query).second is None
    assert parted.before(query).second == (0, len("Cairo is in Egypt. "))
