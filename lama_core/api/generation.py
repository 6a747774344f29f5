"""Free-form answers: one question, or a run over a dataset's facts."""

from lama_core.api.queries import frame_of
from lama_core.api.runs import Runs, loader, run_planned
from lama_core.models.generators import GENERATING_KINDS
from lama_core.models.server.addresses import is_chat
from lama_core.models.sources.catalog import find_model
from lama_core.probes.cloze.query import GOLD_SEPARATOR
from lama_core.probes.generation import plan
from lama_core.probes.generation.ask import (
    DEFAULT_MODEL,
    MOST_TOKENS,
    AskAnswer,
    AskRequest,
    ModelText,
    ask_model,
    ask_models,
)
from lama_core.probes.generation.plan import MAX_SHOTS, GenerateRequest
from lama_core.probes.generation.spec import MAX_TOKENS
from lama_core.requests import Function
from lama_core.scoring.shared_fields import load_models


def can_generate(name: str) -> bool:
    """Return whether a model's kind can generate text; True if the kind is unknown."""
    kind = find_model(name).kind
    return kind is None or kind in GENERATING_KINDS


def only_generates(name: str) -> bool:
    """Return whether a model gives texts but no scores, as chat servers do."""
    return is_chat(name)


def _ask(request: AskRequest) -> AskAnswer:
    models = load_models(request, request.on_progress)
    for model in models:
        for note in model.notes:
            request.on_note(f"{model.name}: {note}")
    return ask_models(request, models)


ask = Function(
    AskRequest,
    _ask,
    frame_of,
    """Ask a question in free text, and compare the models' answers.

    Instruct models get the question in their chat template, others as `Question: ... Answer:`. The
    answer is generated greedily and ends at the first line break.

    Returns:
        A DataFrame with a row for each model: text, log-probability (natural log, of all tokens
        together) and, with right answers, the verdict `match`, `no match` or `no answer`.

    Raises:
        UserError: If a model can't generate text, or the question doesn't fit its window.
    """,
)


def _generate(request: GenerateRequest) -> Runs:
    return run_planned(request, plan.plan(request, load=loader(request)))


generate = Function(
    GenerateRequest,
    _generate,
    lambda runs: runs,
    """Ask models questions about a dataset's facts, in free text; make a run for each model.

    A text is right if it contains the right answer or one of its aliases.

    Returns:
        The runs; `.frame` has a row for each model and fact, with the text in `answer`.

    Raises:
        UserError: If a model can't generate text, or a relation has too few facts for the examples.
    """,
)

__all__ = [
    "DEFAULT_MODEL",
    "GOLD_SEPARATOR",
    "MAX_SHOTS",
    "MAX_TOKENS",
    "MOST_TOKENS",
    "AskAnswer",
    "AskRequest",
    "GenerateRequest",
    "ModelText",
    "ask",
    "ask_model",
    "can_generate",
    "generate",
]
