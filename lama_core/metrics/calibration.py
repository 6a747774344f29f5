"""Calibration: how well a model's confidence in its first answers matches their accuracy.

    ECE = sum over bins of (facts in bin / facts) * |accuracy of bin - mean confidence of bin|

with bins of equal width over [0, 1]; a confidence on a border belongs to the bin below it.
Confidence is the probability of the first answer over the whole vocabulary, not renormalised. For
statements it is the softmax over the scores of all the relation's answers, including other right
answers.
Source: Naeini et al. 2015; Guo et al. 2017, equation 3.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

N_BINS = 10


def reliability_bins(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], *, n_bins: int = N_BINS
) -> pd.DataFrame:
    """Return the bins of the reliability diagram: a row each, from low to high confidence.

    Args:
        confidence: Probabilities, float64 [fact].
        correct: Whether each fact is right, bool [fact].
        n_bins: Number of bins.

    Returns:
        Columns: low (exclusive), high (inclusive), n (facts), confidence and accuracy (means, NaN
        without facts).
    """
    edges = np.linspace(0, 1, n_bins + 1)
    numbers = np.clip(np.ceil(confidence * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
    counts = np.bincount(numbers, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        confidences = np.bincount(numbers, confidence, minlength=n_bins) / counts
        accuracies = np.bincount(numbers, correct, minlength=n_bins) / counts
    ends = {"low": edges[:-1], "high": edges[1:]}
    return pd.DataFrame({**ends, "n": counts, "confidence": confidences, "accuracy": accuracies})


def expected_calibration_error(bins: pd.DataFrame) -> float:
    """Return the mean gap between accuracy and confidence, weighted by facts; NaN without facts."""
    total = int(bins["n"].sum())
    if not total:
        return float("nan")
    known = bins[bins["n"] > 0]
    gaps = known["n"] * (known["accuracy"] - known["confidence"]).abs()
    return float(sum(gaps.tolist())) / total
