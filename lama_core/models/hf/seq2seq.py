"""Encoder-decoder models that were trained to fill hidden spans of a text: T5, mT5, UMT5.

The encoder reads the text with a sentinel in the place of the blank. The decoder starts with the
same sentinel and predicts the blank's text:

    P(w) = P(w | `The capital of France is <extra_id_0>.`, `<start> <extra_id_0>`)

A word of several subword tokens is scored by the chain rule in the decoder. As for causal models,
the end of the answer is not scored. Each further blank of the text has another sentinel.
Source: Raffel et al. 2020, section 3.1.4.
Departure: Encoder-decoder models
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import Place, places_of
from lama_core.errors import UserError
from lama_core.models.devices import run_or_refuse, to_cpu
from lama_core.models.hf.both_sides import MaskedCopy, TokenHidingModel, span_of, tokens_to_score
from lama_core.models.protocols import Context, Encoded, Hiding, Kind, ScoredPart, Scores, WordScore
from lama_core.models.vocabulary import TextTokens
from lama_core.types import Query

# Some configurations give no window, so `max_tokens` is above UNKNOWN_LENGTH. Then mT5's window,
# LONGEST, is used. No T5 was trained on longer texts.
UNKNOWN_LENGTH, LONGEST = 1 << 20, 1024


class Seq2SeqModel(TokenHidingModel):
    """Fills blanks from both sides: the decoder predicts them from the encoded text."""

    kind: Kind = "seq2seq"

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        """Raise UserError if the configuration doesn't give the decoder's start token."""
        if model.config.model_type == "umt5" and model.lm_head.weight is not model.shared.weight:
            model.config.tie_word_embeddings = False  # only its forward pass reads this
        super().__init__(name, model, tokenizer, identity=identity)
        if self.max_tokens > UNKNOWN_LENGTH:
            self.max_tokens = LONGEST
        try:
            start = model.prepare_decoder_input_ids_from_labels(
                labels=torch.tensor([[self.mask_id]])
            )
        except (AttributeError, ValueError) as error:
            raise UserError(f"{name}: its config.json has no decoder_start_token_id.") from error
        self._start_ids = [int(start[0, 0]), self.mask_id]

    @property
    def mask_id(self) -> int:
        return self.vocabulary.sentinels[0]

    def plain_logits(self, row: Sequence[int]) -> torch.Tensor:
        """Logits after the decoder's start token and sentinel, float32 [2, vocabulary], uncut."""
        with self.passing():
            ids = torch.tensor([list(row)], device=self.device)
            start = torch.tensor([self._start_ids], device=self.device)
            return self.model(input_ids=ids, decoder_input_ids=start).logits[0].float()

    def inputs_of(self, ids: torch.Tensor) -> dict[str, Any]:
        """Return the inputs of a pass over texts of one length; the decoder fills the blank."""
        return {
            **super().inputs_of(ids),
            "decoder_input_ids": torch.tensor(self._start_ids).repeat(len(ids), 1),
            "use_cache": False,
        }

    def read_at(self, encoded: Encoded) -> int:
        return len(self._start_ids) - 1

    @property
    def text_embeddings(self) -> Any:
        return self.model.get_encoder().get_input_embeddings()

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        """Encode a text with a sentinel in each blank; the first blank is scored.

        The context is always both sides. Raises UserError if there are more blanks than sentinels.
        """
        sentinels = self.vocabulary.sentinels
        if query.n_blanks > len(sentinels):
            raise UserError(
                f"The text has {query.n_blanks} blanks, but {self.name} has only "
                f"{len(sentinels)} sentinel tokens. Use fewer blanks."
            )
        before, after = self.vocabulary.frame
        # The space before a blank belongs to the word in it.
        left, *others = (part.rstrip() for part in query.parts)
        ids = before + self.vocabulary.encode(left)
        position = len(ids)
        for sentinel, part in zip(sentinels, others, strict=False):
            ids += [sentinel, *self.vocabulary.encode_after(part)]
        ids += after
        self.check_window(len(ids))
        return Encoded(tuple(ids), (position,), places_of(query)[:1])

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        places: list[Place] = [query.places[0] for query in batch]
        at = [[len(self._start_ids) - 1]] * len(batch)
        logits = self.logits([query.token_ids for query in batch], at)
        return self.pick(logits, places, columns)

    def _logits(
        self, rows: Sequence[Sequence[int]], positions: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        ids, mask = self.padded(rows)
        where = (torch.arange(len(ids)), torch.full((len(ids),), len(self._start_ids) - 1))
        return self.forward(where, **self.inputs_of(ids) | {"attention_mask": mask})[0]

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Log-probability of any word at the first blank, by the chain rule in the decoder."""
        if blank:
            raise ValueError("an encoder-decoder model scores the first blank of a text only")
        encoded = self.encode(query, context)
        pieces = list(self.vocabulary.pieces(word, encoded.places[0]))
        if self.tokenizer.unk_token_id in pieces:
            return self.word_score(pieces, -np.inf)
        copy = MaskedCopy(encoded.token_ids, encoded.positions[0], tuple(pieces), 0, 0)
        logits = run_or_refuse(lambda: self.logits_of([copy]))[0]
        log_probs = to_cpu(torch.log_softmax(logits, dim=1))
        return self.word_score(pieces, float(log_probs[range(len(pieces)), pieces].sum()))

    def copies(
        self, read: TextTokens, number: int, hiding: Hiding, scored: ScoredPart
    ) -> Iterator[MaskedCopy]:
        """Yield a copy of a text for each span to score, with one mask in the span's place.

        `hiding` decides what a span is: a word, the answer or the text. The decoder predicts the
        span's tokens from left to right (chain rule).
        """
        if hiding == "original":
            yield from super().copies(read, number, hiding, scored)
            return
        before, after = self.vocabulary.frame
        spans = set()
        for token in tokens_to_score(read, scored):
            first, end = span_of(read, token, hiding)
            if hiding == "rest-of-answer":
                # Each token is decoded once: an answer within a word and the rest of that word are
                # separate spans.
                others = np.flatnonzero(read.marked != read.marked[token])
                first = max([first, *(others[others < token] + 1).tolist()])
                end = min([end, *others[others > token].tolist()])
            spans.add((first, end))
        for first, end in sorted(spans):
            ids = (*before, *read.ids[:first], self.mask_id, *read.ids[end:], *after)
            yield MaskedCopy(ids, len(before) + first, read.ids[first:end], number, first)

    def logits_of(self, copies: Sequence[MaskedCopy]) -> torch.Tensor:
        n, n_pieces = len(copies), len(copies[0].pieces)
        decoded = torch.tensor([[*self._start_ids, *copy.pieces[:-1]] for copy in copies])
        at = torch.arange(len(self._start_ids) - 1, decoded.shape[1])
        where = (torch.arange(n).repeat_interleave(n_pieces), at.repeat(n))
        inputs = self.inputs_of(torch.tensor([copy.ids for copy in copies]))
        inputs |= {"decoder_input_ids": decoded}
        return self.forward(where, **inputs)[0].view(n, n_pieces, -1)
