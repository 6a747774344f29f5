"""The app's queries to one model each: its answers, and the models that are loaded.

`process.ScoringProcess` runs these functions in another process: arguments and results can be
pickled, except functions, which are keyword arguments. `answer_query` runs one of them for a
visitor.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lama_core.candidates.columns import Candidates
from lama_core.models import devices
from lama_core.models.cache import CACHE, CachedModel, Precision, load_model
from lama_core.models.sources.catalog import find_model
from lama_core.progress import OnProgress, ignore, report_step, reporting, reporting_steps
from lama_core.queries.blank_answers import extended_words
from lama_core.queries.kind import NO_CANDIDATES, Asked, Calls
from lama_core.queue import PASSES, LoadQueue, nothing
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import load_page_limits
from lama_core.scoring.shared_fields import (
    CandidateSettings,
    ModelSettings,
    choose_candidates,
)
from lama_core.types import Fact, Relation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lama_core.models.protocols import Context
    from lama_core.probes.prompts.accuracy_growth import PromptTrial
    from lama_core.probes.prompts.fact_queries import PreparedFacts
    from lama_core.scoring.ranking import Ranking

Answer = TypeVar("Answer")
LOADS = LoadQueue()


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whom a query is for.

    Attributes:
        address: The visitor's network address; "" for the local user.
        loading: Seconds that the query waits for a model to be loaded.
        check: Called before forward passes of transformers, and regularly while a page waits for
            the scoring process; an exception from it ends the query.
    """

    address: str = ""
    loading: float = math.inf
    check: Callable[[], object] = nothing


LOCAL = Visitor()
MAX_CANDIDATES = 16
_candidates: dict[CandidateSettings, Candidates] = {}
_choosing = threading.Lock()
_visitor: ContextVar[Visitor] = ContextVar("visitor", default=LOCAL)


def answer_query(
    visitor: Visitor,
    query: Callable[..., Answer],
    arguments: Sequence[Any],
    options: dict[str, Any],
) -> Answer:
    """Return `query(*arguments, **options)`; its forward passes are those of one query."""
    before = _visitor.set(visitor)
    try:
        with PASSES.query(visitor.check):
            return query(*arguments, **options)
    finally:
        _visitor.reset(before)


def loaded_model(name: str, precision: Precision, until: float | None = None) -> Any:
    """A model, loaded if necessary; a load waits its turn if the visitor's time is limited.

    Args:
        name: The model.
        precision: The model's precision.
        until: The deadline, on the clock of `time.monotonic`; by default the time limit from now.

    Raises:
        UserError: If the model can't be loaded, or isn't loaded before the deadline.
    """
    load = partial(load_model, name, precision=precision, on_progress=report_step)
    visitor = _visitor.get()
    if math.isinf(visitor.loading) or _is_loaded(name, precision):
        return load()
    return LOADS.run(
        load,
        partial(_is_loaded, name, precision),
        name=find_model(name).title,
        address=visitor.address,
        seconds=visitor.loading if until is None else max(0.0, until - time.monotonic()),
    )


def _is_loaded(name: str, precision: Precision) -> bool:
    return CACHE.identity(name, precision) is not None


def candidates_of(request: CandidateSettings) -> Candidates:
    """The candidates of a request's models together, with their columns after a space.

    Queries that need the same candidates at the same time wait until one query has made them.
    """
    settings = request.ranked
    found = _candidates.get(settings)
    if found is None:
        settings.check()
        until = time.monotonic() + _visitor.get().loading
        models = [loaded_model(name, settings.precision, until) for name in settings.models]
        with _choosing:  # not while a model is loaded
            found = _candidates.get(settings)
            if found is None:
                found = choose_candidates(settings, models)
                for model in models:
                    found.columns(model.vocabulary)  # cached
                _candidates[settings] = found
                for oldest in list(_candidates)[:-MAX_CANDIDATES]:
                    del _candidates[oldest]
    return found


def answer(
    request: ModelSettings,
    name: str,
    shared: Any,
    *,
    on_progress: OnProgress = ignore,
    on_first: Callable[[Any], object] | None = None,
) -> Any:
    """One model's answer to a query of any kind.

    Args:
        request: The query; its models together determine the candidates.
        name: The model; one of the request's models.
        shared: What the kind's `prepare` made of the request.
        on_progress: Called with each step.
        on_first: Called with a preliminary answer, by kinds that have one.
    """
    from lama_core.queries.table import kind_of

    with reporting(on_progress), reporting_steps(on_progress):
        candidates = NO_CANDIDATES
        if isinstance(request, CandidateSettings):
            candidates = candidates_of(request)
        model = loaded_model(name, request.precision)
        calls = Calls(load_page_limits(), on_progress, on_first)
        kind = kind_of(request)
        kind.check_model(model)
        return kind.answer(model, Asked(request, shared, candidates), calls)


def complete_words(
    model: str, precision: Precision, folded: bool, queries: tuple[str, ...], words: tuple[str, ...]
) -> list[str | None]:
    """Complete the answers of a model that are only the beginning of a word.

    Args:
        model: The model's name.
        precision: The model's precision.
        folded: Whether the words are lower-cased.
        queries: The queries.
        words: The answer to each query.

    Returns:
        The completed word for each query; None if the answer is a complete word.
    """
    loaded, parsed = loaded_model(model, precision), list(map(parse_query, queries))
    return extended_words(loaded, parsed, words, folded=folded)


def prompt_facts(
    name: str,
    precision: Precision,
    relation: Relation,
    facts: Sequence[Fact],
    candidates: Candidates,
    context: "Context",
    *,
    template: str,
    known: Sequence[Fact] | None,
) -> "PreparedFacts":
    """Facts prepared for trying prompts on a model; arguments as for `make_prepared_facts`."""
    from lama_core.probes.prompts.fact_queries import make_prepared_facts

    return make_prepared_facts(
        relation,
        facts,
        candidates,
        loaded_model(name, precision),
        context,
        template=template,
        known=known,
    )


def extended_trial(
    name: str,
    precision: Precision,
    trial: "PromptTrial",
    facts: "PreparedFacts",
    context: "Context",
    ranking: "Ranking",
    *,
    n_facts: int,
    order: Sequence[int],
) -> "PromptTrial":
    """The trial of a prompt on a model with `n_facts` more facts; arguments as in the library."""
    from lama_core.probes.prompts import accuracy_growth

    return accuracy_growth.extended_trial(
        trial, loaded_model(name, precision), facts, context, ranking, n_facts=n_facts, order=order
    )


def has_word_vectors(name: str) -> bool:
    """Whether a model has input embeddings of words."""
    return hasattr(loaded_model(name, "auto"), "word_vectors")


def word_vectors(name: str, words: Sequence[str]) -> "NDArray[np.float32]":
    """A model's input embeddings of words, float32 [word, dim]."""
    return cast("NDArray[np.float32]", loaded_model(name, "auto").word_vectors(words))


def loaded_models() -> tuple[tuple[CachedModel, ...], int, int]:
    """The loaded models, their bytes in CPU memory, and the maximum of these."""
    return CACHE.held(), CACHE.n_bytes, CACHE.max_bytes


def identities(models: Sequence[tuple[str, str]]) -> list[str | None]:
    """The identity of each loaded model, given by name and precision."""
    return [CACHE.identity(name, precision) for name, precision in models]


def drop_model(model: CachedModel) -> None:
    """Unload a model."""
    CACHE.drop(model.name, model.precision, model.device)


def use_device(name: str) -> None:
    """Unload all models, and load them on this device from now on."""
    devices.use_device(name)
    for model in CACHE.held():
        drop_model(model)
