"""The modules of a model's layers, attention, MLPs and norms, by the names that each family uses.

A layer adds the outputs of its attention and its MLP to the hidden state. Families like GPT-2 and
Llama normalise the input of attention and MLP; families like BERT normalise each sum:

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

    whole: the layer. attention, mlp: the modules whose outputs are added to the hidden state.
    attention_out, mlp_out: the last projection in each, which reads all heads or neurons. norms:
    the modules that normalise the two sums; empty if the sums aren't normalised.
    """

    whole: nn.Module
    attention: nn.Module
    mlp: nn.Module
    attention_out: nn.Module
    mlp_out: nn.Module
    norms: tuple[nn.Module, ...]

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The modules of all fields; a module can occur twice."""
        return (
            *(self.whole, self.attention, self.mlp, self.attention_out, self.mlp_out),
            *self.norms,
        )


@dataclass(frozen=True, slots=True)
class ModelParts:
    """A model's layers, and the modules between the last layer and the output embeddings, in order.

    head: norms and projections; activations between them aren't listed.
    """

    layers: tuple[Layer, ...]
    head: tuple[nn.Module, ...]


@dataclass(frozen=True, slots=True)
class _Names:
    """The paths of a family's modules: `layers` and `head` in the model, the others in a layer.

    attention_out, mlp_out: empty if `attention` and `mlp` are the projections themselves.
    """

    layers: str
    attention: str
    mlp: str
    attention_out: str = ""
    mlp_out: str = ""
    norms: tuple[str, ...] = ()
    head: tuple[str, ...] = ()


_ROBERTA_HEAD = ("lm_head.dense", "lm_head.layer_norm")


def _like_bert(layers: str, *head: str) -> _Names:
    return _Names(
        layers,
        "attention.output.dense",
        "output.dense",
        norms=("attention.output.LayerNorm", "output.LayerNorm"),
        head=head,
    )


FAMILIES = (
    _Names(
        "transformer.h", "attn", "mlp", "attn.c_proj", "mlp.c_proj", head=("transformer.ln_f",)
    ),  # GPT-2
    _Names(
        "model.layers",
        "post_attention_layernorm",
        "post_feedforward_layernorm",
        "self_attn.o_proj",
        "mlp.down_proj",
        head=("model.norm",),
    ),  # OLMo 2, Gemma 3: attention and MLP are normalised before they are added
    _Names(
        "model.layers",
        "self_attn",
        "mlp",
        "self_attn.o_proj",
        "mlp.down_proj",
        head=("model.norm",),
    ),  # Llama, Mistral, Qwen
    _Names(
        "model.layers",
        "attn",
        "mlp",
        "attn.Wo",
        "mlp.Wo",
        head=("model.final_norm", "head.dense", "head.norm"),
    ),  # ModernBERT
    _Names(
        "gpt_neox.layers",
        "attention",
        "mlp",
        "attention.dense",
        "mlp.dense_4h_to_h",
        head=("gpt_neox.final_layer_norm",),
    ),  # Pythia
    _Names(
        "model.decoder.layers",
        "self_attn",
        "fc2",
        "self_attn.out_proj",
        head=("model.decoder.final_layer_norm", "model.decoder.project_out"),
    ),  # OPT
    _like_bert(
        "bert.encoder.layer",
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
    ),
    _like_bert(
        "deberta.encoder.layer",
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
    ),  # DeBERTa and DeBERTa-v3
    _like_bert("roberta.encoder.layer", *_ROBERTA_HEAD),
    _like_bert(
        "electra.encoder.layer", "generator_predictions.dense", "generator_predictions.LayerNorm"
    ),
    _Names(
        "mpnet.encoder.layer",
        "attention.attn",
        "output.dense",
        "attention.attn.o",
        norms=("attention.LayerNorm", "output.LayerNorm"),
        head=_ROBERTA_HEAD,
    ),
    _Names(
        "distilbert.transformer.layer",
        "attention",
        "ffn",
        "attention.out_lin",
        "ffn.lin2",
        norms=("sa_layer_norm", "output_layer_norm"),
        head=("vocab_transform", "vocab_layer_norm"),
    ),
)


def find_parts(name: str, model: Any) -> ModelParts:
    """Return the modules of a model's parts; raise UserError if its family isn't supported."""
    if getattr(model.config, "is_encoder_decoder", False):
        raise unsupported(name, model, "it has an encoder and a decoder")
    if _find(model, "albert.encoder.albert_layer_groups") is not None:
        raise unsupported(name, model, "all of its layers are the same modules")
    if _find(model, "deberta.encoder.conv") is not None:  # in DeBERTa-v2's two largest models
        raise unsupported(name, model, "a convolution changes the first layer's hidden states")
    for names in FAMILIES:
        stack = _find(model, names.layers)
        if isinstance(stack, nn.ModuleList) and len(stack):
            try:
                layers = tuple(
                    Layer(
                        layer,
                        layer.get_submodule(names.attention),
                        layer.get_submodule(names.mlp),
                        layer.get_submodule(names.attention_out or names.attention),
                        layer.get_submodule(names.mlp_out or names.mlp),
                        tuple(map(layer.get_submodule, names.norms)),
                    )
                    for layer in stack
                )
            except AttributeError:  # another family with these layers
                continue
            head = (_find(model, path) for path in names.head)
            return ModelParts(layers, tuple(module for module in head if module is not None))
    raise unsupported(name, model, "the names of these modules aren't known")


def unsupported(name: str, model: Any, why: str) -> UserError:
    """Return the error for a model of a family whose parts can't be read. why: the reason."""
    return UserError(
        f"Can't read the attention and MLPs of {name} (family {model.config.model_type}): {why}; "
        "supported families are GPT-2, Llama, Mistral, Qwen2, OLMo 2, GPT-NeoX (Pythia), OPT, "
        "BERT, DistilBERT, RoBERTa, ELECTRA, MPNet, DeBERTa and ModernBERT."
    )


def _find(module: nn.Module, path: str) -> nn.Module | None:
    try:
        return module.get_submodule(path)
    except AttributeError:
        return None
