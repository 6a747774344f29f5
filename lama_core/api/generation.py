"""Free-form answers: one question, or a run over a dataset's facts."""

from lama_core.api.queries import frame_of
from lama_core.api.runs import Runs, loader, run_planned
from lama_core.models.generators import GENERATING_KINDS, check_generates
from lama_core.models.server.addresses import is_chat as is_chat
from lama_core.models.sources.catalog import find_model
from lama_core.probes.generation import plan
from lama_core.probes.generation.plan import GenerateRequest as GenerateRequest
from lama_core.queries.blank_answers import GOLD_SEPARATOR as GOLD_SEPARATOR
from lama_core.queries.question import DEFAULT_MODEL as DEFAULT_MODEL
from lama_core.queries.question import MOST_TOKENS as MOST_TOKENS
from lama_core.queries.question import AskAnswer as AskAnswer
from lama_core.queries.question import AskRequest as AskRequest
from lama_core.queries.question import ModelText as ModelText
from lama_core.queries.question import ask_model as ask_model
from lama_core.queries.question_prompts import MAX_TOKENS as MAX_TOKENS
from lama_core.requests import Function
from lama_core.scoring.shared_fields import load_models


def can_generate(name: str) -> bool:
    """Return whether a model's kind can generate text; True if the kind is unknown."""
    kind = find_model(name).kind
    return kind is None or kind in GENERATING_KINDS


def _ask(request: AskRequest) -> AskAnswer:
    models = load_models(request)
    for model in models:
        check_generates(model)
    return AskAnswer(request, tuple(ask_model(model, request) for model in models))


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

    A text is right if whole words of it are the right answer or one of its aliases.

    Returns:
        The runs; `.frame` has a row for each model and fact, with the text in `answer`.

    Raises:
        UserError: If a model can't generate text, or a relation has too few facts for the examples.
    """,
)
