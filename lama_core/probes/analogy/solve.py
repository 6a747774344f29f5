"""One analogy with a missing word, put to several models side by side.

Beside each model stands vector arithmetic on its own input embeddings, all vectors of length 1.
For the blank at D:

    3CosAdd   argmax  cos(x, B - A + C)
    3CosMul   argmax  cos(x, B) cos(x, C) / (cos(x, A) + 0.001)     cosines moved to [0, 1]

and for a blank at A, B or C what follows from B - A = D - C.
Source: Mikolov et al. 2013; Levy and Goldberg 2014. A word of several pieces is the mean of
theirs, which is ours.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import Candidates, Columns, OpenColumns
from lama_core.candidates.spelling import Vocabulary
from lama_core.errors import UserError
from lama_core.models.protocols import BlankFiller
from lama_core.probes.analogy.templates import (
    DEFAULT_TEMPLATE,
    TEMPLATE_HELP,
    Question,
    ask_for,
    read_question,
)
from lama_core.probes.cloze.query import ClozeAnswer, ask
from lama_core.requests import argument, option
from lama_core.scoring import shared_fields

Method = Literal["3CosAdd", "3CosMul"]
METHODS: tuple[Method, ...] = ("3CosAdd", "3CosMul")
EPSILON = 0.001
# By the place of the blank: the two words that are added, and the one that is taken away.
SUMS = {0: (1, 2, 3), 1: (0, 3, 2), 2: (3, 0, 1), 3: (1, 2, 0)}


@runtime_checkable
class WordEmbedder(Protocol):
    """A model whose input embeddings can be read."""

    name: str

    @property
    def vocabulary(self) -> Vocabulary:
        """The model's tokens as words."""
        ...

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Input embeddings, float32 [word, dim]; the mean over a word's pieces."""
        ...

    def word_matrix(self, columns: Columns) -> NDArray[np.float32]:
        """Input embeddings of the candidates, float32 [candidate, dim]."""
        ...


@dataclass(frozen=True)
class WithoutWords(Candidates):
    """Candidates less some words, in whatever case they are written."""

    left_out: frozenset[str] = frozenset()

    def columns(self, vocabulary: Vocabulary) -> Columns:
        """The candidates' columns without those of the words that are left out."""
        columns = super().columns(vocabulary)
        if isinstance(columns, OpenColumns):
            return replace(columns, left_out=self.left_out)
        keep = np.array([word.lower() not in self.left_out for word in columns.words], dtype=bool)
        if not keep.any():
            raise UserError(
                f"The candidates '{self.name}' hold nothing but the query's own words: keep them, "
                "or choose other candidates."
            )
        return replace(
            columns,
            words=tuple(word for word, kept in zip(columns.words, keep, strict=True) if kept),
            token_ids={place: ids[keep] for place, ids in columns.token_ids.items()},
        )


