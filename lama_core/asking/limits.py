"""What one question may cost, so that nobody's holds everybody else's.

A question that reaches a limit shows what it has, and says so. The command line asks without
limits; the pages with those of the environment.
"""

import math
import time
from dataclasses import dataclass

from lama_core.errors import UserError, positive


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a model spends on a question.

    seconds: after which no more words are rescored. tokens: of a text, with both its sides.
    rescored: words that a left-to-right model rescores in a text.
    """

    seconds: float = math.inf
    tokens: float = math.inf
    rescored: float = math.inf

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


UNLIMITED = Limits()


def limits_of_pages() -> Limits:
    """20 seconds, 512 tokens and 1,000 words, or what the environment says; 0 is no limit.

    Variables: LAMA_QUERY_SECONDS, LAMA_QUERY_TOKENS, LAMA_QUERY_RESCORED. Raises UserError for what
    is no number.
    """
    return Limits(
        positive("LAMA_QUERY_SECONDS", 20) or math.inf,
        positive("LAMA_QUERY_TOKENS", 512) or math.inf,
        positive("LAMA_QUERY_RESCORED", 1000) or math.inf,
    )
