"""Layers whose weights are read from a file, and the reading.

torch's own modules of these names fill their weights with random numbers first.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import torch
from torch import nn
from torch.nn import functional

from lama_core.errors import UserError

M = TypeVar("M", bound=nn.Module)


class Output(NamedTuple):
    """logits: [row, position, vocabulary]."""

    logits: torch.Tensor


class Linear(nn.Module):
    """weight: [width, width_in]. bias: [width], where there is one."""

    def __init__(self, width_in: int, width: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width_in))
        self.bias = nn.Parameter(torch.empty(width)) if bias else None

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """[..., width] of states [..., width_in]."""
        return functional.linear(states, self.weight, self.bias)


class Norm(nn.Module):
    """Layer normalisation over the last axis."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.empty(width)) for _ in range(2))
        self.epsilon = epsilon

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """The states, normalised."""
        return functional.layer_norm(
            states, self.weight.shape, self.weight, self.bias, self.epsilon
        )


class Table(nn.Module):
    """A vector a row."""

    def __init__(self, n_rows: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_rows, width))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """[..., width] of row numbers [...]."""
        return functional.embedding(rows, self.weight)


def read_weights(
    module: M,
    file: Path,
    dtype: torch.dtype,
    *,
    own_name: Callable[[str], str] = str,
    copy: bool = False,
) -> M:
    """A module that was made on `meta`, with the weights of a safetensors file, for inference.

    Weights of 32 bits that stay so are mapped from the file, unless they are to be copied.
    own_name: the module's name of a stored weight, empty for one that isn't needed.
    Raises UserError, naming the first, for a weight that is missing, too many or of another shape.
    """
    from safetensors import SafetensorError, safe_open

    wanted = {name: tuple(value.shape) for name, value in module.named_parameters()}
    found = {}
    try:
        with safe_open(file, "pt") as stored:
            keys = {own_name(key): key for key in stored.keys()}  # noqa: SIM118 (no mapping)
            keys.pop("", None)
            for name in sorted(keys.keys() ^ wanted.keys()):
                said = "holds no weight" if name in wanted else "holds a weight too many,"
                raise UserError(f"{file} {said} {name[:80]!r}: convert the release again.")
            for name, shape in wanted.items():
                there = tuple(stored.get_slice(keys[name]).get_shape())
                if there != shape:
                    raise UserError(
                        f"{file}: {name} has the shape {there}, and {shape} by its config.json: "
                        "one of the two is another model's."
                    )
                found[name] = stored.get_tensor(keys[name]).to(dtype, copy=copy)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file} can't be read: {error}.") from error
    module.load_state_dict(found, strict=False, assign=True)
    return module.requires_grad_(False).eval()
