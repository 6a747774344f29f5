"""Convert ELMo's release: options, weights and softmax weights in HDF5, and a vocabulary.

Each word of the vocabulary has a row in the softmax weights. The release's variables have the names
of AllenNLP's bilm-tf.
"""

from pathlib import Path
from typing import Any

from lama_core.errors import UserError
from lama_core.models.model_folder import read_json
from lama_older_systems.conversion.tensors import (
    Array,
    Hdf5,
    open_hdf5,
    read_lines,
    size_of,
    write_tensors,
)
from lama_older_systems.converted import ELMO, N_CHARACTERS, write_description

BEGIN, END, UNKNOWN = "<S>", "</S>", "<UNK>"
APART = ("(", ")", ",", "--")
CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/{}"
FILES = "*options.json, *weights.hdf5, *softmax_weights.hdf5 and vocab*.txt"


def is_elmo(folder: Path) -> bool:
    """Whether a folder contains ELMo's options and weights."""
    return any(folder.glob("*options.json")) and any(folder.glob("*.hdf5"))


def convert_elmo(folder: Path, out: Path) -> None:
    """Write a release as a model folder; raise UserError if it is incomplete or invalid."""
    softmaxes = sorted(folder.glob("*softmax*.hdf5"))
    if not softmaxes:
        raise UserError(
            f"{folder} has no *softmax_weights.hdf5, which maps ELMo's states to words. Download "
            "it from the release's address."
        )
    weights = [file for file in sorted(folder.glob("*weights.hdf5")) if file not in softmaxes]
    options_file = _single_file(folder, sorted(folder.glob("*options.json")))
    config = read_options(options_file)
    vocabulary_file = _single_file(folder, sorted(folder.glob("vocab*.txt")))
    words = [line.strip() for line in read_lines(vocabulary_file)]
    for sign in (BEGIN, END, UNKNOWN):
        if sign not in words:
            raise UserError(f"Not an ELMo vocabulary: {vocabulary_file} has no {sign}.")
    softmax_file = _single_file(folder, softmaxes)
    with open_hdf5(_single_file(folder, weights)) as stored, open_hdf5(softmax_file) as softmax:
        if "softmax/W" not in softmax:
            raise UserError(f"Not an ELMo softmax file: {softmax_file} has no 'softmax/W'.")
        tensors = body_tensors(config, stored)
        shape = (len(words), config["projection_dim"])
        tensors["softmax.weight"] = softmax.array("softmax/W", shape)
        tensors["softmax.bias"] = softmax.array("softmax/b", shape[:1])
        write_tensors(out / "model.safetensors", tensors)
    signs = {"unknown": UNKNOWN, "begin": BEGIN, "end": END, "apart": APART}
    write_description(
        out, {"model_type": ELMO, "n_words": len(words), "signs": signs, **config}, words
    )


def _single_file(folder: Path, files: list[Path]) -> Path:
    if len(files) != 1:
        raise UserError(
            f"{folder} has missing or duplicate files: put exactly one release of ELMo in a folder "
            f"({FILES})."
        )
    return files[0]


def read_options(path: Path) -> dict[str, Any]:
    """Return ELMo's sizes, named as in `elmo`; raise UserError for unsupported options."""
    options = read_json(path)
    lstm, characters = options.get("lstm"), options.get("char_cnn")
    if not isinstance(lstm, dict) or not isinstance(characters, dict):
        raise UserError(f"Not an ELMo options file: {path} has no lstm or no char_cnn.")
    # AllenNLP counts its padding character, which the weights don't have; bilm-tf's training
    # writes the options without it.
    n_characters = (N_CHARACTERS, N_CHARACTERS + 1)
    if characters.get("activation") != "relu" or characters.get("n_characters") not in n_characters:
        raise UserError(
            f"{path}: only relu and {N_CHARACTERS + 1} characters are supported, as in ELMo's "
            "published models."
        )
    embedding, filters = characters.get("embedding"), characters.get("filters")
    pairs = filters if isinstance(filters, list) else []
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise UserError(f"{path}: char_cnn.filters must be pairs of numbers.")
    sizes = [{"kernel": kernel, "n": n} for kernel, n in pairs]
    letters = embedding if isinstance(embedding, dict) else {}
    clips = (lstm.get("cell_clip"), lstm.get("proj_clip"))
    if not all(isinstance(clip, int | float) and clip > 0 for clip in clips):
        raise UserError(f"{path}: cell_clip and proj_clip must be positive numbers.")
    return {
        "char_dim": size_of(letters, "dim", path),
        "max_characters": size_of(characters, "max_characters_per_token", path, 1000),
        "filters": [[size_of(pair, "kernel", path), size_of(pair, "n", path)] for pair in sizes],
        "n_highway": size_of(characters, "n_highway", path, 100),
        "dim": size_of(lstm, "dim", path),
        "projection_dim": size_of(lstm, "projection_dim", path),
        "n_layers": size_of(lstm, "n_layers", path, 100),
        "cell_clip": clips[0],
        "proj_clip": clips[1],
        "skips": bool(lstm.get("use_skip_connections")),
    }


def body_tensors(config: dict[str, Any], stored: Hdf5) -> dict[str, Array]:
    """Return the network's weights without the softmax, named as in `elmo`."""
    width, dim, n = config["projection_dim"], config["dim"], config["char_dim"]
    found: dict[str, Array] = {
        "characters.embedding.weight": stored.read("char_embed", N_CHARACTERS, n)
    }
    for number, (kernel, n_filters) in enumerate(config["filters"]):
        weight = stored.read(f"CNN/W_cnn_{number}", 1, kernel, n, n_filters)
        place = f"characters.convolutions.{number}"
        found[f"{place}.weight"] = weight[0].transpose(2, 1, 0)
        found[f"{place}.bias"] = stored.read(f"CNN/b_cnn_{number}", n_filters)
    total = sum(n_filters for _, n_filters in config["filters"])
    for number in range(config["n_highway"]):
        for part in ("carry", "transform"):
            place = f"characters.highways.{number}.{part}"
            where = f"CNN_high_{number}"
            found[f"{place}.weight"] = stored.read(f"{where}/W_{part}", total, total).T
            found[f"{place}.bias"] = stored.read(f"{where}/b_{part}", total)
    found["characters.projection.weight"] = stored.read("CNN_proj/W_proj", total, width).T
    found["characters.projection.bias"] = stored.read("CNN_proj/b_proj", width)
    for direction in range(2):
        for layer in range(config["n_layers"]):
            place = f"directions.{direction}.{layer}"
            gates, bias, narrow = (
                CELL.format(direction, layer, name) for name in ("W_0", "B", "W_P_0")
            )
            found[f"{place}.gates.weight"] = stored.read(gates, 2 * width, 4 * dim).T
            found[f"{place}.gates.bias"] = stored.read(bias, 4 * dim)
            found[f"{place}.projection.weight"] = stored.read(narrow, dim, width).T
    return found
