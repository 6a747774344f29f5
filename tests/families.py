"""A tiny random model of every family that the library `transformers` lists as a language model.

The families are read from its own tables, so a new version's come by themselves: a family's
standard configuration is made small by the names of its sizes, and where that is not enough, by a
row of `ODD`. The weights are random but wide, so that a wrong answer shows.
"""

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tiny_models import bert_tokenizer, smollm_tokenizer, t5_tokenizer
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from lama_core.models.cache import Precision
from lama_core.models.protocols import Kind
from lama_core.models.registry import open_model
from lama_core.models.sources.locations import LocatedModel

LISTED: dict[Kind, dict[str, str]] = {
    "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "causal": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    "seq2seq": modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
}
AUTO: dict[Kind, Any] = {
    "masked": AutoModelForMaskedLM, "causal": AutoModelForCausalLM,
    "seq2seq": AutoModelForSeq2SeqLM,
}  # fmt: skip
# A model with more weights than this was not made small.
MOST_WEIGHTS = 1_500_000
HIDDEN, HEADS, GROUPS, HEAD, INNER, WINDOW, EXPERTS = 32, 4, 2, 8, 48, 128, 4


def _named(value: Any, names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), value)


# What the families call their sizes.
SIZES: dict[str, Any] = {
    **_named(HIDDEN, "hidden_size d_model n_embd dim emb_dim embedding_dim width lru_width"),
    **_named(16, "embedding_size input_embedding_size entity_emb_size word_embed_proj_dim"),
    **_named(
        HEADS,
        "num_attention_heads n_head n_heads num_heads attention_heads encoder_attention_heads "
        "decoder_attention_heads num_encoder_attention_heads num_decoder_attention_heads "
        "swa_num_attention_heads index_n_heads linear_num_value_heads linear_num_heads "
        "mamba_n_heads n_mamba_heads conf_num_attention_heads num_query_groups",
    ),
    **_named(
        GROUPS,
        "num_key_value_heads num_kv_heads swa_num_key_value_heads linear_num_key_heads "
        "num_global_key_value_heads",
    ),
    **_named(
        HEAD,
        "head_dim d_kv d_head dim_head v_head_dim qk_rope_head_dim qk_nope_head_dim swa_head_dim "
        "swa_v_head_dim index_head_dim linear_key_head_dim linear_value_head_dim linear_head_dim "
        "attention_head_size kv_channels global_head_dim query_pre_attn_scalar rotary_dim "
        "mamba_d_state state_size ssm_state_size time_step_rank mamba_dt_rank mamba_d_head",
    ),
    **_named(
        INNER,
        "intermediate_size moe_intermediate_size shared_expert_intermediate_size "
        "shared_intermediate_size shared_experts_intermediate_size intermediate_size_mlp "
        "dense_intermediate_size moe_shared_expert_intermediate_size ffn_dim encoder_ffn_dim "
        "decoder_ffn_dim ffn_hidden_size expert_ffn_hidden_size hidden_dim d_inner dff dim_ff "
        "feed_forward_size",
    ),
    **_named(
        WINDOW,
        "max_position_embeddings n_positions n_ctx max_seq_len context_length "
        "max_target_positions original_max_position_embeddings",
    ),
    **_named(16, "q_lora_rank kv_lora_rank o_lora_rank laurel_rank hidden_size_per_layer_input"),
    **_named(EXPERTS, "num_experts n_routed_experts num_local_experts moe_num_experts"),
    **_named(2, "num_experts_per_tok num_experts_per_token moe_topk moe_k num_hidden_layers_mtp"),
    **_named(1, "n_group topk_group num_expert_group num_groups"),
    # Smaller than the texts, so that what lies beyond it is left out.
    **_named(
        4,
        "sliding_window attention_window attention_window_size window_size local_attention "
        "sliding_window_size attention_chunk_size chunk_size mamba_chunk_size",
    ),
    # As large as the window, as the released ones are to a sentence: of words that it finds alike,
    # which few are looked at hangs on the last digit.
    **_named(WINDOW, "index_topk"),
}
LAYERS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
    "num_encoder_layers", "num_decoder_layers", "depth",
)  # fmt: skip
MAX_LAYERS = 4
WIDE = 0.35
# Where so wide weights make differences in the last digit grow through the layers.
LESS_WIDE = {"hrm_text": 0.1, "rembert": 0.1, "zamba": 0.2}
ALL_HEADS = {"num_key_value_heads": "num_attention_heads", "num_kv_heads": "num_attention_heads"}
# Families whose sizes depend on each other in their own way, or that need a part switched on.
# Settings that belong to several rows of `ODD`.
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
QWEN4 = {
    "hc_lowrank": 8, "ple_embed_dim": 64, "ngram_vocab_size_base": 50, "indexer_n_heads": 2,
    "indexer_kv_heads": 1, "indexer_head_dim": HEAD, "indexer_budget": 8,
    "indexer_compress_ratio": 2,
}  # fmt: skip
DOTS3 = {  # the sliding layers' own sizes
    "swa_num_attention_heads": HEADS, "swa_num_key_value_heads": HEADS, "swa_q_lora_rank": 16,
    "swa_kv_lora_rank": 16, "swa_head_dim": 16, "swa_qk_nope_head_dim": HEAD,
    "swa_v_head_dim": HEAD, "head_dim": 16,
}  # fmt: skip
GEMMA4 = {"global_head_dim": HEAD, "vocab_size_per_layer_input": 1000}
MIXED = ["linear_attention", "full_attention"]
# What the names of the sizes don't tell, by family; why, in the row.
ODD: dict[str, dict[str, Any]] = {
    # The state's heads times their width are twice the model's width; one layer of each kind.
    "bamba": {"mamba_d_head": 16, "attn_layer_indices": [1]},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_d_head": 16},
    "granitemoehybrid": {"mamba_d_head": 16, "layer_types": MIXED},
    "mamba2": {"head_dim": 16, "n_groups": GROUPS},
    # Both kinds of layer among two or four.
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "lfm2": {
        "num_hidden_layers": 2, "layer_types": ["conv", "full_attention"], "full_attn_idxs": [1],
    },
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "recurrent_gemma": {"block_types": ["recurrent", "attention"]},
    "zamba": {
        "attention_head_dim": 16, "num_hidden_layers": 4,
        "layers_block_type": ["linear_attention", "hybrid"] * 2,
    },
    # No number by default where the code needs one.
    "cohere_compass_text": {"rope_parameters": {"full_attention": ROPE}},
    "dbrx": {
        "attn_config": {"rope_theta": 10000.0, "kv_n_heads": GROUPS, "clip_qkv": 8.0},
        "ffn_config": {"hidden_size": HIDDEN, "moe_top_k": 2},
    },
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": EXPERTS, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "hunyuan_v1_dense": {"head_dim": HEAD},
    "hunyuan_v1_moe": {"head_dim": HEAD},
    "ministral": {"head_dim": HEAD},
    "nemotron": {"num_key_value_heads": GROUPS},
    "qwen4_exp": {"text_config": QWEN4},
    "qwen4_exp_text": QWEN4,
    "xmod": {"default_language": "en_XX"},
    # Sizes by other names, too many of a thing, or sizes that must fit each other.
    "blt": {
        "encoder_hash_byte_group_vocab": 50, "encoder_config": {"hidden_size_global": HIDDEN},
        "decoder_config": {"hidden_size_global": HIDDEN}, "patcher_config": {},
    },
    "deepseek_v4": {
        "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 4},
    },
    "dots3_note": {
        "text_config": DOTS3,
        "vision_config": {"adapter_in_dim": HIDDEN, "adapter_out_dim": HIDDEN},
        "audio_config": {
            "adapter_input_size": HIDDEN, "adapter_in_dim": HIDDEN, "adapter_out_dim": HIDDEN,
        },
    },
    "dots3_note_text": DOTS3,
    "gemma3n_text": {"vocab_size_per_layer_input": 1000, "num_kv_shared_layers": 2},
    "gemma4": {"text_config": GEMMA4},
    "gemma4_text": GEMMA4,
    "gemma4_unified": {"text_config": GEMMA4},
    "gemma4_unified_text": GEMMA4,
    "got_ocr2": {"vision_config": {"output_channels": 16, "mlp_dim": INNER, "image_size": 64}},
    "longcat_flash": {"zero_expert_num": 2},
    "luke": {"entity_vocab_size": 50},
    "neomme": {
        "embedding_rank": 16,
        "rope_parameters": {
            "full_attention": {**ROPE, "partial_rotary_factor": 0.5}, "sliding_attention": ROPE,
        },
    },
    "perceiver": {"num_latents": 8, "d_latents": 64, "num_self_attends_per_block": 2},
    "phi4_multimodal": {
        "audio_config": {
            "ext_pw_out_channel": HIDDEN, "depthwise_separable_out_channel": HIDDEN,
            "nemo_conv_channels": HIDDEN, "num_blocks": 2,
        },
    },
    # Shorter than a text, so that the attention by hashing is there.
    "reformer": {
        "axial_pos_shape": [16, 8], "axial_pos_embds_dim": [16, 16],
        "local_attn_chunk_length": 4, "lsh_attn_chunk_length": 4,
    },
    "roc_bert": {
        "pronunciation_embed_dim": 16, "shape_embed_dim": 16, "pronunciation_vocab_size": 1000,
        "shape_vocab_size": 1000,
    },
    "squeezebert": {"embedding_size": HIDDEN},
    "xlstm": {"hidden_size": 64, "embedding_dim": 64, "chunk_size": 16, "qk_dim_factor": 1.0},
    "zaya": {"num_experts_per_tok": 1},
}  # fmt: skip


