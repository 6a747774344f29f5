"""The ensembles on examples that can be checked by hand."""

import numpy as np
import pytest
import torch

from lama_core.probes.prompts.ensemble import (
    PAPER,
    RELEASED,
    Recipe,
    combine_linear,
    combine_log_linear,
    fit_weights,
    rank_prompts,
    top_k_weights,
)

# Two candidates, three prompts, two facts. In log-odds of candidate 0 over 1, prompt A says +2 to
# both facts, B says -2 to both, C says +6, +6. The golds are 0 and 1 for a share of facts.


def _from_odds(odds: list[list[float]]) -> np.ndarray:
    """Log-probabilities [prompt, query, 2] of log-odds [prompt, query]."""
    values = np.array(odds)
    return np.stack([-np.logaddexp(0, -values), -np.logaddexp(0, values)], axis=2).astype(
        np.float32
    )


def _hand_made() -> tuple[np.ndarray, np.ndarray]:
    """Four facts, three of them with gold 0: log P is greatest where the mixed odds are 3 to 1."""
    log_probs = _from_odds([[2.0] * 4, [-2.0] * 4, [0.0] * 4])
    return log_probs, np.array([0, 0, 0, 1])


@pytest.mark.parametrize("recipe", [PAPER, RELEASED], ids=lambda recipe: recipe.name)
def test_three_prompts_converge_to_the_known_optimum(recipe: Recipe) -> None:
    """The mixed log-odds are 2 (w_A - w_B): the optimum has them at ln 3."""
    log_probs, gold = _hand_made()
    patient = Recipe(recipe.name, recipe.learning_rate, recipe.batch_size, 5000, 5000)
    fit = fit_weights(log_probs, gold, recipe=patient)
    mixed = 2 * fit.weights[0] - 2 * fit.weights[1]
    assert mixed == pytest.approx(np.log(3), abs=0.01)
    assert fit.objective == pytest.approx(0.75 * np.log(0.75) + 0.25 * np.log(0.25), abs=1e-4)
    assert fit.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize(("recipe", "patience"), [(RELEASED, 30), (PAPER, 50)])
def test_fitting_stops_after_so_many_epochs_without_a_gain(recipe: Recipe, patience: int) -> None:
    """Two equal prompts: nothing is gained after the first epoch."""
    fit = fit_weights(_from_odds([[2.0], [2.0]]), np.array([0]), recipe=recipe)
    assert fit.n_epochs == 1 + patience


def test_the_released_recipe_has_the_released_figures() -> None:
    assert Recipe("released", 0.1, 128, 500, 30, 1e-3) == RELEASED


def test_log_linear_is_the_normalised_weighted_product() -> None:
    log_probs = np.log(np.array([[[0.8, 0.2]], [[0.5, 0.5]]], np.float32))
    combined = np.exp(combine_log_linear(log_probs, np.array([0.5, 0.5], np.float32)))
    product = np.sqrt(np.array([0.8 * 0.5, 0.2 * 0.5]))
    np.testing.assert_allclose(combined[0], product / product.sum(), rtol=1e-6)


def test_linear_is_the_weighted_sum() -> None:
    log_probs = np.log(np.array([[[0.8, 0.1]], [[0.4, 0.5]]], np.float32))
    combined = np.exp(combine_linear(log_probs, np.array([0.25, 0.75], np.float32)))
    np.testing.assert_allclose(combined[0], [0.25 * 0.8 + 0.75 * 0.4, 0.25 * 0.1 + 0.75 * 0.5])


def test_equally_accurate_prompts_keep_their_order() -> None:
    assert rank_prompts([0.5, 0.7, 0.5, 0.7]).tolist() == [1, 3, 0, 2]
    assert top_k_weights([0.5, 0.7, 0.5, 0.7], 3).tolist() == pytest.approx(
        [1 / 3, 1 / 3, 0, 1 / 3]
    )


def test_top_k_of_fewer_prompts_takes_all_of_them() -> None:
    assert top_k_weights([0.1, 0.2], 5).tolist() == [0.5, 0.5]


def test_columns_that_stand_for_many_candidates_count_as_many() -> None:
    """Ten equal candidates give the same weights as one column that stands for ten."""
    odds = [[2.0, -1.0, 0.5], [-0.5, 1.0, 1.5]]
    whole = np.repeat(_from_odds(odds)[:, :, 1:], 10, axis=2)
    whole = np.concatenate([_from_odds(odds)[:, :, :1], whole], axis=2)
    offsets = np.tile(np.array([0, np.log(10)], np.float32), (3, 1))
    gold = np.zeros(3, np.int64)
    all_of_them = fit_weights(whole, gold)
    in_short = fit_weights(_from_odds(odds), gold, offsets=offsets)
    np.testing.assert_allclose(in_short.weights, all_of_them.weights, atol=5e-3)


def _epochs_of_the_released_loop(
    log_probs: np.ndarray, gold: np.ndarray, recipe: Recipe, *, by_size: bool
) -> tuple[int, list[float]]:
    """Epochs and weights of torch's Adam; by_size: the gain weighs batches by their facts."""
    theta = torch.zeros(len(log_probs), dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([theta], lr=recipe.learning_rate)
    values, golds = torch.from_numpy(log_probs).double(), torch.from_numpy(gold)
    best, since, n_epochs = -np.inf, 0, 0
    while n_epochs < recipe.max_epochs and since < recipe.patience:
        n_epochs += 1
        means, sizes = [], []
        for at in torch.arange(len(gold)).split(recipe.batch_size):
            scores = torch.einsum("p,pfc->fc", theta.softmax(0), values[:, at])
            mean = scores.log_softmax(1)[torch.arange(len(at)), golds[at]].mean()
            adam.zero_grad()
            (-mean).backward()
            adam.step()
            means.append(float(mean.detach()))
            sizes.append(len(at))
        value = float(np.average(means, weights=sizes if by_size else None))
        since = 0 if value > best + recipe.min_gain else since + 1
        best = value if since == 0 else best
    return n_epochs, theta.detach().softmax(0).tolist()


def test_the_gain_that_ends_fitting_weighs_batches_alike_whatever_their_size() -> None:
    """As in the released code: a last batch of one fact counts as much as one of three."""
    recipe = Recipe("short", 0.1, batch_size=3, patience=3, min_gain=1e-2)
    random = np.random.default_rng(2)
    log_probs = np.log(random.dirichlet(np.ones(4), size=(3, 4))).astype(np.float32)
    gold = np.array([0, 1, 2, 3])
    fit = fit_weights(log_probs, gold, recipe=recipe)
    n_epochs, weights = _epochs_of_the_released_loop(log_probs, gold, recipe, by_size=False)
    assert fit.n_epochs == n_epochs
    assert fit.weights.tolist() == pytest.approx(weights, abs=1e-4)
    assert n_epochs != _epochs_of_the_released_loop(log_probs, gold, recipe, by_size=True)[0]
