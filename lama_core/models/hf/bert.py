"""BERT in torch, so that the first answer of a new process doesn't need to import transformers.

That import takes twice as long as torch's, and uses most of the memory of a process with a small
model.
Modules have transformers' names, so that checkpoint keys match and `cutting_places` finds the same
modules. It reads MiniLM-MLM and its twin, whose digests the catalogue has; transformers reads all
other folders, because their settings may differ.
Source: Devlin et al. 2019, sections 3 and 3.1; logits equal `BertForMaskedLM`'s to 1e-4 (test).
"""

from types import SimpleNamespace
from typing import cast

import torch
from torch import nn
from torch.nn import functional

from lama_core.models.hf.layers import BodyOutput, EmbeddingTable, Linear, Norm, Output

OWN_NAMES = {"cls.predictions.bias": "cls.predictions.decoder.bias"}
_ATTENDED = ("query", "key", "value")


class BertMaskedLM(nn.Module):
    """The encoder and its masked-LM head, with the interface of transformers' `BertForMaskedLM`."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        self.bert = _Body(config)
        self.cls = nn.ModuleDict({"predictions": _Head(config)})

    @property
    def base_model(self) -> nn.Module:
        return self.bert

    def get_input_embeddings(self) -> nn.Module:
        return self.bert.embeddings.word_embeddings

    def get_output_embeddings(self) -> nn.Module:
        return cast(_Head, self.cls["predictions"]).decoder

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
    ) -> Output:
        """Return logits for token ids int64 [row, position]; attention_mask is 0 for padding.

        token_type_ids: int64 [row, position], segment numbers; None for 0 everywhere.
        """
        states = self.bert(input_ids, attention_mask, token_type_ids=token_type_ids)[0]
        return Output(self.cls["predictions"](states))


class _Body(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.embeddings = _Embeddings(config)
        layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))
        self.encoder = nn.ModuleDict({"layer": layers})

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        output_hidden_states: bool = False,
        token_type_ids: torch.Tensor | None = None,
    ) -> BodyOutput:
        states = self.embeddings(input_ids, token_type_ids)
        seen = None
        if attention_mask is not None and not bool(attention_mask.all()):
            seen = attention_mask.bool()[:, None, None, :]
        collected = [states]
        for layer in cast(nn.ModuleList, self.encoder["layer"]):
            states = layer(states, seen)
            collected.append(states)
        hidden_states = tuple(collected) if output_hidden_states else None
        return BodyOutput(states, hidden_states=hidden_states)


class _Embeddings(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = EmbeddingTable(config.vocab_size, width)
        self.position_embeddings = EmbeddingTable(config.max_position_embeddings, width)
        self.token_type_embeddings = EmbeddingTable(config.type_vocab_size, width)
        self.LayerNorm = Norm(width, config.layer_norm_eps)

    def forward(
        self, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None = None
    ) -> torch.Tensor:
        positions = self.position_embeddings.weight[: input_ids.shape[1]]
        table = self.token_type_embeddings.weight
        types = table[0] if token_type_ids is None else table[token_type_ids]
        return self.LayerNorm(self.word_embeddings(input_ids) + types + positions)


class _Layer(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.attention = _Attention(config)
        self.intermediate = nn.ModuleDict({"dense": Linear(width, inner)})
        self.output = _Added(inner, width, config.layer_norm_eps)

    def forward(self, states: torch.Tensor, seen: torch.Tensor | None) -> torch.Tensor:
        attended = self.attention(states, seen)[0]
        return self.output(functional.gelu(self.intermediate["dense"](attended)), attended)


class _Attention(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.self = nn.ModuleDict({name: Linear(width, width) for name in _ATTENDED})
        self.output = _Added(width, width, config.layer_norm_eps)

    def forward(self, states: torch.Tensor, seen: torch.Tensor | None) -> tuple[torch.Tensor]:
        split = (*states.shape[:2], self.heads, -1)
        query, key, value = (
            self.self[name](states).view(split).transpose(1, 2) for name in _ATTENDED
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        return (self.output(mixed.transpose(1, 2).reshape(states.shape), states),)


class _Added(nn.Module):
    """A projection with a residual connection and layer normalisation."""

    def __init__(self, width_in: int, width: int, epsilon: float) -> None:
        super().__init__()
        self.dense = Linear(width_in, width)
        self.LayerNorm = Norm(width, epsilon)

    def forward(self, states: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        return self.LayerNorm(self.dense(states) + before)


class _Head(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        width = config.hidden_size
        parts = {"dense": Linear(width, width), "LayerNorm": Norm(width, config.layer_norm_eps)}
        self.transform = nn.ModuleDict(parts)
        self.decoder = Linear(width, config.vocab_size)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        states = self.transform["LayerNorm"](functional.gelu(self.transform["dense"](states)))
        return self.decoder(states)
