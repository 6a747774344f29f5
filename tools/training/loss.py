"""The masked-LM loss, computed in blocks of rows that fit into the CPU's cache.

A step on a CPU is about a fifth faster than with `torch.nn.functional.cross_entropy`, which stores
all logits in float32 and passes over them several times.
"""

from typing import Any

import torch

ROWS = 32
"""Rows per block: 32 rows of 30,522 float32 logits are 4 MB."""


def mean_cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy in nats, a float32 scalar; gradients have the logits' type.

    Args:
        logits: Logits, [masked position, vocabulary].
        targets: Right token ids, int64 [masked position].
    """
    loss: torch.Tensor = _MeanCrossEntropy.apply(logits, targets)
    return loss


class _MeanCrossEntropy(torch.autograd.Function):
    """The gradient, softmax minus one-hot over the number of rows, is computed with the loss."""

    @staticmethod
    def forward(context: Any, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        gradient = torch.empty_like(logits)
        total, n = 0.0, len(targets)
        for start in range(0, n, ROWS):
            rows = logits[start : start + ROWS].to(torch.float32, copy=True)
            right = targets[start : start + ROWS, None]
            norm = rows.logsumexp(1, keepdim=True)
            total += float((norm - rows.gather(1, right)).sum())
            rows.sub_(norm).exp_().scatter_add_(1, right, -torch.ones(right.shape))
            gradient[start : start + ROWS] = rows.div_(n)
        context.save_for_backward(gradient)
        return torch.tensor(total / n)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        (gradient,) = context.saved_tensors
        return gradient * gradients[0], None