def families() -> Iterator[tuple[Kind, str]]:
    """Every family of the tables, each kind that it is listed as."""
    for kind, names in LISTED.items():
        for name in names:
            yield kind, name


def small_config(family: str) -> Any:
    """A family's configuration with small sizes. Raises what the family's own checks raise."""
    made = CONFIG_MAPPING[family]
    return made(**_joined(_shrunk(made()), ODD.get(family, {})))


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Both, the other's values before the one's, in the parts as well."""
    parts = {
        name: _joined(one[name], value)
        for name, value in other.items()
        if name.endswith("_config") and name in one
    }
    return one | other | parts


def _shrunk(config: Any) -> dict[str, Any]:
    """What differs from the standard configuration, its parts' configurations with it."""
    values = config.to_dict()
    changes: dict[str, Any] = {}
    chosen = _layers_kept(values)
    for name, value in values.items():
        if isinstance(value, dict) and name in config.sub_configs:
            changes[name] = _shrunk(getattr(config, name))
        elif name in LAYERS and type(value) is int:
            changes[name] = len(chosen) if chosen and value == _n_layers(values) else 2
        elif name in ALL_HEADS and value == values.get(ALL_HEADS[name]):
            changes[name] = HEADS
        elif name in SIZES and type(value) is int and value > 0:
            changes[name] = SIZES[name]
        elif chosen and isinstance(value, list) and len(value) == _n_layers(values):
            kept = [value[number] for number in chosen]
            changes[name] = [SIZES[name]] * len(kept) if name in SIZES else kept
        elif name in ("initializer_range", "init_std") and value:
            changes[name] = WIDE
    return changes


