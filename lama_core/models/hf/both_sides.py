"""Token log-probabilities of models that see both sides of a token: each token is hidden in turn.

    original:          log P(w_i | S without w_i)
    within-word:       log P(w_i | S without w_i and the later tokens of its word)
    rest-of-sentence:  log P(w_i | w_1 ... w_i-1, a mask for each later token and for the special
                       token after the text)
    rest-of-answer:    for an answer's token, log P(w_i | S without w_i and the answer's later
                       tokens); for other tokens as within-word

Source: Wang and Cho 2019, Salazar et al. 2020; Rezaee and Camacho-Collados, equation 1 (the
pseudo-perplexity is exp of the negative sum); Kauf and Ivanova 2023 (within words, and the rest of
the sentence); lm-pub-quiz 0.3.3 (the rest of the answer; `create_masked_batch`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lama_core.grouping import grouped
from lama_core.models.devices import run_in_passes, to_cpu
from lama_core.models.hf.inspection import InspectableModel
from lama_core.models.protocols import (
    Hiding,
    ScoredPart,
    StartToken,
    Statement,
    StatementScores,
    TokenScores,
)
from lama_core.models.vocabulary import TextTokens


@dataclass(frozen=True, slots=True)
class MaskedCopy:
    """A copy of a text with some consecutive tokens hidden.

    Masked models score only the first hidden token. Encoder-decoder models score all, each given
    the hidden tokens before it.

    Attributes:
        ids: The model's input, with mask tokens.
        at: Position of the first mask in `ids`.
        pieces: Ids of the tokens to score.
        text: Index of the text.
        first: Position of the first scored token in the text.
    """

    ids: tuple[int, ...]
    at: int
    pieces: tuple[int, ...]
    text: int
    first: int


def tokens_to_score(read: TextTokens, scored: ScoredPart) -> list[int]:
    """Return the positions of the tokens to score."""
    return [at for at in range(len(read.ids)) if scored == "statement" or read.marked[at]]


def span_of(read: TextTokens, token: int, hiding: Hiding) -> tuple[int, int]:
    """Return the positions of the token, word, answer or text around a token, as [first, end).

    When the token is scored, it and the later tokens of this span are hidden.
    """
    if hiding == "original":
        return token, token + 1
    if hiding == "rest-of-sentence":
        return 0, len(read.ids)
    if hiding == "rest-of-answer" and read.marked[token]:
        answer = np.flatnonzero(read.marked)
        return int(answer[0]), int(answer[-1]) + 1
    word = read.words[token]
    first, end = token, token + 1
    while word >= 0 and first and read.words[first - 1] == word:
        first -= 1
    while word >= 0 and end < len(read.ids) and read.words[end] == word:
        end += 1
    return first, end


class TokenHidingModel(InspectableModel):
    """A model that predicts the hidden tokens of a text from both sides."""

    @property
    def mask_id(self) -> int:
        """Id of the token that replaces a hidden token."""
        raise NotImplementedError

    def framed(self, text: str) -> list[int]:
        """Token ids of a text, with special tokens."""
        before, after = self.vocabulary.frame
        return [*before, *self.vocabulary.encode(text), *after]

    def token_log_probs(self, texts: Sequence[str], *, begins: bool = False) -> list[TokenScores]:
        scores = self.statement_log_probs(
            [Statement(text, 0, len(text)) for text in texts], hiding="original"
        )
        return [TokenScores(one.tokens, one.log_probs) for one in scores]

    takes_start_token = False

    def scores_first(self, _start_token: StartToken = "needed") -> bool:
        return True  # the first token has a right context

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: ScoredPart = "statement",
        start_token: StartToken = "needed",
    ) -> list[StatementScores]:
        read = self.vocabulary.read(statements)
        return [
            self.scored_statement(tokens, found, scored)
            for tokens, found in zip(read, self.hidden_log_probs(read, hiding, scored), strict=True)
        ]

    def hidden_log_probs(
        self, read: Sequence[TextTokens], hiding: Hiding, scored: ScoredPart
    ) -> list[NDArray[np.float32]]:
        """Log-probability of each token to score, float32 [token] for each text; NaN for others.

        Copies of equal length share passes, so no padding is needed. Equal copies are computed
        once, such as those of statements that differ only in a hidden single-token answer.
        """
        values = [np.full(len(tokens.ids), np.nan, np.float32) for tokens in read]
        by_shape = grouped(
            ((len(copy.ids), len(copy.pieces)), copy)
            for number, tokens in enumerate(read)
            for copy in self.copies(tokens, number, hiding, scored)
        )
        # The longest first, because it may not fit.
        for (length, n_pieces), copies in sorted(by_shape.items(), reverse=True):
            self.check_window(length)
            for copy, found in zip(copies, self._score_copies(copies, length), strict=True):
                values[copy.text][copy.first : copy.first + n_pieces] = found
        return values

    def copies(
        self, read: TextTokens, number: int, hiding: Hiding, scored: ScoredPart
    ) -> Iterator[MaskedCopy]:
        """Yield a copy of a text for each token to score, with the tokens of `hiding` hidden, too.

        number: index of the text.
        """
        before, after = self.vocabulary.frame
        for token in tokens_to_score(read, scored):
            ids = list(read.ids)
            end = span_of(read, token, hiding)[1]
            ids[token:end] = [self.mask_id] * (end - token)
            # As in lm-pub-quiz, the special token after the text is hidden, too.
            closing = [self.mask_id] * len(after) if hiding == "rest-of-sentence" else after
            yield MaskedCopy(
                (*before, *ids, *closing),
                len(before) + token,
                read.ids[token : token + 1],
                number,
                token,
            )

    def logits_of(self, copies: Sequence[MaskedCopy]) -> torch.Tensor:
        """Logits of the scored tokens in copies of one shape, float32 [copy, token, vocabulary]."""
        raise NotImplementedError

    def _score_copies(self, copies: Sequence[MaskedCopy], length: int) -> NDArray[np.float32]:
        """Log-probabilities of the scored tokens in copies of one shape, float32 [copy, token]."""
        same = grouped(((copy.ids, copy.pieces[:-1]), number) for number, copy in enumerate(copies))
        n_pieces = len(copies[0].pieces)
        values = np.empty((len(copies), n_pieces), np.float32)

        def score(groups: Sequence[list[int]]) -> None:
            logits = self.logits_of([copies[numbers[0]] for numbers in groups])
            members = [number for numbers in groups for number in numbers]
            rows = torch.tensor([row for row, numbers in enumerate(groups) for _ in numbers])
            at = rows.to(logits.device)[:, None]
            targets = torch.tensor([copies[number].pieces for number in members])
            place = torch.arange(n_pieces, device=logits.device)
            chosen = logits[at, place, targets.to(logits.device)]
            values[members] = to_cpu(chosen - torch.logsumexp(logits, dim=2)[at, place]).numpy()

        run_in_passes(score, list(same.values()), self.tokens_per_pass // (length + n_pieces - 1))
        return values
