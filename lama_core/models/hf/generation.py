"""Greedy generation: add the most likely token to a prompt until the answer's line ends.

A prompt is a plain text, or messages that the tokenizer's chat template makes one text. Causal
models read several prompts together, padded on the left; the beginnings that prompts share (the
examples of a relation) are computed once, and a finished text leaves the batch. Encoder-decoder
models read the prompt with their encoder. The result is that of `transformers.generate` with
`do_sample=False` on each prompt alone, decoded with `skip_special_tokens`, except for rounding: of
two tokens with almost the same probability, the batch can decide which one is chosen.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from lama_core.errors import ControlTokenError, UserError
from lama_core.models.answers import FoundAnswer, find_answer, is_paired, opened_block
from lama_core.models.devices import to_cpu
from lama_core.models.hf.chat_templates import render_chat, stored_template
from lama_core.models.hf.continuation import CausalBatch, batches_to_continue, shared_prefixes
from lama_core.models.hf.self_checks import find_lookback
from lama_core.models.protocols import Chat, Ending, GeneratedText
from lama_core.progress import Progress, report_step


def generate(
    model: Any, prompts: Sequence[str | Chat], max_tokens: int, until: float = math.inf
) -> list[GeneratedText]:
    """Return the greedy continuation of each prompt: its first line with text, after any reasoning.

    Args:
        model: A causal or encoder-decoder model (`CausalModel`, `Seq2SeqModel`).
        prompts: Plain texts, which are tokenised as the model's tokenizer does by default, or
            chats, which go through its chat template.
        max_tokens: Maximum number of tokens to generate for a prompt.
        until: Time (`time.monotonic`) at which generation stops; unfinished texts are returned as
            they are.

    Raises:
        UserError: If a prompt and its continuation don't fit the model's window, the tokenizer has
            no chat template for a chat or it can't be used, or a chat contains one of the
            tokenizer's control tokens.
    """
    rows = [checked_ids(model, prompt, max_tokens) for prompt in prompts]
    # The padding between a shared beginning and the rest must not push tokens out of a window.
    width = 2 * max(map(len, rows), default=0) + max_tokens
    shares = model.kind == "causal" and model.shares and width <= find_lookback(model.model.config)
    # Each distinct prompt is continued once; sorted, prompts with the same beginning share a batch.
    different = sorted(set(map(tuple, rows)))
    chats = {
        tuple(ids) for ids, prompt in zip(rows, prompts, strict=True) if not isinstance(prompt, str)
    }
    if not shares:
        different.sort(key=len, reverse=True)
    special = _special_ids(model.tokenizer) | frozenset(model.vocabulary.sentinels)
    found: dict[tuple[int, ...], GeneratedText] = {}
    for some in batches_to_continue(model, different, max_tokens):
        batch = (
            _Seq2SeqBatch(model, some)
            if model.kind == "seq2seq"
            else CausalBatch(
                model, some, prefixes=shared_prefixes(list(map(list, some))) if shares else ()
            )
        )
        readers = [_Reader(model.tokenizer, special, ids, is_chat=ids in chats) for ids in some]
        found |= zip(some, _greedy(model, batch, readers, max_tokens, until), strict=True)
    return [found[tuple(ids)] for ids in rows]


def checked_ids(model: Any, prompt: str | Chat, max_tokens: int) -> list[int]:
    """Return `prompt_ids`; raise UserError if prompt and continuation don't fit the window."""
    ids = prompt_ids(model, prompt)
    if max(ids) >= model.vocabulary.size:
        raise ControlTokenError(
            f"The question contains {model.tokenizer.convert_ids_to_tokens(max(ids))!r}, a control "
            f"token that {model.name} lacks: remove it."
        )
    # An encoder-decoder model reads the prompt and writes the answer in different windows.
    model.check_window(len(ids) if model.kind == "seq2seq" else len(ids) + max_tokens)
    return ids


