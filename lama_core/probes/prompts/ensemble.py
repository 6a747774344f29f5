"""Combine the answers of several prompts (Jiang et al. 2020, section 4).

    log-linear   s(y) = sum_i w_i log P_i(y),   P(y) = softmax of s over the candidates  (eq. 1-3)
    linear       P(y) = sum_i w_i P_i(y)                                                 (eq. 4)
    Top-K        w_i = 1/K for the K prompts that are best on the training facts, else 0
    optimised    w = softmax(theta) maximises the mean of log P(gold answer); theta starts at 0
    oracle       right if any prompt is right

The paper fits theta by Adam with "default parameters" and batches of 32; its released scripts use
other values. Both are available as recipes (`PAPER`, `RELEASED`). A third recipe, `EXACT`, finds
the optimum. log P(gold answer) is concave in w, so its maximum is unique and the other recipes can
be compared with it.

Departure: How the optimised ensemble's weights are fitted
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lama_core.scoring.ranking import Floats, Ints

MAX_GAP = 1e-4  # `exact` stops if the objective is at most this far below the optimum
MAX_EVALUATIONS = 2000
LEAST_LOG_WEIGHT, LEAST_STEP = -60.0, 1e-6
EVERYTHING = slice(None)
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # Adam's defaults (Kingma and Ba 2015)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings of a fit of weights.

    Attributes:
        method: `adam` in batches, or `exact`: ascent on all facts at once, with a proven bound on
            the distance from the optimum. Adam's batches take the facts in order, the same in each
            epoch. The last weights are used, even if earlier ones were better.
        patience: Stop after this many epochs without a gain of `min_gain`.
        min_gain: Smallest gain of an epoch that counts. The value of an epoch is the mean over its
            batches of the gold answers' mean log-probability, measured before the batch's step. As
            in the released code, all batches have equal weight, even a smaller last batch.
    """

    name: str
    method: Literal["adam", "exact"] = "adam"
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
EXACT = Recipe("exact", method="exact")
RECIPES = {recipe.name: recipe for recipe in (RELEASED, PAPER, EXACT)}


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted weights, float32 [prompt], positive, sum 1.

    objective: mean natural-log probability of the gold answers on the training facts. n_epochs:
    number of epochs, or of evaluations with `exact`.
    """

    weights: Floats
    objective: float
    n_epochs: int


def normalise(scores: Floats, offsets: Floats | None = None) -> Floats:
    """Return the log-softmax over the candidates, float32 [query, candidate].

    offsets: Log of the number of candidates that each column represents, float32
    [query, candidate]; None if each column represents one candidate.
    """
    weighted = scores if offsets is None else scores + offsets
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

    log_probs: Float32 [prompt, query, column], finite. gold: Column of the gold answer, int64
    [query]. offsets: As in `normalise`. Raises ValueError without queries, or if a value is not
    finite. Source: Jiang et al. 2020, section 4.3.
    """
    n_prompts, n_queries, _ = log_probs.shape
    if not n_queries:
        raise ValueError("cannot fit weights without training facts")
    for prompt, values in enumerate(log_probs):
        if not np.isfinite(values).all():
            raise ValueError(f"prompt {prompt}: a log-probability is not finite")
    objective = _Objective(np.ascontiguousarray(log_probs.transpose(1, 0, 2)), gold, offsets)
    if n_prompts == 1:
        return Fit(np.ones(1, np.float32), objective.value(np.zeros(1)), 0)
    if recipe.method == "exact":
        return _fit_exactly(objective, n_prompts)
    return _fit_by_adam(objective, n_prompts, n_queries, recipe)


