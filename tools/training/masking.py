"""Dynamic masking: the tokens to mask are drawn again for every batch.

In some passages whole words are masked, in the others single tokens. Names, numbers and content
words are drawn more often than function words. Drawn tokens are always replaced by [MASK], as in
cloze queries. (Devlin et al. 2019 replace 80 % by [MASK] and 10 % by a random token, and keep
10 %.)
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
    """Shares and weights of masking.

    Attributes:
        rate: Share of masked tokens.
        whole_word_share: Share of passages in which whole words are masked.
        weights: Sampling weights of function words, content words, and names or numbers.
    """

    rate: float = 0.2
    whole_word_share: float = 0.4
    weights: tuple[float, float, float] = (0.8, 1.0, 1.5)


def draw_mask(
    flags: Flags, lengths: npt.NDArray[np.int64], plan: MaskingPlan, rng: np.random.Generator
) -> Mask:
    """Draw the tokens to mask, bool [passage, position]; at least one per passage.

    The first and last token of each passage ([CLS] and [SEP]) and the padding are never masked.

    Args:
        flags: Flags of the tokens, uint8 [passage, position].
        lengths: Number of tokens of each passage, including special tokens.
        plan: Shares and weights.
        rng: Random generator.
    """
    n_passages, width = flags.shape
    positions = np.arange(width).reshape(1, width)
    usable = (positions > 0) & (positions < lengths[:, None] - 1)
    weights = np.asarray(plan.weights)[flags & KIND_BITS]
    # Gumbel top-k trick: the largest values of log(weight) + noise sample without replacement.
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
