"""Encoder-decoder models that were trained to say what is left out of a text: T5, mT5, UMT5.

The encoder reads the text with a sentinel in the place of the blank, and the decoder begins with
the same sentinel; what it says next stands in the blank:

    P(w) = P(w | `The capital of France is <extra_id_0>.`, `<start> <extra_id_0>`)

A word of several pieces follows the chain rule in the decoder. That the answer ends behind the
word is not scored, as it isn't of a causal model. Blanks right of the one that is asked have
sentinels of their own. Source: Raffel et al. 2020, section 3.1.4.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers.modeling_outputs import BaseModelOutput

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import Place, place_of
from lama_core.errors import UserError
from lama_core.models.base import Context, Encoded, Kind, Scores, TokenScores, WordScore
from lama_core.models.devices import device_of, host
from lama_core.models.transformer import Transformer, window
from lama_core.types import Query

# Copies of sentences that go through the encoder together, in tokens.
TOKENS_PER_BATCH = 2048
# Of the texts that mT5 was trained on, the longest of the family; not every folder says a window.
LONGEST = 1024


class Seq2SeqModel(Transformer):
    """Fills blanks with what its decoder says for them, from what stands on both sides."""

    kind: Kind = "seq2seq"

    def __init__(self, name: str, model: Any, tokenizer: Any, *, identity: str) -> None:
        """Raises UserError if nothing says what the decoder begins with."""
        _keep_unscaled(model)
        super().__init__(name, model, tokenizer, identity=identity)
        if model.base_model is model:  # T5's family has no body around its decoder
            model.get_decoder().register_forward_hook(self._cut)
        self.max_tokens = min(
            LONGEST, self.max_tokens, window(model.get_encoder().config, tokenizer)
        )
        sentinel = self.vocabulary.sentinels[0]
        try:
            begun = model.prepare_decoder_input_ids_from_labels(labels=torch.tensor([[sentinel]]))
        except ValueError as error:
            raise UserError(f"{name}: its config.json has no decoder_start_token_id.") from error
        self._begin = [int(begun[0, 0]), sentinel]

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        """The text with a sentinel in each blank, of which the first is asked.

        `context` is always both sides. Raises UserError for more blanks than there are sentinels.
        """
        sentinels = self.vocabulary.sentinels
        if query.n_blanks > len(sentinels):
            raise UserError(
                f"The text has {query.n_blanks} blanks and {self.name} knows {len(sentinels)}."
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

    def encode_all(self, queries: Sequence[Query], context: Context = "both") -> list[Encoded]:
        """Many queries, in their order."""
        return [self.encode(query, context) for query in queries]

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        """Scores of the candidates, a row for each query."""
        places: list[Place] = [query.places[0] for query in batch]
        return self.pick(self._first_logits([query.token_ids for query in batch]), places, columns)

    def _first_logits(self, texts: Sequence[Sequence[int]]) -> torch.Tensor:
        """Logits of what stands first in the first blank of each text, float32 [text, vocabulary].

        texts: token ids, padded here.
        """
        device = device_of(self.model)
        width = max(len(text) for text in texts)
        padding = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([[*text, *[padding] * (width - len(text))] for text in texts])
        lengths = torch.tensor([len(text) for text in texts])
        mask = (torch.arange(width) < lengths[:, None]).long()
        begun = torch.tensor(self._begin).repeat(len(texts), 1)
        where = (torch.arange(len(texts)), torch.full((len(texts),), len(self._begin) - 1))
        logits, _ = self.forward(
            where,
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            decoder_input_ids=begun.to(device),
        )
        return logits

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Log-probability of any word at the first blank, by the chain rule in the decoder."""
        if blank:
            raise ValueError("an encoder-decoder model is asked for the first blank of a text")
        encoded = self.encode(query, context)
        pieces = list(self.vocabulary.pieces(word, encoded.places[0]))
        shown = self.vocabulary.show_text(pieces)
        if self.tokenizer.unk_token_id in pieces:
            return WordScore(shown, -np.inf)
        states = self._read(encoded.token_ids)
        device = device_of(self.model)
        said = torch.tensor([[*self._begin, *pieces[:-1]]], device=device)
        at = torch.arange(len(self._begin) - 1, said.shape[1])
        logits, _ = self.forward(
            (torch.zeros_like(at), at),
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=torch.ones(states.shape[:2], dtype=torch.int64, device=device),
            decoder_input_ids=said,
        )
        total = float(host(torch.log_softmax(logits, dim=1))[range(len(pieces)), pieces].sum())
        return WordScore(shown, total)

    def _read(self, text: tuple[int, ...]) -> torch.Tensor:
        """What the encoder makes of a text, [1, token, hidden]; the last one is kept, by thread."""
        if getattr(self._here, "text", None) != text:
            ids = torch.tensor([text], device=device_of(self.model))
            with self._passing():
                output = self.model.get_encoder()(
                    input_ids=ids, attention_mask=torch.ones_like(ids)
                )
            self._here.text, self._here.states = text, output[0]
        return self._here.states

    def token_log_probs(self, texts: Sequence[str]) -> list[TokenScores]:
        """Log-probability of each token of each text, left out in turn.

        A sentinel stands for the token in the encoder, and the decoder's first word is scored:
        the pseudo-log-likelihood (Wang and Cho 2019) of a model that fills spans. Copies of one
        length share batches, so nothing is padded.
        """
        bodies = {text: self.text_ids(text) for text in texts}
        before, after = self.vocabulary.frame
        copies = [
            (text, number, [*before, *body[:number], self._begin[1], *body[number + 1 :], *after])
            for text, body in sorted(bodies.items(), key=lambda item: -len(item[1]))
            for number in range(len(body))
        ]
        scores = {text: np.empty(len(body), np.float32) for text, body in bodies.items()}
        while copies:
            width = len(copies[0][2])
            self.check_window(width)
            n_same = sum(len(row) == width for _, _, row in copies)
            batch = copies[: min(n_same, max(1, TOKENS_PER_BATCH // width))]
            copies = copies[len(batch) :]
            logits = self._first_logits([row for _, _, row in batch])
            targets = torch.tensor([bodies[text][number] for text, number, _ in batch])
            chosen = logits.gather(1, targets.to(logits.device)[:, None])[:, 0]
            values = host(chosen - torch.logsumexp(logits, dim=1)).tolist()
            for (text, number, _), value in zip(batch, values, strict=True):
                scores[text][number] = value
        return [
            TokenScores(self.vocabulary.show_text(bodies[text]), scores[text]) for text in texts
        ]


def _keep_unscaled(model: Any) -> None:
    """Undo a scaling that isn't UMT5's.

    T5 divides its decoder's last states by the root of their width where the head is the embedding
    itself. transformers 5.23 does so in UMT5 with a head of its own, too, such as the released one,
    which makes all words nearly alike.
    """
    if model.config.model_type == "umt5" and model.lm_head.weight is not model.shared.weight:
        model.config.tie_word_embeddings = False  # read by its forward pass alone
