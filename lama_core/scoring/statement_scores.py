"""The score of a statement: a model's log-likelihood of a sentence that contains an answer.

    sum    sum_i log P(w_i | ...)       mean    the sum, divided by the number of scored tokens

over the tokens of the whole statement, of the answer, or of the answer given only its left context
(conditional). A causal model conditions each token on the tokens before it; masked and
encoder-decoder models condition it on all others (see `models.protocols.Hiding`).

Source: Wiland et al. 2024 (BEAR), section 3, which takes the sum over the whole statement; Salazar
et al. 2020 and Kauf and Ivanova 2023 for masked models.

Departure: First letter of a statement
Departure: Answers that a model can't write
Departure: Scores of the answer alone
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress, product
from typing import Annotated, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lama_core.models.protocols import (
    BlankFiller,
    Hiding,
    ScoredPart,
    StartToken,
    Statement,
    StatementScorer,
    StatementScores,
)
from lama_core.requests import option
from lama_core.rounding import fixed
from lama_core.types import Query

Aggregate = Literal["sum", "mean"]
StatementPart = Literal["statement", "answer", "conditional"]
# The tokens whose log-probabilities are summed or averaged, as text.
TOKENS_OF: dict[StatementPart, str] = {
    "statement": "the tokens of the whole sentence",
    "answer": "the answer's tokens",
    "conditional": "the answer's tokens, given only the left context",
}
AGGREGATES: tuple[Aggregate, ...] = ("sum", "mean")
PARTS: tuple[StatementPart, ...] = ("statement", "answer", "conditional")
AggregateChoice = Annotated[
    Aggregate, option("sum of the tokens' log-probabilities, or their mean.")
]
PartChoice = Annotated[
    StatementPart,
    option(
        "Tokens that count: statement (the whole sentence), answer (the answer's), or conditional "
        "(the answer's, given only the left context)."
    ),
]
# Number of statements that a model gets in one call: enough that it can share common beginnings,
# and few enough that the results fit into memory for every answer space.
MAX_STATEMENTS_AT_ONCE = 2048


class StatementModel(BlankFiller, StatementScorer, Protocol):
    """A model that scores statements, with a vocabulary and a context window."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """How statements are scored.

    Attributes:
        aggregate: Whether the score is the sum or the mean of the tokens' log-probabilities.
        part: The tokens that count (see `TOKENS_OF`).
        hiding: Tokens to hide together with the scored token; not used by causal models.
        start_token: When a start token is added; only used by causal models.
    """

    aggregate: Aggregate = "sum"
    part: StatementPart = "statement"
    hiding: Hiding = "within-word"
    start_token: StartToken = "needed"

    @property
    def scored(self) -> ScoredPart:
        """The tokens that a model has to score."""
        return "statement" if self.part == "statement" else "answer"

    def score(
        self, model: StatementScorer, statements: Sequence[Statement]
    ) -> list[StatementScores]:
        """Return a model's log-probabilities of the statements' tokens."""
        return model.statement_log_probs(
            statements, hiding=self.hiding, scored=self.scored, start_token=self.start_token
        )


def make_statement(query: Query, answer: str, part: StatementPart = "statement") -> Statement:
    """Return the query with an answer filled in and the statement's first letter capitalised.

    With part `conditional`, the statement ends after the answer.
    """
    left, right = query.parts
    text = left + answer + ("" if part == "conditional" else right)
    if len(first := text[:1].upper()) == 1:  # a German ß would become two letters
        text = first + text[1:]
    return Statement(text, len(left), len(left) + len(answer))


def statement_score(scores: StatementScores, aggregate: Aggregate) -> float:
    """Return the score of a statement; -inf if the model can't write it or scores no token."""
    log_probs = scored_tokens(scores)
    if scores.unknown or not len(log_probs):
        return -np.inf
    return float(log_probs.sum() if aggregate == "sum" else log_probs.mean())


def scored_tokens(scores: StatementScores) -> NDArray[np.float64]:
    """Return the log-probabilities of the scored tokens, float64 [token]."""
    return scores.log_probs[~np.isnan(scores.log_probs)].astype(np.float64)


def answer_tokens(scores: StatementScores) -> StatementScores:
    """Return the scores of the answer's tokens."""
    inside = scores.in_answer
    return replace(
        scores,
        tokens=tuple(compress(scores.tokens, inside)),
        log_probs=scores.log_probs[inside],
        in_answer=inside[inside],
    )


def shown_tokens(scores: StatementScores) -> list[str]:
    """Return each token with its log-probability, or a dot if it isn't scored."""
    return [
        f"{token} {'·' if math.isnan(value) else fixed(value, 2)}"
        for token, value in zip(scores.tokens, scores.log_probs.tolist(), strict=True)
    ]


def tokens_line(scores: StatementScores) -> str:
    """Return `shown_tokens` in one line."""
    return "  ".join(shown_tokens(scores))


def score_answers(
    model: StatementScorer,
    queries: Sequence[Query],
    answers: Sequence[str],
    scoring: Scoring,
    tick: Callable[[int], None] = lambda _: None,
) -> NDArray[np.float64]:
    """Return the score of every answer in every query, float64 [query, answer].

    At most `MAX_STATEMENTS_AT_ONCE` statements are in memory. tick: Called with the number of
    statements scored since its last call.
    """
    found = np.empty((len(queries), len(answers)))
    # Several queries with all answers, or one query with some.
    size = max(1, MAX_STATEMENTS_AT_ONCE // max(1, len(answers)))
    firsts = range(0, len(queries), size), range(0, len(answers), MAX_STATEMENTS_AT_ONCE)
    for first, start in product(*firsts):
        some = answers[start : start + MAX_STATEMENTS_AT_ONCE]
        rows = queries[first : first + size]
        statements = [make_statement(row, answer, scoring.part) for row in rows for answer in some]
        values = np.array(
            [
                statement_score(statement, scoring.aggregate)
                for statement in scoring.score(model, statements)
            ]
        )
        block = values.reshape(len(rows), -1)
        found[first : first + size, start : start + MAX_STATEMENTS_AT_ONCE] = block
        tick(len(values))
    return found


def log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return log-probabilities over the answers of each query, float32 [query, answer]."""
    with np.errstate(invalid="ignore"):
        shifted = scores - scores.max(axis=1, keepdims=True)
    sums = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return np.asarray(shifted - sums, dtype=np.float32)
