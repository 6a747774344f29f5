"""fairseq's gated convolutional language model (fconv_lm), from a converted release.

    x_(l+1) = (GLU(conv_l(x_l)) + x_(l+1-r)) * sqrt(1/2)

where r is the number of layers that the residual spans. A layer with r = 0 has no residual and
isn't scaled. Convolutions are causal. Source: Dauphin et al. 2017, Language Modeling with Gated
Convolutional Networks; the released code's FConvDecoder.
"""

from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional

from lama_core.models.hf.layers import EmbeddingTable, Linear, Output
from lama_older_systems.causal_words import (
    AdaptiveSoftmaxNetwork,
    CausalWordModel,
    joined,
)
from lama_older_systems.converted import (
    FACTOR,
    MAX_LAYERS,
    layer_widths,
    open_release,
    projections_of,
)
from lama_older_systems.convolution import Convolution


class FConv(AdaptiveSoftmaxNetwork):
    """The network. convolutions: (width, kernel, residual) of each layer; cutoffs: cluster ends."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__(config)
        self.body = _Body(config)
        width = config.convolutions[-1][0]
        first, *ends = config.cutoffs
        self.head = Linear(width, first + len(ends), bias=False)
        sizes = [end - start for start, end in zip(config.cutoffs, ends, strict=False)]
        self.tails = nn.ModuleList(
            nn.Sequential(Linear(width, inner, bias=False), Linear(inner, size, bias=False))
            for size, inner in ((n, width // FACTOR ** (i + 1)) for i, n in enumerate(sizes))
        )

    @property
    def activations_per_token(self) -> int:
        """Approximate number of activations per token in the widest layer."""
        return max(2 * width * kernel for width, kernel, _ in self.config.convolutions)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None
    ) -> Output:
        states = self.body(input_ids)
        return Output(joined(self.head(states), [tail(states) for tail in self.tails]))


class _Body(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        layers = config.convolutions
        reaches = (residual in range(n + 1) for n, (_, _, residual) in enumerate(layers, start=1))
        if len(layers) > MAX_LAYERS or not all(reaches):
            raise ValueError("too many layers, or a residual from before the first layer")
        widths = layer_widths(layers)
        self.embedding = EmbeddingTable(config.vocab_size, config.embed_dim)
        self.widened = Linear(config.embed_dim, widths[0])
        self.convolutions = nn.ModuleList(  # of values and gates
            Convolution(width_in, 2 * width, kernel)
            for width_in, (width, kernel, _) in zip(widths, layers, strict=False)
        )
        self.sizes = layers
        self.projections = nn.ModuleDict(
            {str(number): Linear(*sizes) for number, sizes in projections_of(layers).items()}
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        states = self.widened(self.embedding(ids))
        before = [states]
        for number, (layer, (_, kernel, residual)) in enumerate(
            zip(self.convolutions, self.sizes, strict=True)
        ):
            padded = functional.pad(states.transpose(1, 2), (kernel - 1, 0))
            states = functional.glu(layer(padded).transpose(1, 2), dim=-1)  # sees no later words
            if residual:
                added = before[-residual]
                if str(number) in self.projections:
                    added = self.projections[str(number)](added)
                states = (states + added) * 0.5**0.5
            before.append(states)
        return states


def open_fconv(name: str, folder: Path, precision: str, identity: str) -> CausalWordModel:
    """Load a converted release."""

    def make(config: SimpleNamespace) -> FConv:
        config.num_hidden_layers = 0  # no hidden states to inspect: layers differ in width
        return FConv(config)

    sizes = ("embed_dim", "convolutions", "cutoffs")
    model, vocabulary = open_release(folder, sizes, make, precision)
    return CausalWordModel(name, model, vocabulary, identity=identity)
