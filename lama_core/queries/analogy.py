"""Solve an analogy with a missing word, with several models and with vector arithmetic.

Vector arithmetic uses each model's input embeddings, normalised to length 1. For a blank at D:

    3CosAdd   argmax  cos(x, B - A + C)
    3CosMul   argmax  cos(x, B) cos(x, C) / (cos(x, A) + 0.001)     cosines shifted to [0, 1]

For a blank at A, B or C the terms follow from B - A = D - C. A word of several subword tokens has
the mean of their vectors (ours).
Source: Mikolov et al. 2013; Levy and Goldberg 2014.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import Candidates, Columns
from lama_core.candidates.spelling import Vocabulary, places_of
from lama_core.errors import UserError
from lama_core.models.protocols import BlankFiller
from lama_core.queries.analogy_templates import (
    DEFAULT_TEMPLATE,
    TEMPLATE_HELP,
    AnalogyQuestion,
    make_analogy_question,
    parse_analogy,
)
from lama_core.queries.blank_answers import (
    ModelAnswer,
    answer_json,
    candidates_json,
    describe_gold,
    describe_ranked,
    query_model,
    tables_of_blank,
)
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.requests import argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.tables import Column, Table

ArithmeticMethod = Literal["3CosAdd", "3CosMul"]
ARITHMETIC_METHODS: tuple[ArithmeticMethod, ...] = get_args(ArithmeticMethod)
EPSILON = 0.001
# For each position of the blank: the two words to add, and the word to subtract.
TERMS = {0: (1, 2, 3), 1: (0, 3, 2), 2: (3, 0, 1), 3: (1, 2, 0)}


@runtime_checkable
class WordEmbedder(Protocol):
    """A model that gives access to its input embeddings."""

    name: str

    @property
    def vocabulary(self) -> Vocabulary:
        """The model's tokens as words."""

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return input embeddings, float32 [word, dim]; the mean over a word's subword tokens."""

    def word_matrix(self, columns: Columns) -> NDArray[np.float32]:
        """Return the input embeddings of the candidates, float32 [candidate, dim]."""


@dataclass(frozen=True, kw_only=True)
class SolveRequest(shared_fields.ClozeSettings, command="analogy solve", python="analogy"):
    """An analogy with a blank to fill: the fields of `analogy solve`."""

    text: Annotated[
        Sequence[str],
        argument(
            "A sentence with a blank (___, [MASK], <mask>, [Y]), or four words, one of them a "
            "blank."
        ),
    ] = field(kw_only=False)
    template: Annotated[
        str | None, option(f"For four words: {TEMPLATE_HELP} Default: {DEFAULT_TEMPLATE}.")
    ] = None
    keep_query_words: Annotated[bool, option("Allow the three given words as answers.")] = False
    top_k: shared_fields.TopK = 5
    gold: shared_fields.Gold = None
    renormalise: shared_fields.Renormalise = False

    def question(self) -> AnalogyQuestion:
        """Return the analogy. Raises UserError unless exactly one word is missing."""
        if len(self.text) != 1:
            return make_analogy_question(self.text, self.template or DEFAULT_TEMPLATE)
        if self.template is not None:
            raise UserError(
                "A template can't be used with a sentence. Give four words, or omit the template."
            )
        return parse_analogy(self.text[0])


@dataclass(frozen=True, slots=True)
class VectorPrediction:
    """One answer of vector arithmetic. score: a cosine, or a ratio of cosines; higher is better."""

    rank: int
    token: str
    score: float


@dataclass(frozen=True, slots=True)
class VectorAnswer:
    """The answers of vector arithmetic on one model's input embeddings.

    gold_rank: Rank of the gold answer; None if no answer was given or it isn't a candidate.
    """

    name: str
    method: ArithmeticMethod
    predictions: tuple[VectorPrediction, ...]
    gold_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Solution(AboutModel):
    """One model's answers to an analogy, and those of vector arithmetic on its embeddings."""

    answer: ModelAnswer
    baselines: tuple[VectorAnswer, ...]


