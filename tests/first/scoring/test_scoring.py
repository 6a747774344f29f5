"""Scoring many queries: the plan of the batches changes no score."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lama_core.candidates.columns import Candidates
from lama_core.models.protocols import Context, Encoded
from lama_core.scoring.batches import choose_context, encode_queries, plan_batches, score_cloze
from lama_core.scoring.blanks import parse_query
from lama_core.types import Query

Models = Callable[..., Any]
TEXTS = (
    "The capital of France is [MASK].",
    "[MASK] is a city in Germany, said Ann (the poet) in 1912.",
    "Anna was a [MASK] who didn't live in Oslo.",
    "It is [MASK]",
    "[MASK]",
)


def encoded(length: int) -> Encoded:
    return Encoded((1,) * length, (0,), ("open",))


def scored(model: Any, queries: list[Query], **options: Any) -> np.ndarray:
    columns = Candidates("full", None).columns(model.vocabulary)
    rows = np.full((len(queries), len(columns.words)), np.nan, np.float32)
    for block in score_cloze(model, queries, columns, **options):
        rows[block.indices] = block.log_probs
    return rows


@given(st.lists(st.integers(1, 60)), st.integers(1, 9), st.integers(1, 200))
def test_a_plan_holds_every_query_once_within_its_bounds(
    lengths: list[int], max_rows: int, max_tokens: int
) -> None:
    queries = [encoded(length) for length in lengths]
    batches = plan_batches(queries, max_rows=max_rows, max_tokens=max_tokens)
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    for batch in batches:
        width = max(lengths[number] for number in batch)
        assert len(batch) <= max_rows
        assert len(batch) == 1 or len(batch) * width <= max_tokens
    flat = [lengths[number] for batch in batches for number in batch]
    assert flat == sorted(lengths, reverse=True)


@pytest.mark.parametrize("context", ("left", "both"))
@pytest.mark.parametrize("family", ("bert-uncased", "roberta", "xlm-roberta", "gpt2", "llama"))
def test_batch_size_and_order_change_no_score(
    family: str, context: Context, tiny_model: Models
) -> None:
    model = tiny_model(family)
    queries = [parse_query(text) for text in TEXTS]
    alone = scored(model, queries, context=context, max_rows=1)
    assert not np.isnan(alone).any()
    np.testing.assert_allclose(scored(model, queries, context=context), alone, atol=2e-4)
    backwards = scored(model, queries[::-1], context=context, max_rows=2)
    np.testing.assert_allclose(backwards[::-1], alone, atol=2e-4)


def test_a_run_that_goes_on_from_a_later_batch_gets_the_same_numbers_to_the_bit(
    tiny_model: Models,
) -> None:
    model = tiny_model("bert-cased")
    queries = [parse_query(text) for text in TEXTS]
    columns = Candidates("full", None).columns(model.vocabulary)
    blocks = list(score_cloze(model, queries, columns, max_rows=2))
    encoded = encode_queries(model, queries)
    later = plan_batches(encoded, max_rows=2)[1:]
    assert [block.number for block in blocks[1:]] == [1, 2]
    for block, batch in zip(blocks[1:], later, strict=True):
        assert block.indices.tolist() == batch
        scores = model.blank_log_probs([encoded[at] for at in batch], columns)
        assert block.log_probs.tobytes() == scores.log_probs.tobytes()


@pytest.mark.parametrize(
    ("family", "text", "wanted", "expected"),
    (
        ("bert-cased", "It is [MASK].", None, "both"),
        ("bert-cased", "It is [MASK].", "left", "both"),
        ("gpt2", "It is [MASK].", None, "left"),
        ("gpt2", "It is [MASK] now.", None, "both"),
        ("gpt2", "It is [MASK] now.", "left", "left"),
        ("gpt2", "[MASK] is in [MASK].", None, "both"),
    ),
)
def test_the_context_follows_from_what_stands_right_of_the_blank(
    family: str, text: str, wanted: Context | None, expected: str, tiny_model: Models
) -> None:
    assert choose_context(tiny_model(family), parse_query(text), wanted) == expected
