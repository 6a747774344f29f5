"""Greedy generation: add the most likely token to a prompt until the answer's line ends.

A prompt is a plain text, or messages that the tokenizer's chat template makes one text. Causal
models read several prompts together, padded on the left; the beginnings that prompts share (the
examples of a relation) are computed once, and a finished text leaves the batch. Encoder-decoder
models read the prompt with their encoder. The result is that of `transformers.generate` with
`do_sample=False` on each prompt alone, except for rounding: of two tokens with almost the same
probability, the batch can decide which one is chosen.
"""

import inspect
import math
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from lama_core.errors import ControlTokenError, UserError
from lama_core.models.answers import find_answer
from lama_core.models.devices import to_cpu
from lama_core.models.hf.chat_templates import render_chat
from lama_core.models.hf.self_checks import find_lookback
from lama_core.models.protocols import Chat, Ending, GeneratedText

ROWS_PER_BATCH = 64
# A batch's cache may hold at least this many tokens. After the prompts, each pass computes only one
# token per text, so smaller batches would take many more passes.
CACHED_TOKENS = 8192
# Minimum number of tokens of a shared beginning; copying a shorter one costs more than it saves.
SHORTEST_PREFIX = 8


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
    shares = _can_share(model, rows, max_tokens)
    # Each distinct prompt is continued once; sorted, prompts with the same beginning share a batch.
    different = sorted(set(map(tuple, rows)))
    if not shares:
        different.sort(key=len, reverse=True)
    found: dict[tuple[int, ...], GeneratedText] = {}
    for some in _batches(model, different, max_tokens):
        batch = (
            _Seq2SeqBatch(model, some)
            if model.kind == "seq2seq"
            else _CausalBatch(model, some, shares)
        )
        found |= zip(some, _greedy(model, batch, max_tokens, until), strict=True)
    return [found[tuple(ids)] for ids in rows]


def _can_share(model: Any, rows: Sequence[Sequence[int]], max_tokens: int) -> bool:
    """Return whether a model can compute a shared beginning once.

    The padding between the beginning and the rest of a prompt must not push tokens out of a sliding
    window.
    """
    if model.kind != "causal" or not (model.caches and model.pads):
        return False
    width = 2 * max(map(len, rows), default=0) + max_tokens
    return width <= find_lookback(model.model.config)


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
        ids = list(tokenizer(prompt).input_ids)
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
    return list(tokenizer(text, add_special_tokens=False).input_ids)


def _batches(
    model: Any, rows: Sequence[tuple[int, ...]], max_tokens: int
) -> list[list[tuple[int, ...]]]:
    """Group consecutive rows into batches; if the model can't pad, by equal length."""
    batches: list[list[tuple[int, ...]]] = []
    for row in rows:
        batch = batches[-1] if batches else []
        longest = max(map(len, [*batch, row]))
        most = max(model.tokens_per_pass, CACHED_TOKENS) // (longest + max_tokens)
        fits = len(batch) < min(ROWS_PER_BATCH, most)
        if batch and fits and (model.pads or len(batch[0]) == len(row)):
            batch.append(row)
        else:
            batches.append([row])
    return batches


