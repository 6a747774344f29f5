"""Convert Tsinghua's ERNIE, queried without entities, to a BERT.

The layers that combine words and entities add a projection of the entities before the activation.
Without entities, only the projection's bias is left: it is added to the words' bias, and the
entities' weights are dropped. Source: Zhang et al. 2019, section 3.3; thunlp/ERNIE's modeling code.
"""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from lama_core.errors import UserError
from lama_core.models.model_folder import CONFIG, read_json
from lama_older_systems.conversion.tensors import (
    get_weight,
    read_lines,
    read_pickle,
    read_state,
    size_of,
    write_tensors,
)

OPTIONS, WEIGHTS, WORDS = "ernie_config.json", "pytorch_model.bin", "vocab.txt"
SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
SIGNS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
OF_ENTITIES = re.compile(r"_ent(\.|$|_)|(^|\.)ent_|^bert\.ent")
OUTPUT = "cls.predictions.decoder."  # tied to the word embeddings
BIAS = "bert.encoder.layer.{}.intermediate.{}.bias"


def is_ernie(folder: Path) -> bool:
    """Whether a folder contains Tsinghua ERNIE's configuration."""
    return (folder / OPTIONS).is_file()


def convert_ernie(folder: Path, out: Path) -> None:
    """Write a release as a BERT folder; raise UserError if it is incomplete or invalid."""
    path = folder / OPTIONS
    given = read_json(path)
    config: dict[str, Any] = {name: size_of(given, name, path) for name in SIZES}
    if given.get("hidden_act") != "gelu":
        raise UserError(
            f"{path}: hidden_act is {str(given.get('hidden_act'))[:40]}; expected gelu."
        )
    for name in (WEIGHTS, WORDS):
        if not (folder / name).is_file():
            raise UserError(f"Incomplete release: {folder} has no {name}.")
    words = [line.strip() for line in read_lines(folder / WORDS)]
    missing = [sign for sign in SIGNS.values() if sign not in words]
    if missing or len(set(words)) != len(words):
        what = f"has no {missing[0]}" if missing else "contains a word twice"
        raise UserError(f"Not a BERT vocabulary: {folder / WORDS} {what}.")
    described = {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "vocab_size": len(words),
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": words.index("[PAD]"),
        **config,
    }
    tensors = _without_entities(SimpleNamespace(**described), folder / WEIGHTS)
    write_tensors(out / "model.safetensors", tensors)
    (out / CONFIG).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    _write_tokenizer(out, words, config["max_position_embeddings"])


def _without_entities(config: SimpleNamespace, file: Path) -> dict[str, np.ndarray]:
    """Return BERT's weights: entity weights dropped, the entity projection's bias added."""
    import torch

    from lama_core.models.hf.bert import BertMaskedLM

    state = read_state(read_pickle(file), file)
    kept = {
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
            "LayerNorm.beta", "LayerNorm.bias"
        ): value
        for name, value in state.items()
        if not OF_ENTITIES.search(name)
    }
    width = (config.intermediate_size,)
    for layer in range(config.num_hidden_layers):
        entities = BIAS.format(layer, "dense_ent")
        if entities in state:
            own = BIAS.format(layer, "dense")
            kept[own] = get_weight(kept, own, width, file) + get_weight(
                state, entities, width, file
            )
    with torch.device("meta"):
        wanted = BertMaskedLM(config).named_parameters()
    for name, value in wanted:
        if not name.startswith(OUTPUT):
            get_weight(kept, name, tuple(value.shape), file)
    return kept


def _write_tokenizer(out: Path, words: list[str], max_tokens: int) -> None:
    """Write BERT's tokenizer, uncased if no word of the vocabulary has a capital letter."""
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece

    lowered = not any(word != word.lower() for word in words if word not in SIGNS.values())
    numbers = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(WordPiece(numbers, unk_token=SIGNS["unk"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowered)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    ends = tuple((sign, numbers[sign]) for sign in (SIGNS["sep"], SIGNS["cls"]))
    tokenizer.post_processor = processors.BertProcessing(*ends)
    tokenizer.add_special_tokens(list(SIGNS.values()))
    tokenizer.save(str(out / "tokenizer.json"))
    described = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": lowered,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": max_tokens,
        **{f"{name}_token": sign for name, sign in SIGNS.items()},
    }
    (out / "tokenizer_config.json").write_text(json.dumps(described, indent=1) + "\n", "utf-8")
