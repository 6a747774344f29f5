"""Texts that share a beginning are computed in trees, and score as they do alone."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lama_core.models.hf.prefix_tree import plan_trees

Models = Callable[..., Any]
PAIRS = (("Paris", "France"), ("Oslo", "Norway"), ("Zürich", "Switzerland"), ("Kraków", "Poland"))
TEXTS = [f"What {a} is to {b}, {c} is to {d}." for (a, b), (c, d) in permutations(PAIRS, 2)]
TEXTS += [f"What {a} is to {b}, {d} is to {c}." for (a, b), (c, d) in permutations(PAIRS, 2)]
TEXTS += ["Paris", "tokenization of words is hard", "She's born in \"Kraków\" - it's not Rome!"]


@pytest.mark.parametrize("most", [30, 1])
def test_masks_of_trees_keep_to_their_bound(
    most: int, tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("smollm2")
    whole = model.token_log_probs(TEXTS)
    cells: list[int] = []
    forward = model.model.forward

    def watched(*given: Any, **named: Any) -> Any:
        mask = named.get("attention_mask")
        if mask is not None and mask.dim() == 4:
            cells.append(mask.numel())
        return forward(*given, **named)

    monkeypatch.setattr(model.model, "forward", watched)
    monkeypatch.setattr(model, "masks_of_trees", most**2)
    for scores, bounded in zip(whole, model.token_log_probs(TEXTS), strict=True):
        np.testing.assert_allclose(scores.log_probs, bounded.log_probs, atol=1e-4)
    assert max(cells, default=0) <= most**2
    assert bool(cells) == (most > 1), "longer rows are computed whole"


rows = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=9).map(tuple), min_size=1, max_size=30
)


@given(rows, st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_every_row_is_a_path_of_one_tree_whose_tokens_see_that_path_alone(
    rows: list[tuple[int, ...]], most: int
) -> None:
    trees = plan_trees(rows, most)
    paths = [path for tree in trees for path in tree.paths]
    assert sorted(number for number, _ in paths) == list(range(len(rows)))
    for tree in trees:
        assert len(tree.tokens) <= max(most, *(len(rows[number]) for number, _ in tree.paths))
        sees = tree.sees(len(tree.tokens) + 1)
        assert sees[-1].tolist() == [False] * len(tree.tokens) + [True], "padding sees itself"
        for number, path in tree.paths:
            assert [tree.tokens[node] for node in path] == list(rows[number][:-1])
            assert [tree.depths[node] for node in path] == list(range(len(path)))
            for place, node in enumerate(path):
                assert tuple(np.flatnonzero(sees[node])) == path[: place + 1]


def test_each_beginning_is_computed_once() -> None:
    rows = [(1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 7), (1, 8, 3, 4, 5), (1, 8, 3, 4, 6), (9,)]
    (tree,) = plan_trees(rows, 1000)
    beginnings = {row[:end] for row in rows for end in range(1, len(row))}
    assert len(tree.tokens) == len(beginnings) == 5 + 3
