"""Convert Transformer-XL's release: `config.json`, weights (pickle or safetensors), and words.

The words are in `vocab.json` (word to number) or the older `vocab.bin` (a pickle with this mapping
as `sym2idx`). The weights' file may lack output weights that are tied to the input embeddings.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from lama_core.errors import UserError
from lama_core.files import read_file
from lama_core.models.model_folder import CONFIG, check_memory, read_header, read_json
from lama_older_systems.conversion.tensors import (
    get_weight,
    read_pickle,
    read_state,
    size_of,
    write_tensors,
)
from lama_older_systems.converted import TRANSFORMER_XL, write_description

UNKNOWN, BEGIN = "<unk>", "<eos>"
SIZES = ("n_layer", "n_head", "d_model", "d_head", "d_inner", "mem_len", "div_val")
# The only supported settings: those of the released models.
FIXED = {"attn_type": 0, "pre_lnorm": False, "adaptive": True, "untie_r": True}
WORDS = ("vocab.json", "vocab.bin")
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
UNWRITABLE = re.compile("[\n\ud800-\udfff]")  # line breaks and lone surrogates
OURS, EMBEDDINGS = "body.embedding.", "transformer.word_emb.emb_"
LAYER = {
    "queries_keys_values.weight": "dec_attn.qkv_net.weight",
    "distances.weight": "dec_attn.r_net.weight",
    "attended.weight": "dec_attn.o_net.weight",
    "word_bias": "dec_attn.r_w_bias",
    "distance_bias": "dec_attn.r_r_bias",
    "attention_norm.weight": "dec_attn.layer_norm.weight",
    "attention_norm.bias": "dec_attn.layer_norm.bias",
    "inner.weight": "pos_ff.CoreNet.0.weight",
    "inner.bias": "pos_ff.CoreNet.0.bias",
    "outer.weight": "pos_ff.CoreNet.3.weight",
    "outer.bias": "pos_ff.CoreNet.3.bias",
    "norm.weight": "pos_ff.layer_norm.weight",
    "norm.bias": "pos_ff.layer_norm.bias",
}


def is_transformer_xl(folder: Path) -> bool:
    """Whether a folder's configuration is Transformer-XL's."""
    if not (folder / CONFIG).is_file():
        return False
    config = read_json(folder / CONFIG)
    has_keys = {"cutoffs", "mem_len", "d_model"} <= {*config}
    return has_keys and config.get("model_type", "transfo-xl") == "transfo-xl"


def convert_transformer_xl(folder: Path, out: Path) -> None:
    """Write a release as a model folder; raise UserError if it is incomplete or invalid."""
    path = folder / CONFIG
    given = read_json(path)
    for name, wanted in FIXED.items():
        if given.get(name, wanted) != wanted:
            raise UserError(
                f"{path}: {name} is {str(given[name])[:40]}; only {wanted} is supported, as in "
                "the released model."
            )
    config: dict[str, Any] = {name: size_of(given, name, path) for name in SIZES}
    if config["div_val"] < 2:
        raise UserError(f"{path}: div_val must be at least 2 (narrower vectors per cluster).")
    clamp = given.get("clamp_len", -1)
    config["clamp_len"] = clamp if type(clamp) is int else -1
    config["same_length"] = bool(given.get("same_length"))
    words = _read_words(folder)
    config["cutoffs"] = _cutoffs(given, len(words), path)
    file, state = _read_state(folder)
    tensors = _tensors(config, state, file)
    write_tensors(out / "model.safetensors", tensors)
    signs = {"unknown": UNKNOWN, "begin": BEGIN}
    write_description(
        out,
        {"model_type": TRANSFORMER_XL, "n_words": len(words), "signs": signs, **config},
        words,
    )


def _cutoffs(given: dict[str, Any], n_words: int, path: Path) -> list[int]:
    """Return where the clusters end; the last end is the size of the vocabulary."""
    cutoffs = given.get("cutoffs")
    valid = isinstance(cutoffs, list) and all(type(end) is int and end > 0 for end in cutoffs)
    if not valid or not cutoffs or cutoffs != sorted(set(cutoffs)):
        raise UserError(f"{path}: cutoffs must be increasing positive numbers.")
    ends = [end for end in cutoffs if end != n_words]
    if ends and ends[-1] < n_words:
        return [*ends, n_words]
    raise UserError(
        f"{path}: its last cutoff is {cutoffs[-1]:,}, but the dictionary has {n_words:,} words. "
        "One of these files belongs to another release."
    )


def _read_words(folder: Path) -> list[str]:
    """Return the dictionary's words in the order of their numbers; raise UserError if invalid."""
    path = next((folder / name for name in WORDS if (folder / name).is_file()), None)
    if path is None:
        raise UserError(f"{folder} has no dictionary. Add {' or '.join(WORDS)}.")
    if path.suffix == ".json":
        try:
            numbers = json.loads(read_file(path))
        except (ValueError, RecursionError) as error:
            raise UserError(f"Can't read {path}: {error}.") from error
    else:
        content = read_pickle(path)
        numbers = content.get("sym2idx") if isinstance(content, dict) else None
    whole = isinstance(numbers, dict) and all(type(n) is int for n in numbers.values())
    if not whole or set(numbers.values()) != set(range(len(numbers))):
        raise UserError(f"Not a dictionary: {path} must number its words from 0 on.")
    words = sorted(numbers, key=numbers.__getitem__)
    invalid = [word for word in words if not isinstance(word, str) or UNWRITABLE.search(word)]
    missing = [sign for sign in (UNKNOWN, BEGIN) if sign not in numbers]
    if invalid or missing:
        what = f"has no {missing[0]}" if missing else "has invalid words"
        raise UserError(f"Not a Transformer-XL dictionary: {path} {what}.")
    return words


