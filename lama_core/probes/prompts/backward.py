"""Forward plus backward probability: also predict the subject from the object.

    s(y) = sum_i w_i log P(y | x, t_i) + sum_i v_i log P(x | y, t_i)

where w and v together are the softmax of theta, fitted like the optimised ensemble. The backward
probability is computed only for the B most probable objects of the forward probability.
log P(x | y, t) of a subject of several subword tokens is the mean of the tokens' log-probabilities,
all masked at once.

Source: Jiang et al. 2020, section 6.2, and its released scripts (B = 5).

Departure: Backward probability
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.candidates.columns import Candidates
from lama_core.errors import UserError
from lama_core.models.cache import load_model
from lama_core.models.protocols import KINDS, BlankFiller, WordMasker
from lama_core.probes.prompts.ensemble import combine_log_linear, fit_weights
from lama_core.probes.prompts.fact_queries import PreparedFacts, make_prepared_facts
from lama_core.probes.prompts.selection import prompts_by_accuracy
from lama_core.probes.prompts.spec import find_study
from lama_core.probes.prompts.study import RelationStudy
from lama_core.progress import Progress
from lama_core.requests import Function, Request, argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.batches import score_cloze
from lama_core.scoring.ranking import Floats, Ints
from lama_core.types import Prompt, Query

N_OBJECTS = 5


@dataclass(frozen=True)
class BothWays:
    """Forward and backward log-probabilities of the most probable objects.

    log_probs: Float32 [feature, fact, object]; the features are the forward log-probability of each
    prompt, then the backward log-probability of each prompt. gold: Position of the gold answer
    among the objects, int64 [fact]; -1 if missing.
    """

    log_probs: Floats
    gold: Ints


def score_both_ways(
    model: BlankFiller,
    asked: PreparedFacts,
    prompts: Sequence[Prompt],
    best: Ints,
    forward: Floats,
    *,
    on_fact: Callable[[int, int], None] = lambda *_: None,
) -> BothWays:
    """Return the forward and backward log-probabilities of each fact's best objects.

    best: Columns of the best objects, int64 [fact, object]. forward: Log-probabilities, float32
    [prompt, fact, candidate]. The backward log-probability is that of the fact's subject given an
    object; it is 0 for a subject that the model has no tokens for.
    """
    if not isinstance(model, WordMasker):
        raise UserError(
            f"{model.name} fills a blank token by token and can't mask a whole subject at once. "
            "Choose the study of a masked model."
        )
    backward = np.empty((len(prompts), *best.shape), np.float32)
    for number, fact in enumerate(asked.facts):
        scores = model.masked_word_log_probs(
            [
                (ask_backward(prompt, asked.columns.words[column]), fact.subject)
                for prompt in prompts
                for column in best[number]
            ]
        )
        backward[:, number] = np.reshape(
            [score.log_prob / len(score.pieces) for score in scores], (len(prompts), -1)
        )
        on_fact(number + 1, len(asked.facts))
    backward[~np.isfinite(backward)] = 0  # a token of the subject is unknown, for all objects
    chosen = np.take_along_axis(forward, best[None], axis=2)
    is_gold = best == asked.gold[:, None]
    gold = np.where(is_gold.any(axis=1), is_gold.argmax(axis=1), -1)
    return BothWays(np.concatenate([chosen, backward]), gold)


def ask_backward(prompt: Prompt, obj: str) -> Query:
    """Return the template with the object filled in and a blank for the subject."""
    left, right = prompt.template.split("[X]")
    return Query((left.replace("[Y]", obj), right.replace("[Y]", obj)))


def right_both_ways(features: BothWays, weights: Floats) -> NDArray[np.bool_]:
    """Return whether the gold answer is first, bool [fact]; False if not among the objects."""
    return np.asarray(
        np.tensordot(weights, features.log_probs, axes=1).argmax(axis=1) == features.gold
    )


def best_objects(scores: Floats, n_objects: int, gold: Ints | None = None) -> Ints:
    """Return the columns of the highest scores, best first, int64 [fact, object].

    scores: Float32 [fact, candidate]. gold: Columns of the gold answers, int64 [fact]; a gold
    answer that isn't among the highest replaces the last of them.
    """
    best = np.argsort(-scores, axis=1, kind="stable")[:, :n_objects].astype(np.int64)
    if gold is not None:
        missing = ~(best == gold[:, None]).any(axis=1)
        best[missing, -1] = gold[missing]
    return best


@dataclass(frozen=True, slots=True)
class BothWaysResult:
    """P@1 on the test facts, 0 to 1: `forward` over all candidates, and `both` ways."""

    relation: str
    templates: tuple[str, ...]
    forward: float
    both: float
    n_train: int
    n_test: int


def measure_relation(
    model: BlankFiller,
    study: RelationStudy,
    candidates: Candidates,
    combination: str,
    *,
    n_prompts: int,
    n_facts: int,
    **options: Any,
) -> BothWaysResult:
    """Measure the prompts of a set that are best on the training facts (`measure_both_ways`).

    n_facts: maximum number of training facts, and of test facts.
    """
    best = prompts_by_accuracy(study.pool, combination, study.train_accuracies)[:n_prompts]
    prompts = [study.pool.prompts[number] for number in best]
    train, test = (
        make_prepared_facts(
            study.relation,
            facts[:n_facts],
            candidates,
            model,
            "both",
            template=prompts[0].template,
        )
        for facts in (study.train, study.test)
    )
    return measure_both_ways(model, train, test, prompts, **options)


def measure_both_ways(
    model: BlankFiller,
    train: PreparedFacts,
    test: PreparedFacts,
    prompts: Sequence[Prompt],
    *,
    n_objects: int = N_OBJECTS,
    on_fact: Callable[[int, int], None] = lambda *_: None,
) -> BothWaysResult:
    """Measure P@1 of a few prompts of one relation, without and with backward probability.

    A training fact's objects are the candidates with the highest mean log-probability over the
    prompts, and always the gold answer. A test fact's objects are the candidates with the highest
    forward score under the fitted weights. Runs the model once per prompt, fact and object.
    on_fact: called after each fact with the number done and the total.
    """
    score = partial(score_both_ways, model, prompts=prompts, on_fact=on_fact)
    on_train, on_test = (_forward(model, asked, prompts) for asked in (train, test))
    forward_weights = fit_weights(on_train, train.gold).weights
    right_forward = combine_log_linear(on_test, forward_weights).argmax(axis=1) == test.gold
    best = best_objects(on_train.mean(axis=0), n_objects, train.gold)
    features = score(asked=train, best=best, forward=on_train)
    weights = fit_weights(features.log_probs, features.gold).weights
    best = best_objects(np.tensordot(weights[: len(prompts)], on_test, axes=1), n_objects)
    right = right_both_ways(score(asked=test, best=best, forward=on_test), weights)
    accuracies = float(right_forward.mean()), float(right.mean())
    templates = tuple(prompt.template for prompt in prompts)
    return BothWaysResult(
        train.relation.name, templates, *accuracies, len(train.facts), len(test.facts)
    )


def _forward(model: BlankFiller, asked: PreparedFacts, prompts: Sequence[Prompt]) -> Floats:
    """Return log-probabilities of all candidates, float32 [prompt, fact, candidate]."""
    scores = np.empty((len(prompts), len(asked.facts), len(asked.columns.words)), np.float32)
    for number, prompt in enumerate(prompts):
        for block in score_cloze(model, asked.queries(prompt), asked.columns, context="both"):
            scores[number, block.indices] = block.log_probs
    return scores


@dataclass(frozen=True, kw_only=True)
class BothWaysRequest(Request, command="prompts both-ways", python="both_ways"):
    """The fields of `prompts both-ways`."""

    study: Annotated[str, argument("Name or folder of a study.")] = field(kw_only=False)
    relations: shared_fields.Relations = ()
    n_prompts: Annotated[
        int, option("Number of most accurate prompts to use.", name="--prompts", ge=1)
    ] = 3
    n_objects: Annotated[
        int, option("Number of most probable objects to query backward.", name="--objects", ge=1)
    ] = N_OBJECTS
    n_facts: Annotated[
        int, option("Maximum number of training facts, and of test facts.", name="--facts", ge=1)
    ] = 30


def _both_ways(request: BothWaysRequest) -> list[dict[str, Any]]:
    study = find_study(request.study)
    model = load_model(
        study.info.model, precision=study.info.precision, on_progress=request.on_progress
    )
    if not KINDS[model.kind].sees_both:
        raise UserError(
            f"{model.name} can't use the text after a blank. Choose the study of a masked model."
        )
    rows = []
    for name in request.relations or study.relations:

        def report(done: int, total: int, stage: str = f"{name}: querying backward") -> None:
            request.on_progress(Progress(stage, done, total))

        found = measure_relation(
            model,
            study.relation(name),
            study.candidates,
            "all",
            n_prompts=request.n_prompts,
            n_facts=request.n_facts,
            n_objects=request.n_objects,
            on_fact=report,
        )
        rows.append(asdict(found))
    return rows


both_ways = Function(
    BothWaysRequest,
    _both_ways,
    pd.DataFrame,
    """Measure P@1 with and without adding the log-probability of the subject given the object.

    Returns:
        A DataFrame with a row for each relation: accuracy forward, and forward and backward.

    Raises:
        UserError: If the study is missing, or its model isn't a masked model.
    """,
)
