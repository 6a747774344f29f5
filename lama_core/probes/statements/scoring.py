"""The score of a statement: how likely a model finds a sentence with an answer in it.

    sum    sum_i log P(w_i | ...)             mean    the sum, divided by the tokens scored

over the tokens of the whole statement; of the answer in it; or of the answer given what stands
before it alone (conditional). What each token is conditioned on is the model's kind: what stands
before it (causal), all others (masked, encoder-decoder; see `models.base.Hiding`).

Source: Wiland et al. 2024 (BEAR), section 3, which takes the sum over the whole statement; Salazar
et al. 2020 and Kauf and Ivanova 2023 for masked models.

Departure: First letter of a statement
Departure: Answers that a model can't write
Departure: Scores of the answer alone
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lama_core.models.protocols import (
    BlankFiller,
    Hiding,
    Scored,
    Statement,
    StatementScorer,
    StatementScores,
)
from lama_core.requests import option
from lama_core.rounding import fixed
from lama_core.types import Query

Aggregate = Literal["sum", "mean"]
Part = Literal["statement", "answer", "conditional"]
# In words, which tokens count.
TOKENS_OF: dict[Part, str] = {
    "statement": "the tokens of the whole sentence",
    "answer": "the answer's tokens",
    "conditional": "the answer's tokens, with nothing behind it",
}
AGGREGATES: tuple[Aggregate, ...] = ("sum", "mean")
PARTS: tuple[Part, ...] = ("statement", "answer", "conditional")
AggregateChoice = Annotated[
    Aggregate, option("sum of the tokens' log-probabilities, or their mean.")
]
PartChoice = Annotated[
    Part,
    option(
        "Which tokens count: of the whole statement; of the answer; or, conditional, of the answer "
        "given only what precedes it."
    ),
]
# Statements that are given to a model at once: enough for their beginnings to be shared, and few
# enough for what is kept of them not to fill the memory, whatever the answer space.
AT_ONCE = 2048


class StatementModel(BlankFiller, StatementScorer, Protocol):
    """Who is asked: the vocabulary and window of one, the scores of the other."""

    @property
    def scores_first(self) -> bool:
        """Whether a text's first token has a log-probability: both sides or a token before it."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """How statements are scored. hiding: of models that see both sides of a token."""

    aggregate: Aggregate = "sum"
    part: Part = "statement"
    hiding: Hiding = "within-word"

    @property
    def scored(self) -> Scored:
        """The tokens that a model is asked for."""
        return "statement" if self.part == "statement" else "answer"


def state(query: Query, answer: str, part: Part = "statement") -> Statement:
    """A query with an answer in it, its first letter a capital; see `Part`."""
    left, right = query.parts
    text = left + answer + ("" if part == "conditional" else right)
    first = text[:1].upper()
    first = first if len(first) == 1 else text[:1]  # a German ß would become two letters
    return Statement(first + text[1:], len(left), len(left) + len(answer))


def total(scores: StatementScores, aggregate: Aggregate) -> float:
    """The score of one statement; -inf if the model can't write it or scores none of its tokens."""
    known = scored_tokens(scores)
    if scores.unknown or not len(known):
        return -np.inf
    return float(known.sum() if aggregate == "sum" else known.mean())


def scored_tokens(scores: StatementScores) -> NDArray[np.float64]:
    """The log-probabilities of the tokens that are scored, float64 [token]."""
    return scores.log_probs[~np.isnan(scores.log_probs)].astype(np.float64)


def shown_tokens(scores: StatementScores, *, answer: bool = False) -> list[str]:
    """Each token, or of the answer alone, with its log-probability; a dot if it isn't scored."""
    rows = zip(scores.tokens, scores.log_probs.tolist(), scores.in_answer.tolist(), strict=True)
    return [
        f"{token} {'·' if math.isnan(value) else fixed(value, 2)}"
        for token, value, inside in rows
        if inside or not answer
    ]


def score_answers(
    model: StatementScorer,
    queries: Sequence[Query],
    answers: Sequence[str],
    scoring: Scoring,
    tick: Callable[[int], None] = lambda _: None,
) -> NDArray[np.float64]:
    """Score every answer in every query, float64 [query, answer], AT_ONCE in memory."""
    found = np.empty((len(queries), len(answers)))
    for rows, columns in _blocks(len(queries), len(answers)):
        statements = [
            state(queries[row], answers[column], scoring.part) for row in rows for column in columns
        ]
        scores = model.statement_log_probs(statements, hiding=scoring.hiding, scored=scoring.scored)
        values = np.array([total(one, scoring.aggregate) for one in scores])
        found[np.ix_(rows, columns)] = values.reshape(len(rows), -1)
        tick(len(values))
    return found


def _blocks(n_queries: int, n_answers: int) -> Iterable[tuple[range, range]]:
    """Queries with all their answers as far as they fit; else some answers of one query."""
    size = max(1, AT_ONCE // max(1, n_answers))
    for first in range(0, n_queries, size):
        rows = range(first, min(first + size, n_queries))
        for start in range(0, n_answers, AT_ONCE):
            yield rows, range(start, min(start + AT_ONCE, n_answers))


def log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float32]:
    """Log-probabilities over the answers of each query, float32 [query, answer]."""
    with np.errstate(invalid="ignore"):
        shifted = scores - scores.max(axis=1, keepdims=True)
    sums = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return np.asarray(shifted - sums, dtype=np.float32)