@dataclass(frozen=True, kw_only=True)
class SolveRequest(shared_fields.ClozeSettings):
    """An analogy with a blank to fill: the fields of `analogy solve`."""

    command: ClassVar[tuple[str, ...]] = ("analogy", "solve")
    python: ClassVar[str] = "analogy"

    text: Annotated[
        Sequence[str],
        argument(
            "A sentence with a blank (___, [MASK], <mask>, [Y]), or four words of which one is the "
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

    def question(self) -> Question:
        """What is asked. Raises UserError for what is no analogy with one word missing."""
        if len(self.text) != 1:
            return ask_for(self.text, self.template or DEFAULT_TEMPLATE)
        if self.template is not None:
            raise UserError("A template is for four words; a sentence is its own template.")
        return read_question(self.text[0])


@dataclass(frozen=True, slots=True)
class VectorPrediction:
    """One answer of vector arithmetic. score: a cosine, or a ratio of cosines; higher is better."""

    rank: int
    token: str
    score: float


@dataclass(frozen=True, slots=True)
class VectorAnswer:
    """Vector arithmetic on one model's input embeddings. gold_rank: None if not a candidate."""

    name: str
    method: Method
    predictions: tuple[VectorPrediction, ...]
    gold_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Solution:
    """All models' answers to one analogy. note: why there is no vector arithmetic, if so."""

    question: Question
    cloze: ClozeAnswer
    baselines: tuple[VectorAnswer, ...]
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """What `cloze --json` prints, with `analogy` and `baselines` besides."""
        return self.cloze.to_json() | {
            "analogy": {"words": self.question.words, "template": self.question.template},
            "baselines": [asdict(answer) for answer in self.baselines],
            "note": self.note,
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row a model, a method and an answer, as plain values."""
        names = ("model", "method", "rank", "word", "prob", "log_prob", "score", "text")
        text = self.cloze.text
        of_models = [
            (model.name, "model", item.rank, item.token, item.prob, item.log_prob, None, text)
            for model in self.cloze.models
            for item in model.blanks[0].predictions
        ]
        of_vectors = [
            (answer.name, answer.method, item.rank, item.token, None, None, item.score, text)
            for answer in self.baselines
            for item in answer.predictions
        ]
        return [dict(zip(names, row, strict=True)) for row in (*of_models, *of_vectors)]


def solve(
    models: Sequence[BlankFiller],
    question: Question,
    candidates: Candidates,
    *,
    keep_query_words: bool = False,
    top_k: int = 5,
    gold: str | None = None,
    **options: Any,
) -> Solution:
    """Every model's best `top_k` words for the blank, in the models' order.

    keep_query_words: let A, B and C themselves be answers. They are removed by default, as in
    vector arithmetic since Mikolov et al. 2013. options: further ones of `cloze.ask.ask`.
    Raises UserError if the text doesn't fit a model or no candidate is left.
    """
    words = frozenset(word.lower() for word in question.given)
    if words and not keep_query_words:
        candidates = WithoutWords(
            candidates.name, candidates.words, candidates.fold_case, left_out=words
        )
    answers = []
    baselines: list[VectorAnswer] = []
    for model in models:
        columns = candidates.columns(model.vocabulary)
        asked: dict[str, Any] = {"top_k": top_k, "gold": gold, "columns": columns, **options}
        answers.append(ask(model, question.query, candidates, **asked))
        if question.words and isinstance(model, WordEmbedder):
            baselines += [
                do_arithmetic(model, question, columns, method, top_k=top_k, gold=gold)
                for method in METHODS
            ]
    note = ""
    if question.words is None:
        note = (
            "The sentence follows none of the six templates, so the four words are not known: "
            "there is no vector arithmetic, and the words of the sentence stay among the answers."
        )
    answer_to_all = ClozeAnswer(question.query.text(), candidates, tuple(answers))
    return Solution(question, answer_to_all, tuple(baselines), note)


def do_arithmetic(
    model: WordEmbedder,
    question: Question,
    columns: Columns,
    method: Method,
    *,
    top_k: int = 5,
    gold: str | None = None,
) -> VectorAnswer:
    """The candidates nearest to what the given words add up to. Ties: the earlier one wins."""
    if question.words is None or question.blank is None:
        raise ValueError("the question's words are not known")
    given = [word or "" for word in question.words]
    plus_1, plus_2, minus = (given[number] for number in SUMS[question.blank])
    vectors = _unit(model.word_vectors([plus_1, plus_2, minus]))
    scores = arithmetic_scores(_unit(model.word_matrix(columns)), vectors, method)
    order = np.argsort(-scores, kind="stable")
    predictions = tuple(
        VectorPrediction(rank, columns.words[column], float(scores[column]))
        for rank, column in enumerate(order[:top_k].tolist(), start=1)
    )
    gold_rank = None
    column = columns.index.get(columns.spelling.key(gold.strip())) if gold else None
    if column is not None:
        gold_rank = 1 + int(np.flatnonzero(order == column)[0])
    return VectorAnswer(model.name, method, predictions, gold_rank)


def arithmetic_scores(
    candidates: NDArray[np.float32], vectors: NDArray[np.float32], method: Method
) -> NDArray[np.float32]:
    """Score of each candidate, float32 [candidate], higher is better.

    candidates: unit vectors, float32 [candidate, dim]. vectors: unit vectors of the two words that
    are added and the one that is taken away, float32 [3, dim].
    """
    cosines = candidates @ vectors.T
    if method == "3CosAdd":
        aim = vectors[0] + vectors[1] - vectors[2]
        length = float(np.linalg.norm(aim)) or 1.0
        return ((candidates @ aim) / length).astype(np.float32)
    shifted = (cosines + 1) / 2
    return (shifted[:, 0] * shifted[:, 1] / (shifted[:, 2] + EPSILON)).astype(np.float32)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
