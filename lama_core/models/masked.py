"""Masked language models: any architecture of `AutoModelForMaskedLM` with a fast tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from lama_core.candidates import Columns, Place
from lama_core.errors import UserError
from lama_core.models.base import Context, Encoded, Kind, Scores, TokenScores, WordScore
from lama_core.models.transformer import Transformer, pack, place_of
from lama_core.types import Query

# Masked copies of sentences that go through the model together, in tokens with padding.
TOKENS_PER_BATCH = 2048


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
        return Scores(self.pick(self.logits(*pack(batch)), places, columns))

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
            total += float(torch.log_softmax(logits, dim=1)[0, piece])
            ids[start + number] = piece
        return WordScore(self.vocabulary.show_text(pieces), total)

    def token_log_probs(self, texts: Sequence[str]) -> list[TokenScores]:
        """Log-probability of each token of each text, masked in turn.

        All masked copies of all texts share batches of one length. Source: Wang and Cho 2019;
        Rezaee and Camacho-Collados, equation 1 (pseudo-perplexity is exp of the negative sum).
        """
        before, after = self._frame
        mask = self.tokenizer.mask_token_id
        bodies = {text: self.text_ids(text) for text in texts}
        copies: list[_Copy] = []
        for text, body in bodies.items():
            ids = [*before, *body, *after]
            self.check_window(len(ids))
            for number, piece in enumerate(body):
                at = len(before) + number
                copies.append(_Copy(text, number, at, piece, [*ids[:at], mask, *ids[at + 1 :]]))
        scores = {text: np.empty(len(body), np.float32) for text, body in bodies.items()}
        copies.sort(key=lambda copy: -len(copy.ids))
        while copies:
            size = max(1, TOKENS_PER_BATCH // len(copies[0].ids))
            chunk, copies = copies[:size], copies[size:]
            logits = self.logits([copy.ids for copy in chunk], [[copy.position] for copy in chunk])
            targets = torch.tensor([copy.target for copy in chunk])
            values = logits.gather(1, targets[:, None])[:, 0] - torch.logsumexp(logits, dim=1)
            for copy, value in zip(chunk, values.tolist(), strict=True):
                scores[copy.text][copy.number] = value
        return [
            TokenScores(self.vocabulary.show_text(bodies[text]), scores[text]) for text in texts
        ]


@dataclass(frozen=True, slots=True)
class _Copy:
    """One text with one of its tokens masked."""

    text: str
    number: int
    position: int
    target: int
    ids: list[int]
