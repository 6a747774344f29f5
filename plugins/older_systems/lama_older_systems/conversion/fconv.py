"""Convert fairseq's release of fconv_lm: a checkpoint (pickle) and `dict.txt`.

Each line of `dict.txt` is a word and its count. The vocabulary is four control words, then these
words.
Convolutions and projections are weight-normalised, stored as `_g` and `_v`: g v / |v| is written.
Source: fairseq 0.12, FConvDecoder and AdaptiveSoftmax.
"""

import argparse
import ast
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lama_core.errors import UserError
from lama_older_systems.conversion.tensors import (
    get_weight,
    read_lines,
    read_pickle,
    read_state,
    write_tensors,
)
from lama_older_systems.converted import (
    FACTOR,
    FCONV,
    MAX_LAYERS,
    layer_widths,
    projections_of,
    write_description,
)

DICTIONARY = "dict.txt"
FIRST, PADDING, BEGIN, UNKNOWN = "<Lua heritage>", "<pad>", "</s>", "<unk>"
APART = ("(", ")", ",", "--")
MAX_EXPRESSION = 10_000
# A list of pairs and triples of numbers, repeated: `[(850, 6), (850, 1)] * 3`.
PART = re.compile(r"((?P<before>\d{1,4})\*)?(?P<list>\[[\d(),]+\])(\*(?P<behind>\d{1,4}))?")
ConvolutionSize = tuple[int, int, int]
StateArrays = dict[str, np.ndarray]


def is_fconv(folder: Path) -> bool:
    """Whether a folder contains a fairseq dictionary and a checkpoint."""
    return (folder / DICTIONARY).is_file() and any(folder.glob("*.pt"))


def convert_fconv(folder: Path, out: Path) -> None:
    """Write a release as a model folder; raise UserError if it is incomplete or invalid."""
    files = sorted(folder.glob("*.pt"))
    if len(files) != 1:
        raise UserError(f"{folder} has {len(files)} checkpoints (*.pt). Keep exactly one.")
    file = files[0]
    content = read_pickle(file, [argparse.Namespace])
    args = content.get("args") if isinstance(content, dict) else None
    if not isinstance(args, argparse.Namespace) or "decoder_layers" not in args:
        raise UserError(f"Not a checkpoint of fairseq's fconv_lm: {file} has no decoder_layers.")
    if str(getattr(args, "decoder_attention", "False")) != "False":
        raise UserError(f"{file}: decoder attention is not supported; the release has none.")
    state = read_state(content.get("model"), file)
    words = [FIRST, PADDING, BEGIN, UNKNOWN, *read_dictionary(folder / DICTIONARY)]
    layers = parse_layers(str(args.decoder_layers), file)
    ends = _cutoffs(getattr(args, "adaptive_softmax_cutoff", None), len(words), file)
    table = state.get("decoder.embed_tokens.weight", np.zeros((0, 0)))
    if len(table) != len(words):
        raise UserError(
            f"{folder / DICTIONARY} has {len(words) - 4:,} words and 4 control words, but {file} "
            f"has {len(table):,} embeddings. One of these files belongs to another release."
        )
    config = {"embed_dim": int(table.shape[1]), "convolutions": layers, "cutoffs": ends}
    write_tensors(out / "model.safetensors", _tensors(config, state, file))
    signs = {"unknown": UNKNOWN, "begin": BEGIN, "others": (FIRST, PADDING), "apart": APART}
    write_description(
        out, {"model_type": FCONV, "n_words": len(words), "signs": signs, **config}, words
    )


def read_dictionary(path: Path) -> list[str]:
    """Return the words of a fairseq dictionary; raise UserError for an invalid line."""
    words = []
    for number, line in enumerate(read_lines(path), start=1):
        word, _, count = line.rstrip("\r").rpartition(" ")
        if not word or not count.isdigit():
            raise UserError(f"{path}: line {number:,} is not a word and its count.")
        words.append(word)
    return words