def softmax(theta: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the weights of parameters theta, float64 [prompt], positive, sum 1."""
    powers = np.exp(np.asarray(theta, dtype=np.float64) - np.max(theta))
    return powers / powers.sum()


class _Objective:
    """Mean log-probability of the gold answers, with its gradients."""

    def __init__(self, log_probs: Floats, gold: Ints, offsets: Floats | None) -> None:
        self.log_probs = log_probs  # [query, prompt, column]
        self.gold = gold
        self.offsets = offsets

    def value(self, theta: NDArray[np.float64]) -> float:
        """Return the objective over all queries."""
        return self.of_weights(softmax(theta))[0]

    def of_weights(
        self, weights: NDArray[np.float64], batch: slice = EVERYTHING
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the mean over the batch and its gradient with respect to the weights."""
        log_probs, gold = self.log_probs[batch], self.gold[batch]
        rows = np.arange(len(gold))
        scores = np.matmul(weights.astype(np.float32), log_probs)
        offsets = None if self.offsets is None else self.offsets[batch]
        normal = normalise(scores, offsets)
        mass = np.exp(normal if offsets is None else normal + offsets)
        expected = np.matmul(log_probs, mass[:, :, None])[:, :, 0]
        gradient = (log_probs[rows, :, gold] - expected).mean(axis=0, dtype=np.float64)
        return float(normal[rows, gold].mean(dtype=np.float64)), gradient

    def of_theta(
        self, theta: NDArray[np.float64], batch: slice
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the mean over the batch and its gradient with respect to theta."""
        weights = softmax(theta)
        value, gradient = self.of_weights(weights, batch)
        return value, weights * (gradient - weights @ gradient)


def _fit_by_adam(objective: _Objective, n_prompts: int, n_queries: int, recipe: Recipe) -> Fit:
    theta, first, second = np.zeros((3, n_prompts))
    step = n_epochs = n_stale = 0
    best = -np.inf
    while n_epochs < recipe.max_epochs and n_stale < recipe.patience:
        n_epochs += 1
        values = []
        for start in range(0, n_queries, recipe.batch_size):
            batch = slice(start, min(start + recipe.batch_size, n_queries))
            value, gradient = objective.of_theta(theta, batch)
            values.append(value)
            step += 1
            first = BETA_1 * first + (1 - BETA_1) * gradient
            second = BETA_2 * second + (1 - BETA_2) * gradient**2
            unbiased = np.sqrt(second / (1 - BETA_2**step)) + EPSILON
            theta = theta + recipe.learning_rate * first / (1 - BETA_1**step) / unbiased
        value = float(np.mean(values))
        n_stale += 1
        if value > best + recipe.min_gain:
            best, n_stale = value, 0
    return Fit(softmax(theta).astype(np.float32), objective.value(theta), n_epochs)


def _fit_exactly(objective: _Objective, n_prompts: int) -> Fit:
    """Exponentiated-gradient ascent; the step doubles after a gain and is quartered after a loss.

    The objective is concave in the weights w, so its value is at most max_i g_i - w g below the
    optimum, where g is its gradient. The ascent stops when this bound is below `MAX_GAP`.
    """
    log_weights = np.full(n_prompts, -np.log(n_prompts))
    value, gradient = objective.of_weights(np.exp(log_weights))
    step, n_evaluated = 1.0, 1
    while n_evaluated < MAX_EVALUATIONS:
        weights = np.exp(log_weights)
        if gradient.max() - weights @ gradient < MAX_GAP:
            break
        moved = log_weights + step * (gradient - gradient.max())
        moved = np.maximum(moved - np.logaddexp.reduce(moved), LEAST_LOG_WEIGHT)
        moved -= np.logaddexp.reduce(moved)
        new_value, new_gradient = objective.of_weights(np.exp(moved))
        n_evaluated += 1
        if new_value > value:
            log_weights, value, gradient = moved, new_value, new_gradient
            step *= 2.0
        elif step < LEAST_STEP:
            break
        else:
            step /= 4.0
    return Fit(np.exp(log_weights).astype(np.float32), value, n_evaluated)


def oracle_ranks(ranks: Ints) -> Ints:
    """Return the gold answer's best rank under any prompt, int64 [query], given [prompt, query].

    The oracle is right on a fact if this rank is 1. Source: Jiang et al. 2020, section 5.1.
    """
    return np.asarray(ranks.min(axis=0))
