"""Tiny releases of the papers' older systems, in the released files' form, with random weights."""

import argparse
import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch

WORDS = (
    "The", "the", "of", "is", "in", "capital", "born", "was", "France", "Paris", "Rome", "Italy",
    "London", "Dante", "river", "Nile", "(", ")", ",", ".", "--",
)  # fmt: skip
ELMO_OPTIONS: dict[str, Any] = {
    "lstm": {
        "use_skip_connections": True, "projection_dim": 6, "cell_clip": 3, "proj_clip": 3,
        "dim": 10, "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu", "filters": [[1, 4], [2, 5]], "n_highway": 1, "embedding": {"dim": 3},
        "n_characters": 262, "max_characters_per_token": 12,
    },
}  # fmt: skip
XL_CONFIG: dict[str, Any] = {
    "model_type": "transfo-xl", "cutoffs": [5, 12], "d_model": 12, "d_embed": 12, "d_head": 4,
    "n_head": 3, "d_inner": 14, "div_val": 2, "n_layer": 2, "mem_len": 7, "clamp_len": 5,
    "same_length": True, "pre_lnorm": False, "attn_type": 0, "untie_r": True, "adaptive": True,
}  # fmt: skip
FCONV_LAYERS = "[(8, 3)] * 2 + [(8, 1, 2)] + [(12, 2)]"


class Random:
    """Weights by the seed."""

    def __init__(self, seed: int = 0) -> None:
        self._draw = np.random.default_rng(seed)

    def array(self, *shape: int, scale: float = 0.5) -> np.ndarray:
        return (scale * self._draw.standard_normal(shape)).astype(np.float32)

    def tensor(self, *shape: int, scale: float = 0.5) -> torch.Tensor:
        return torch.from_numpy(self.array(*shape, scale=scale))


def elmo_arrays(options: dict[str, Any], n_words: int, seed: int = 0) -> dict[str, np.ndarray]:
    """The arrays of both HDF5 files by their names."""
    made, lstm, letters = Random(seed), options["lstm"], options["char_cnn"]
    width, dim, char_dim = lstm["projection_dim"], lstm["dim"], letters["embedding"]["dim"]
    total = sum(n for _, n in letters["filters"])
    found = {"char_embed": made.array(261, char_dim)}
    for number, (kernel, n) in enumerate(letters["filters"]):
        found[f"CNN/W_cnn_{number}"] = made.array(1, kernel, char_dim, n)
        found[f"CNN/b_cnn_{number}"] = made.array(n)
    for number in range(letters["n_highway"]):
        for part in ("carry", "transform"):
            found[f"CNN_high_{number}/W_{part}"] = made.array(total, total)
            found[f"CNN_high_{number}/b_{part}"] = made.array(total)
    found["CNN_proj/W_proj"] = made.array(total, width)
    found["CNN_proj/b_proj"] = made.array(width)
    for direction in range(2):
        for layer in range(lstm["n_layers"]):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            found[f"{cell}/W_0"] = made.array(2 * width, 4 * dim, scale=1.0)
            found[f"{cell}/B"] = made.array(4 * dim)
            found[f"{cell}/W_P_0"] = made.array(dim, width, scale=1.0)
    found["softmax/W"], found["softmax/b"] = made.array(n_words, width), made.array(n_words)
    return found