def _n_layers(values: dict[str, Any]) -> int:
    return next((values[name] for name in LAYERS if type(values.get(name)) is int), 0)


def _layers_kept(values: dict[str, Any]) -> list[int]:
    """Layers of which every kind is there: what is told of each layer in lists as long."""
    n_layers = _n_layers(values)
    told = [v for v in values.values() if isinstance(v, list) and len(v) == n_layers]
    if not told:
        return []
    kinds = [repr(of_layer) for of_layer in zip(*told, strict=True)]
    first = [number for number, kind in enumerate(kinds) if kinds.index(kind) == number]
    if values.get("num_kv_shared_layers"):
        return first + first  # those that share what the first ones keep
    return (first if len(first) > 1 else [0, 1])[:MAX_LAYERS]


def _parts(config: Any) -> Iterator[Any]:
    for name in config.sub_configs:
        if part := getattr(config, name):
            yield part
            yield from _parts(part)


@cache
def tokenizer_of(kind: Kind) -> Any:
    """A tokenizer with every special token that models of a kind may ask for, made once."""
    if kind == "seq2seq":
        return t5_tokenizer()
    return bert_tokenizer(lower=False) if kind == "masked" else smollm_tokenizer()


def open_small(
    kind: Kind, family: str, folder: Path, *, precision: Precision = "fp32", **settings: Any
) -> tuple[Any, Any]:
    """A family's random model as the library opens it from a folder, and as transformers has it.

    settings: of its configuration.
    """
    plain = make_family(kind, family)
    plain.config.update(settings)
    plain.save_pretrained(folder)
    tokenizer_of(kind).save_pretrained(folder)
    return open_model(family, LocatedModel(folder, f"tiny-{family}"), kind, precision), plain


def make_family(kind: Kind, family: str) -> Any:
    """A family's random model in evaluation mode. Raises what the family's own code raises."""
    tokenizer = tokenizer_of(kind)
    config = small_config(family)
    for name in ("is_decoder", "causal") if kind == "causal" else ():
        if hasattr(config, name):  # of a family that is made for both
            setattr(config, name, True)
    special = {
        f"{which}_token_id": getattr(tokenizer, f"{which}_token_id")
        for which in ("pad", "bos", "eos", "cls", "sep", "mask")
    }
    if kind == "seq2seq":
        config.decoder_start_token_id = special["pad_token_id"]
    text = config.get_text_config(decoder=True)
    n_words = getattr(text, "vocab_size", None)
    same = [part for part in _parts(config) if getattr(part, "vocab_size", 0) == n_words]
    for part in (config, text, *same):
        part.vocab_size = len(tokenizer)
        if hasattr(part, "decoder_vocab_size"):
            part.decoder_vocab_size = len(tokenizer)
        for name, number in special.items():
            if number is not None:
                setattr(part, name, number)
    with torch.device("meta"):
        count = sum(
            one.numel() for one in AUTO[kind].from_config(copy.deepcopy(config)).parameters()
        )
    if count > MOST_WEIGHTS:
        raise ValueError(f"{count:,} weights: not made small")
    torch.manual_seed(0)
    model = AUTO[kind].from_config(config).eval()
    wide = LESS_WIDE.get(family, WIDE)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias") and weight.ndim == 1:
                weight.normal_(std=0.3)
            elif weight.ndim > 1 and not 0.6 * wide < weight.std() < 3 * wide:
                weight.normal_(std=wide)
    return model
