"""Encoder-decoder models that were trained to say what is left out of a text: T5, mT5, UMT5.

The encoder reads the text with a sentinel in the place of the blank, and the decoder begins with
the same sentinel; what it says next stands in the blank:

    P(w) = P(w | `The capital of France is <extra_id_0>.`, `<start> <extra_id_0>`)

A word of several pieces follows the chain rule in the decoder. That the answer ends behind the
word is not scored, as it isn't of a causal model. Blanks right of the one that is asked have
sentinels of their own. Source: Raffel et al. 2020, section 3.1.4.
Departure: Encoder-decoder models
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from transformers.modeling_outputs import BaseModelOutput

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import Place, place_of
from lama_core.errors import UserError
from lama_core.models.devices import fitting, host
from lama_core.models.hf.both_sides import BothSides, LeftOut, asked_tokens, span_of
from lama_core.models.protocols import Context, Encoded, Hiding, Kind, Scored, Scores, WordScore
from lama_core.models.vocabulary import TextTokens
from lama_core.types import Query

# Not every folder says a window. No T5 was trained on longer texts than mT5, which saw this many.
UNSAID, LONGEST = 1 << 20, 1024


class Seq2SeqModel(BothSides):
    """Fills blanks with what its decoder says for them, from what stands on both sides."""

    kind: Kind = "seq2seq"

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        """Raises UserError if nothing says what the decoder begins with."""
        _keep_unscaled(model)
        super().__init__(name, model, tokenizer, identity=identity)
        if self.max_tokens > UNSAID:
            self.max_tokens = LONGEST
        try:
            begun = model.prepare_decoder_input_ids_from_labels(labels=torch.tensor([[self.sign]]))
        except ValueError as error:
            raise UserError(f"{name}: its config.json has no decoder_start_token_id.") from error
        self._begun = [int(begun[0, 0]), self.sign]

    @property
    def sign(self) -> int:
        return self.vocabulary.sentinels[0]

    def logits_at(self, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return self._said_first(ids, torch.ones_like(ids))

    def plain_logits(self, row: Sequence[int]) -> torch.Tensor:
        """Logits of one text behind the decoder's start and its sentinel, float32 [2, vocabulary].

        In one uncut pass.
        """
        with self._passing():
            ids = torch.tensor([list(row)], device=self.device)
            said = torch.tensor([self._begun], device=self.device)
            return self.model(input_ids=ids, decoder_input_ids=said).logits[0].float()

    def inputs_of(self, ids: torch.Tensor) -> dict[str, Any]:
        """What a pass over texts of one length is given: the decoder says what is in the blank."""
        said = torch.tensor(self._begun).repeat(len(ids), 1)
        more = {"decoder_input_ids": said, "use_cache": False}
        return {**super().inputs_of(ids), **more}

    def read_at(self, encoded: Encoded) -> int:
        return len(self._begun) - 1

    @property
    def text_embeddings(self) -> Any:
        return self.model.get_encoder().get_input_embeddings()

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        """The text with a sentinel in each blank, of which the first is asked.

        `context` is always both sides. Raises UserError for more blanks than there are sentinels.
        """
        sentinels = self.vocabulary.sentinels
        if query.n_blanks > len(sentinels):
            raise UserError(
                f"The text has {query.n_blanks} blanks and {self.name} can tell {len(sentinels)} "
                "apart: ask fewer at a time."
            )
        before, after = self.vocabulary.frame
        # The space before a blank belongs to the word in it.
        left, *others = (part.rstrip() for part in query.parts)
        ids = before + self.text_ids(left)
        position = len(ids)
        for sentinel, part in zip(sentinels, others, strict=False):
            ids += [sentinel, *self.vocabulary.encode_after(part)]
        ids += after
        self.check_window(len(ids))
        return Encoded(tuple(ids), (position,), (place_of(query.parts[0]),))

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        places: list[Place] = [query.places[0] for query in batch]
        last = [len(self._begun) - 1]
        logits = self.logits([query.token_ids for query in batch], [last] * len(batch))
        return self.pick(logits, places, columns)

    def _logits(
        self, rows: Sequence[Sequence[int]], positions: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        ids, mask = self.padded(rows)
        return self._said_first(ids, mask)

    def _said_first(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits behind the decoder's sentinel, float32 [text, vocabulary]."""
        n = len(ids)
        where = (torch.arange(n), torch.full((n,), len(self._begun) - 1))
        return self.forward(where, **self.inputs_of(ids) | {"attention_mask": mask})[0]

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Log-probability of any word at the first blank, by the chain rule in the decoder."""
        if blank:
            raise ValueError("an encoder-decoder model is asked for the first blank of a text")
        encoded = self.encode(query, context)
        pieces = list(self.vocabulary.pieces(word, encoded.places[0]))
        if self.tokenizer.unk_token_id in pieces:
            return self.word_score(pieces, -np.inf)
        states = fitting(lambda: self._read(encoded.token_ids))
        said = torch.tensor([[*self._begun, *pieces[:-1]]])
        at = torch.arange(len(self._begun) - 1, said.shape[1])
        logits, _ = self.forward(
            (torch.zeros_like(at), at),
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=torch.ones(states.shape[:2], dtype=torch.int64),
            decoder_input_ids=said,
            use_cache=False,
        )
        log_probs = host(torch.log_softmax(logits, dim=1))
        return self.word_score(pieces, float(log_probs[range(len(pieces)), pieces].sum()))

    def copies(
        self, read: TextTokens, number: int, hiding: Hiding, scored: Scored
    ) -> Iterator[LeftOut]:
        """A word, the answer or the sentence is left out whole.

        The decoder says its tokens by the chain rule, which hides the later ones.
        """
        if hiding == "original":
            yield from super().copies(read, number, hiding, scored)
            return
        before, after = self.vocabulary.frame
        spans = {said_together(read, token, hiding) for token in asked_tokens(read, scored)}
        for first, end in sorted(spans):
            ids = (*before, *read.ids[:first], self.sign, *read.ids[end:], *after)
            yield LeftOut(ids, len(before) + first, read.ids[first:end], number, first)

    def logits_of(self, some: Sequence[LeftOut]) -> torch.Tensor:
        n, n_pieces = len(some), len(some[0].pieces)
        said = torch.tensor([[*self._begun, *one.pieces[:-1]] for one in some])
        at = torch.arange(len(self._begun) - 1, said.shape[1])
        where = (torch.arange(n).repeat_interleave(n_pieces), at.repeat(n))
        inputs = self.inputs_of(torch.tensor([one.ids for one in some]))
        return self.forward(where, **inputs | {"decoder_input_ids": said})[0].view(n, n_pieces, -1)

    def _read(self, text: tuple[int, ...]) -> torch.Tensor:
        """What the encoder makes of a text, [1, token, hidden]; the last one is kept, by thread."""
        if getattr(self._here, "text", None) != text:
            ids = torch.tensor([text], device=self.device)
            with self._passing():
                encoder = self.model.get_encoder()
                states = encoder(input_ids=ids, attention_mask=torch.ones_like(ids))[0]
            self._here.text, self._here.states = text, states
        return self._here.states


def said_together(read: TextTokens, token: int, hiding: Hiding) -> tuple[int, int]:
    """The tokens that are left out with a token and said together: the first, the one behind.

    Each token is said once: of a word that holds the answer, the rest is left out without it.
    """
    first, end = span_of(read, token, hiding)
    if hiding != "rest-of-answer":
        return first, end
    others = np.flatnonzero(read.marked != read.marked[token])
    first = max([first, *(others[others < token] + 1).tolist()])
    return first, min([end, *others[others > token].tolist()])


def _keep_unscaled(model: Any) -> None:
    """Undo a scaling that isn't UMT5's.

    T5 divides its decoder's last states by the root of their width where the head is the embedding
    itself. transformers 5.23 does so in UMT5 with a head of its own, too, such as the released one,
    which makes all words nearly alike.
    """
    if model.config.model_type == "umt5" and model.lm_head.weight is not model.shared.weight:
        model.config.tie_word_embeddings = False  # read by its forward pass alone
