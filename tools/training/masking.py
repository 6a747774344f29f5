"""Dynamic masking: which tokens of a batch are hidden, drawn anew for every batch.

In some of the passages whole words are hidden, in the others single tokens. Names, numbers
and content words are drawn more often than the words of grammar. What is hidden is always
replaced by [MASK]: the model answers cloze queries, and never sees a kept or random word there.
(Devlin et al. 2019 replace 80 % by [MASK], 10 % by a random token and keep 10 %.)
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

FUNCTION, CONTENT, NAME = 0, 1, 2
KIND_BITS, STARTS_WORD = 3, 4
"""A token's flags: its kind in the two low bits, and whether a word starts with it."""


@dataclass(frozen=True)
class MaskingPlan:
    """rate: part of the tokens hidden. whole_word_share: part of the passages hidden by words.

    weights: how readily a function word, a content word and a name or number are drawn.
    """

    rate: float = 0.2
    whole_word_share: float = 0.4
    weights: tuple[float, float, float] = (0.8, 1.0, 1.5)


def draw_mask(
    flags: Flags, lengths: npt.NDArray[np.int64], plan: MaskingPlan, rng: np.random.Generator
) -> Mask:
    """The tokens to hide, bool [passage, position]; at least one of every passage.

    flags: uint8 [passage, position]; lengths: int [passage], specials included. The first and
    the last token of each passage, [CLS] and [SEP], and the padding are never hidden.
    """
    n_passages, width = flags.shape
    positions = np.arange(width).reshape(1, width)
    usable = (positions > 0) & (positions < lengths[:, None] - 1)
    weights = np.asarray(plan.weights)[flags & KIND_BITS]
    # Gumbel's trick: the largest of log(weight) + noise are a draw without replacement.
    scores = np.log(weights) + rng.gumbel(size=flags.shape)
    word_starts = np.where((flags & STARTS_WORD) > 0, positions, 0)
    first_of_word = np.maximum.accumulate(word_starts, axis=1)
    by_word = rng.random((n_passages,)) < plan.whole_word_share
    scores = np.where(by_word[:, None], np.take_along_axis(scores, first_of_word, axis=1), scores)
    scores = np.where(usable, scores, -np.inf)
    n_hidden = np.maximum(1, np.round(plan.rate * (lengths - 2)).astype(np.int64))
    ordered = -np.sort(-scores, axis=1)
    threshold = np.take_along_axis(ordered, n_hidden[:, None] - 1, axis=1)
    return usable & (scores >= threshold)


def draw_uniform_mask(
    lengths: npt.NDArray[np.int64], width: int, rate: float, rng: np.random.Generator
) -> Mask:
    """The usual evaluation mask: each token alike, a part `rate` of them, at least one."""
    flags = np.full((len(lengths), width), STARTS_WORD, dtype=np.uint8)
    plan = MaskingPlan(rate=rate, whole_word_share=0.0, weights=(1.0, 1.0, 1.0))
    return draw_mask(flags, lengths, plan, rng)
