"""Scoring many queries: the plan of the batches changes no score."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lama_core.models.protocols import Context, Encoded
from lama_core.scoring.batches import choose_context, plan_batches
from lama_core.scoring.blanks import parse_query

Models = Callable[..., Any]


def encoded(length: int) -> Encoded:
    return Encoded((1,) * length, (0,), ("open",))


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
