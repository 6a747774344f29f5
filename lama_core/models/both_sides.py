"""What models that see both sides of a word share: the log-probability of each token of a text,
left out in turn.

    original:     log P(w_i | S without w_i)
    within-word:  log P(w_i | S without w_i and the later pieces of its word)

Source: Wang and Cho 2019, Salazar et al. 2020; Rezaee and Camacho-Collados, equation 1 (the
pseudo-perplexity is exp of the negative sum); Kauf and Ivanova 2023 (within words).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.models.base import Hiding, Scored, Statement, StatementScores, TokenScores
from lama_core.models.devices import host, in_parts
from lama_core.models.inside import Inspected
from lama_core.models.vocabulary import TextTokens


@dataclass(frozen=True, slots=True)
class Hidden:
    """A text of which one token is asked for.

    ids: the whole text as the model is given it, with signs. at: where the token is, the first
    sign. target: the token. text, token: whose it is.
    """

    ids: tuple[int, ...]
    at: int
    target: int
    text: int
    token: int


def asked_tokens(read: TextTokens, scored: Scored) -> list[int]:
    """The tokens of a text that are asked for."""
    return [at for at in range(len(read.ids)) if scored == "statement" or read.marked[at]]


def word_of(read: TextTokens, token: int) -> tuple[int, int]:
    """The tokens of the word that a token belongs to: the first, and the one behind the last."""
    word = read.words[token]
    first, end = token, token + 1
    while word >= 0 and first and read.words[first - 1] == word:
        first -= 1
    while word >= 0 and end < len(read.ids) and read.words[end] == word:
        end += 1
    return first, end


class BothSides(Inspected):
    """A model that is shown a text with a sign in the place of what it is to fill in."""

    @property
    def sign(self) -> int:
        """The token that stands for what is left out."""
        raise NotImplementedError

    def logits_at(self, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """Logits of what stands at the sign of each row, float32 [row, vocabulary].

        ids: int64 [row, token], without padding. at: int64 [row], where the sign is.
        """
        raise NotImplementedError

    def framed(self, text: str) -> list[int]:
        """Token ids of a text as the model is given it."""
        before, after = self.vocabulary.frame
        return [*before, *self.text_ids(text), *after]

    def token_log_probs(self, texts: Sequence[str]) -> list[TokenScores]:
        """Log-probability of each token of each text, left out in turn."""
        bodies = list(dict.fromkeys(texts))
        read = self.vocabulary.read([Statement(text, 0, len(text)) for text in bodies])
        values = dict(zip(bodies, self.left_out(read, "original", "statement"), strict=True))
        tokens = dict(zip(bodies, (one.ids for one in read), strict=True))
        return [
            TokenScores(self.vocabulary.show_text(tokens[text]), values[text]) for text in texts
        ]

    scores_first = True  # what stands right of a text's first token is seen

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: Scored = "statement",
    ) -> list[StatementScores]:
        """Log-probability of each token of each statement, or of its answer's, left out in turn."""
        read = self.vocabulary.read(statements)
        values = self.left_out(read, hiding, scored)
        return [
            self.scored_statement(one, found, scored)
            for one, found in zip(read, values, strict=True)
        ]

    def left_out(
        self, read: Sequence[TextTokens], hiding: Hiding, scored: Scored
    ) -> list[NDArray[np.float32]]:
        """Log-probability of each token that is asked for, float32 [token]; NaN of the others.

        The copies of all texts of one length share passes, so nothing is padded; equal ones, such
        as those of two answers of one token with the answer hidden, are computed once.
        """
        values = [np.full(len(one.ids), np.nan, np.float32) for one in read]
        by_length: dict[int, list[Hidden]] = {}
        for number, one in enumerate(read):
            for token in asked_tokens(one, scored):
                copy = self.hidden(one, number, token, hiding)
                by_length.setdefault(len(copy.ids), []).append(copy)
        for length in sorted(by_length, reverse=True):  # the longest first: it may not fit
            self.check_window(length)
            copies = by_length[length]
            for copy, found in zip(copies, self._asked(copies, length), strict=True):
                values[copy.text][copy.token] = found
        return values

    def hidden(self, read: TextTokens, number: int, token: int, hiding: Hiding) -> Hidden:
        """The text without one of its tokens."""
        before, after = self.vocabulary.frame
        ids = list(read.ids)
        end = word_of(read, token)[1] if hiding == "within-word" else token + 1
        ids[token:end] = [self.sign] * (end - token)
        whole = (*before, *ids, *after)
        return Hidden(whole, len(before) + token, read.ids[token], number, token)

    def _asked(self, copies: Sequence[Hidden], length: int) -> NDArray[np.float32]:
        """Log-probability of each copy's token, float32 [copy]; all are of one length."""
        same: dict[tuple[int, ...], list[int]] = {}
        for number, copy in enumerate(copies):
            same.setdefault(copy.ids, []).append(number)
        different = list(same.values())
        values = np.empty(len(copies), np.float32)

        def score(some: Sequence[list[int]]) -> None:
            firsts = [copies[numbers[0]] for numbers in some]
            ids = torch.tensor([one.ids for one in firsts])
            logits = self.logits_at(ids, torch.tensor([one.at for one in firsts]))
            members = [number for numbers in some for number in numbers]
            rows = [row for row, numbers in enumerate(some) for _ in numbers]
            targets = torch.tensor([copies[number].target for number in members])
            chosen = logits[torch.tensor(rows).to(logits.device), targets.to(logits.device)]
            sums = torch.logsumexp(logits, dim=1)[torch.tensor(rows).to(logits.device)]
            values[members] = host(chosen - sums).numpy()

        size = max(1, self.tokens_per_pass // length)
        for first in range(0, len(different), size):
            in_parts(score, different[first : first + size])
        return values
