"""Multiple-choice analogy questions."""

from typing import TYPE_CHECKING

from lama_core.datasets import load_questions
from lama_core.probes.analogy.multiple_choice import QuestionAnswer as QuestionAnswer
from lama_core.probes.analogy.multiple_choice import QuestionsAnswer as QuestionsAnswer
from lama_core.probes.analogy.multiple_choice import QuestionsRequest, answer_questions
from lama_core.probes.analogy.multiple_choice import Share as Share
from lama_core.requests import Function
from lama_core.scoring.shared_fields import load_models

if TYPE_CHECKING:
    import pandas as pd


def _frame(answer: QuestionsAnswer) -> "pd.DataFrame":
    import pandas as pd  # slow to import

    return pd.DataFrame(answer.rows())


def _analogy_questions(request: QuestionsRequest) -> QuestionsAnswer:
    dataset = load_questions(request.dataset)
    if dataset.report.dropped:
        request.on_note(dataset.report.summary())
    return answer_questions(load_models(request), dataset, request)


analogy_questions = Function(
    QuestionsRequest,
    _analogy_questions,
    _frame,
    """Answer multiple-choice analogy questions (SAT, U2, U4) by the likelihood of the analogies.

    The choice is the pair that `score_analogies` ranks first. Nothing is saved.

    Returns:
        A DataFrame with a row for each model and question: the chosen pair, the right one and its
        rank, and whether the choice with the most frequent words is right.

    Raises:
        UserError: If there are no such questions, or a model is unknown.
    """,
)
