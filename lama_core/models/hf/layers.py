"""Layers that aren't initialised with random numbers, and a function that reads their weights."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn

from lama_core.errors import UserError
from lama_core.models.hf.fast_tokenizer import FastTokenizer, read_tokenizer
from lama_core.models.model_folder import CONFIG, WEIGHTS, read_json

M = TypeVar("M", bound=nn.Module)


class Output(NamedTuple):
    """Output of a forward pass. logits: [row, position, vocabulary]."""

    logits: torch.Tensor
    past_key_values: Any = None


class BodyOutput(NamedTuple):
    """Output of a network without its head.

    last_hidden_state: [row, position, dim]. past_key_values, hidden_states: None if not requested;
    `hidden_states` has the embeddings, then the output of each layer.
    """

    last_hidden_state: torch.Tensor
    past_key_values: Any = None
    hidden_states: tuple[torch.Tensor, ...] | None = None


class _Uninitialised(nn.Module):
    """A layer whose weights aren't set before they are read from a file."""

    def reset_parameters(self) -> None:
        """Leave the weights as they are."""


class Linear(_Uninitialised, nn.Linear):
    """Linear layer. weight: [width, width_in]. bias: [width], optional."""


class Norm(_Uninitialised, nn.LayerNorm):
    """Layer normalisation over the last axis."""


class EmbeddingTable(_Uninitialised, nn.Embedding):
    """Embedding table, one vector per row."""


class RmsNorm(nn.Module):
    """Division by the root mean square over the last axis, computed in fp32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.epsilon = epsilon

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the normalised states."""
        wide = states.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return self.weight * scaled.to(states.dtype)


def read_network(
    make: Callable[[SimpleNamespace], M], folder: Path, dtype: torch.dtype, **options: Any
) -> tuple[M, FastTokenizer]:
    """Return the network and tokenizer of a folder whose digest the catalogue has.

    The output embeddings are the input embeddings.

    Args:
        make: Builds the network from the folder's configuration.
        folder: The folder.
        dtype: Type of the weights.
        options: Options of `read_weights`.

    Raises:
        UserError: If a file can't be read.
    """
    config = SimpleNamespace(**read_json(folder / CONFIG))
    with torch.device("meta"):  # no memory until the shapes are known to match the file's
        model: Any = make(config)
    table, projection = model.get_input_embeddings(), model.get_output_embeddings()
    projection.weight = table.weight
    read_weights(model, folder / WEIGHTS, dtype, **options)
    projection.weight = table.weight
    return model, read_tokenizer(folder)


def read_weights(
    module: M,
    file: Path,
    dtype: torch.dtype,
    *,
    own_names: Mapping[str, str] = MappingProxyType({}),
    copy: bool = False,
    device: str = "cpu",
) -> M:
    """Load a safetensors file into a module that was made on `meta`; return it for inference.

    On a CPU, weights whose type isn't converted are memory-mapped, unless `copy` is set.

    Args:
        module: The module.
        file: The weights.
        dtype: Type to convert the weights to.
        own_names: The module's names of weights that are stored under other names.
        copy: Copy the weights instead of mapping them.
        device: Device to load the weights to.

    Raises:
        UserError: If a weight is missing, unexpected or of another shape; the message names it.
    """
    from safetensors import SafetensorError, safe_open

    wanted = {name: tuple(value.shape) for name, value in module.named_parameters()}
    found = {}
    try:
        with safe_open(file, "pt") as stored:
            keys = {own_names.get(key, key): key for key in stored.keys()}  # noqa: SIM118
            for name in sorted(keys.keys() ^ wanted.keys()):
                what = "lacks weight" if name in wanted else "has an unexpected weight"
                raise UserError(f"{file} {what} {name[:80]!r}. Convert the release again.")
            for name, shape in wanted.items():
                found_shape = tuple(stored.get_slice(keys[name]).get_shape())
                if found_shape != shape:
                    raise UserError(
                        f"{file}: {name} has shape {found_shape}; config.json requires {shape}. "
                        "One of the two files belongs to another model."
                    )
                found[name] = stored.get_tensor(keys[name]).to(device, dtype, copy=copy)
    except (SafetensorError, OSError) as error:
        raise UserError(f"Can't read {file}: {error}.") from error
    module.load_state_dict(found, strict=False, assign=True)
    return module.requires_grad_(False).eval()
