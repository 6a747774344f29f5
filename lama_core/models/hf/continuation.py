"""Texts that a causal model continues token by token, from the keys and values of what it read."""

import copy
import inspect
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from lama_core.models.hf.prefix_tree import n_shared

ROWS_PER_BATCH = 64
# A batch's cache may hold at least this many tokens. After the prompts, each pass computes only one
# token per text, so smaller batches would take many more passes.
CACHED_TOKENS = 8192
# Minimum number of tokens of a shared beginning; copying a shorter one costs more than it saves.
SHORTEST_PREFIX = 8


class Prefix(NamedTuple):
    """A text that a causal model has read.

    logits: of the next token, float32 [1, vocabulary]. cache: the model's keys and values; None if
    it can't continue from them.
    """

    logits: torch.Tensor
    cache: Any


class CausalBatch:
    """Prompts of a causal model that are continued together.

    A model that can't continue from a cache (`caches`) reads all tokens at each step.
    """

    def __init__(
        self,
        model: Any,
        rows: Sequence[Sequence[int]],
        *,
        prefixes: Sequence[Sequence[int]] = (),
        read: Prefix | None = None,
    ) -> None:
        """Prepare a batch.

        Args:
            model: A causal model.
            rows: Token ids of the prompts.
            prefixes: For each row, the beginning that is computed once for all rows that share it
                (`shared_prefixes`).
            read: The only prompt, if the model has read it.
        """
        self.model, self.rows, self.size = model, [list(row) for row in rows], len(rows)
        self.prefixes, self.read = prefixes or [[]] * self.size, read
        self.cache: Any = None
        self.takes_positions = "position_ids" in inspect.signature(model.model.forward).parameters
        self.mask = torch.zeros((self.size, 0), dtype=torch.int64)

    def first(self) -> torch.Tensor:
        """Return the logits after each prompt, float32 [prompt, vocabulary]."""
        if self.read is not None:
            self.cache = copy.deepcopy(self.read.cache)
            self.mask = torch.ones((1, len(self.rows[0])), dtype=torch.int64)
            return self.read.logits
        if not self.model.caches:
            return self._uncached()
        if self.prefixes[0]:
            different = list(dict.fromkeys(map(tuple, self.prefixes)))
            ids, self.mask = self.model.padded(different, "left")
            self._pass(ids)
            self._select([different.index(tuple(one)) for one in self.prefixes])
        rests = [row[len(one) :] for row, one in zip(self.rows, self.prefixes, strict=True)]
        ids, mask = self.model.padded(rests, "left")
        self.mask = torch.cat([self.mask, mask], dim=1)
        return self._pass(ids)

    def next(self, tokens: Sequence[int], kept: Sequence[int]) -> torch.Tensor:
        """Add a token to each kept prompt, drop the others, and return the logits after it.

        Args:
            tokens: The new token of each prompt of the batch.
            kept: Indices of the prompts that continue.
        """
        if len(kept) < len(tokens):
            self.choose(kept)
        self.rows = [[*row, tokens[place]] for row, place in zip(self.rows, kept, strict=True)]
        if not self.model.caches:
            return self._uncached()
        self.mask = torch.cat([self.mask, torch.ones((len(kept), 1), dtype=torch.int64)], dim=1)
        return self._pass(torch.tensor([[tokens[place]] for place in kept]))

    def choose(self, places: Sequence[int]) -> None:
        """Keep these prompts; one may be chosen several times."""
        self.rows = [self.rows[place] for place in places]
        if self.cache is not None:
            self._select(places)

    def _select(self, places: Sequence[int]) -> None:
        """Keep these rows of the cache and of the mask; a row may be chosen several times."""
        chosen = torch.tensor(places)
        self.mask = self.mask[chosen]
        self.cache.reorder_cache(chosen.to(self.model.device))

    def _pass(self, ids: torch.Tensor) -> torch.Tensor:
        """Read tokens after those in the cache; return the logits after the last ones."""
        inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": self.mask}
        if self.takes_positions:
            positions = (self.mask.cumsum(1) - 1).clamp(min=0) + self.model.first_place
            inputs["position_ids"] = positions[:, -ids.shape[1] :]
        where = (torch.arange(len(ids)), torch.full((len(ids),), ids.shape[1] - 1))
        logits, output = self.model.forward(
            where, **inputs, past_key_values=self.cache, use_cache=True
        )
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
        rows: Prompts as token ids, sorted.

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
    return first[: n_shared(first, last)]


def batches_to_continue(
    model: Any, rows: Sequence[tuple[int, ...]], n_more: int
) -> list[list[tuple[int, ...]]]:
    """Group consecutive rows that get `n_more` tokens each; if the model can't pad, by length."""
    batches: list[list[tuple[int, ...]]] = []
    for row in rows:
        batch = batches[-1] if batches else []
        longest = max(map(len, [*batch, row]))
        most = max(model.tokens_per_pass, CACHED_TOKENS) // (longest + n_more)
        fits = len(batch) < min(ROWS_PER_BATCH, most)
        if batch and fits and (model.pads or len(batch[0]) == len(row)):
            batch.append(row)
        else:
            batches.append([row])
    return batches
