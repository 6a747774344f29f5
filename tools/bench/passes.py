"""Bare forward passes without any work before or after them: the maximum speed."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch

from lama_core.models.devices import to_cpu
from lama_core.models.hf.transformer import log_normalisers
from lama_core.models.protocols import Encoded
from lama_core.scoring.batches import plan_batches

T = TypeVar("T")
WIDTH = 128  # tokens per row: long enough to fill a pass, short enough to keep attention cheap


def bare_passes(
    model: Any, batches: Iterable[Sequence[Sequence[int]]], part: Any = None
) -> Callable[[], None]:
    """Return a function that runs batches of token ids through the model.

    Args:
        model: The model.
        batches: Rows of token ids.
        part: The module to run. Default: the encoder without the LM head.
    """
    part = part or model.model.base_model
    tensors = [tuple(tensor.to(model.device) for tensor in model.padded(rows)) for rows in batches]

    def passes() -> None:
        with torch.inference_mode():
            for ids, mask in tensors:
                output = part(input_ids=ids, attention_mask=mask)[0]
            to_cpu(output.flatten()[:1])  # wait for the GPU to finish

    return passes


def planned(encoded: Sequence[Encoded], **bounds: int) -> list[list[tuple[int, ...]]]:
    """Return the token ids of queries in the batches in which they are scored."""
    return [[encoded[n].token_ids for n in batch] for batch in plan_batches(encoded, **bounds)]


def copy_passes(model: Any, copies: Iterable[tuple[Sequence[int], int]]) -> Callable[[], None]:
    """Return a function that computes the logits of the masked token in each copy of a text.

    copies: the token ids of each copy, and the position of its masked token. Copies of equal length
    share batches.
    """
    by_length: dict[int, list[tuple[Sequence[int], int]]] = defaultdict(list)
    for copy in copies:
        by_length[len(copy[0])].append(copy)
    batches = []
    for length, group in by_length.items():
        for batch in batched(group, max(1, model.tokens_per_pass // length)):
            rows, positions = zip(*batch, strict=True)
            batches.append((torch.tensor(rows), torch.tensor(positions)))

    def passes() -> None:
        for ids, positions in batches:
            where = (torch.arange(len(ids)), positions)
            model.forward(where, **model.inputs_of(ids))

    return passes


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Return the items in order, in batches of `size`."""
    return (items[first : first + size] for first in range(0, len(items), size))


def full_passes(model: Any, n_tokens: int) -> Callable[[], None]:
    """Return a function that runs `n_tokens` tokens in full batches without padding.

    A causal model must compute at least this: each token once, and the normaliser of its logits.
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
