"""Several prompts' answers combined into one (Jiang et al. 2020, section 4), on arrays.

    log-linear   s(y) = sum_i w_i log P_i(y),   P(y) = softmax of s over the candidates  (eq. 1-3)
    linear       P(y) = sum_i w_i P_i(y)                                                 (eq. 4)
    Top-K        w_i = 1/K for the K prompts that are best on the training facts, else 0
    optimised    w = softmax(theta), theta = 0 at first, maximises the mean of log P(gold)
    oracle       right when any prompt is right

The paper fits theta by Adam with "default parameters" and batches of 32; its released scripts use
other figures. Both are recipes here (`PAPER`, `RELEASED`), and a third, `EXACT`, finds the optimum
itself: log P(gold) is concave in w, so the optimum's value is one and the recipes can be measured
against it.

Departure: How the optimised ensemble's weights are fitted
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

MAX_GAP = 1e-4  # of `exact`: how far, at most, its mean log-probability is below the optimum's
MAX_EVALUATIONS = 2000
LEAST_LOG_WEIGHT, LEAST_STEP = -60.0, 1e-6
EVERYTHING = slice(None)
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # Adam's defaults (Kingma and Ba 2015)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How weights are fitted.

    method: `adam` by batches, or `exact`: ascent on all facts at once to the proven optimum.
    Adam's batches are the facts in their order, the same in each epoch, and the last weights count,
    though others on the way may have been better.
    patience: stop after so many epochs without a gain of `min_gain` in the mean over batches of the
    mean log-probability of the gold, each batch's taken before its step. As in the released code,
    batches count alike, the last one too, however few facts it has.
    """

    name: str
    method: Literal["adam", "exact"] = "adam"
    learning_rate: float = 0.1
    batch_size: int = 128
    max_epochs: int = 500
    patience: int = 30
    min_gain: float = 1e-3