def parse_layers(text: str, file: Path) -> list[list[int]]:
    """Return the width, kernel and residual of each layer from fairseq's Python expression.

    For example `[(850, 6)] * 3 + [(1024, 4, 2)]`. The expression is parsed, not evaluated.
    Raises UserError if it has another form.
    """
    layers: list[list[int]] = []
    try:
        for part in text[: MAX_EXPRESSION + 1].replace(" ", "").split("+"):
            found = PART.fullmatch(part)
            if not found or len(text) > MAX_EXPRESSION:
                raise ValueError(part)
            listed = ast.literal_eval(found["list"])
            times = int(found["before"] or 1) * int(found["behind"] or 1)
            if not 0 < len(listed) * times <= MAX_LAYERS - len(layers):
                raise ValueError(times)
            layers += [[*layer, 1] if len(layer) == 2 else [*layer] for layer in listed] * times
        for number, (width, kernel, residual) in enumerate(layers):
            if not (0 < width < 1 << 20 and 0 < kernel < 1 << 10 and residual <= number + 1):
                raise ValueError(number)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UserError(
            f"{file}: unsupported decoder_layers {text[:60]!r}: expected lists of (width, kernel) "
            "or (width, kernel, residual), added or repeated, and not too many layers."
        ) from error
    return layers


def _cutoffs(text: object, n_words: int, file: Path) -> list[int]:
    """Return where the clusters end; the last end is the size of the dictionary."""
    parts = str(text).split(",")
    if not all(part.strip().isdigit() for part in parts):
        raise UserError(
            f"{file} has no adaptive softmax (adaptive_softmax_cutoff is {text!s:.40})."
        )
    ends = [int(part) for part in parts]
    if ends[0] < 1 or ends != sorted(set(ends)) or ends[-1] > n_words:
        raise UserError(
            f"{file}: its cutoffs {str(text)[:60]} don't fit the dictionary of {n_words:,} words. "
            "One of these files belongs to another release."
        )
    return ends if ends[-1] == n_words else [*ends, n_words]


def _tensors(config: dict[str, Any], state: StateArrays, file: Path) -> StateArrays:
    """Return the weights, named as in `fconv`."""
    layers, ends, narrow = config["convolutions"], config["cutoffs"], config["embed_dim"]
    widths = layer_widths(layers)
    found = {
        "body.embedding.weight": get_weight(
            state, "decoder.embed_tokens.weight", (ends[-1], narrow), file
        ),
        **_linear(state, "decoder.fc1", "body.widened", (widths[0], narrow), file),
    }
    for number, (width, kernel, _) in enumerate(layers):
        theirs, ours = f"decoder.convolutions.{number}", f"body.convolutions.{number}"
        shape = (kernel, widths[number], 2 * width)
        whole = _normalised(state, theirs, shape, (1, 1, 2 * width), (0, 1), file)
        found |= {
            f"{ours}.weight": whole.transpose(2, 1, 0),
            f"{ours}.bias": get_weight(state, f"{theirs}.bias", (2 * width,), file),
        }
    for number, (added, width) in projections_of(layers).items():
        place = f"projections.{number}"
        found |= _linear(state, f"decoder.{place}", f"body.{place}", (width, added), file)
    last, n_tails = widths[-1], len(ends) - 1
    head = "decoder.adaptive_softmax.head.weight"
    found["head.weight"] = get_weight(state, head, (ends[0] + n_tails, last), file)
    for number, (start, end) in enumerate(pairwise(ends)):
        inner = last // FACTOR ** (number + 1)
        tail = f"decoder.adaptive_softmax.tail.{number}"
        found |= {
            f"tails.{number}.0.weight": get_weight(state, f"{tail}.0.weight", (inner, last), file),
            f"tails.{number}.1.weight": get_weight(
                state, f"{tail}.2.weight", (end - start, inner), file
            ),
        }
    return found


def _linear(
    state: StateArrays, theirs: str, ours: str, shape: tuple[int, int], file: Path
) -> StateArrays:
    """Return a weight-normalised projection's weight and bias."""
    weight = _normalised(state, theirs, shape, (shape[0], 1), (1,), file)
    return {
        f"{ours}.weight": weight,
        f"{ours}.bias": get_weight(state, f"{theirs}.bias", shape[:1], file),
    }


def _normalised(
    state: StateArrays,
    name: str,
    shape: tuple[int, ...],
    lengths: tuple[int, ...],
    axes: tuple[int, ...],
    file: Path,
) -> np.ndarray:
    """Return the weight g v / |v| in `shape`; the norm is over `axes`, g has shape `lengths`."""
    g = get_weight(state, f"{name}.weight_g", lengths, file)
    v = get_weight(state, f"{name}.weight_v", shape, file).astype(np.float64)
    return (g * v / np.sqrt((v**2).sum(axes, keepdims=True))).astype(np.float32)
