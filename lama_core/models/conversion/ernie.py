"""Convert Tsinghua's ERNIE, queried without entities, to a BERT.

The layers that combine words and entities add a projection of the entities before the activation.
Without entities, only the projection's bias is left: it is added to the words' bias, and the
entities' weights are dropped. Source: Zhang et al. 2019, section 3.3; thunlp/ERNIE's modeling code.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lama_core.errors import UserError
from lama_core.models.conversion.tensors import (
    get_weight,
    read_lines,
    read_pickle,
    read_state,
    size_of,
    write_tensors,
)
from lama_core.models.model_folder import CONFIG, read_json

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
    file = folder / WEIGHTS
    state = read_state(read_pickle(file), file)
    table = "bert.embeddings.word_embeddings.weight"
    get_weight(state, table, (len(words), config["hidden_size"]), file)
    write_tensors(out / "model.safetensors", _without_entities(config, state, file))
    described = {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "vocab_size": len(words),
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": words.index("[PAD]"),
        **config,
    }
    (out / CONFIG).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    _write_tokenizer(out, words, config["max_position_embeddings"])


def _without_entities(
    config: dict[str, Any], state: dict[str, np.ndarray], file: Path
) -> dict[str, np.ndarray]:
    """Return BERT's weights: entity weights dropped, the entity projection's bias added."""
    kept = {
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
            "LayerNorm.beta", "LayerNorm.bias"
        ): value
        for name, value in state.items()
        if not OF_ENTITIES.search(name)
    }
    width = (config["intermediate_size"],)
    for layer in range(config["num_hidden_layers"]):
        entities = BIAS.format(layer, "dense_ent")
        if entities in state:
            own = BIAS.format(layer, "dense")
            kept[own] = get_weight(kept, own, width, file) + get_weight(
                state, entities, width, file
            )
    for name, shape in _needed(config):
        get_weight(kept, name, shape, file)
    return kept


def _needed(config: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name and shape of each weight to check; word embeddings are checked before."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    linear = {
        "attention.self.query": (width, width),
        "attention.self.key": (width, width),
        "attention.self.value": (width, width),
        "attention.output.dense": (width, width),
        "intermediate.dense": (inner, width),
        "output.dense": (width, inner),
    }
    norms = ["bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"]
    dense = {"cls.predictions.transform.dense": (width, width)}
    for layer in range(config["num_hidden_layers"]):
        place = f"bert.encoder.layer.{layer}"
        dense |= {f"{place}.{name}": shape for name, shape in linear.items()}
        norms += [f"{place}.attention.output.LayerNorm", f"{place}.output.LayerNorm"]
    yield "bert.embeddings.position_embeddings.weight", (config["max_position_embeddings"], width)
    yield "bert.embeddings.token_type_embeddings.weight", (config["type_vocab_size"], width)
    for name, shape in dense.items():
        yield f"{name}.weight", shape
        yield f"{name}.bias", shape[:1]
    for name in norms:
        yield f"{name}.weight", (width,)
        yield f"{name}.bias", (width,)


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
