"""What one question may cost, so that nobody's holds everybody else's.

A question that reaches a limit shows what it has, and says so. The command line asks without
limits; the pages with those of the environment.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from lama_core.errors import UserError, positive

Scored = TypeVar("Scored")
# What is scored before the time is looked at. A sentence costs its characters times its characters,
# since a model that sees both sides reads it once for each token; of a causal model, that reads it
# once, CAUSAL.
MAX_AT_ONCE = 1_000_000
CAUSAL = 50


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a model spends on a question.

    seconds: after which no more words are rescored. tokens: of a text, with both its sides.
    rescored: words that a left-to-right model rescores in a text. sentences: of many at once, each
    as often as there are models that are asked.
    """

    seconds: float = math.inf
    tokens: float = math.inf
    rescored: float = math.inf
    sentences: float = math.inf

    def until(self) -> float:
        """When the time of a question that begins now is over, by `time.monotonic`."""
        return time.monotonic() + self.seconds

    def check_tokens(self, n_tokens: int, name: str) -> None:
        """Raise UserError for a text that is too long."""
        if n_tokens > self.tokens:
            raise UserError(
                f"The text has {n_tokens:,} tokens for {name}, and at most {self.tokens:,.0f} are "
                "taken here: shorten it."
            )

    def check_sentences(self, n_sentences: int, n_models: int) -> None:
        """Raise UserError for too many sentences for so many models."""
        if n_sentences * n_models > self.sentences:
            s = "s" if n_models > 1 else ""
            raise UserError(
                f"{n_sentences:,} sentences for {n_models} model{s} are "
                f"{n_sentences * n_models:,} questions, and at most {self.sentences:,.0f} are "
                "taken at once here: take out sentences or models."
            )

    def score_in_time(
        self,
        sentences: Sequence[str],
        score: Callable[[range], Sequence[Scored]],
        *,
        sees_both: bool,
    ) -> list[Scored]:
        """The scores of the first sentences, as many as the time allows; one at least.

        score: of a range of the sentences. sees_both: whether the model is always shown both sides.
        """
        until = self.until()
        scores: list[Scored] = []
        while len(scores) < len(sentences) and (not scores or time.monotonic() < until):
            first = len(scores)
            costs = (len(one) * (len(one) if sees_both else CAUSAL) for one in sentences[first:])
            n = sum(cost <= MAX_AT_ONCE for cost in accumulate(costs))
            scores += score(range(first, first + max(1, n)))
        return scores


UNLIMITED = Limits()


def limits_of_pages() -> Limits:
    """20 seconds, 512 tokens, 1,000 words and 1,000 sentences, or what the environment says.

    Variables: LAMA_QUERY_SECONDS, LAMA_QUERY_TOKENS, LAMA_QUERY_RESCORED, LAMA_QUERY_SENTENCES; 0
    is no limit. Raises UserError for what is no number.
    """
    most = {"seconds": 20, "tokens": 512, "rescored": 1000, "sentences": 1000}
    given = {name: positive(f"LAMA_QUERY_{name.upper()}", most[name]) for name in most}
    return Limits(**{name: value or math.inf for name, value in given.items()})
