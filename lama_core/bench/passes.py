"""Bare passes through a model, with nothing done before or after: what can't be beaten."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch

from lama_core.models.devices import host
from lama_core.models.hf.transformer import log_normalisers
from lama_core.models.protocols import Encoded
from lama_core.scoring.batches import plan_batches

T = TypeVar("T")
WIDTH = 128  # tokens of a row: long enough for a pass to be full, short enough to attend to little


def bare_passes(
    model: Any, batches: Iterable[Sequence[Sequence[int]]], part: Any = None
) -> Callable[[], None]:
    """A call that sends rows of token ids through a part of the model, by default its body."""
    part = part or model.model.base_model
    made = [tuple(one.to(model.device) for one in model.padded(rows)) for rows in batches]

    def passes() -> None:
        with torch.inference_mode():
            for ids, mask in made:
                output = part(input_ids=ids, attention_mask=mask)[0]
            host(output.flatten()[:1])  # a GPU is done when its last number is here

    return passes


def planned(encoded: Sequence[Encoded], **bounds: int) -> list[list[tuple[int, ...]]]:
    """The token ids of queries, in the batches in which they are scored."""
    return [[encoded[n].token_ids for n in batch] for batch in plan_batches(encoded, **bounds)]


def copy_passes(model: Any, copies: Iterable[tuple[Sequence[int], int]]) -> Callable[[], None]:
    """A call that sends texts with a token hidden through a masked model, for that token's logits.

    copies: token ids, and where the hidden one is; those of one length go together.
    """
    by_length: dict[int, list[tuple[Sequence[int], int]]] = defaultdict(list)
    for copy in copies:
        by_length[len(copy[0])].append(copy)
    batches = []
    for length, group in by_length.items():
        for some in batched(group, max(1, model.tokens_per_pass // length)):
            rows, places = zip(*some, strict=True)
            batches.append((torch.tensor(rows), torch.tensor(places)))

    def passes() -> None:
        for ids, at in batches:
            model.logits_at(ids, at)

    return passes


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in their order, so many at a time."""
    return (items[first : first + size] for first in range(0, len(items), size))


def full_passes(model: Any, n_tokens: int) -> Callable[[], None]:
    """A call that sends so many tokens through in full rows and batches, without padding.

    What a causal model can't do without: each token once, with its logits' normaliser.
    """
    width = min(WIDTH, model.max_tokens)
    whole, rest = divmod(n_tokens, width)
    size = max(1, model.tokens_per_pass // width)
    shapes = [(size, width)] * (whole // size) + [(whole % size, width), (1, rest)]
    batches = [torch.randint(100, (rows, columns)) for rows, columns in shapes if rows * columns]

    def passes() -> None:
        for ids in batches:
            rows, columns = ids.shape
            where = (
                torch.arange(rows).repeat_interleave(columns),
                torch.arange(columns).repeat(rows),
            )
            log_normalisers(model.raw_forward(where, input_ids=ids, use_cache=False)[0])

    return passes