RELEASED = Recipe("released")
# Learning rate and batches are the paper's ("Adam with default parameters and batch size of 32").
# It names no last epoch, no patience and no order of facts: those are ours. Its steps are a
# hundredth of the released ones, and so their gains are smaller.
PAPER = Recipe(
    "paper", learning_rate=1e-3, batch_size=32, max_epochs=500, patience=50, min_gain=1e-4
)
EXACT = Recipe("exact", method="exact")
RECIPES = {recipe.name: recipe for recipe in (RELEASED, PAPER, EXACT)}


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted weights.

    weights: float32 [prompt], positive, sum 1. objective: mean natural-log probability of the gold
    on the training facts. n_epochs: passes over the facts, or evaluations of `exact`.
    """

    weights: Floats
    objective: float
    n_epochs: int


def normalise(scores: Floats, offsets: Floats | None = None) -> Floats:
    """Log-softmax over the candidates: float32 [query, candidate].

    offsets: float32 [query, candidate], the log of how many candidates a column stands for.
    """
    counted = scores if offsets is None else scores + offsets
    highest = counted.max(axis=-1, keepdims=True)
    total = np.exp(counted - highest).sum(axis=-1, keepdims=True)
    return np.asarray(scores - highest - np.log(total), dtype=np.float32)


def combine_log_linear(log_probs: Floats, weights: Floats) -> Floats:
    """Log-probabilities of the log-linear ensemble, float32 [query, candidate].

    log_probs: float32 [prompt, query, candidate], finite. weights: float32 [prompt], sum 1.
    They sum to 1 over the candidates. Source: Jiang et al. 2020, equations 1 to 3.
    """
    _check(log_probs, weights)
    return normalise(np.tensordot(weights, log_probs, axes=1).astype(np.float32))


def combine_linear(log_probs: Floats, weights: Floats) -> Floats:
    """Log-probabilities of the linear ensemble, float32 [query, candidate].

    Not renormalised: they sum to what the prompts' own probabilities of the candidates sum to.
    Source: Jiang et al. 2020, equation 4.
    """
    _check(log_probs, weights)
    highest = log_probs.max(axis=0)
    mixed = np.tensordot(weights, np.exp(log_probs - highest), axes=1)
    with np.errstate(divide="ignore"):
        return np.asarray(highest + np.log(mixed), dtype=np.float32)


def rank_prompts(accuracies: Sequence[float] | NDArray[np.floating]) -> Ints:
    """Prompts from the most to the least accurate, int64 [prompt]; ties keep their order."""
    return np.argsort(-np.asarray(accuracies, dtype=np.float64), kind="stable")


def top_k_weights(accuracies: Sequence[float] | NDArray[np.floating], k: int) -> Floats:
    """1/k for the k most accurate prompts, 0 for the others; all prompts if there are fewer.

    Raises ValueError if k is not positive. Source: Jiang et al. 2020, section 4.2.
    """
    if k < 1:
        raise ValueError(f"k is {k}: the mean of no prompts has no value")
    order = rank_prompts(accuracies)[:k]
    weights = np.zeros(len(accuracies), dtype=np.float32)
    weights[order] = 1 / len(order)
    return weights


def fit_weights(
    log_probs: Floats, gold: Ints, *, recipe: Recipe = RELEASED, offsets: Floats | None = None
) -> Fit:
    """Fit weights that maximise the mean log-probability of the gold in the log-linear ensemble.

    log_probs: float32 [prompt, query, column], finite. gold: int64 [query], a column.
    offsets: float32 [query, column], the log of how many candidates a column stands for, or None.
    Raises ValueError without queries or for values that aren't finite. Source: section 4.3.
    """
    n_prompts, n_queries, _ = log_probs.shape
    if not n_queries:
        raise ValueError("there are no training facts to fit weights on")
    _check(log_probs, np.full(n_prompts, 1 / n_prompts, np.float32))
    objective = _Objective(np.ascontiguousarray(log_probs.transpose(1, 0, 2)), gold, offsets)
    if n_prompts == 1:
        return Fit(np.ones(1, np.float32), objective.value(np.zeros(1)), 0)
    if recipe.method == "exact":
        return _fit_exactly(objective, n_prompts)
    return _fit_by_adam(objective, n_prompts, n_queries, recipe)


def softmax(theta: NDArray[np.floating]) -> NDArray[np.float64]:
    """Weights of parameters: float64 [prompt], positive, sum 1."""
    powers = np.exp(np.asarray(theta, dtype=np.float64) - np.max(theta))
    return powers / powers.sum()


class _Objective:
    """Mean log-probability of the gold, and its gradients, on some of the queries."""

    def __init__(self, log_probs: Floats, gold: Ints, offsets: Floats | None) -> None:
        self.log_probs = log_probs  # [query, prompt, column]
        self.gold = gold
        self.offsets = offsets

    def value(self, theta: NDArray[np.float64]) -> float:
        """The objective over all queries."""
        return self.of_weights(softmax(theta))[0]

    def of_weights(
        self, weights: NDArray[np.float64], batch: slice = EVERYTHING
    ) -> tuple[float, NDArray[np.float64]]:
        """The mean over the batch, and its gradient in the weights."""
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
        """The mean over the batch, and its gradient in theta."""
        weights = softmax(theta)
        value, gradient = self.of_weights(weights, batch)
        return value, weights * (gradient - weights @ gradient)


def _fit_by_adam(objective: _Objective, n_prompts: int, n_queries: int, recipe: Recipe) -> Fit:
    theta, first, second = np.zeros((3, n_prompts))
    step = n_epochs = since = 0
    reached = -np.inf
    while n_epochs < recipe.max_epochs and since < recipe.patience:
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
        since = 0 if value > reached + recipe.min_gain else since + 1
        reached = value if since == 0 else reached
    return Fit(softmax(theta).astype(np.float32), objective.value(theta), n_epochs)


def _fit_exactly(objective: _Objective, n_prompts: int) -> Fit:
    """Exponentiated-gradient ascent with a step that doubles after a gain and halves after a loss.

    The objective is concave in the weights, so it is at most max_i g_i - w g below its optimum,
    with g its gradient in the weights: that bound, and not a lack of progress, ends the ascent.
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
    """The gold's best rank under any prompt, int64 [query], of int64 [prompt, query].

    A fact counts as right for the oracle when this is 1. Source: Jiang et al. 2020, section 5.1.
    """
    return np.asarray(ranks.min(axis=0))


def _check(log_probs: Floats, weights: Floats) -> None:
    """Raise ValueError unless every prompt has a weight and only finite values."""
    if len(weights) != len(log_probs):
        raise ValueError(f"{len(weights)} weights for {len(log_probs)} prompts")
    for prompt, values in enumerate(log_probs):
        if not np.isfinite(values).all():
            raise ValueError(f"prompt {prompt}: a log-probability is not finite")
