"""Transformer-XL (transfo-xl-wt103), from a converted release.

A word attends to itself and the words left of it: with `same_length`, at most `mem_len` in all.
The attention score of word i to the word at distance d is

    score(i, d) = ((q_i + u) k_i-d + (q_i + v) r_d) / sqrt(d_head)

If a text has no memory, the released code puts `mem_len` zero vectors before it. Their keys and
values are zero, but the keys r_d of their distances aren't, so they take a share of the attention.
Source: Dai et al. 2019, section 3; pytorch-pretrained-bert 0.6.2, which LAMA used.
"""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import torch
from torch import nn
from torch.nn import functional

from lama_core.models.hf.layers import EmbeddingTable, Linear, Norm, Output
from lama_older_systems.causal_words import (
    AdaptiveSoftmaxNetwork,
    CausalWordModel,
    joined,
)
from lama_older_systems.converted import open_release

EPSILON = 1e-5
SIZES = (
    "n_layer",
    "n_head",
    "d_model",
    "d_head",
    "d_inner",
    "mem_len",
    "clamp_len",
    "cutoffs",
    "div_val",
    "same_length",
)
NO_MEMORY = "none"


class TransformerXL(AdaptiveSoftmaxNetwork):
    """The network.

    config.cutoffs: where the clusters of words end; the last end is the size of the vocabulary.
    zero_memory: whether zero vectors come before a text.
    """

    def __init__(self, config: SimpleNamespace, *, zero_memory: bool) -> None:
        super().__init__(config)
        if type(config.mem_len) is not int or config.mem_len < 1:
            raise ValueError("mem_len is not a positive number")
        ends = config.cutoffs
        sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
        widths = [config.d_model // config.div_val**cluster for cluster in range(len(sizes))]
        self.body = _Body(config, sizes, widths, zero_memory=zero_memory)
        n_clusters = len(sizes) - 1
        self.clusters = Linear(config.d_model, n_clusters)
        self.outputs = nn.ModuleDict(
            {
                str(number): _Narrowed(config.d_model, width, size)
                for number, (size, width) in enumerate(zip(sizes, widths, strict=True))
            }
        )

    @property
    def activations_per_token(self) -> int:
        """Attention weights per token in a layer: one for each head and each attended word."""
        return self.config.n_head * self.config.mem_len

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None
    ) -> Output:
        """Log-probabilities after each token; padding on the right doesn't affect them."""
        states = self.body(input_ids)
        first, rest = cast(_Narrowed, self.outputs["0"]), list(self.outputs.values())[1:]
        narrowed = first.narrow(states)
        head = torch.cat([first.output(narrowed), self.clusters(narrowed)], dim=-1)
        return Output(joined(head, [output(states) for output in rest]))


class _Narrowed(nn.Module):
    """The output layer of a cluster: projects states to the cluster's width, then to logits."""

    def __init__(self, d_model: int, width: int, n_words: int) -> None:
        super().__init__()
        self.projection = nn.Parameter(torch.empty(d_model, width))
        self.output = Linear(width, n_words)

    def narrow(self, states: torch.Tensor) -> torch.Tensor:
        """Project states [..., d_model] to [..., width]."""
        return functional.linear(states, self.projection.t())

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.output(self.narrow(states))


class _Embedding(nn.Module):
    """Word vectors of each cluster, projected to d_model and scaled by sqrt(d_model)."""

    def __init__(self, sizes: list[int], widths: list[int], d_model: int) -> None:
        super().__init__()
        self.sizes, self.d_model = sizes, d_model
        self.tables = nn.ModuleDict(
            {
                str(number): EmbeddingTable(size, width)
                for number, (size, width) in enumerate(zip(sizes, widths, strict=True))
            }
        )
        self.projections = nn.ParameterList(torch.empty(d_model, width) for width in widths)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        flat = ids.reshape(-1)
        states = self.projections[0].new_zeros(len(flat), self.d_model)
        start = 0
        for size, table, projection in zip(
            self.sizes, self.tables.values(), self.projections, strict=True
        ):
            at = ((flat >= start) & (flat < start + size)).nonzero()[:, 0]
            states[at] = functional.linear(table(flat[at] - start), projection)
            start += size
        return states.view(*ids.shape, -1) * math.sqrt(self.d_model)


