"""Multiple-choice analogy questions, and what the pages take of the kinds of query."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from lama_core.datasets import load_questions
from lama_core.models.protocols import KINDS as KINDS
from lama_core.models.protocols import TracedPart as TracedPart
from lama_core.probes.analogy.multiple_choice import QuestionAnswer as QuestionAnswer
from lama_core.probes.analogy.multiple_choice import QuestionsAnswer as QuestionsAnswer
from lama_core.probes.analogy.multiple_choice import QuestionsRequest, answer_questions
from lama_core.probes.analogy.multiple_choice import Share as Share
from lama_core.queries.analogy import Solution as Solution
from lama_core.queries.analogy_templates import DEFAULT_TEMPLATE as DEFAULT_TEMPLATE
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
from lama_core.scoring.shared_fields import ModelSettings as ModelSettings
from lama_core.scoring.shared_fields import load_models

if TYPE_CHECKING:
    import pandas as pd


class _HasRows(Protocol):
    def rows(self) -> list[dict[str, object]]:
        """Return the rows of the answer's table."""


def frame_of(answer: _HasRows) -> "pd.DataFrame":
    """Return an answer's rows as a DataFrame."""
    import pandas as pd  # slow to import (0.4 s), and not needed by the command line

    return pd.DataFrame(answer.rows())


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
