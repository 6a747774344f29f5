"""The reference of scores: transformers' own model, asked one text at a time.

Nothing is cut, padded or read from a cache of the model's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from tiny_models import sentinel_of

from lama_core.types import Query


@dataclass(frozen=True)
class Plain:
    """transformers' own model and tokenizer."""

    model: Any
    tokenizer: Any
    kind: str
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], torch.Tensor] = field(default_factory=dict)

    def log_probs(self, ids: Sequence[int], said: Sequence[int] = ()) -> torch.Tensor:
        """float32 [position, vocabulary] of one text, or of what a decoder says to it."""
        key = (tuple(ids), tuple(said))
        if key not in self.known:
            more: dict[str, Any] = {"labels": torch.tensor([list(said)])} if said else {}
            if self.kind == "causal":
                more["use_cache"] = False
            with torch.no_grad():
                logits = self.model(input_ids=torch.tensor([list(ids)]).long(), **more).logits
            self.known[key] = logits[0].float().log_softmax(-1)
        return self.known[key]

    def after(self, ids: Sequence[int], said: Sequence[int]) -> torch.Tensor:
        """float32 [vocabulary] of the token after a text and what was said to it, if anything."""
        if self.kind == "seq2seq":
            return self.log_probs(ids, [*said, 0])[len(said)]
        return self.log_probs([*ids, *said])[-1]

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text)["input_ids"])

    def start(self) -> int:
        one = self.tokenizer.bos_token_id
        return int(self.tokenizer.eos_token_id if one is None else one)

    def hidden(self, n: int) -> int:
        if self.kind == "masked":
            return int(self.tokenizer.mask_token_id)
        return sentinel_of(self.tokenizer, n)

    def at_blanks(self, query: Query) -> torch.Tensor:
        """float32 [blank, vocabulary]; of a decoder, at the first blank alone."""
        if self.kind == "causal":
            return self.log_probs(self.ids(query.parts[0].rstrip()) or [self.start()])[-1:]
        ids = self.with_hidden(query, [self.hidden(n) for n in range(query.n_blanks)])
        if self.kind == "masked":
            return self.log_probs(ids)[torch.tensor(ids) == self.tokenizer.mask_token_id]
        return self.log_probs(ids, [self.hidden(0), self.tokenizer.get_vocab()["▁Paris"]])[1:]

    def with_hidden(self, query: Query, hidden: list[int]) -> list[int]:
        """The tokens of a text with a word in each blank, the words' tokens replaced by these."""
        ids: list[int] = []
        encoded = self.tokenizer(query.text("Paris"), return_offsets_mapping=True)
        starts = [len(Query(query.parts[: n + 1]).text("Paris")) for n in range(query.n_blanks)]
        last = -1
        spans = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        for token, (start, end) in spans:
            inside = [n for n, word in enumerate(starts) if start < word + 5 and end > word]
            if not inside:
                ids.append(token)
            elif inside[0] != last:
                last = inside[0]
                ids.append(hidden[last])
        return ids

    def chain(self, ids: Sequence[int], first: int) -> list[float]:
        """Of each token from `first` on, given those before it; NaN where none is."""
        rows = self.log_probs(ids)
        return [float(rows[at - 1, ids[at]]) if at else np.nan for at in range(first, len(ids))]

    def of_word(self, query: Query, word: str, pieces: Sequence[int]) -> float:
        """Of a word in the blank by its pieces: in turn, by the chain rule, or by a decoder."""
        if self.kind == "causal":
            left = len(self.ids(query.parts[0].rstrip()))
            return sum(self.chain(self.ids(query.parts[0] + word), left))
        if self.kind == "seq2seq":
            pieces = self.tokenizer(f"Paris {word}", add_special_tokens=False)["input_ids"]
            pieces = pieces[len(self.tokenizer("Paris", add_special_tokens=False)["input_ids"]) :]
            ids = self.with_hidden(query, [self.hidden(0)])
            rows = self.log_probs(ids, [self.hidden(0), *pieces, self.hidden(1)])
            return sum(float(rows[1 + n, piece]) for n, piece in enumerate(pieces))
        ids = self.ids(query.text(self.tokenizer.mask_token * len(pieces)))
        found, at = 0.0, ids.index(self.tokenizer.mask_token_id)
        for place, piece in enumerate(pieces, start=at):
            found += float(self.log_probs(ids)[place, piece])
            ids[place] = piece
        return found

    def of_tokens(self, text: str, answer: slice | None, hiding: str) -> list[float]:
        """Of each token of a text, what `hiding` says hidden with it. answer: its characters."""
        if self.kind == "causal":
            whole = self.ids(text)
            body = self.tokenizer(text, add_special_tokens=False)["input_ids"]
            start = whole[: len(whole) - len(body)]
            if not start and answer is not None and not text[: answer.start].strip():
                known = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
                start = [token for token in known if token is not None][:1]
            return self.chain([*start, *body], len(start))
        encoded = self.tokenizer(text, return_offsets_mapping=True)
        ids, words = list(encoded["input_ids"]), encoded.word_ids(0)
        spans = encoded["offset_mapping"] if answer else []
        together = {
            at
            for at, (first, end) in enumerate(spans)
            if hiding == "rest-of-answer" and first < answer.stop and end > answer.start
        }
        if self.kind == "seq2seq":  # which says a whole word, or the answer
            words = [-1 if at in together else word for at, word in enumerate(words)]
        found, at = [], 0
        while at < len(ids):
            end = max(together) + 1 if at in together else self._end(words, at, hiding)
            if words[at] is None:
                at += 1
            elif self.kind == "masked":
                rest = ids[end:] if hiding != "rest-of-sentence" else []
                hidden = [self.hidden(0)] * (len(ids) - at - len(rest))
                found.append(float(self.log_probs([*ids[:at], *hidden, *rest])[at, ids[at]]))
                at += 1
            else:
                said = [self.hidden(0), *ids[at:end]]
                rows = self.log_probs([*ids[:at], self.hidden(0), *ids[end:]], said)
                found += [float(rows[1 + n, ids[at + n]]) for n in range(end - at)]
                at = end
        return found

    @staticmethod
    def _end(words: list[int | None], at: int, hiding: str) -> int:
        """Where what is hidden from a token on ends, special tokens at the end aside."""
        end = at + 1
        while hiding != "original" and end < len(words) and words[end] is not None:
            if hiding != "rest-of-sentence" and words[end] != words[at]:
                break
            end += 1
        return end
