"""Does a model fail on rare words? Tuple frequency of right against wrong instances.

The frequency of a pair is the harmonic mean of its words' frequencies (Chiang et al. 2020); a
two-sample Kolmogorov-Smirnov test compares it between the instances that a model got right and
those it got wrong. Source: Rezaee and Camacho-Collados, section 4. Ours takes the frequencies from
`wordfreq` (English, a mixture of sources); the paper counted Wikipedia and BookCorpus.

Departure: Frequencies of words
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

MIN_EACH = 2


@dataclass(frozen=True, slots=True)
class FrequencyTest:
    """The test of one relation.

    statistic: the largest distance between the two cumulative distributions. p_value: two-sided.
    Both None where there are fewer than two right or two wrong instances.
    """

    n_right: int
    n_wrong: int
    statistic: float | None
    p_value: float | None


@lru_cache(maxsize=100_000)
def word_frequency(word: str) -> float:
    """How often a word stands among English words, between 0 and 1; 0 if it is never seen."""
    from wordfreq import word_frequency as look_up

    return float(look_up(word, "en"))


def pair_frequency(pair: tuple[str, str]) -> float:
    """Harmonic mean of the two words' frequencies; 0 as soon as one word is never seen."""
    first, second = word_frequency(pair[0]), word_frequency(pair[1])
    return 2 * first * second / (first + second) if first and second else 0.0


def compare_frequency(
    pairs: Sequence[tuple[str, str]], right: Sequence[bool] | NDArray[np.bool_]
) -> FrequencyTest:
    """Return the Kolmogorov-Smirnov test of the pairs' frequencies, right against wrong."""
    values = np.array([pair_frequency(pair) for pair in pairs])
    is_right = np.asarray(right, dtype=bool)
    n_right, n_wrong = int(is_right.sum()), int((~is_right).sum())
    if min(n_right, n_wrong) < MIN_EACH:
        return FrequencyTest(n_right, n_wrong, None, None)
    from scipy.stats import ks_2samp

    with warnings.catch_warnings():
        # Where the exact p-value can't be computed the asymptotic one is taken, as is wanted.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = ks_2samp(values[is_right], values[~is_right])
    return FrequencyTest(n_right, n_wrong, float(found.statistic), float(found.pvalue))