def prompt_ids(model: Any, prompt: str | Chat) -> list[int]:
    """Return the token ids of a prompt, with the special tokens that its model expects."""
    tokenizer = model.tokenizer
    if isinstance(prompt, str):
        ids = list(tokenizer(prompt)["input_ids"])
        if not ids:
            raise UserError(f"The prompt has no tokens for {model.name}: write a question.")
        return ids
    for message in prompt.messages:
        for control in tokenizer.all_special_tokens:
            if control in message.text:
                raise ControlTokenError(
                    f"The question contains {control!r}, a control token of {model.name}: "
                    "remove it."
                )
    text = render_chat(model.name, tokenizer, prompt)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _greedy(
    model: Any,
    batch: "CausalBatch | _Seq2SeqBatch",
    readers: Sequence["_Reader"],
    max_tokens: int,
    until: float,
) -> list[GeneratedText]:
    """Generate until every text of the batch has ended, or the time is over."""
    ends = _end_tokens(model)
    ids: list[list[int]] = [[] for _ in range(batch.size)]
    log_probs: list[list[float]] = [[] for _ in range(batch.size)]
    running = list(range(batch.size))
    logits = batch.first()
    for step in range(max_tokens):
        model.check_numbers(logits.logsumexp(1))
        best = logits.max(dim=1)
        values = to_cpu(best.values - logits.logsumexp(1)).tolist()
        tokens = to_cpu(best.indices).tolist()
        kept = []
        for place, number in enumerate(running):
            if tokens[place] not in ends:
                ids[number].append(tokens[place])
                log_probs[number].append(values[place])
                if not readers[number].read(ids[number])[1].is_whole:
                    kept.append(place)
        running = [running[place] for place in kept if step + 1 < max_tokens]
        if not running or time.monotonic() >= until:
            break
        report_step(Progress("Writing", step + 1, max_tokens, "tokens"))
        logits = batch.next(tokens, kept)
    return [
        reader.answer(ids[number], log_probs[number], max_tokens, in_time=number not in running)
        for number, reader in enumerate(readers)
    ]


def _special_ids(tokenizer: Any) -> frozenset[int]:
    """Return the tokens that transformers omits from a text with `skip_special_tokens`."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    added = backend.get_added_tokens_decoder() if backend is not None else {}
    more = {number for number, token in added.items() if token.special}
    return frozenset(more.union(tokenizer.all_special_ids))


class _Reader:
    """Finds the answer to one prompt in the tokens that a model adds to it.

    Special tokens aren't part of a text. Those that a chat template uses, and those that open or
    close a block, are read as marks.
    """

    def __init__(
        self, tokenizer: Any, special: frozenset[int], prompt: Sequence[int], *, is_chat: bool
    ) -> None:
        self.tokenizer, self.special, self.is_chat = tokenizer, special, is_chat
        end = tokenizer.decode(prompt[-16:]) if is_chat else ""  # no mark has more tokens
        self.opened = opened_block(end, self._is_known)

    def _is_known(self, mark: str) -> bool:
        """Return whether the chat template or the vocabulary has a mark."""
        return mark in str(stored_template(self.tokenizer)) or mark in self.tokenizer.get_vocab()

    def read(self, ids: Sequence[int]) -> tuple[str, FoundAnswer]:
        """Return the text of generated tokens without special ones, and where its answer is."""
        decode = self.tokenizer.decode
        plain = [token for token in ids if token not in self.special]
        text = decode(plain)
        marked, n_plain = "", 0  # the text with special tokens
        marks: list[tuple[int, int]] = []  # where these are in it
        for token in ids:
            if token not in self.special:
                n_plain += 1
                continue
            shown = sum(end - start for start, end in marks)
            marked += text[len(marked) - shown : len(decode(plain[:n_plain]))]
            mark = str(decode([token])) if self.is_chat else ""
            is_used = mark in str(stored_template(self.tokenizer))
            mark = mark if is_used or is_paired(mark, self._is_known) else ""
            marks.append((len(marked), len(marked) + len(mark)))
            marked += mark
        marked += text[len(marked) - sum(end - start for start, end in marks) :]
        found = find_answer(self.opened + marked)

        def place(at: int) -> int:
            """Return a place in the text without its marks."""
            at = max(0, at - len(self.opened))
            return at - sum(min(at, end) - start for start, end in marks if start < at)

        return text, replace(found, start=place(found.start), end=place(found.end))

    def answer(
        self, ids: list[int], log_probs: list[float], max_tokens: int, *, in_time: bool
    ) -> GeneratedText:
        """Return the answer in a generated text, and the answer's tokens."""
        decode = self.tokenizer.decode
        text, found = self.read(ids)
        ending: Ending = "cut" if len(ids) == max_tokens and not found.is_whole else "whole"
        ending = "in reasoning" if found.in_reasoning else ending
        kept = [number for number, token in enumerate(ids) if token not in self.special]
        plain = [ids[number] for number in kept]
        first, end = 0, len(plain)
        while found.is_whole and end and decode(plain[: end - 1]).startswith(text[: found.end]):
            end -= 1  # this token has no text before the line break
        while found.start and first < end and len(decode(plain[: first + 1])) <= found.start:
            first += 1  # this token has no text after the reasoning and the empty lines
        return GeneratedText(
            text[found.start : found.end],
            tuple(decode([one]) for one in plain[first:end]),
            np.array([log_probs[number] for number in kept[first:end]], np.float32),
            in_time,
            ending,
            mark=found.mark,
        )


