"""What models that see both sides of a word share: the log-probability of each token of a text,
left out in turn.

    log P(w_i | S without w_i)

Source: Wang and Cho 2019; Rezaee and Camacho-Collados, equation 1 (the pseudo-perplexity is exp of
the negative sum).
"""

from collections.abc import Sequence

import numpy as np
import torch

from lama_core.models.base import TokenScores
from lama_core.models.devices import host, in_parts
from lama_core.models.transformer import Transformer, chosen_log_probs


class BothSides(Transformer):
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
        """Log-probability of each token of each text, left out in turn.

        The copies of all texts of one length share batches, so nothing is padded.
        """
        bodies = {text: self.text_ids(text) for text in texts}
        scores = {text: np.empty(len(body), np.float32) for text, body in bodies.items()}
        by_length: dict[int, list[str]] = {}
        for text, body in bodies.items():
            by_length.setdefault(len(body), []).append(text)
        for length in sorted(by_length, reverse=True):  # the longest first: it may not fit
            same = by_length[length]
            values = self._left_out_in_turn([bodies[text] for text in same], length)
            scores |= dict(zip(same, values, strict=True))
        return [
            TokenScores(self.vocabulary.show_text(bodies[text]), scores[text]) for text in texts
        ]

    def _left_out_in_turn(self, bodies: Sequence[list[int]], length: int) -> np.ndarray:
        """Log-probability of each token of texts of one length, float32 [text, token]."""
        before, after = self.vocabulary.frame
        width = len(before) + length + len(after)
        self.check_window(width)
        rows = torch.tensor([[*before, *body, *after] for body in bodies])
        n_copies = len(bodies) * length
        values = torch.empty(n_copies)
        size = max(1, self.tokens_per_pass // width)

        def score(some: Sequence[int]) -> None:
            copies = torch.arange(some[0], some[-1] + 1)
            at = copies % length + len(before)
            number = torch.arange(len(copies))
            ids = rows[copies // length]
            targets = ids[number, at]
            ids[number, at] = self.sign
            values[copies] = host(chosen_log_probs(self.logits_at(ids, at), targets))

        for first in range(0, n_copies, size):
            in_parts(score, range(first, min(first + size, n_copies)))
        return values.reshape(len(bodies), length).numpy()
