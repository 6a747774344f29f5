"""Faster matrix products on AMD's CPUs with AVX-512.

torch computes fp32 products with MKL, which uses AVX-512 on Intel's CPUs only. oneDNN, which torch
includes too, uses it on all, and is more than twice as fast on these CPUs (`docs/scale.md`). It
reads a copy of the weights in its own layout, which is made at a layer's first large product.
The results of the two libraries differ in the last digits.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import nn

from lama_core.models.cpu import mkl_lacks_avx512
from lama_core.models.hf.layers import Linear

MIN_ROWS = 32  # smaller products gain less than the first copy of the weights costs


def use_faster_products(model: nn.Module) -> None:
    """Let the linear layers of a model on a CPU use oneDNN where it is faster than MKL."""
    if not _is_available():
        return
    for module in model.modules():
        known = type(module) in (Linear, nn.Linear) or type(module).__name__ == "Conv1D"
        if known and "forward" not in vars(module):  # accelerate replaces it on several devices
            module.forward = partial(_product, module, module.forward)


def packed_bytes(model: Any) -> int:
    """Size of the copies of a model's weights that were made so far."""
    return sum(one.weight.nbytes for one in model.modules() if "packed" in vars(one))


@cache
def _is_available() -> bool:
    known = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return known and mkl_lacks_avx512()


def _product(
    module: Any, plain: Callable[[torch.Tensor], torch.Tensor], states: torch.Tensor
) -> torch.Tensor:
    """Return a linear layer's output, [..., width], for states [..., width_in].

    oneDNN computes it if there are at least MIN_ROWS rows and no gradients are needed.
    """
    weight = module.weight
    large = weight.numel() and states.numel() >= MIN_ROWS * states.shape[-1]
    fp32 = states.dtype == weight.dtype == torch.float32 and weight.device.type == "cpu"
    if torch.is_grad_enabled() or not (large and fp32):
        return plain(states)
    address, copy = vars(module).get("packed", (0, None))
    if address != weight.data_ptr():  # the weights are new: `round_weights` replaces them
        rows = weight.T.contiguous() if type(module).__name__ == "Conv1D" else weight
        copy = torch.ops.mkldnn._reorder_linear_weight(rows, None)
        module.packed = weight.data_ptr(), copy
    return torch.ops.mkldnn._linear_pointwise(states, copy, module.bias, "none", [], "")
