"""Forward plus backward probability: does the subject follow from the object too?

    s(y) = sum_i w_i log P(y | x, t_i) + sum_i v_i log P(x | y, t_i)

with w and v together the softmax of theta, fitted as the optimised ensemble is. The backward
probability is computed only for the B likeliest objects of the forward ensemble, and a subject of
several pieces has the probability of its pieces, filled left to right.
Source: Jiang et al. 2020, section 6.2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lama_core.asking.scoring import score_cloze
from lama_core.errors import UserError
from lama_core.models.base import BlankFiller
from lama_core.probes.prompts.asking import AskedFacts
from lama_core.probes.prompts.ensemble import RELEASED, Fit, Recipe, fit_weights
from lama_core.types import Prompt, Query

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

N_OBJECTS = 10


@dataclass(frozen=True)
class BothWays:
    """Forward and backward log-probabilities of the likeliest objects.

    columns: int64 [fact, object], of the candidates, best first. log_probs: float32
    [feature, fact, object]; the first half of the features is forward, the second backward, a
    prompt each. gold: int64 [fact], its place among the objects, -1 where it isn't there.
    """

    columns: Ints
    log_probs: Floats
    gold: Ints

    @property
    def forward(self) -> Floats:
        """float32 [prompt, fact, object]."""
        return self.log_probs[: len(self.log_probs) // 2]


def score_both_ways(
    model: BlankFiller,
    asked: AskedFacts,
    prompts: Sequence[Prompt],
    best: Ints,
    forward: Floats,
    *,
    on_fact: Callable[[int, int], None] | None = None,
) -> BothWays:
    """Add the backward log-probability of each fact's subject given each of its best objects.

    best: int64 [fact, object], columns. forward: float32 [prompt, fact, object].
    """
    n_prompts, n_facts, n_objects = forward.shape
    backward = np.empty_like(forward)
    for number, fact in enumerate(asked.facts):
        for place in range(n_objects):
            word = asked.columns.words[best[number, place]]
            for prompt in range(n_prompts):
                query = ask_backward(prompts[prompt], word)
                backward[prompt, number, place] = model.word_log_prob(
                    query, 0, fact.subject, "both"
                ).log_prob
        if on_fact is not None:
            on_fact(number + 1, n_facts)
    found = best == asked.gold[:, None]
    gold = np.where(found.any(axis=1), found.argmax(axis=1), -1)
    return BothWays(best, np.concatenate([forward, backward]), gold)


def ask_backward(prompt: Prompt, obj: str) -> Query:
    """The template with the object filled in and a blank for the subject."""
    left, right = prompt.template.split("[X]")
    return Query((left.replace("[Y]", obj), right.replace("[Y]", obj)))


def fit_both_ways(features: BothWays, *, backward: bool = True, recipe: Recipe = RELEASED) -> Fit:
    """Weights of the features, on the facts whose gold is among the objects.

    backward: False fits the forward half alone, for comparison; its weights then have half the
    length. Raises ValueError if no gold is among the objects.
    """
    here = np.flatnonzero(features.gold >= 0)
    log_probs = features.log_probs if backward else features.forward
    return fit_weights(log_probs[:, here], features.gold[here], recipe=recipe)


def right_both_ways(features: BothWays, weights: Floats) -> NDArray[np.bool_]:
    """Whether the gold comes first, bool [fact]; false where it isn't among the objects."""
    log_probs = features.log_probs[: len(weights)]
    best = np.tensordot(weights, log_probs, axes=1).argmax(axis=1)
    return np.asarray(best == features.gold)


def best_objects(log_probs: Floats, n_objects: int = N_OBJECTS) -> Ints:
    """Columns of the likeliest objects by the mean of the prompts, int64 [fact, object].

    log_probs: float32 [prompt, fact, candidate].
    """
    mean = log_probs.mean(axis=0)
    return np.argsort(-mean, axis=1, kind="stable")[:, :n_objects].astype(np.int64)


@dataclass(frozen=True, slots=True)
class BothWaysResult:
    """P@1 on the test facts without and with the backward probability, between 0 and 1.

    n_train, n_test: facts; of the training facts those whose gold was among the objects.
    """

    relation: str
    templates: tuple[str, ...]
    forward: float
    both: float
    n_train: int
    n_test: int


def measure_both_ways(
    model: BlankFiller,
    train: AskedFacts,
    test: AskedFacts,
    prompts: Sequence[Prompt],
    *,
    n_objects: int = N_OBJECTS,
    on_fact: Callable[[int, int], None] | None = None,
) -> BothWaysResult:
    """What the backward probability adds to a few prompts of one relation.

    Costs a pass for each prompt, fact, object and piece of the subject, so few prompts and facts
    are meant. Raises UserError when no training gold is among the objects.
    """
    features = []
    for asked in (train, test):
        forward = _forward(model, asked, prompts)
        best = best_objects(forward, n_objects)
        chosen = np.take_along_axis(forward, best[None], axis=2)
        features.append(score_both_ways(model, asked, prompts, best, chosen, on_fact=on_fact))
    on_train, on_test = features
    n_train = int((on_train.gold >= 0).sum())
    if not n_train:
        raise UserError(
            f"{train.relation.name}: no training fact has its object among the {n_objects} best: "
            "give more objects, or better prompts."
        )
    right = [
        right_both_ways(on_test, fit_both_ways(on_train, backward=backward).weights).mean()
        for backward in (False, True)
    ]
    return BothWaysResult(
        train.relation.name,
        tuple(prompt.template for prompt in prompts),
        float(right[0]),
        float(right[1]),
        n_train,
        len(test.facts),
    )


def _forward(model: BlankFiller, asked: AskedFacts, prompts: Sequence[Prompt]) -> Floats:
    """Log-probabilities of all candidates, float32 [prompt, fact, candidate]."""
    scores = np.empty((len(prompts), len(asked.facts), len(asked.columns.words)), np.float32)
    for number, prompt in enumerate(prompts):
        for block in score_cloze(model, asked.queries(prompt), asked.columns, context="both"):
            scores[number, block.indices] = block.log_probs
    return scores