def _end_tokens(model: Any) -> set[int]:
    """Return the ids of the tokens that end a text, as `transformers.generate` finds them.

    Raises UserError if the configuration has something else.
    """
    own = getattr(getattr(model.model, "generation_config", None), "eos_token_id", None)
    ends = model.tokenizer.eos_token_id if own is None else own
    found = ends if isinstance(ends, list) else [] if ends is None else [ends]
    if not all(isinstance(token, int) for token in found):
        raise UserError(
            f"{model.name}: eos_token_id is {str(ends)[:40]!r} in its configuration. Write the "
            "number of the token that ends a text, or a list of such numbers."
        )
    return set(found)


class _Seq2SeqBatch:
    """Prompts of an encoder-decoder model: the encoder reads them once, the decoder answers."""

    def __init__(self, model: Any, rows: Sequence[tuple[int, ...]]) -> None:
        self.model, self.size = model, len(rows)
        ids, self.mask = model.padded(rows)
        with model.passing():
            there = model._on_device({"input_ids": ids, "attention_mask": self.mask})
            self.states = model.model.get_encoder()(**there)[0]
        self.cache: Any = None

    def first(self) -> torch.Tensor:
        """Return the logits after the decoder's start token, float32 [prompt, vocabulary]."""
        return self._pass(torch.full((self.size, 1), self.model._start_ids[0], dtype=torch.int64))

    def next(self, tokens: Sequence[int], kept: Sequence[int]) -> torch.Tensor:
        """Add a token to each kept prompt, drop the others, and return the logits after it."""
        if len(kept) < len(tokens):
            chosen = torch.tensor(kept)
            self.mask = self.mask[chosen]
            there = chosen.to(self.model.device)
            self.states = self.states[there]
            self.cache.reorder_cache(there)
        return self._pass(torch.tensor([[tokens[place]] for place in kept]))

    def _pass(self, said: torch.Tensor) -> torch.Tensor:
        from transformers.modeling_outputs import BaseModelOutput

        where = (torch.arange(len(said)), torch.full((len(said),), said.shape[1] - 1))
        logits, output = self.model.forward(
            where,
            encoder_outputs=BaseModelOutput(last_hidden_state=self.states),
            attention_mask=self.mask,
            decoder_input_ids=said,
            past_key_values=self.cache,
            use_cache=True,
        )
        self.cache = output.past_key_values
        return logits
