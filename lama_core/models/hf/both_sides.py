"""What models that see both sides of a word share: the log-probability of each token of a text,
left out in turn.

    original:          log P(w_i | S without w_i)
    within-word:       log P(w_i | S without w_i and the later tokens of its word)
    rest-of-sentence:  log P(w_i | w_1 ... w_i-1, a mask for each later token and the closing sign)
    rest-of-answer:    of an answer's token, log P(w_i | S without w_i and the answer's later
                       tokens); of the others as within-word

Source: Wang and Cho 2019, Salazar et al. 2020; Rezaee and Camacho-Collados, equation 1 (the
pseudo-perplexity is exp of the negative sum); Kauf and Ivanova 2023 (within words, and the rest of
the sentence); lm-pub-quiz 0.3.3 (the rest of the answer; `create_masked_batch`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.models.devices import host, in_passes, once_each
from lama_core.models.hf.inspection import Inspected
from lama_core.models.protocols import Hiding, Scored, Statement, StatementScores, TokenScores
from lama_core.models.vocabulary import TextTokens


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A text without some of its tokens, which are asked for, each given those before it.

    ids: the whole text as the model is given it, with signs. at: the first sign. pieces: the tokens
    that are asked for. text, first: which text they are of, and where.
    """

    ids: tuple[int, ...]
    at: int
    pieces: tuple[int, ...]
    text: int
    first: int


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


def span_of(read: TextTokens, token: int, hiding: Hiding) -> tuple[int, int]:
    """The tokens that count as one with a token: the first, and the one behind the last.

    Of those, the token and all behind it are hidden when it is scored.
    """
    if hiding == "original":
        return token, token + 1
    if hiding == "rest-of-sentence":
        return 0, len(read.ids)
    if hiding == "rest-of-answer" and read.marked[token]:
        answer = np.flatnonzero(read.marked)
        return int(answer[0]), int(answer[-1]) + 1
    return word_of(read, token)


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
        def score(texts: list[str]) -> list[TokenScores]:
            read = self.vocabulary.read([Statement(text, 0, len(text)) for text in texts])
            values = self.left_out(read, "original", "statement")
            return [
                TokenScores(self.vocabulary.show_text(one.ids), found)
                for one, found in zip(read, values, strict=True)
            ]

        return once_each(score, texts)

    scores_first = True  # what stands right of a text's first token is seen

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: Scored = "statement",
    ) -> list[StatementScores]:
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
        by_shape: dict[tuple[int, int], list[LeftOut]] = {}
        for number, one in enumerate(read):
            for copy in self.copies(one, number, hiding, scored):
                by_shape.setdefault((len(copy.ids), len(copy.pieces)), []).append(copy)
        # The longest first: it may not fit.
        for (length, n_pieces), copies in sorted(by_shape.items(), reverse=True):
            self.check_window(length)
            for copy, found in zip(copies, self._asked(copies, length), strict=True):
                values[copy.text][copy.first : copy.first + n_pieces] = found
        return values

    def copies(
        self, read: TextTokens, number: int, hiding: Hiding, scored: Scored
    ) -> Iterator[LeftOut]:
        """The copies of a text in which its tokens are left out in turn."""
        before, after = self.vocabulary.frame
        for token in asked_tokens(read, scored):
            ids = list(read.ids)
            end = span_of(read, token, hiding)[1]
            ids[token:end] = [self.sign] * (end - token)
            # As in lm-pub-quiz, what closes the text is hidden with the rest of the sentence.
            closing = [self.sign] * len(after) if hiding == "rest-of-sentence" else after
            whole = (*before, *ids, *closing)
            yield LeftOut(whole, len(before) + token, read.ids[token : token + 1], number, token)

    def logits_of(self, some: Sequence[LeftOut]) -> torch.Tensor:
        """Logits of the pieces of some copies of one shape, float32 [copy, piece, vocabulary]."""
        ids, at = ([one.ids for one in some], [one.at for one in some])
        return self.logits_at(torch.tensor(ids), torch.tensor(at))[:, None]

    def _asked(self, copies: Sequence[LeftOut], length: int) -> NDArray[np.float32]:
        """Log-probability of each copy's pieces, float32 [copy, piece]; all are of one shape."""
        same: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
        for number, copy in enumerate(copies):
            same.setdefault((copy.ids, copy.pieces[:-1]), []).append(number)
        n_pieces = len(copies[0].pieces)
        values = np.empty((len(copies), n_pieces), np.float32)

        def score(some: Sequence[list[int]]) -> None:
            logits = self.logits_of([copies[numbers[0]] for numbers in some])
            members = [number for numbers in some for number in numbers]
            rows = torch.tensor([row for row, numbers in enumerate(some) for _ in numbers])
            at = rows.to(logits.device)[:, None]
            targets = torch.tensor([copies[number].pieces for number in members])
            place = torch.arange(n_pieces, device=logits.device)
            chosen = logits[at, place, targets.to(logits.device)]
            values[members] = host(chosen - torch.logsumexp(logits, dim=2)[at, place]).numpy()

        in_passes(score, list(same.values()), self.tokens_per_pass // (length + n_pieces - 1))
        return values
