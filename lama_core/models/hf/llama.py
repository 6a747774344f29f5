"""Llama in torch, so that the first answer of a new process doesn't need to import transformers.

The modules have transformers' names and compute the same operations in the same order, so that
scores are equal. Folders with an unusual setting are read by transformers.
Source: Touvron et al. 2023, section 2.2; Su et al. 2021 (rotary embeddings); Ainslie et al. 2023
(several heads share keys and values). Log-probabilities equal `LlamaForCausalLM`'s to 1e-4 (test).
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from lama_core.errors import UserError
from lama_core.models.hf.fast_tokenizer import SPECIAL, FastTokenizer
from lama_core.models.hf.layers import Linear, RmsNorm, Table, read_weights
from lama_core.models.model_folder import is_library_error, read_json, stored_tensors

_FIXED: dict[str, tuple[object, ...]] = {
    "model_type": ("llama",),
    "architectures": (["LlamaForCausalLM"], None),
    "hidden_act": ("silu", None),
    "attention_bias": (False, None),
    "mlp_bias": (False, None),
    "pretraining_tp": (1, None),
    "sliding_window": (None,),
    "partial_rotary_factor": (1.0, None),
    "is_decoder": (True, False, None),
    "is_causal": (True, None),
    "tie_word_embeddings": (True, False, None),
    "quantization_config": (None,),
    "auto_map": (None,),
}
_ROPE = {"rope_type", "type", "rope_theta"}
# Other keys of tokenizer_config.json can change how transformers splits a text.
_HARMLESS = {
    *SPECIAL, "added_tokens_decoder", "additional_special_tokens", "backend", "chat_template",
    "clean_up_tokenization_spaces", "extra_special_tokens", "is_local", "local_files_only",
    "model_input_names", "model_max_length", "padding_side", "tokenizer_class",
}  # fmt: skip
# Files from which transformers would read more special tokens or chat templates.
_MORE_FILES = ("special_tokens_map.json", "added_tokens.json", "additional_chat_templates")
_TABLE, _HEAD = "model.embed_tokens.weight", "lm_head.weight"

Pair = tuple[torch.Tensor, torch.Tensor]


class PrefixCache:
    """Keys and values of the tokens read so far, [row, head, token, dim] each, in each layer."""

    def __init__(self) -> None:
        self.layers: list[Pair] = []

    @property
    def n_tokens(self) -> int:
        """Number of tokens of each row, padding included."""
        return self.layers[0][0].shape[2] if self.layers else 0

    def add(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> Pair:
        """Add new tokens to a layer; return the keys and values of all tokens."""
        if layer == len(self.layers):
            self.layers.append((keys, values))
        else:
            before = self.layers[layer]
            self.layers[layer] = torch.cat([before[0], keys], 2), torch.cat([before[1], values], 2)
        return self.layers[layer]

    def batch_repeat_interleave(self, n: int) -> None:
        """Repeat each row n times."""
        self.layers = [
            (keys.repeat_interleave(n, 0), values.repeat_interleave(n, 0))
            for keys, values in self.layers
        ]

    def batch_select_indices(self, rows: torch.Tensor) -> None:
        """Keep these rows; a row may be chosen several times."""
        self.layers = [(keys[rows], values[rows]) for keys, values in self.layers]


class BodyOutput(NamedTuple):
    """Output of the layers.

    last_hidden_state: [row, position, dim]. past_key_values: None if not requested. hidden_states:
    the embeddings, then the output of each layer, the last one normalised; None if not requested.
    """

    last_hidden_state: torch.Tensor
    past_key_values: PrefixCache | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None


class CausalOutput(NamedTuple):
    """Output of a forward pass. logits: [row, position, vocabulary]."""

    logits: torch.Tensor
    past_key_values: PrefixCache | None = None


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
    ) -> CausalOutput:
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
        return CausalOutput(self.lm_head(output[0]), output[1])


class _Body(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.embed_tokens = Table(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(_Layer(config, n) for n in range(config.num_hidden_layers))
        self.norm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        shares = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device="cpu")
        self.frequencies = 1.0 / config.rope_theta ** (shares / config.head_dim)

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
        n_before = cache.n_tokens if cache else 0
        if position_ids is None:
            n = states.shape[1]
            position_ids = torch.arange(n_before, n_before + n, device=states.device)[None]
        mask = _mask(attention_mask, states.shape[1], n_before, states.device)
        turns = self._turns(position_ids, states.dtype)
        collected: list[torch.Tensor] = []
        for layer in self.layers:
            collected += [states] if output_hidden_states else []
            states = layer(states, mask, turns, cache)
        states = self.norm(states)
        return BodyOutput(states, cache, (*collected, states) if output_hidden_states else None)

    def _turns(self, positions: torch.Tensor, dtype: torch.dtype) -> Pair:
        """Return the rotations' cosines and sines, [row, 1, position, dim of a head]."""
        angles = positions[..., None].float() * self.frequencies.to(positions.device)
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        return angles.cos().to(dtype), angles.sin().to(dtype)


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
        turns: Pair,
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
        turns: Pair,
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
        grouped = self.n_shared > 1 and mask is None and states.device.type != "mps"
        if self.n_shared > 1 and n_new == 1 and not grouped:
            query = query.reshape(n_rows, -1, self.n_shared, self.dim)
        elif self.n_shared > 1 and not grouped:
            keys, values = (_repeated(part, self.n_shared) for part in (keys, values))
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


