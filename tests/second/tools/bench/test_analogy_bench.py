"""The benchmark's ways do the same work, on the sentences that a probe run asks."""

from collections.abc import Callable
from typing import Any

import pytest

from tools.bench import analogy

Models = Callable[..., Any]


def test_the_right_pairs_sentences_come_back_in_every_probe() -> None:
    every = analogy.sentences_of(analogy.probe_instances(10))
    assert len(every) == 4 * 10 * 2
    assert 4 * 10 < len(set(every)) <= 5 * 10


@pytest.mark.parametrize("family", ["bert-uncased", "smollm2"])
def test_every_way_is_measured(family: str, tiny_model: Models) -> None:
    row = analogy._measure("x", tiny_model(family), analogy.probe_instances(4), 1)
    assert row.ours > 0
    assert row.peer is not None and row.peer > 0
    assert row.limit is not None and row.limit > 0