@dataclass(frozen=True, slots=True)
class AnalogyRow:
    """One answer of a model, or of vector arithmetic on its input embeddings."""

    method: Annotated[str, Column("model, 3CosAdd or 3CosMul.")]
    rank: Annotated[int | None, Column("Rank among the candidates; None if it isn't one.")]
    word: Annotated[str, Column("The word.")]
    prob: Annotated[float | None, Column("Its probability.")]
    log_prob: Annotated[float | None, Column("Its natural log-probability.")]
    score: Annotated[float | None, Column("A cosine, or a ratio of cosines.")]
    begins: Annotated[str | None, Column("The longer word that it starts, if any.")] = None
    not_ranked: Annotated[str, Column("Why the first answer isn't a candidate; else empty.")] = ""


def solve(
    model: BlankFiller,
    question: AnalogyQuestion,
    candidates: Candidates,
    request: SolveRequest,
    limits: Limits = UNLIMITED,
) -> Solution:
    """Return one model's best words for the blank.

    Args:
        model: The model.
        question: The analogy.
        candidates: The candidates; the three given words are excluded unless the request keeps
            them, as is usual in vector arithmetic since Mikolov et al. 2013.
        request: The options.
        limits: Limits on the cost.

    Raises:
        UserError: If the text doesn't fit a model, or no candidate is left.
    """
    words = frozenset(word.lower() for word in question.given)
    if words and not request.keep_query_words:
        candidates = replace(candidates, excluded=words)
    columns = candidates.columns(model.vocabulary, places_of(question.query))
    answer = query_model(
        model,
        question.query,
        candidates,
        top_k=request.top_k,
        gold=request.gold,
        context=request.context,
        renormalise=request.renormalise,
        n_rescored=request.n_rescored,
        columns=columns,
        limits=limits,
    )
    baselines: list[VectorAnswer] = []
    if question.words and isinstance(model, WordEmbedder):
        baselines = [
            vector_answer(model, question, columns, method, top_k=request.top_k, gold=request.gold)
            for method in ARITHMETIC_METHODS
        ]
    return Solution(answer=answer, baselines=tuple(baselines), **model_fields(model))


def vector_answer(
    model: WordEmbedder,
    question: AnalogyQuestion,
    columns: Columns,
    method: ArithmeticMethod,
    *,
    top_k: int = 5,
    gold: str | None = None,
) -> VectorAnswer:
    """Answer an analogy by vector arithmetic on a model's input embeddings.

    Of candidates with equal scores, the earlier one ranks higher. question: Not free text.
    """
    given = [word or "" for word in question.words or ()]
    plus_1, plus_2, minus = (given[number] for number in TERMS[given.index("")])
    vectors = _unit(model.word_vectors([plus_1, plus_2, minus]))
    scores = arithmetic_scores(_unit(model.word_matrix(columns)), vectors, method)
    order = np.argsort(-scores, kind="stable")
    predictions = tuple(
        VectorPrediction(rank, columns.words[column], float(scores[column]))
        for rank, column in enumerate(order[:top_k].tolist(), start=1)
    )
    column = columns.find(gold.strip()) if gold else None
    gold_rank = 1 + int(np.flatnonzero(order == column)[0]) if isinstance(column, int) else None
    return VectorAnswer(model.name, method, predictions, gold_rank)


def arithmetic_scores(
    candidates: NDArray[np.float32], vectors: NDArray[np.float32], method: ArithmeticMethod
) -> NDArray[np.float32]:
    """Return the score of each candidate, float32 [candidate]; higher is better.

    candidates: unit vectors, float32 [candidate, dim]. vectors: unit vectors of the two words to
    add and of the word to subtract, float32 [3, dim].
    """
    if method == "3CosAdd":
        target = vectors[0] + vectors[1] - vectors[2]
        length = float(np.linalg.norm(target)) or 1.0
        return ((candidates @ target) / length).astype(np.float32)
    shifted = (candidates @ vectors.T + 1) / 2
    return (shifted[:, 0] * shifted[:, 1] / (shifted[:, 2] + EPSILON)).astype(np.float32)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


AnalogyAsked = Asked[SolveRequest, AnalogyQuestion]
AnalogyAnswers = Answer[SolveRequest, AnalogyQuestion, Solution]


