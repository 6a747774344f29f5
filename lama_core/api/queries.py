"""Query models with one text or file: cloze, ranked answers, sentences, analogies, inspection.

Log-probabilities are natural logarithms. Models stay in memory between calls.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import named_candidates
from lama_core.datasets import load_questions
from lama_core.files import read_file as read_bytes
from lama_core.files import user_path
from lama_core.models.protocols import KINDS as KINDS
from lama_core.models.protocols import TracedPart as TracedPart
from lama_core.probes.analogy.multiple_choice import QuestionAnswer as QuestionAnswer
from lama_core.probes.analogy.multiple_choice import QuestionsAnswer as QuestionsAnswer
from lama_core.probes.analogy.multiple_choice import QuestionsRequest, answer_questions
from lama_core.probes.analogy.multiple_choice import Share as Share
from lama_core.progress import ignore
from lama_core.queries.analogy import Solution as Solution
from lama_core.queries.analogy_templates import DEFAULT_TEMPLATE as DEFAULT_TEMPLATE
from lama_core.queries.batch import MAX_BYTES, BatchLine, ManyRequest, fill_lines, read_file
from lama_core.queries.batch import BatchAnswer as BatchAnswer
from lama_core.queries.batch import BatchModelAnswers as BatchModelAnswers
from lama_core.queries.batch_texts import generate_lines
from lama_core.queries.blank_answers import BlankAnswer as BlankAnswer
from lama_core.queries.blank_answers import Prediction as Prediction
from lama_core.queries.lenses.layers import ModelLayers as ModelLayers
from lama_core.queries.lenses.lens import TRACKED_ANSWER as TRACKED_ANSWER
from lama_core.queries.lenses.lens import LensResult as LensResult
from lama_core.queries.lenses.logit import ModelLogit as ModelLogit
from lama_core.queries.lenses.table import LENSES as LENSES
from lama_core.queries.lenses.table import InspectRequest as InspectRequest
from lama_core.queries.lenses.table import inspect_model as inspect_model
from lama_core.queries.lenses.tokens import AS_NEEDED as AS_NEEDED
from lama_core.queries.lenses.tokens import ATTRIBUTION_METHODS as ATTRIBUTION_METHODS
from lama_core.queries.lenses.tokens import ModelAttribution as ModelAttribution
from lama_core.queries.lenses.trace import ModelTrace as ModelTrace
from lama_core.requests import Function
from lama_core.scoring.shared_fields import ClozeSettings, load_models
from lama_core.scoring.shared_fields import ModelSettings as ModelSettings

if TYPE_CHECKING:
    import pandas as pd

    from lama_core.models.registry import Model


class _HasRows(Protocol):
    def rows(self) -> list[dict[str, object]]:
        """Return the rows of the answer's table."""


def frame_of(answer: _HasRows) -> "pd.DataFrame":
    """Return an answer's rows as a DataFrame."""
    import pandas as pd  # slow to import (0.4 s), and not needed by the command line

    return pd.DataFrame(answer.rows())


def _load_with_words(
    request: ClozeSettings | InspectRequest,
) -> "tuple[tuple[Model, ...], Candidates]":
    models = load_models(request)
    return models, named_candidates(request.candidates, [model.vocabulary for model in models])


def _options(request: ClozeSettings, *more: str) -> dict[str, Any]:
    names = ("context", "renormalise", "n_rescored", *more)
    return {name: getattr(request, name) for name in names}


def query_lines(
    model: "Model", lines: Sequence[BatchLine], candidates: Candidates, **options: Any
) -> BatchModelAnswers:
    """Return one model's answers to the lines of a batch; a chat server's answers are free texts.

    options: arguments of `fill_lines`; a chat server uses only `on_progress`.
    """
    if hasattr(model, "generate"):
        return generate_lines(model, lines, options.get("on_progress", ignore))
    return fill_lines(model, lines, candidates, **options)


def _batch(request: ManyRequest) -> BatchAnswer:
    if request.file == "-":
        data, name = sys.stdin.buffer.read(MAX_BYTES + 1), "Standard input"
    else:
        path = user_path(request.file)
        data, name = read_bytes(path, MAX_BYTES), path.name
    lines = read_file(data, name, form=request.format, models=request.models)
    models, words = _load_with_words(request)
    answers = [
        query_lines(model, lines, words, **_options(request, "on_progress")) for model in models
    ]
    return BatchAnswer(lines, words, tuple(answers))


batch = Function(
    ManyRequest,
    _batch,
    frame_of,
    """Fill the blank of each sentence of a file; chat servers also answer questions.

    Returns:
        A DataFrame with a row for each model and line: its first prediction, and the rank of the
        gold answer; for a chat server its text, and whether it contains the gold answer.

    Raises:
        UserError: If the file can't be read or has no sentences, or a model is unknown.
    """,
)


def _analogy_questions(request: QuestionsRequest) -> QuestionsAnswer:
    dataset = load_questions(request.dataset)
    if dataset.report.dropped:
        request.on_note(dataset.report.summary())
    return answer_questions(load_models(request), dataset, request)


analogy_questions = Function(
    QuestionsRequest,
    _analogy_questions,
    frame_of,
    """Answer multiple-choice analogy questions (SAT, U2, U4) by the likelihood of the analogies.

    The choice is the pair that `score_analogies` ranks first. Nothing is saved.

    Returns:
        A DataFrame with a row for each model and question: the chosen pair, the right one and its
        rank, and whether the choice with the most frequent words is right.

    Raises:
        UserError: If there are no such questions, or a model is unknown.
    """,
)


def frames(tables: Sequence["pd.DataFrame"]) -> "pd.DataFrame":
    """Concatenate tables and renumber their rows; an empty table for an empty list."""
    import pandas as pd  # slow to import

    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
