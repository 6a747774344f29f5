"""The log-probability of each token of a text is that of a plain forward pass, in every family."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import CAUSAL, FAMILIES, MASKED, SEQ2SEQ, sentinel_of

from lama_core.models.hf.prefix_tree import LONG, WIDTH, plan_trees

Models = Callable[..., Any]
PAIRS = (("Paris", "France"), ("Oslo", "Norway"), ("Zürich", "Switzerland"), ("Kraków", "Poland"))
TEXTS = [f"What {a} is to {b}, {c} is to {d}." for (a, b), (c, d) in permutations(PAIRS, 2)]
TEXTS += [f"What {a} is to {b}, {d} is to {c}." for (a, b), (c, d) in permutations(PAIRS, 2)]
TEXTS += ["Paris", "tokenization of words is hard", "She's born in \"Kraków\" - it's not Rome!"]


def plain_masked(plain: tuple[Any, Any], text: str) -> np.ndarray:
    """One unbatched pass for each token, the tokenizer's own reading of the whole text."""
    model, tokenizer = plain
    ids = tokenizer(text)["input_ids"]
    body = tokenizer(text, add_special_tokens=False)["input_ids"]
    start = 1  # every masked family puts one special token before a text
    assert ids[start : start + len(body)] == body
    values = []
    for number, token in enumerate(body, start=start):
        masked = torch.tensor([ids])
        masked[0, number] = tokenizer.mask_token_id
        with torch.no_grad():
            values.append(model(input_ids=masked).logits[0, number].log_softmax(-1)[token].item())
    return np.array(values)


def plain_causal(plain: tuple[Any, Any], text: str) -> np.ndarray:
    """One unbatched pass; NaN for a first token that nothing stands before."""
    model, tokenizer = plain
    ids = tokenizer(text)["input_ids"]
    n_start = len(ids) - len(tokenizer(text, add_special_tokens=False)["input_ids"])
    with torch.no_grad():
        log_probs = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    values = [np.nan] + [log_probs[number - 1, ids[number]].item() for number in range(1, len(ids))]
    return np.array(values[n_start:])


@pytest.mark.parametrize("family", MASKED)
def test_pseudo_log_probs_equal_one_pass_a_token(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    found = tiny_model(family).token_log_probs(TEXTS)
    for text, scores in zip(TEXTS, found, strict=True):
        np.testing.assert_allclose(
            scores.log_probs, plain_masked(plain_model(family), text), atol=1e-4
        )


@pytest.mark.parametrize("family", CAUSAL)
def test_log_probs_equal_one_pass_a_text(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    found = tiny_model(family).token_log_probs(TEXTS)
    for text, scores in zip(TEXTS, found, strict=True):
        np.testing.assert_allclose(
            scores.log_probs, plain_causal(plain_model(family), text), atol=1e-4
        )


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_log_probs_of_left_out_tokens_equal_one_pass_a_token(
    family: str, tiny_model: Models, plain_model: Models
) -> None:
    model, tokenizer = plain_model(family)
    found = tiny_model(family).token_log_probs(TEXTS)
    for text, scores in zip(TEXTS, found, strict=True):
        ids = tokenizer(text)["input_ids"]
        ends = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        kept = [number for number, token in enumerate(ids) if token not in ends]
        left_out = torch.tensor([ids] * len(kept))
        left_out[range(len(kept)), kept] = sentinel_of(tokenizer)
        tokens = torch.tensor(ids)[kept]
        labels = torch.stack([torch.full_like(tokens, sentinel_of(tokenizer)), tokens], dim=1)
        with torch.no_grad():
            logits = model(input_ids=left_out, labels=labels).logits
        expected = logits[range(len(kept)), 1].log_softmax(-1)[range(len(kept)), tokens]
        np.testing.assert_allclose(scores.log_probs, expected, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_scores_the_same_alone_and_among_others(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    together = model.token_log_probs([*TEXTS, TEXTS[0], ""])
    for text, scores in zip([*TEXTS, TEXTS[0], ""], together, strict=True):
        (alone,) = model.token_log_probs([text])
        assert scores.tokens == alone.tokens
        np.testing.assert_allclose(scores.log_probs, alone.log_probs, atol=1e-4)


def test_trees_are_cut_where_a_pass_has_room_for_less(
    tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("smollm2")
    whole = model.token_log_probs(TEXTS)
    monkeypatch.setenv("LAMA_BATCH_TOKENS", "40")
    for scores, cut in zip(whole, model.token_log_probs(TEXTS), strict=True):
        np.testing.assert_allclose(scores.log_probs, cut.log_probs, atol=1e-4)


@pytest.mark.parametrize("most", [60, 30, 20, 1])
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


@pytest.mark.parametrize("reach", [0, 20])
@pytest.mark.parametrize("family", CAUSAL)
def test_rows_that_no_tree_holds_are_computed_whole(
    family: str, reach: int, tiny_model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model(family)
    assert model.tree_reach > 0
    in_trees = model.token_log_probs(TEXTS)
    monkeypatch.setattr(model, "tree_reach", reach)
    for scores, whole in zip(in_trees, model.token_log_probs(TEXTS), strict=True):
        np.testing.assert_allclose(scores.log_probs, whole.log_probs, atol=1e-4)


rows = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=9).map(tuple), min_size=1, max_size=30
)


@given(rows, st.integers(1, 40))
@settings(max_examples=100, deadline=None)
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


def test_long_rows_have_room_to_share_their_beginning() -> None:
    beginning = tuple(range(WIDTH))
    rows = [(*beginning, 1, number) for number in range(WIDTH)]
    assert len(plan_trees(rows, 10 * WIDTH)) == 1
    rows = [(*beginning, number, 1, 1) for number in range(LONG * WIDTH)]
    trees = plan_trees(rows, 10 * WIDTH)
    assert [len(tree.tokens) <= LONG * (WIDTH + 3) for tree in trees] == [True] * len(trees)
