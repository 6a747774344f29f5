"""Where a model's layers, attention, MLPs and norms are: a row of names for each family.

A layer adds the outputs of its attention and its MLP to the hidden state. Families like GPT-2 and
Llama normalise what attention and MLP read; families like BERT normalise each sum:

    GPT-2, Llama:  h = h + attention(norm(h));        h = h + mlp(norm(h))
    BERT:          h = norm1(h + attention(h));       h = norm2(h + mlp(h))
"""

from dataclasses import dataclass
from typing import Any

from torch import nn

from lama_core.errors import UserError


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer's modules.

    attention, mlp: their outputs are added to the hidden state. norms: those after the two sums,
    empty if the sums aren't normalised.
    """

    whole: nn.Module
    attention: nn.Module
    mlp: nn.Module
    norms: tuple[nn.Module, ...]


@dataclass(frozen=True, slots=True)
class ModelParts:
    """A model's layers, and the modules between the last layer and the table of logits, in order.

    head: norms and projections; an activation between two of them has no entry.
    """

    layers: tuple[Layer, ...]
    head: tuple[nn.Module, ...]


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of a family's modules; those of a layer's modules start at the layer."""

    layers: str
    attention: str
    mlp: str
    norms: tuple[str, ...] = ()
    head: tuple[str, ...] = ()


_BERT_HEAD = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm")
_ROBERTA_HEAD = ("lm_head.dense", "lm_head.layer_norm")
_ELECTRA_HEAD = ("generator_predictions.dense", "generator_predictions.LayerNorm")


def _like_bert(layers: str, head: tuple[str, ...]) -> _Names:
    norms = ("attention.output.LayerNorm", "output.LayerNorm")
    return _Names(layers, "attention.output.dense", "output.dense", norms, head)


FAMILIES = (
    _Names("transformer.h", "attn", "mlp", head=("transformer.ln_f",)),  # GPT-2
    _Names(
        "model.layers",
        "post_attention_layernorm",
        "post_feedforward_layernorm",
        head=("model.norm",),
    ),  # OLMo 2, Gemma 3: attention and MLP are normalised before they are added
    _Names("model.layers", "self_attn", "mlp", head=("model.norm",)),  # Llama, Mistral, Qwen
    _Names(
        "model.layers", "attn", "mlp", head=("model.final_norm", "head.dense", "head.norm")
    ),  # ModernBERT
    _Names("gpt_neox.layers", "attention", "mlp", head=("gpt_neox.final_layer_norm",)),  # Pythia
    _Names(
        "model.decoder.layers",
        "self_attn",
        "fc2",
        head=("model.decoder.final_layer_norm", "model.decoder.project_out"),
    ),  # OPT
    _like_bert("bert.encoder.layer", _BERT_HEAD),
    _like_bert("roberta.encoder.layer", _ROBERTA_HEAD),
    _like_bert("electra.encoder.layer", _ELECTRA_HEAD),
    _Names(
        "mpnet.encoder.layer",
        "attention.attn",
        "output.dense",
        ("attention.LayerNorm", "output.LayerNorm"),
        _ROBERTA_HEAD,
    ),
    _Names(
        "distilbert.transformer.layer",
        "attention",
        "ffn",
        ("sa_layer_norm", "output_layer_norm"),
        ("vocab_transform", "vocab_layer_norm"),
    ),
)
SUPPORTED = (
    "GPT-2, Llama, Mistral, Qwen2, OLMo 2, GPT-NeoX (Pythia), OPT, BERT, DistilBERT, RoBERTa, "
    "ELECTRA, MPNet and ModernBERT"
)


def find_parts(name: str, model: Any) -> ModelParts:
    """Return where a model's parts are; raise UserError for a family without a row."""
    if getattr(model.config, "is_encoder_decoder", False):
        raise unsupported(name, model, "it has an encoder and a decoder")
    for names in FAMILIES:
        stack = _find(model, names.layers)
        if isinstance(stack, nn.ModuleList) and len(stack):
            layers = [_layer(module, names) for module in stack]
            if None not in layers:
                head = (_find(model, path) for path in names.head)
                return ModelParts(
                    tuple(layer for layer in layers if layer is not None),
                    tuple(module for module in head if module is not None),
                )
    raise unsupported(name, model, "the names of these modules aren't known")


def unsupported(name: str, model: Any, why: str) -> UserError:
    """Return the error for a model whose family doesn't support a lens; why: about the family."""
    return UserError(
        f"Can't read the attention and MLPs of {name} (family {model.config.model_type}): {why}; "
        f"supported families are {SUPPORTED}."
    )


def _layer(module: nn.Module, names: _Names) -> Layer | None:
    """Return a layer's modules; None if one of them is missing."""
    found = [_find(module, path) for path in (names.attention, names.mlp, *names.norms)]
    known = [part for part in found if part is not None]
    return Layer(module, known[0], known[1], tuple(known[2:])) if known == found else None


def _find(module: nn.Module, path: str) -> nn.Module | None:
    try:
        return module.get_submodule(path)
    except AttributeError:
        return None
