"""What a left-to-right model can't do without: each token once, with its logits' normaliser."""

from collections.abc import Callable
from typing import Any

import torch

from lama_core.models.transformer import log_normalisers

WIDTH = 128  # tokens of a row: long enough for a pass to be full, short enough to attend to little


def full_passes(model: Any, n_tokens: int) -> Callable[[], None]:
    """A call that sends so many tokens through in full rows and batches, without padding."""
    width = min(WIDTH, model.max_tokens)
    whole, rest = divmod(n_tokens, width)
    size = max(1, model.tokens_per_pass // width)
    shapes = [(size, width)] * (whole // size) + [(whole % size, width), (1, rest)]
    batches = [torch.randint(100, (rows, columns)) for rows, columns in shapes if rows * columns]

    def passes() -> None:
        for ids in batches:
            rows, columns = ids.shape
            where = (
                torch.arange(rows).repeat_interleave(columns), torch.arange(columns).repeat(rows)
            )  # fmt: skip
            log_normalisers(model.raw_forward(where, input_ids=ids, use_cache=False)[0])

    return passes