def _repeated(part: torch.Tensor, times: int) -> torch.Tensor:
    """Repeat the keys or values of each head for the heads that share them."""
    return part[:, :, None].expand(-1, -1, times, -1, -1).flatten(1, 2)


def _turn(states: torch.Tensor, turns: Pair) -> torch.Tensor:
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


def read_llama(
    folder: Path, dtype: torch.dtype, device: str = "cpu"
) -> tuple[LlamaCausalLM, FastTokenizer] | None:
    """Return a folder's model and tokenizer; None if it isn't a Llama with the usual settings.

    Also None if a file is damaged, weights are missing or have another shape, or the tokenizer has
    more tokens than the model: the next backend then reports the reason.
    """
    try:
        config = _read_config(folder)
        if config is None or (tokenizer := _read_tokenizer(folder)) is None:
            return None
        if max(tokenizer.get_vocab().values()) >= config.vocab_size:
            return None
        model = _read_weights(folder, config, dtype, device)
    except Exception as error:
        if not is_library_error(error, UserError):
            raise
        return None
    return model, tokenizer


def _read_config(folder: Path) -> SimpleNamespace | None:
    """Return the configuration with its defaults; None if a setting is unusual."""
    config = read_json(folder / "config.json")
    if any(config.get(name) not in allowed for name, allowed in _FIXED.items()):
        return None
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kinds = {rope.get("rope_type", "default"), rope.get("type", "default")}
    if not rope.keys() <= _ROPE or kinds != {"default"}:
        return None
    heads = config["num_attention_heads"]
    shared = config.get("num_key_value_heads") or heads
    dim = config.get("head_dim") or config["hidden_size"] // heads
    if config["hidden_size"] % heads or heads % shared or dim % 2:
        return None
    stored = folder / "generation_config.json"
    of_texts = read_json(stored) if stored.exists() else {"eos_token_id": 2} | config
    ends = of_texts.get("eos_token_id")
    if any(type(end) is not int for end in (ends if isinstance(ends, list) else [ends or 0])):
        return None
    derived = {
        "num_key_value_heads": shared,
        "head_dim": dim,
        "max_position_embeddings": int(config["max_position_embeddings"]),
        "rms_norm_eps": float(config["rms_norm_eps"]),
        "rope_theta": float(rope.get("rope_theta", config.get("rope_theta", 10000.0))),
        "tie_word_embeddings": config.get("tie_word_embeddings") or False,
        "eos_token_id": ends,
    }
    return SimpleNamespace(**config | derived)


def _read_tokenizer(folder: Path) -> FastTokenizer | None:
    """Return the tokenizer; None if transformers would change what tokenizer.json contains."""
    from tokenizers import Tokenizer

    config = read_json(folder / "tokenizer_config.json")
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    stored = json.loads(text)
    template = config.get("chat_template")
    if (folder / "chat_template.jinja").exists():
        template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    listed = config.get("added_tokens_decoder")
    usual = (
        config.get("tokenizer_class") in ("TokenizersBackend", "PreTrainedTokenizerFast")
        and config.keys() <= _HARMLESS
        and isinstance(config.get("extra_special_tokens"), list | None)
        and isinstance(template, str | None)
        and stored["model"]["type"] == "BPE"
        and not stored.get("padding")
        and (listed is None or listed == _by_id(stored["added_tokens"]))
        and not any((folder / name).exists() for name in _MORE_FILES)
    )
    if not usual:
        return None
    tokenizer = FastTokenizer(Tokenizer.from_str(text), config, template)
    added = {token["content"] for token in stored["added_tokens"]}
    return tokenizer if added.issuperset(tokenizer.all_special_tokens) else None


def _by_id(added: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return added tokens by their id, as tokenizer_config.json lists them."""
    return {
        str(token["id"]): {name: value for name, value in token.items() if name != "id"}
        for token in added
    }


def _read_weights(
    folder: Path, config: SimpleNamespace, dtype: torch.dtype, device: str
) -> LlamaCausalLM:
    with torch.device("meta"):  # no memory until the shapes are known to match the file's
        model = LlamaCausalLM(config)
    tied = config.tie_word_embeddings
    if tied:
        if {_TABLE, _HEAD} <= stored_tensors(folder).keys():
            raise UserError("transformers compares the two tables before it ties them")
        model.lm_head.weight = model.model.embed_tokens.weight

    def own_name(key: str) -> str:
        if key.endswith(".rotary_emb.inv_freq"):
            return ""
        return _TABLE if tied and key == _HEAD else key

    read_weights(model, folder / "model.safetensors", dtype, own_name=own_name, device=device)
    if tied:
        model.lm_head.weight = model.model.embed_tokens.weight
    return model