def _read_state(folder: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """Return the file of the weights, and the weights by name."""
    path = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if path is None:
        raise UserError(f"{folder} has no weights. Add {' or '.join(WEIGHTS)}.")
    if path.suffix == ".bin":
        return path, read_state(read_pickle(path), path)

    from safetensors.torch import load_file

    check_memory(str(path), path.stat().st_size)
    read_header(path)
    return path, read_state(load_file(path), path)


def _tensors(
    config: dict[str, Any], state: dict[str, np.ndarray], file: Path
) -> dict[str, np.ndarray]:
    """Return the weights, named as in `transformer_xl`."""
    # Without the output layer, the names of the weights have no prefix `transformer.`.
    if "word_emb.emb_projs.0" in state:
        raise UserError(f"{file} lacks Transformer-XL's output layer, so it can't predict words.")
    tied = {  # used where the release has no output weights
        name.replace(EMBEDDINGS, "crit.out_"): value
        for name, value in state.items()
        if name.startswith(EMBEDDINGS)
    }
    weights = tied | state
    ends, d_model = config["cutoffs"], config["d_model"]
    inner = config["n_head"] * config["d_head"]
    wanted: dict[str, tuple[str, tuple[int, ...]]] = {}  # our name -> the release's, shape
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        width = d_model // config["div_val"] ** number
        table, projection = (end - start, width), (d_model, width)
        wanted |= {
            f"{OURS}tables.{number}.weight": (f"{EMBEDDINGS}layers.{number}.weight", table),
            f"{OURS}projections.{number}": (f"{EMBEDDINGS}projs.{number}", projection),
            f"outputs.{number}.projection": (f"crit.out_projs.{number}", projection),
            f"outputs.{number}.output.weight": (f"crit.out_layers.{number}.weight", table),
            f"outputs.{number}.output.bias": (f"crit.out_layers.{number}.bias", table[:1]),
        }
    n_clusters = len(ends) - 1
    wanted["clusters.weight"] = ("crit.cluster_weight", (n_clusters, d_model))
    wanted["clusters.bias"] = ("crit.cluster_bias", (n_clusters,))
    shapes = {
        "queries_keys_values.weight": (3 * inner, d_model),
        "distances.weight": (inner, d_model),
        "attended.weight": (d_model, inner),
        "word_bias": (config["n_head"], config["d_head"]),
        "distance_bias": (config["n_head"], config["d_head"]),
        "inner.weight": (config["d_inner"], d_model),
        "inner.bias": (config["d_inner"],),
        "outer.weight": (d_model, config["d_inner"]),
    }
    for layer in range(config["n_layer"]):
        wanted |= {
            f"body.layers.{layer}.{ours}": (
                f"transformer.layers.{layer}.{theirs}",
                shapes.get(ours, (d_model,)),
            )
            for ours, theirs in LAYER.items()
        }
    return {
        ours: get_weight(weights, theirs, shape, file) for ours, (theirs, shape) in wanted.items()
    }
