"""Masking: what is hidden, and how often."""

import numpy as np

from tools.training.masking import (
    CONTENT,
    FUNCTION,
    NAME,
    STARTS_WORD,
    MaskingPlan,
    draw_mask,
    draw_uniform_mask,
)


def test_specials_and_padding_are_never_hidden() -> None:
    flags = np.full((50, 12), STARTS_WORD | CONTENT, dtype=np.uint8)
    lengths = np.full(50, 8)
    hidden = draw_mask(flags, lengths, MaskingPlan(rate=0.9), np.random.default_rng(0))
    assert not hidden[:, 0].any()
    assert not hidden[:, 7:].any()
    assert hidden[:, 1:7].any()


def test_uniform_masks_hide_the_stated_part() -> None:
    hidden = draw_uniform_mask(np.full(40, 22), 22, 0.15, np.random.default_rng(0))
    assert hidden.sum(axis=1).tolist() == [3] * 40  # 20 tokens between the specials, 15 % of them


def test_a_word_is_hidden_whole_or_not_at_all() -> None:
    # Three words of two pieces each between the specials.
    row = [STARTS_WORD, *[STARTS_WORD | CONTENT, CONTENT] * 3, STARTS_WORD]
    flags = np.array([row] * 30, dtype=np.uint8)
    plan = MaskingPlan(rate=0.34, whole_word_share=1.0)
    hidden = draw_mask(flags, np.full(30, 8), plan, np.random.default_rng(0))
    assert (hidden[:, 1:7:2] == hidden[:, 2:7:2]).all()
    assert hidden.sum(axis=1).tolist() == [2] * 30


def test_names_are_hidden_more_often_than_words_of_grammar() -> None:
    row = [STARTS_WORD, *[STARTS_WORD | NAME, STARTS_WORD | FUNCTION] * 10, STARTS_WORD]
    flags = np.array([row] * 200, dtype=np.uint8)
    plan = MaskingPlan(rate=0.2, whole_word_share=0.0)
    hidden = draw_mask(flags, np.full(200, 22), plan, np.random.default_rng(0))
    assert hidden[:, 1:21:2].sum() > 1.3 * hidden[:, 2:21:2].sum()
