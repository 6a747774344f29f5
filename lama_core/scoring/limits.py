"""Limits on the cost of a query, so that one user's query doesn't block the others.

A query that reaches the limit of seconds returns partial results, which are labelled; if a causal
model hasn't rescored all proposed words by then, the query ends with a message. A query with too
many tokens or sentences is refused. The command line sets no limits; the pages use
`load_page_limits`.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from lama_core.errors import UserError, int_from_env
from lama_core.progress import Progress, report_step

Scored = TypeVar("Scored")
# Maximum cost of the sentences that are scored between two checks of the time. A sentence of n
# characters costs n * n for a masked model, which computes it once for each token, and n * CAUSAL
# for a causal model, which computes it once.
MAX_AT_ONCE = 1_000_000
CAUSAL = 50


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum cost of a query.

    Attributes:
        seconds: Time after which a model doesn't start to rescore further words or sentences.
        tokens: Number of tokens of a text, both sides of the blank included.
        rescored: Number of words that a causal model rescores for a text.
        sentences: Number of sentences of a batch times number of models.
        loading: Seconds that an anonymous visitor's query waits for a model to be loaded.
    """

    seconds: float = math.inf
    tokens: float = math.inf
    rescored: float = math.inf
    sentences: float = math.inf
    loading: float = math.inf

    def until(self, started: float | None = None, share: float = 1.0) -> float:
        """Return the deadline of a query, on the clock of `time.monotonic`.

        started: Start of the query; None is now. share: Share of `seconds` until the deadline.
        """
        return (time.monotonic() if started is None else started) + self.seconds * share

    def check_time(self, started: float, n_done: int, n_blanks: int, name: str) -> None:
        """Raise UserError if the time of a query is over before its next blank.

        The first blank is always filled.
        """
        if n_done and time.monotonic() > self.until(started):
            raise UserError(
                f"{name} filled {n_done} of {n_blanks} blanks in {self.seconds:.0f} seconds, the "
                "maximum here. Use fewer blanks, or rescore fewer words."
            )

    def check_tokens(self, n_tokens: int, name: str) -> None:
        """Raise UserError for a text that is too long."""
        if n_tokens > self.tokens:
            raise UserError(
                f"The text has {n_tokens:,} tokens for {name}; the maximum here is "
                f"{self.tokens:,.0f}. Shorten it."
            )

    def check_sentences(self, n_sentences: int, n_models: int) -> None:
        """Raise UserError if sentences times models exceed the limit."""
        if n_sentences * n_models > self.sentences:
            s = "s" if n_models > 1 else ""
            raise UserError(
                f"{n_sentences:,} sentences for {n_models} model{s} are "
                f"{n_sentences * n_models:,} queries; the maximum of a batch here is "
                f"{self.sentences:,.0f}. Remove sentences or models."
            )

    def score_in_time(
        self,
        sentences: Sequence[str],
        score: Callable[[range], Sequence[Scored]],
        *,
        sees_both: bool,
    ) -> list[Scored]:
        """Score the sentences in order until the time is over; return the scores of at least one.

        Args:
            sentences: The sentences.
            score: Returns the scores of the sentences with these indices.
            sees_both: Whether the model always sees both sides of a token.
        """
        until = self.until()
        scores: list[Scored] = []
        while len(scores) < len(sentences) and (not scores or time.monotonic() < until):
            first = len(scores)
            lengths = (len(sentence) for sentence in sentences[first:])
            costs = (length * (length if sees_both else CAUSAL) for length in lengths)
            n = sum(cost <= MAX_AT_ONCE for cost in accumulate(costs))
            report_step(Progress("Scoring", first, len(sentences), "sentences"))
            scores += score(range(first, first + max(1, n)))
        return scores


UNLIMITED = Limits()


def load_page_limits() -> Limits:
    """Return the pages' limits: from the environment variables, else the defaults.

    LAMA_QUERY_SECONDS (20), LAMA_QUERY_TOKENS (512), LAMA_QUERY_RESCORED (1000),
    LAMA_QUERY_SENTENCES (1000) and LAMA_QUERY_LOADING (60); 0 sets no limit.

    Raises:
        UserError: If a variable isn't a number.
    """
    defaults = dict(seconds=20, tokens=512, rescored=1000, sentences=1000, loading=60)
    found = {name: int_from_env(f"LAMA_QUERY_{name.upper()}", n) for name, n in defaults.items()}
    return Limits(**{name: value or math.inf for name, value in found.items()})
