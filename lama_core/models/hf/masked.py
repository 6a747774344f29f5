"""Masked language models: any architecture of `AutoModelForMaskedLM` with a fast tokenizer.

A query of two segments is encoded like two sentences in LAMA's code (`bert_connector.py`):

    [CLS] first [SEP] second [SEP]      token types 0 up to the first [SEP], 1 after it

Departure: One segment or two
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import Place, places_of
from lama_core.errors import UserError
from lama_core.models.devices import to_cpu
from lama_core.models.hf.both_sides import MaskedCopy, TokenHidingModel
from lama_core.models.hf.transformer import pack
from lama_core.models.protocols import Context, Encoded, Kind, Scores, WordScore
from lama_core.models.vocabulary import token_ids
from lama_core.types import Query


class MaskedModel(TokenHidingModel):
    """Fills blanks from the context on both sides."""

    kind: Kind = "masked"

    @property
    def mask_id(self) -> int:
        return int(self.tokenizer.mask_token_id)

    def logits_of(self, copies: Sequence[MaskedCopy]) -> torch.Tensor:
        where = (torch.arange(len(copies)), torch.tensor([copy.at for copy in copies]))
        ids = torch.tensor([copy.ids for copy in copies])
        return self.forward(where, **self.inputs_of(ids))[0][:, None]

    def without(self, encoded: Encoded, at: int) -> Encoded:
        """Return the text with one token masked."""
        ids = list(encoded.token_ids)
        ids[at] = self.mask_id
        return replace(encoded, token_ids=tuple(ids))

    @property
    def hidden_id(self) -> int:
        return self.mask_id

    @cached_property
    def separator(self) -> int | None:
        """Id of the token between two segments; None for a model without two token types."""
        _, after = self.vocabulary.frame
        n_types = getattr(self.model.config, "type_vocab_size", None) or 0
        inputs = getattr(self.tokenizer, "model_input_names", ("token_type_ids",))
        has_types = n_types > 1 and "token_type_ids" in inputs
        return after[0] if has_types and len(after) == 1 else None

    def _on_device(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Move the inputs to the model's device; add token types if a row has two segments.

        They are 1 after the first separator, else 0 (as padding).
        """
        if "input_ids" in inputs and self.separator is not None:
            is_separator = (inputs["input_ids"] == self.separator).long()
            types = (is_separator.cumsum(1) - is_separator).clamp(max=1)
            if (mask := inputs.get("attention_mask")) is not None:
                types = types * mask.to(types.device)
            if types.any():
                inputs = inputs | {"token_type_ids": types}
        return super()._on_device(inputs)

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        return self.encode_all([query], context)[0]

    def encode_all(self, queries: Sequence[Query], *context: Context) -> list[Encoded]:
        """Encode queries; one call of the fast tokenizer is much faster than one per query.

        Queries with two segments or control tokens are encoded separately, and those in which the
        tokenizer reads the text after a mask as a new word.
        """
        mask = self.tokenizer.mask_token
        places = [places_of(query) for query in queries]
        plain = [
            number
            for number, query in enumerate(queries)
            if query.second is None
            and not any(map(self._special.search, query.parts))
            and not any([self._joins(place.right) for place in places[number]])
        ]
        texts = [queries[number].text(mask) for number in plain]
        tokenized = token_ids(self.tokenizer, texts) if texts else []
        known = dict(zip(plain, tokenized, strict=True))
        mask_id = self.tokenizer.mask_token_id  # transformers takes 10 µs to look it up
        found = []
        for number, (query, here) in enumerate(zip(queries, places, strict=True)):
            ids = known.get(number) or self._joined(query)
            self.check_window(len(ids))
            positions = tuple([at for at, token in enumerate(ids) if token == mask_id])
            if len(positions) != len(here):
                raise UserError(
                    f"{self.name} finds {len(positions)} blanks in a text with {len(here)}: "
                    "put a space on both sides of each blank."
                )
            found.append(Encoded(tuple(ids), positions, here))
        return found

    def _joined(self, query: Query) -> list[int]:
        """Return the token ids of a query with two segments, or with control tokens as text.

        Raises UserError for two segments if the model has no token types.
        """
        before, after = self.vocabulary.frame
        if query.second is not None:
            if self.separator is None:
                raise UserError(
                    f"{self.name} can't read two segments, because it has no two token types. "
                    "Remove --segments."
                )
            at, character = query.second
            divided = query.parts[at]
            first = Query((*query.parts[:at], divided[:character]))
            second = Query((divided[character:], *query.parts[at + 1 :]))
            return self._joined(first) + self._joined(second)[len(before) :]
        parts = list(query.parts)
        if self._mask_takes_space:
            parts[:-1] = [part.rstrip() for part in parts[:-1]]
        ids = list(before)
        for number, part in enumerate(parts):
            follows = number and not part[:1].isspace()
            read = self.vocabulary.encode_after if follows else self.vocabulary.encode
            ids += ([self.tokenizer.mask_token_id] if number else []) + read(part)
        return ids + after

    def _joins(self, right: str) -> bool:
        """Whether a text has other tokens after a word than after the mask token.

        WordPiece's `##s` continues a word, and SentencePiece marks where one begins.
        """
        if not right:
            return False
        if right not in self._joined_texts:
            mask = self.tokenizer.mask_token
            alone, whole = self.tokenizer([mask, mask + right], add_special_tokens=False)[
                "input_ids"
            ]
            self._joined_texts[right] = whole != [*alone, *self.vocabulary.encode_after(right)]
        return self._joined_texts[right]

    @cached_property
    def _special(self) -> re.Pattern[str]:
        """Matches the control tokens as text."""
        return re.compile("|".join(map(re.escape, self.vocabulary.special_texts)))

    @cached_property
    def _joined_texts(self) -> dict[str, bool]:
        """Text -> whether `_joins` it, for the texts that were looked up so far."""
        return {}

    @cached_property
    def _mask_takes_space(self) -> bool:
        """Whether the mask token includes the space on its left, as RoBERTa's does."""
        mask = self.tokenizer.mask_token
        spaced, joined = self.tokenizer([f"a {mask}", f"a{mask}"])["input_ids"]
        return spaced == joined

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        places: list[Place] = [place for query in batch for place in query.places]
        return self.pick(self.logits(*pack(batch)), places, columns)

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Log-probability of any word at a blank; its tokens fill one mask each, left to right."""
        ids, start, pieces = self._masked(self.encode(query, context), blank, word)
        if self.tokenizer.unk_token_id in pieces:
            return self.word_score(pieces, -np.inf)
        total = 0.0
        for number, piece in enumerate(pieces):
            logits = self.logits([ids], [[start + number]])
            total += float(to_cpu(torch.log_softmax(logits, dim=1)[0, piece]))
            ids[start + number] = piece
        return self.word_score(pieces, total)

    def masked_word_log_probs(self, asked: Sequence[tuple[Query, str]]) -> list[WordScore]:
        """Log-probability of each word at its query's first blank; all its tokens are masked."""
        encoded = self.encode_all([query for query, _ in asked])
        words = [word for _, word in asked]
        masked = [self._masked(one, 0, word) for one, word in zip(encoded, words, strict=True)]
        wanted = [range(start, start + len(pieces)) for _, start, pieces in masked]
        log_probs = to_cpu(
            torch.log_softmax(self.logits([ids for ids, _, _ in masked], wanted), dim=1)
        )
        parts = log_probs.split([len(pieces) for _, _, pieces in masked])
        return [
            self.word_score(pieces, float(part[range(len(pieces)), pieces].sum()))
            for (_, _, pieces), part in zip(masked, parts, strict=True)
        ]

    def _masked(
        self, encoded: Encoded, blank: int, word: str
    ) -> tuple[list[int], int, tuple[int, ...]]:
        """Replace a blank's mask with one mask for each subword token of a word.

        Return the query's tokens, the position of the first mask, and the word's subword tokens.
        Raises UserError if the query doesn't fit the model's window.
        """
        start = encoded.positions[blank]
        pieces = self.vocabulary.pieces(word, encoded.places[blank])
        ids = list(encoded.token_ids)
        ids[start : start + 1] = [int(self.tokenizer.mask_token_id)] * len(pieces)
        self.check_window(len(ids))
        return ids, start, pieces
