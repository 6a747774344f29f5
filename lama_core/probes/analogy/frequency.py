"""Test whether a model fails on rare words: compare pair frequencies of right and wrong decisions.

The frequency of a pair is the harmonic mean of its words' frequencies (Chiang et al. 2020). A
two-sample Kolmogorov-Smirnov test compares it between right and wrong instances.
Source: Rezaee and Camacho-Collados, section 4. The paper counted words in Wikipedia and
BookCorpus; we use `wordfreq` (English, a mixture of sources).

Departure: Frequencies of words
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class FrequencyTest:
    """The test of one relation.

    Attributes:
        n_right: Number of right instances.
        n_wrong: Number of wrong instances.
        statistic: The largest distance between the two cumulative distributions; None with fewer
            than two right or two wrong instances.
        p_value: The two-sided p-value; None like `statistic`.
    """

    n_right: int
    n_wrong: int
    statistic: float | None
    p_value: float | None


@lru_cache(maxsize=100_000)
def word_frequency(word: str) -> float:
    """Return the relative frequency of an English word, 0 to 1; 0 for an unknown word."""
    from wordfreq import word_frequency as look_up

    return float(look_up(word, "en"))


def pair_frequency(pair: tuple[str, str]) -> float:
    """Return the harmonic mean of the two words' frequencies; 0 if a word is unknown."""
    first, second = word_frequency(pair[0]), word_frequency(pair[1])
    return 2 * first * second / (first + second) if first and second else 0.0


def compare_frequency(
    pairs: Sequence[tuple[str, str]], right: Sequence[bool] | NDArray[np.bool_]
) -> FrequencyTest:
    """Return the Kolmogorov-Smirnov test of the frequencies of right and wrong pairs."""
    values = np.array([pair_frequency(pair) for pair in pairs])
    is_right = np.asarray(right, dtype=bool)
    n_right, n_wrong = int(is_right.sum()), int((~is_right).sum())
    if min(n_right, n_wrong) < 2:
        return FrequencyTest(n_right, n_wrong, None, None)
    from scipy.stats import ks_2samp

    with warnings.catch_warnings():
        # scipy warns when it uses the asymptotic p-value instead of the exact one; that is fine.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = ks_2samp(values[is_right], values[~is_right])
    return FrequencyTest(n_right, n_wrong, float(test.statistic), float(test.pvalue))