class AnalogyKind(QueryKind[SolveRequest, AnalogyQuestion, Solution]):
    """An analogy with a missing word."""

    name = "analogy"
    example = 'analogy solve "Tokyo is to Japan as Paris is to ___"'
    row = AnalogyRow
    answer_field = "word"

    def prepare(self, request: SolveRequest, limits: Limits) -> AnalogyQuestion:
        """Return the analogy. Raises UserError unless exactly one word is missing."""
        return request.question()

    def answer(self, model: BlankFiller, asked: AnalogyAsked, calls: Calls) -> Solution:
        """Return one model's answers, and those of vector arithmetic."""
        return solve(model, asked.shared, asked.candidates, asked.request, calls.limits)

    def rows(self, asked: AnalogyAsked, one: Solution) -> list[AnalogyRow]:
        """Return the model's answers, then those of vector arithmetic."""
        blank = one.answer.blanks[0]
        of_model = [
            AnalogyRow(
                *("model", item.rank, item.token, item.prob, item.log_prob, None),
                begins=item.begins,
                not_ranked="" if item.rank else blank.why_not_ranked(),
            )
            for item in blank.rows
        ]
        of_vectors = [
            AnalogyRow(answer.method, item.rank, item.token, None, None, item.score)
            for answer in one.baselines
            for item in answer.predictions
        ]
        return of_model + of_vectors

    def constants(self, asked: AnalogyAsked, one: Solution) -> dict[str, Any]:
        """Return the text."""
        return {"text": asked.shared.query.text()}

    def head(self, answer: AnalogyAnswers) -> dict[str, Any]:
        """Return the text and the candidates."""
        sizes = {one.name: one.answer.n_candidates for one in answer.models}
        return {
            "text": answer.asked.shared.query.text(),
            "candidates": candidates_json(answer.asked.candidates, sizes),
        }

    def json(self, asked: AnalogyAsked, one: Solution) -> dict[str, Any]:
        """Return the model's answers."""
        return answer_json(one.answer)

    def foot(self, answer: AnalogyAnswers) -> dict[str, Any]:
        """Return the words, the answers of vector arithmetic, and why there are none."""
        question = answer.asked.shared
        return {
            "analogy": {"words": question.words, "template": question.template},
            "baselines": [asdict(found) for one in answer.models for found in one.baselines],
            "note": note_on(question),
        }

    def printed(self, answer: AnalogyAnswers) -> Iterator[Table | str]:
        """Yield the sentence, then each model's answers and those of vector arithmetic."""
        question = answer.asked.shared
        yield question.query.text("___")
        yield ""
        yield from super().printed(answer)
        if note := note_on(question):
            yield note

    def tables(self, asked: AnalogyAsked, one: Solution) -> Iterator[Table | str]:
        """Yield one model's answers, and those of vector arithmetic."""
        found = one.answer
        candidates = asked.candidates.described(found.n_candidates)
        settings = f"context {found.context}, {candidates}{one.computed}"
        yield from tables_of_blank(found.blanks[0], f"{one.name}: {settings}")
        for baseline in one.baselines:
            words = ", ".join(item.token for item in baseline.predictions)
            rank = f" (gold: rank {baseline.gold_rank})" if baseline.gold_rank else ""
            yield f"{baseline.method} on its input embeddings: {words}{rank}"

    def title(self, request: SolveRequest) -> str:
        """Return the sentence."""
        return request.question().query.text("___")

    def settings(self, asked: AnalogyAsked, one: Solution) -> dict[str, str]:
        """Return the candidates, what their probabilities are over, and the context."""
        settings = describe_ranked(one.answer, asked.candidates)
        if not asked.request.keep_query_words:
            settings["ranked"] += ", without the given words"
        return settings

    def gold(self, asked: AnalogyAsked, one: Solution) -> str:
        """Return the right answer and its rank."""
        return describe_gold(one.answer)


def note_on(question: AnalogyQuestion) -> str:
    """Return why vector arithmetic isn't possible; empty if it is."""
    if question.words is not None:
        return ""
    return (
        "The sentence matches none of the six templates, so its words A, B, C and D are unknown. "
        "Vector arithmetic is not available, and words of the sentence may be answers."
    )


analogy = QueryFunction(
    SolveRequest,
    AnalogyKind(),
    """Complete an analogy with each model, and by vector arithmetic on its input embeddings.

    Returns:
        A DataFrame with a row for each model, method (`model`, `3CosAdd`, `3CosMul`) and word.

    Raises:
        UserError: If the analogy doesn't have exactly one blank, or a model is unknown.

    >>> import lama_core as lama
    >>> found = lama.analogy(["Oslo", "Norway", "Paris", "___"], top_k=1)
    >>> found[["method", "rank", "word"]]
        method  rank       word
    0    model     1  norwegian
    1  3CosAdd     1     france
    2  3CosMul     1     france
    """,
)