def write_hdf5(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays by their names."""
    import h5py

    with h5py.File(path, "w") as out:
        for name, array in arrays.items():
            out.create_dataset(name, data=array)


def make_elmo(folder: Path) -> dict[str, np.ndarray]:
    """Write a release of ELMo; its arrays."""
    folder.mkdir()
    words = ["<S>", "</S>", "<UNK>", *WORDS]
    arrays = elmo_arrays(ELMO_OPTIONS, len(words))
    is_softmax = {name: name.startswith("softmax") for name in arrays}
    for file, wanted in (("elmo_weights.hdf5", False), ("elmo_softmax_weights.hdf5", True)):
        own = {name: array for name, array in arrays.items() if is_softmax[name] == wanted}
        write_hdf5(folder / file, own)
    (folder / "elmo_options.json").write_text(json.dumps(ELMO_OPTIONS))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    return arrays


def make_transformer_xl(folder: Path, **changed: Any) -> dict[str, torch.Tensor]:
    """Write a release of Transformer-XL; its weights."""
    folder.mkdir()
    config, words, made = {**XL_CONFIG, **changed}, ["<unk>", "<eos>", *WORDS], Random(1)
    d_model, inner = config["d_model"], config["n_head"] * config["d_head"]
    state: dict[str, torch.Tensor] = OrderedDict()
    ends = [*config["cutoffs"], len(words)]
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        width = d_model // config["div_val"] ** number
        table, widen = made.tensor(end - start, width), made.tensor(d_model, width)
        state[f"transformer.word_emb.emb_layers.{number}.weight"] = table
        state[f"transformer.word_emb.emb_projs.{number}"] = widen
        state[f"crit.out_layers.{number}.weight"] = table  # tied
        state[f"crit.out_layers.{number}.bias"] = made.tensor(end - start)
        state[f"crit.out_projs.{number}"] = widen if number else made.tensor(d_model, width)
    state["crit.cluster_weight"] = made.tensor(len(ends) - 1, d_model)
    state["crit.cluster_bias"] = made.tensor(len(ends) - 1)
    for layer in range(config["n_layer"]):
        place = f"transformer.layers.{layer}"
        state |= {
            f"{place}.dec_attn.qkv_net.weight": made.tensor(3 * inner, d_model),
            f"{place}.dec_attn.r_net.weight": made.tensor(inner, d_model),
            f"{place}.dec_attn.o_net.weight": made.tensor(d_model, inner),
            f"{place}.dec_attn.r_w_bias": made.tensor(config["n_head"], config["d_head"]),
            f"{place}.dec_attn.r_r_bias": made.tensor(config["n_head"], config["d_head"]),
            f"{place}.pos_ff.CoreNet.0.weight": made.tensor(config["d_inner"], d_model),
            f"{place}.pos_ff.CoreNet.0.bias": made.tensor(config["d_inner"]),
            f"{place}.pos_ff.CoreNet.3.weight": made.tensor(d_model, config["d_inner"]),
            f"{place}.pos_ff.CoreNet.3.bias": made.tensor(d_model),
        }
        for norm in ("dec_attn.layer_norm", "pos_ff.layer_norm"):
            state[f"{place}.{norm}.weight"] = 1 + made.tensor(d_model, scale=0.1)
            state[f"{place}.{norm}.bias"] = made.tensor(d_model, scale=0.1)
    torch.save(state, folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps(config))
    numbers = {word: number for number, word in enumerate(words)}
    (folder / "vocab.json").write_text(json.dumps(numbers))
    return state


def make_fconv(folder: Path, layers: str = FCONV_LAYERS, **more: Any) -> dict[str, torch.Tensor]:
    """Write a release of fairseq's fconv_lm (the layers of `FCONV_LAYERS`); its weights."""
    folder.mkdir()
    made = Random(2)
    n_words, narrow, shapes = len(WORDS) + 4, 5, [(8, 3), (8, 3), (8, 1), (12, 2)]
    state: dict[str, torch.Tensor] = {"decoder.embed_tokens.weight": made.tensor(n_words, narrow)}

    def linear(name: str, width: int, width_in: int) -> None:
        state[f"decoder.{name}.weight_v"] = made.tensor(width, width_in)
        state[f"decoder.{name}.weight_g"] = 1 + made.tensor(width, 1)
        state[f"decoder.{name}.bias"] = made.tensor(width)

    linear("fc1", 8, narrow)
    linear("projections.3", 12, 8)
    width_in = 8
    for number, (width, kernel) in enumerate(shapes):
        place = f"decoder.convolutions.{number}"
        state[f"{place}.weight_v"] = made.tensor(kernel, width_in, 2 * width)
        state[f"{place}.weight_g"] = 2 + made.tensor(1, 1, 2 * width)
        state[f"{place}.bias"] = made.tensor(2 * width)
        width_in = width
    softmax = "decoder.adaptive_softmax"
    state[f"{softmax}.head.weight"] = made.tensor(6 + 1, 12)
    state[f"{softmax}.tail.0.0.weight"] = made.tensor(12 // 4, 12)
    state[f"{softmax}.tail.0.2.weight"] = made.tensor(n_words - 6, 12 // 4)
    args = argparse.Namespace(
        arch="fconv_lm", decoder_layers=layers, decoder_attention="False",
        adaptive_softmax_cutoff="6",
    )  # fmt: skip
    checkpoint = {"args": args, "model": state, "optimizer_history": [], **more}
    torch.save(checkpoint, folder / "wiki103.pt")
    lines = (f"{word} {1000 - number}\n" for number, word in enumerate(WORDS))
    (folder / "dict.txt").write_text("".join(lines))
    return state
