"""Combine the answers of several prompts (Jiang et al. 2020, section 4).

    log-linear   s(y) = sum_i w_i log P_i(y),   P(y) = softmax of s over the candidates  (eq. 1-3)
    linear       P(y) = sum_i w_i P_i(y)                                                 (eq. 4)
    Top-K        w_i = 1/K for the K prompts that are best on the training facts, else 0
    optimised    w = softmax(theta) maximises the mean of log P(gold answer); theta starts at 0
    oracle       right if any prompt is right

The paper fits theta by Adam with "default parameters" and batches of 32; its released scripts use
other values. Both are available as recipes (`PAPER`, `RELEASED`).

Departure: How the optimised ensemble's weights are fitted
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lama_core.scoring.ranking import Floats, Ints

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # Adam's defaults (Kingma and Ba 2015)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings of a fit of weights by Adam in batches.

    The batches take the facts in order, the same in each epoch. The last weights are used, even if
    earlier ones were better.

    Attributes:
        patience: Stop after this many epochs without a gain of `min_gain`.
        min_gain: Smallest gain of an epoch that counts. The value of an epoch is the mean over its
            batches of the gold answers' mean log-probability, measured before the batch's step. As
            in the released code, all batches have equal weight, even a smaller last batch.
    """

    name: str
    learning_rate: float = 0.1
    batch_size: int = 128
    max_epochs: int = 500
    patience: int = 30
    min_gain: float = 1e-3


RELEASED = Recipe("released")
# Learning rate and batch size are the paper's ("Adam with default parameters and batch size of
# 32"). It does not give the number of epochs, the patience and the order of facts; we chose them.
# The learning rate is a hundredth of the released one, so each epoch gains less.
PAPER = Recipe(
    "paper", learning_rate=1e-3, batch_size=32, max_epochs=500, patience=50, min_gain=1e-4
)
RECIPES = {recipe.name: recipe for recipe in (RELEASED, PAPER)}


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted weights, float32 [prompt], positive, sum 1.

    objective: mean natural-log probability of the gold answers on the training facts.
    """

    weights: Floats
    objective: float
    n_epochs: int


def normalise(scores: Floats, offsets: Floats | float = 0.0) -> Floats:
    """Return the log-softmax over the candidates, float32 [query, candidate].

    offsets: Log of the number of candidates that each column represents, float32
    [query, candidate]; 0 if each column represents one candidate.
    """
    weighted = scores + offsets
    highest = weighted.max(axis=-1, keepdims=True)
    total = np.exp(weighted - highest).sum(axis=-1, keepdims=True)
    return np.asarray(scores - highest - np.log(total), dtype=np.float32)


def combine_log_linear(log_probs: Floats, weights: Floats) -> Floats:
    """Return log-probabilities of the log-linear ensemble, float32 [query, candidate].

    log_probs: float32 [prompt, query, candidate], finite. weights: float32 [prompt], sum 1.
    The probabilities sum to 1 over the candidates. Source: Jiang et al. 2020, equations 1 to 3.
    """
    return normalise(np.tensordot(weights, log_probs, axes=1).astype(np.float32))


def combine_linear(log_probs: Floats, weights: Floats) -> Floats:
    """Return log-probabilities of the linear ensemble, float32 [query, candidate].

    Arguments as in `combine_log_linear`. The probabilities are not renormalised: their sum over
    the candidates is the weighted mean of the prompts' sums. Source: Jiang et al. 2020, equation 4.
    """
    highest = log_probs.max(axis=0)
    mixed = np.tensordot(weights, np.exp(log_probs - highest), axes=1)
    with np.errstate(divide="ignore"):
        return np.asarray(highest + np.log(mixed), dtype=np.float32)


def rank_prompts(accuracies: Sequence[float] | NDArray[np.floating]) -> Ints:
    """Return prompts from most to least accurate, int64 [prompt]; ties keep their order."""
    return np.argsort(-np.asarray(accuracies, dtype=np.float64), kind="stable")


def top_k_weights(accuracies: Sequence[float] | NDArray[np.floating], k: int) -> Floats:
    """Return weights 1/k for the k most accurate prompts and 0 for the others.

    With fewer than k prompts, all get the same weight. Source: Jiang et al. 2020, section 4.2.
    """
    order = rank_prompts(accuracies)[:k]
    weights = np.zeros(len(accuracies), dtype=np.float32)
    weights[order] = 1 / len(order)
    return weights


def fit_weights(
    log_probs: Floats, gold: Ints, *, recipe: Recipe = RELEASED, offsets: Floats | None = None
) -> Fit:
    """Fit the log-linear ensemble that maximises the gold answers' mean log-probability.

    log_probs: Float32 [prompt, query, column], finite, of at least one query. gold: Column of the
    gold answer, int64 [query]. offsets: As in `normalise`; None is 0. Raises ValueError if a
    log-probability isn't finite, or there is no query. Source: Jiang et al. 2020, section 4.3.
    """
    n_prompts, n_queries, _ = log_probs.shape
    if not n_queries or not np.isfinite(log_probs).all():
        raise ValueError("weights are fitted on finite log-probabilities of at least one query")
    by_query = np.ascontiguousarray(log_probs.transpose(1, 0, 2))
    shifts = np.zeros((n_queries, 1), np.float32) if offsets is None else offsets

    def measure(
        weights: NDArray[np.float64], batch: slice = slice(None)
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the mean over the batch and its gradient with respect to the weights."""
        values, golds = by_query[batch], gold[batch]
        rows = np.arange(len(golds))
        normal = normalise(np.matmul(weights.astype(np.float32), values), shifts[batch])
        expected = np.matmul(values, np.exp(normal + shifts[batch])[:, :, None])[:, :, 0]
        gradient = (values[rows, :, golds] - expected).mean(axis=0, dtype=np.float64)
        return float(normal[rows, golds].mean(dtype=np.float64)), gradient

    if n_prompts == 1:
        return Fit(np.ones(1, np.float32), measure(np.ones(1))[0], 0)
    theta, first, second = np.zeros((3, n_prompts))
    step = n_epochs = n_stale = 0
    best = -np.inf
    while n_epochs < recipe.max_epochs and n_stale < recipe.patience:
        n_epochs += 1
        values = []
        for start in range(0, n_queries, recipe.batch_size):
            weights = softmax(theta)
            value, gradient = measure(weights, slice(start, start + recipe.batch_size))
            gradient = weights * (gradient - weights @ gradient)  # with respect to theta
            values.append(value)
            step += 1
            first = BETA_1 * first + (1 - BETA_1) * gradient
            second = BETA_2 * second + (1 - BETA_2) * gradient**2
            unbiased = np.sqrt(second / (1 - BETA_2**step)) + EPSILON
            theta = theta + recipe.learning_rate * first / (1 - BETA_1**step) / unbiased
        n_stale += 1
        if np.mean(values) > best + recipe.min_gain:
            best, n_stale = float(np.mean(values)), 0
    return Fit(softmax(theta).astype(np.float32), measure(softmax(theta))[0], n_epochs)


def softmax(theta: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the weights of parameters theta, float64 [prompt], positive, sum 1."""
    powers = np.exp(np.asarray(theta, dtype=np.float64) - np.max(theta))
    return powers / powers.sum()
