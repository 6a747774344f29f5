"""The benchmark's ways do the same work, and its sentences are what they should be."""

from collections.abc import Callable
from typing import Any

import pytest

from lama_core.bench import analogy

Models = Callable[..., Any]


def test_sentences_are_distinct_and_as_many_as_asked() -> None:
    for make in (analogy.analogy_sentences, analogy.candidate_sentences):
        assert len(set(make(40))) == 40
    assert {text.split(",")[0] for text in analogy.candidate_sentences(40)} == {
        "What Paris is to France"
    }


@pytest.mark.parametrize(
    ("family", "ways"),
    [
        ("bert-uncased", (analogy.bare_masked, analogy.plain_masked)),
        ("smollm2", (analogy.bare_causal, analogy.plain_causal)),
    ],
)
def test_every_way_runs(family: str, ways: tuple[Any, ...], tiny_model: Models) -> None:
    texts = analogy.candidate_sentences(6)
    for way in ways:
        way(tiny_model(family), texts)()
