"""Llama in torch, so that the first answer of a new process doesn't need to import transformers.

The modules have transformers' names and compute the same operations in the same order, so that
scores are equal. It reads SmolLM2-135M, whose digest the catalogue has; transformers reads all
other folders, because their settings may differ.
Source: Touvron et al. 2023, section 2.2; Su et al. 2021 (rotary embeddings); Ainslie et al. 2023
(several heads share keys and values). Log-probabilities equal `LlamaForCausalLM`'s to 1e-4 (test).
"""

from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional

from lama_core.models.hf.layers import BodyOutput, EmbeddingTable, Linear, Output, RmsNorm

OWN_NAMES = {"lm_head.weight": "model.embed_tokens.weight"}  # one table, stored under either name

TensorPair = tuple[torch.Tensor, torch.Tensor]


class PrefixCache:
    """Keys and values of the tokens read so far, [row, head, token, dim] each, in each layer."""

    def __init__(self) -> None:
        self.layers: list[TensorPair] = []

    def add(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> TensorPair:
        """Add new tokens to a layer; return the keys and values of all tokens."""
        if layer == len(self.layers):
            self.layers.append((keys, values))
        else:
            before = self.layers[layer]
            self.layers[layer] = torch.cat([before[0], keys], 2), torch.cat([before[1], values], 2)
        return self.layers[layer]

    def reorder_cache(self, rows: torch.Tensor) -> None:
        """Keep these rows; a row may be chosen several times."""
        self.layers = [(keys[rows], values[rows]) for keys, values in self.layers]


class LlamaCausalLM(nn.Module):
    """The layers and the head, with the interface of transformers' `LlamaForCausalLM`."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        self.generation_config = SimpleNamespace(eos_token_id=config.eos_token_id)
        self.model = _Body(config)
        self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=False)

    @property
    def base_model(self) -> nn.Module:
        return self.model

    @property
    def dtype(self) -> torch.dtype:
        return self.lm_head.weight.dtype

    def get_input_embeddings(self) -> nn.Module:
        return self.model.embed_tokens

    def get_output_embeddings(self) -> nn.Module:
        return self.lm_head

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: PrefixCache | None = None,
        use_cache: bool = False,
    ) -> Output:
        """Return logits for token ids int64 [row, position].

        Args:
            input_ids: The tokens after those in the cache.
            attention_mask: int64 [row, token], 0 for padding, with the tokens in the cache; or
                float [row, 1, position, token], added to the attention's logits.
            position_ids: int64 [row, position]; None counts from the tokens in the cache.
            past_key_values: The cache, to which the tokens are added.
            use_cache: Whether to make a cache if there is none.
        """
        output = self.model(input_ids, attention_mask, position_ids, past_key_values, use_cache)
        return Output(self.lm_head(output[0]), output[1])


class _Body(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.embed_tokens = EmbeddingTable(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(_Layer(config, n) for n in range(config.num_hidden_layers))
        self.norm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        shares = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device="cpu")
        self.frequencies = 1.0 / config.rope_parameters["rope_theta"] ** (shares / config.head_dim)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: PrefixCache | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
    ) -> BodyOutput:
        states = self.embed_tokens(input_ids)
        cache = PrefixCache() if use_cache and past_key_values is None else past_key_values
        n_before = cache.layers[0][0].shape[2] if cache and cache.layers else 0
        if position_ids is None:
            n = states.shape[1]
            position_ids = torch.arange(n_before, n_before + n, device=states.device)[None]
        mask = _mask(attention_mask, states.shape[1], n_before, states.device)
        # The rotations' cosines and sines, [row, 1, position, dim of a head].
        angles = position_ids[..., None].float() * self.frequencies.to(position_ids.device)
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        turns = angles.cos().to(states.dtype), angles.sin().to(states.dtype)
        collected: list[torch.Tensor] = []
        for layer in self.layers:
            collected += [states] if output_hidden_states else []
            states = layer(states, mask, turns, cache)
        states = self.norm(states)
        return BodyOutput(states, cache, (*collected, states) if output_hidden_states else None)


def _mask(
    given: torch.Tensor | None, n_new: int, n_before: int, device: torch.device
) -> torch.Tensor | None:
    """Return the attention mask, [row or 1, 1, position, token].

    None if all tokens are seen by the only new one, or by those after them: torch's `is_causal`.
    """
    if given is not None and given.ndim == 4:
        return given
    if given is not None and bool(given.all()):
        given = None
    if given is None and (n_new == 1 or not n_before):
        return None
    n_tokens = n_before + n_new
    new = torch.arange(n_before, n_tokens, device=device)
    seen = new[:, None] >= torch.arange(n_tokens, device=device)
    return seen[None, None] if given is None else seen & given.bool()[:, None, None]


class _Layer(nn.Module):
    def __init__(self, config: SimpleNamespace, number: int) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = _Attention(config, number)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = _Mlp(config.hidden_size, config.intermediate_size)

    def forward(
        self,
        states: torch.Tensor,
        mask: torch.Tensor | None,
        turns: TensorPair,
        cache: PrefixCache | None,
    ) -> torch.Tensor:
        states = states + self.self_attn(self.input_layernorm(states), mask, turns, cache)
        return states + self.mlp(self.post_attention_layernorm(states))


class _Attention(nn.Module):
    def __init__(self, config: SimpleNamespace, number: int) -> None:
        super().__init__()
        width, self.dim, self.number = config.hidden_size, config.head_dim, number
        self.n_shared = config.num_attention_heads // config.num_key_value_heads
        inner, shared = (
            n * self.dim for n in (config.num_attention_heads, config.num_key_value_heads)
        )
        self.q_proj = Linear(width, inner, bias=False)
        self.k_proj = Linear(width, shared, bias=False)
        self.v_proj = Linear(width, shared, bias=False)
        self.o_proj = Linear(inner, width, bias=False)

    def forward(
        self,
        states: torch.Tensor,
        mask: torch.Tensor | None,
        turns: TensorPair,
        cache: PrefixCache | None,
    ) -> torch.Tensor:
        n_rows, n_new = states.shape[:2]
        query, keys, values = (
            project(states).view(n_rows, n_new, -1, self.dim).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, keys = _turn(query, turns), _turn(keys, turns)
        if cache is not None:
            keys, values = cache.add(self.number, keys, values)
        # As in transformers, so that the last digits are the same.
        grouped = mask is None and states.device.type != "mps"
        if n_new == 1 and not grouped:
            query = query.reshape(n_rows, -1, self.n_shared, self.dim)
        elif not grouped:  # repeat each head's for the heads that share them
            keys, values = (
                part[:, :, None].expand(-1, -1, self.n_shared, -1, -1).flatten(1, 2)
                for part in (keys, values)
            )
        mixed = functional.scaled_dot_product_attention(
            query,
            keys,
            values,
            attn_mask=mask,
            scale=self.dim**-0.5,
            is_causal=mask is None and n_new > 1,
            enable_gqa=grouped,
        )
        mixed = mixed.reshape(n_rows, -1, n_new, self.dim)
        return self.o_proj(mixed.transpose(1, 2).reshape(n_rows, n_new, -1))


def _turn(states: torch.Tensor, turns: TensorPair) -> torch.Tensor:
    """Rotate the vectors of a head, [row, head, position, dim], by their positions."""
    first, second = states.chunk(2, dim=-1)
    return states * turns[0] + torch.cat((-second, first), dim=-1) * turns[1]


class _Mlp(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = Linear(width, inner, bias=False)
        self.up_proj = Linear(width, inner, bias=False)
        self.down_proj = Linear(inner, width, bias=False)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(states)) * self.up_proj(states))