class _Body(nn.Module):
    def __init__(
        self, config: SimpleNamespace, sizes: list[int], widths: list[int], *, zero_memory: bool
    ) -> None:
        super().__init__()
        self.config = config
        self.zero_memory = zero_memory
        self.embedding = _Embedding(sizes, widths, config.d_model)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.n_layer))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return states [row, position, d_model] for ids int64 [row, position]."""
        states = self.embedding(ids)
        n_tokens, n_memory = ids.shape[1], self.config.mem_len if self.zero_memory else 0
        # n_seen: number of positions that a word can attend to, itself included.
        # memory: whether there is a zero vector at this distance, bool [word, distance].
        n_seen = self.config.mem_len if self.config.same_length else n_memory + n_tokens
        n_distances = n_seen if n_memory else min(n_seen, n_tokens)
        position = torch.arange(n_tokens, device=ids.device)[:, None]
        distance = torch.arange(n_distances, device=ids.device)
        memory = (distance > position) & (distance <= n_memory + position)
        offsets = position - position.t()  # from a word to one on its left
        seen = (offsets >= 0) & (offsets < n_seen)
        for layer in self.layers:
            states = layer(states, offsets.clamp(0, n_distances - 1), seen, memory)
        return states


class _Layer(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.heads, self.width, d_model = config.n_head, config.d_head, config.d_model
        self.clamp = int(config.clamp_len)
        inner = self.heads * self.width
        self.queries_keys_values = Linear(d_model, 3 * inner, bias=False)
        self.distances = Linear(d_model, inner, bias=False)
        self.attended = Linear(inner, d_model, bias=False)
        self.word_bias, self.distance_bias = (
            nn.Parameter(torch.empty(self.heads, self.width)) for _ in range(2)
        )
        self.attention_norm = Norm(d_model, EPSILON)
        self.inner, self.outer = Linear(d_model, config.d_inner), Linear(config.d_inner, d_model)
        self.norm = Norm(d_model, EPSILON)
        self._cached_keys: torch.Tensor | None = None

    def forward(
        self, states: torch.Tensor, offsets: torch.Tensor, seen: torch.Tensor, memory: torch.Tensor
    ) -> torch.Tensor:
        """Return the states of the next layer.

        Args:
            states: [row, word, d_model].
            offsets: Distance back from the first word to the second (0 if it is later), int64
                [word, word].
            seen: Whether the first word attends to the second, bool [word, word].
            memory: Whether the word has a zero vector at this distance, bool [word, distance].
        """
        n_rows, n_tokens, _ = states.shape
        split = self.queries_keys_values(states).view(n_rows, n_tokens, 3, self.heads, self.width)
        query, key, value = (split[:, :, part].transpose(1, 2) for part in range(3))
        by_word = (query + self.word_bias[:, None]) @ key.transpose(2, 3)
        distances = self._distances(memory.shape[1]).transpose(0, 1)
        # One head at a time for all rows, to avoid copying the distances' keys for each row.
        queries = (query + self.distance_bias[:, None]).transpose(0, 1)
        far = queries.reshape(self.heads, -1, self.width) @ distances.transpose(1, 2)
        far = far.view(self.heads, n_rows, n_tokens, -1).transpose(0, 1)
        scores = by_word + far.gather(3, offsets.expand(n_rows, self.heads, -1, -1))
        scores = scores.masked_fill(~seen, -torch.inf)
        if memory.any():
            scores = torch.cat([scores, far.masked_fill(~memory, -torch.inf)], dim=3)
        shares = torch.softmax(scores / math.sqrt(self.width), dim=3)[..., :n_tokens]
        mixed = (shares @ value).transpose(1, 2).reshape(n_rows, n_tokens, -1)
        states = self.attention_norm(states + self.attended(mixed))
        return self.norm(states + self.outer(functional.relu(self.inner(states))))

    def _distances(self, n: int) -> torch.Tensor:
        """Return the key of each distance, [n, head, width]; cached for the largest n."""
        known = self._cached_keys
        weight = self.distances.weight
        if known is None or len(known) < n or known.device != weight.device:
            # Not in inference mode, so that passes with gradients can use the cached tensor, too.
            with torch.inference_mode(False), torch.no_grad():
                known = self._cached_keys = self._keys(n, weight)
        return known[:n]

    def _keys(self, n: int, weight: torch.Tensor) -> torch.Tensor:
        far = torch.arange(n, device=weight.device, dtype=torch.float32)
        if self.clamp > 0:
            far = far.clamp(max=self.clamp)
        d_model = weight.shape[1]
        steps = torch.arange(0, d_model, 2, device=weight.device, dtype=torch.float32)
        angles = far[:, None] / 10000 ** (steps / d_model)
        waves = torch.cat([angles.sin(), angles.cos()], dim=1).to(weight.dtype)
        return self.distances(waves).view(n, self.heads, self.width)


def open_transformer_xl(
    name: str, folder: Path, precision: str, identity: str, *, memory: str = ""
) -> CausalWordModel:
    """Load a converted release. memory: `none` omits the zero vectors before a text."""
    zero = memory != NO_MEMORY

    def make(config: SimpleNamespace) -> TransformerXL:
        config.num_hidden_layers = config.n_layer
        return TransformerXL(config, zero_memory=zero)

    model, vocabulary = open_release(folder, SIZES, make, precision)
    opened = CausalWordModel(name, model, vocabulary, identity=identity)
    n_zeros = model.config.mem_len
    opened.notes.append(
        f"{n_zeros:,} zero vectors come before every text, as in the released code that LAMA "
        f"used ({name}+memory=none omits them)."
        if zero
        else f"No zero vectors come before a text; LAMA used {n_zeros:,}."
    )
    return opened
