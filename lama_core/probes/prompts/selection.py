"""Select and weight prompts on the training facts: Top-K and the optimised ensemble.

Selection and weights use training facts only; `ensemble_answers` applies them to the test facts.
Source: Jiang et al. 2020, section 4.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lama_core.datasets.prompt_sets import PromptPool
from lama_core.models.protocols import Context
from lama_core.probes.prompts.distributions import DistributionStore
from lama_core.probes.prompts.ensemble import (
    RELEASED,
    Recipe,
    combine_linear,
    combine_log_linear,
    fit_weights,
    rank_prompts,
    top_k_weights,
)
from lama_core.probes.prompts.shortlist import Shortlist
from lama_core.scoring.batches import ScoreBlock
from lama_core.scoring.blanks import shows_subject
from lama_core.scoring.ranking import Floats, Ranking, rank_gold
from lama_core.scoring.top_answers import ROW, rank_block

Combine = Literal["log-linear", "linear"]
TOP_KS = (1, 3, 5)


@dataclass(frozen=True)
class Ensemble:
    """Weighted prompts of a pool.

    Attributes:
        combination: The prompt sets that the prompts come from, such as `mine+man`.
        method: `top1`, `top3`, `optimised`, `optimised (paper)`, ...
        weights: Weight of each prompt, float32 [prompt of the pool], sum 1; 0 for unused prompts.
        combine: How the prompts' probabilities are combined (see `ensemble`).
        objective: Mean log-probability of the gold answers of the training facts; None if the
            weights are not fitted.
        n_epochs: Number of epochs of the fit; None if the weights are not fitted.
    """

    combination: str
    method: str
    weights: Floats
    combine: Combine = "log-linear"
    objective: float | None = None
    n_epochs: int | None = None

    @property
    def only_prompt(self) -> int | None:
        """The only prompt with a weight above 0; None if there are several."""
        used = np.flatnonzero(self.weights)
        return int(used[0]) if len(used) == 1 else None


def exclude_subject_blind(pool: PromptPool, context: Context) -> PromptPool:
    """Return the pool with its subject-blind prompts excluded from ensembles.

    A prompt is subject-blind if the model can't see the subject in it.
    """
    # Departure: Subject-blind prompts of causal models
    entries = (
        replace(entry, aside=not shows_subject(entry.prompt.template, context))
        for entry in pool.entries
    )
    return replace(pool, entries=tuple(entries))


def make_ensembles(
    pool: PromptPool,
    combination: str,
    train_accuracies: NDArray[np.float64],
    shortlist: Shortlist,
    recipes: Iterable[Recipe],
) -> list[Ensemble]:
    """Return Top-K and the optimised ensembles; of a single prompt, only the prompt itself.

    The weights are fitted on the training facts' shortlist.
    """
    members = list(pool.eligible(combination))
    is_single = len(pool.members(combination)) == 1

    def weighted(method: str, weights: Floats, *fit: Any) -> Ensemble:
        of_pool = np.zeros(len(pool.entries), np.float32)
        of_pool[members] = weights
        return Ensemble(combination, method, of_pool, "log-linear", *fit)

    found = [
        weighted(f"top{k}", top_k_weights(train_accuracies[members], k))
        for k in (TOP_KS[:1] if is_single else TOP_KS)
    ]
    for recipe in () if is_single else recipes:
        fit = fit_weights(
            shortlist.log_probs[members], shortlist.gold, recipe=recipe, offsets=shortlist.offsets
        )
        name = "optimised" if recipe is RELEASED else f"optimised ({recipe.name})"
        found.append(weighted(name, fit.weights, fit.objective, fit.n_epochs))
    return found


def prompts_by_accuracy(
    pool: PromptPool, combination: str, train: NDArray[np.float64]
) -> list[int]:
    """Return a combination's prompts from best to worst on the training facts."""
    members = list(pool.eligible(combination))
    return [members[number] for number in rank_prompts(train[members])]


def ensemble_answers(
    store: DistributionStore, rows: NDArray[np.void], ensembles: Sequence[Ensemble]
) -> NDArray[np.void]:
    """Return each ensemble's answer to each fact, `top_answers.ROW` [ensemble, fact].

    Reads the distributions once, chunk by chunk. `rows` has the results of the single prompts,
    `top_answers.ROW` [prompt, fact]; an ensemble of one prompt has the same rows as the prompt.
    """
    segment = store.asked.segment()
    table = np.zeros((len(ensembles), len(segment.gold)), ROW)
    mixed: list[tuple[int, Ensemble]] = []
    for number, ensemble in enumerate(ensembles):
        if ensemble.only_prompt is None:
            mixed.append((number, ensemble))
        else:
            table[number] = rows[ensemble.only_prompt]
    for at, chunk in store.chunks() if mixed else ():
        facts = np.arange(at.start, at.stop)
        for number, ensemble in mixed:
            used = np.flatnonzero(ensemble.weights)
            combine = combine_linear if ensemble.combine == "linear" else combine_log_linear
            block = ScoreBlock(0, facts, combine(chunk[used], ensemble.weights[used]), None)
            table[number, facts] = rank_block(store.model.name, segment, block)
    table["query"] = np.arange(len(segment.gold))
    return table


def top_k_curves(
    store: DistributionStore, orders: Sequence[Sequence[int]], ranking: Ranking
) -> list[dict[Combine, tuple[float, ...]]]:
    """Return P@1 of Top-K for K = 1, 2, ..., log-linear and linear, one entry per order.

    An order lists prompts from best to worst. Reads the distributions once; each K adds one prompt
    to the running sums. Source: Jiang et al. 2020, figures 2 and 5.
    """
    asked = store.asked
    n_right = [np.zeros((len(order), 2), np.int64) for order in orders]
    for at, chunk in store.chunks():
        gold, removed = asked.gold[at], asked.removed[at]
        for order, counts in zip(orders, n_right, strict=True):
            sums = np.zeros((2, *chunk.shape[1:]), np.float32)
            for k, prompt in enumerate(order):
                sums[0] += chunk[prompt]
                sums[1] += np.exp(chunk[prompt])
                for kind in range(2):
                    ranks = rank_gold(sums[kind], gold, removed=removed)
                    counts[k, kind] += np.count_nonzero(getattr(ranks, ranking) == 1)
    kinds: tuple[Combine, Combine] = ("log-linear", "linear")
    n_facts = len(asked.facts)
    return [
        {kind: tuple((counts[:, at] / n_facts).tolist()) for at, kind in enumerate(kinds)}
        for counts in n_right
    ]