def _greedy(
    model: Any, batch: "_CausalBatch | _Seq2SeqBatch", max_tokens: int, until: float
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
            if tokens[place] in ends:
                continue
            ids[number].append(tokens[place])
            log_probs[number].append(values[place])
            if not find_answer(model.tokenizer.decode(ids[number])).is_whole:
                kept.append(place)
        running = [running[place] for place in kept]
        if not kept or step + 1 == max_tokens:
            running = []
            break
        if time.monotonic() >= until:
            break
        logits = batch.next(tokens, kept)
    return [
        _text_of(model, *one, max_tokens, in_time=number not in running)
        for number, one in enumerate(zip(ids, log_probs, strict=True))
    ]


def _text_of(
    model: Any, ids: list[int], log_probs: list[float], max_tokens: int, *, in_time: bool
) -> GeneratedText:
    """Return the answer in a generated text, and the answer's tokens."""
    decode = model.tokenizer.decode
    text = decode(ids)
    found = find_answer(text)
    ending: Ending = "whole"
    if found.in_reasoning:
        ending = "in reasoning"
    elif len(ids) == max_tokens and not found.is_whole:
        ending = "cut"
    first, end = 0, len(ids)
    while found.is_whole and end and decode(ids[: end - 1]).startswith(text[: found.end]):
        end -= 1  # this token has no text before the line break
    while found.start and first < end and len(decode(ids[: first + 1])) <= found.start:
        first += 1  # this token has no text after the reasoning and the empty lines
    return GeneratedText(
        text[found.start : found.end],
        tuple(decode([one]) for one in ids[first:end]),
        np.array(log_probs[first:end], np.float32),
        in_time,
        ending,
    )


def _end_tokens(model: Any) -> set[int]:
    """Return the ids of the tokens that end a text, as `transformers.generate` finds them.

    Raises UserError if the configuration has something else.
    """
    named = getattr(model.model, "generation_config", None)
    ends = getattr(named, "eos_token_id", None)
    if ends is None:
        ends = model.tokenizer.eos_token_id
    found = ends if isinstance(ends, list) else [] if ends is None else [ends]
    if not all(isinstance(token, int) for token in found):
        raise UserError(
            f"{model.name}: eos_token_id is {str(ends)[:40]!r} in its configuration. Write the "
            "number of the token that ends a text, or a list of such numbers."
        )
    return set(found)


class _CausalBatch:
    """Prompts of a causal model that are continued together.

    A model that can't continue from a cached prefix reads all tokens at each step.
    """

    def __init__(self, model: Any, rows: Sequence[tuple[int, ...]], shares: bool) -> None:
        """Prepare a batch. shares: whether to compute shared prefixes once, for sorted rows."""
        self.model, self.rows, self.size = model, [list(row) for row in rows], len(rows)
        self.shares = shares and self.size > 1
        self.cache: Any = None
        accepted = inspect.signature(model.model.forward).parameters
        self.takes_positions = "position_ids" in accepted
        self.mask = torch.zeros((self.size, 0), dtype=torch.int64)

    def first(self) -> torch.Tensor:
        """Return the logits after each prompt, float32 [prompt, vocabulary]."""
        if not self.model.caches:
            return self._uncached()
        prefixes = shared_prefixes(self.rows) if self.shares else [[]] * self.size
        if prefixes[0]:
            different = list(dict.fromkeys(map(tuple, prefixes)))
            ids, self.mask = self._padded(different)
            self._pass(ids)
            self._choose([different.index(tuple(one)) for one in prefixes])
        rests = [row[len(one) :] for row, one in zip(self.rows, prefixes, strict=True)]
        ids, mask = self._padded(rests)
        self.mask = torch.cat([self.mask, mask], dim=1)
        return self._pass(ids)

    def next(self, tokens: Sequence[int], kept: Sequence[int]) -> torch.Tensor:
        """Add a token to each kept prompt, drop the others, and return the logits after it.

        Args:
            tokens: The new token of each prompt of the batch.
            kept: Indices of the prompts that continue.
        """
        self.rows = [[*self.rows[place], tokens[place]] for place in kept]
        if not self.model.caches:
            return self._uncached()
        if len(kept) < len(tokens):
            self._choose(kept)
        self.mask = torch.cat([self.mask, torch.ones((len(kept), 1), dtype=torch.int64)], dim=1)
        return self._pass(torch.tensor([[tokens[place]] for place in kept]))

    def _choose(self, places: Sequence[int]) -> None:
        """Keep these rows of the cache and of the mask; a row may be chosen several times."""
        chosen = torch.tensor(places)
        self.mask = self.mask[chosen]
        self.cache.batch_select_indices(chosen.to(self.model.device))

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows of token ids, padded on the left, and their attention mask."""
        width = max(map(len, rows))
        padding = self.model.padding_id
        ids = [[padding] * (width - len(row)) + list(row) for row in rows]
        mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
        return torch.tensor(ids), torch.tensor(mask)

    def _pass(self, ids: torch.Tensor) -> torch.Tensor:
        """Read tokens after those in the cache; return the logits after the last ones."""
        inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": self.mask, "use_cache": True}
        if self.cache is not None:
            inputs["past_key_values"] = self.cache
        if self.takes_positions:
            positions = (self.mask.cumsum(1) - 1).clamp(min=0)
            inputs["position_ids"] = positions[:, -ids.shape[1] :]
        where = (torch.arange(len(ids)), torch.full((len(ids),), ids.shape[1] - 1))
        logits, output = self.model.forward(where, **inputs)
        self.cache = output.past_key_values
        return logits

    def _uncached(self) -> torch.Tensor:
        return self.model.logits(self.rows, [[len(row) - 1] for row in self.rows])


def shared_prefixes(rows: Sequence[list[int]]) -> list[list[int]]:
    """Return, for each row, the beginning that is computed once for all rows that share it.

    Rows are divided into groups where neighbours share fewer tokens than a threshold; a group's
    beginning is what all of its rows share. The threshold is chosen that needs the fewest computed
    tokens, including padding: beginnings are padded to the longest beginning, and the rests of the
    rows to the longest rest.

    Args:
        rows: At least two prompts as token ids, sorted.

    Returns:
        The beginnings; all are empty if no threshold saves tokens with all beginnings at least
        `SHORTEST_PREFIX` tokens long.
    """
    alike = [len(_common_beginning(pair)) for pair in pairwise(rows)]
    best, fewest = [list[int]()] * len(rows), len(rows) * max(map(len, rows))
    for least in sorted({0, *alike}):
        starts = [0, *(at for at, n in enumerate(alike, start=1) if n < least)]
        prefixes = []
        for first, end in pairwise([*starts, len(rows)]):
            prefixes += [_common_beginning(rows[first:end])] * (end - first)
        sizes = list(map(len, prefixes))
        rests = max(len(row) - size for row, size in zip(rows, sizes, strict=True))
        cost = len(starts) * max(sizes) + len(rows) * rests
        if cost < fewest and min(sizes) >= SHORTEST_PREFIX:
            best, fewest = prefixes, cost
    return best


def _common_beginning(rows: Sequence[list[int]]) -> list[int]:
    """Return the tokens that all rows begin with, not including the last token of a row."""
    first, last = min(rows)[:-1], max(rows)[:-1]  # what these two share is shared by all
    n = min(len(first), len(last))
    return first[: next((at for at in range(n) if first[at] != last[at]), n)]


class _Seq2SeqBatch:
    """Prompts of an encoder-decoder model: the encoder reads them once, the decoder answers."""

    def __init__(self, model: Any, rows: Sequence[tuple[int, ...]]) -> None:
        self.model, self.size = model, len(rows)
        ids, self.mask = model.padded(rows)
        with model.passing():
            encoder = model.model.get_encoder()
            there = model._on_device({"input_ids": ids, "attention_mask": self.mask})
            self.states = encoder(**there)[0]
        self.cache: Any = None

    def first(self) -> torch.Tensor:
        """Return the logits after the decoder's start token, float32 [prompt, vocabulary]."""
        start = self.model._start_ids[0]
        return self._pass(torch.full((self.size, 1), start, dtype=torch.int64))

    def next(self, tokens: Sequence[int], kept: Sequence[int]) -> torch.Tensor:
        """Add a token to each kept prompt, drop the others, and return the logits after it."""
        if len(kept) < len(tokens):
            chosen = torch.tensor(kept)
            self.mask = self.mask[chosen]
            there = chosen.to(self.model.device)
            self.states = self.states[there]
            self.cache.batch_select_indices(there)
        return self._pass(torch.tensor([[tokens[place]] for place in kept]))

    def _pass(self, said: torch.Tensor) -> torch.Tensor:
        from transformers.modeling_outputs import BaseModelOutput

        where = (torch.arange(len(said)), torch.full((len(said),), said.shape[1] - 1))
        inputs: dict[str, Any] = {"past_key_values": self.cache} if self.cache is not None else {}
        logits, output = self.model.forward(
            where,
            encoder_outputs=BaseModelOutput(last_hidden_state=self.states),
            attention_mask=self.mask,
            decoder_input_ids=said,
            use_cache=True,
            **inputs,
        )
        self.cache = output.past_key_values
        return logits
