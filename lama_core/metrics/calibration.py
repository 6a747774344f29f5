"""Calibration: how well a model's confidence in its first answers matches their accuracy.

    ECE = sum over bins of (facts in bin / facts) * |accuracy of bin - mean confidence of bin|

with bins of equal width over [0, 1]; a confidence on a border belongs to the bin below it.
Confidence is the probability of the first answer over the whole vocabulary, not renormalised. For
statements it is the softmax over the scores of all the relation's answers, including other right
answers.
Source: Naeini et al. 2015; Guo et al. 2017, equation 3.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

N_BINS = 10


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Facts with confidence in (`low`, `high`]; the means are NaN if there are none."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


def reliability_bins(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], *, n_bins: int = N_BINS
) -> tuple[ReliabilityBin, ...]:
    """Return the bins of the reliability diagram, from low to high confidence.

    confidence: probabilities, float64 [fact]. correct: bool [fact].
    """
    edges = np.linspace(0, 1, n_bins + 1)
    numbers = np.clip(np.ceil(confidence * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
    counts = np.bincount(numbers, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        confidences = np.bincount(numbers, confidence, minlength=n_bins) / counts
        accuracies = np.bincount(numbers, correct, minlength=n_bins) / counts
    columns = (edges[:-1], edges[1:], counts, confidences, accuracies)
    return tuple(ReliabilityBin(*row) for row in zip(*(x.tolist() for x in columns), strict=True))


def expected_calibration_error(bins: tuple[ReliabilityBin, ...]) -> float:
    """Return the mean gap between accuracy and confidence, weighted by facts; NaN without facts."""
    total = sum(bin_.n for bin_ in bins)
    if not total:
        return float("nan")
    return sum(bin_.n * abs(bin_.accuracy - bin_.confidence) for bin_ in bins if bin_.n) / total
