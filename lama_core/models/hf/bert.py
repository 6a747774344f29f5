"""BERT in torch, so that the first answer of a new process doesn't need to import transformers.

That import takes twice as long as torch's, and uses most of the memory of a process with a small
model.
Modules have transformers' names, so that checkpoint keys match and `cutting_places` finds the same
modules. Folders with an unusual setting are read by transformers.
Source: Devlin et al. 2019, sections 3 and 3.1; logits equal `BertForMaskedLM`'s to 1e-4 (test).
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

import torch
from torch import nn
from torch.nn import functional

from lama_core.errors import UserError
from lama_core.models.hf.fast_tokenizer import FastTokenizer
from lama_core.models.hf.layers import Linear, Norm, Output, Table, read_weights
from lama_core.models.model_folder import is_library_error

_FIXED: dict[str, set[object]] = {
    "model_type": {"bert"},
    "hidden_act": {"gelu"},
    "position_embedding_type": {"absolute", None},
    "is_decoder": {False, None},
    "add_cross_attention": {False, None},
    "tie_word_embeddings": {True, None},
    "chunk_size_feed_forward": {0, None},
    "quantization_config": {None},
}
# Other heads, and the decoder's copies: its weight is tied to the word embeddings, and its bias is
# stored as predictions.bias.
_UNUSED = ("bert.pooler.", "cls.seq_relationship.", "cls.predictions.decoder.")
_ATTENDED = ("query", "key", "value")
_SPECIAL = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")


class BodyOutput(NamedTuple):
    """Output of the encoder.

    last_hidden_state: [row, position, dim]. hidden_states: the embeddings, then the output of each
    layer; None if not requested.
    """

    last_hidden_state: torch.Tensor
    hidden_states: tuple[torch.Tensor, ...] | None = None


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
        return BodyOutput(states, tuple(collected) if output_hidden_states else None)


class _Embeddings(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = Table(config.vocab_size, width)
        self.position_embeddings = Table(config.max_position_embeddings, width)
        self.token_type_embeddings = Table(config.type_vocab_size, width)
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


def read_bert(folder: Path, dtype: torch.dtype) -> tuple[BertMaskedLM, FastTokenizer] | None:
    """Return a folder's model and tokenizer; None if it isn't a BERT with the usual settings.

    Also None if a file is damaged, weights are missing or have another shape, or the tokenizer has
    more tokens than the model: the next backend then reports the reason.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if any(config.get(name) not in allowed for name, allowed in _FIXED.items()):
            return None
        tokenizer = _read_tokenizer(folder)
        if tokenizer is None or max(tokenizer.get_vocab().values()) >= config["vocab_size"]:
            return None
        if config["hidden_size"] % config["num_attention_heads"]:
            return None
        model = _read_weights(folder, SimpleNamespace(**config), dtype)
    except Exception as error:
        if not is_library_error(error, UserError):
            raise
        return None
    return model, tokenizer


def _read_tokenizer(folder: Path) -> FastTokenizer | None:
    from tokenizers import Tokenizer

    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    stored = json.loads(text)
    normalizer = stored["normalizer"]
    plain = (
        config["tokenizer_class"] in ("BertTokenizer", "BertTokenizerFast")
        and all(isinstance(config[name], str) for name in _SPECIAL)
        and stored["model"]["type"] == "WordPiece"
        and stored["pre_tokenizer"]["type"] == "BertPreTokenizer"
        and normalizer["type"] == "BertNormalizer"
        # transformers takes these settings from the configuration, not from tokenizer.json.
        and config.get("do_lower_case", True) == normalizer["lowercase"]
        and config.get("strip_accents") == normalizer["strip_accents"]
        and config.get("tokenize_chinese_chars", True) == normalizer["handle_chinese_chars"]
    )
    if not plain:
        return None
    tokenizer = FastTokenizer(Tokenizer.from_str(text), config)
    return None if None in tokenizer.all_special_ids else tokenizer


def _read_weights(folder: Path, config: SimpleNamespace, dtype: torch.dtype) -> BertMaskedLM:
    with torch.device("meta"):  # no memory until the shapes are known to match the file's
        model = BertMaskedLM(config)
    table, projection = model.get_input_embeddings(), model.get_output_embeddings()
    projection.weight = table.weight  # tied
    read_weights(model, folder / "model.safetensors", dtype, own_name=_own_name, copy=True)
    projection.weight = table.weight
    return model


def _own_name(key: str) -> str:
    """Return a stored weight's name in `BertMaskedLM`; empty if it is unused."""
    if key.startswith(_UNUSED) or key.endswith("position_ids"):
        return ""
    if key == "cls.predictions.bias":
        return "cls.predictions.decoder.bias"
    # Early checkpoints use other names for layer normalisation.
    return key.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )
