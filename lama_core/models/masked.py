"""Masked language models: any architecture of `AutoModelForMaskedLM` with a fast tokenizer."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import Place, place_of
from lama_core.errors import UserError
from lama_core.models.base import Context, Encoded, Kind, Scores, TokenScores, WordScore
from lama_core.models.devices import host, in_parts
from lama_core.models.transformer import Transformer, chosen_log_probs, pack
from lama_core.types import Query


class MaskedModel(Transformer):
    """Fills blanks with what stands on both sides of them."""

    kind: Kind = "masked"

    @cached_property
    def _frame(self) -> tuple[list[int], list[int]]:
        """The special tokens that stand before and after every text."""
        plain = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        framed = self.tokenizer("a")["input_ids"]
        start = next(
            number for number in range(len(framed)) if framed[number : number + len(plain)] == plain
        )
        return framed[:start], framed[start + len(plain) :]

    def framed(self, text: str) -> list[int]:
        """Token ids of a text as the model is given it."""
        before, after = self._frame
        return [*before, *self.text_ids(text), *after]

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        """The query with the model's mask in each blank. `context` is always both sides."""
        return self.encode_all([query], context)[0]

    def encode_all(self, queries: Sequence[Query], context: Context = "both") -> list[Encoded]:
        """Many queries at once, which a fast tokenizer does in a fraction of the time."""
        mask = self.tokenizer.mask_token
        plain = [
            number
            for number, query in enumerate(queries)
            if not any(self.has_control_text(part) for part in query.parts)
        ]
        texts = [queries[number].text(mask) for number in plain]
        tokenized = self.tokenizer(texts, verbose=False)["input_ids"] if texts else []
        known = dict(zip(plain, tokenized, strict=True))
        return [
            self._encoded(query, known.get(number) or self._joined(query))
            for number, query in enumerate(queries)
        ]

    def _joined(self, query: Query) -> list[int]:
        """Token ids of a query whose text holds control tokens, which are read as text."""
        before, after = self._frame
        parts = list(query.parts)
        if self._mask_takes_space:
            parts[:-1] = [part.rstrip() for part in parts[:-1]]
        ids = list(before)
        for number, part in enumerate(parts):
            ids += ([self.tokenizer.mask_token_id] if number else []) + self.text_ids(part)
        return ids + after

    @cached_property
    def _mask_takes_space(self) -> bool:
        """Whether the mask takes the space on its left with it, as RoBERTa's does."""
        mask = self.tokenizer.mask_token
        spaced, joined = self.tokenizer([f"a {mask}", f"a{mask}"])["input_ids"]
        return spaced == joined

    def _encoded(self, query: Query, ids: list[int]) -> Encoded:
        self.check_window(len(ids))
        mask = self.tokenizer.mask_token_id
        positions = tuple(number for number, token in enumerate(ids) if token == mask)
        if len(positions) != query.n_blanks:
            raise UserError(
                f"{self.name} sees {len(positions)} blanks where the text has {query.n_blanks}: "
                "set a space on both sides of each blank."
            )
        lefts = (" ".join(query.parts[: number + 1]) for number in range(query.n_blanks))
        return Encoded(tuple(ids), positions, tuple(place_of(left) for left in lefts))

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        """Scores of the candidates, a row for each blank of each query in turn."""
        places: list[Place] = [place for query in batch for place in query.places]
        return self.pick(self.logits(*pack(batch)), places, columns)

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Log-probability of any word at one blank: as many masks as pieces, left to right."""
        encoded = self.encode(query, context)
        start = encoded.positions[blank]
        pieces = self.vocabulary.pieces(word, encoded.places[blank])
        if self.tokenizer.unk_token_id in pieces:
            return WordScore(self.vocabulary.show_text(pieces), -np.inf)
        mask = self.tokenizer.mask_token_id
        ids = list(encoded.token_ids)
        ids[start : start + 1] = [mask] * len(pieces)
        self.check_window(len(ids))
        total = 0.0
        for number, piece in enumerate(pieces):
            logits = self.logits([ids], [[start + number]])
            total += float(host(torch.log_softmax(logits, dim=1)[0, piece]))
            ids[start + number] = piece
        return WordScore(self.vocabulary.show_text(pieces), total)

    def token_log_probs(self, texts: Sequence[str]) -> list[TokenScores]:
        """Log-probability of each token of each text, masked in turn.

        All masked copies of all texts of one length share batches, so nothing is padded.
        Source: Wang and Cho 2019; Rezaee and Camacho-Collados, equation 1 (the
        pseudo-perplexity is exp of the negative sum).
        """
        bodies = {text: self.text_ids(text) for text in texts}
        scores = {text: np.empty(len(body), np.float32) for text, body in bodies.items()}
        by_length: dict[int, list[str]] = {}
        for text, body in bodies.items():
            by_length.setdefault(len(body), []).append(text)
        for length in sorted(by_length, reverse=True):  # the longest first: it may not fit
            same = by_length[length]
            values = self._masked_in_turn([bodies[text] for text in same], length)
            scores |= dict(zip(same, values, strict=True))
        return [
            TokenScores(self.vocabulary.show_text(bodies[text]), scores[text]) for text in texts
        ]

    def _masked_in_turn(self, bodies: Sequence[list[int]], length: int) -> np.ndarray:
        """Log-probability of each token of texts of one length, float32 [text, token]."""
        before, after = self._frame
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
            ids[number, at] = self.tokenizer.mask_token_id
            logits, _ = self.forward(
                (number, at), input_ids=ids, attention_mask=torch.ones_like(ids)
            )
            values[copies] = host(chosen_log_probs(logits, targets))

        for first in range(0, n_copies, size):
            in_parts(score, range(first, min(first + size, n_copies)))
        return values.reshape(len(bodies), length).numpy()
