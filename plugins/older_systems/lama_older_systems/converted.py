"""A converted release: `config.json`, `model.safetensors`, and `vocab.txt` with one word per line.

The configuration holds the family (`model_type`), its sizes, and the control words of its
vocabulary (`signs`, see `whole_words.Signs`).
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from lama_core.errors import UserError
from lama_core.files import read_file
from lama_core.models.devices import one_device
from lama_core.models.model_folder import CONFIG, LIBRARY_ERRORS, read_json
from lama_older_systems.whole_words import Signs, WordVocabulary

if TYPE_CHECKING:
    import torch

M = TypeVar("M", bound="torch.nn.Module")
VOCABULARY, WEIGHTS = "vocab.txt", "model.safetensors"
ELMO, TRANSFORMER_XL, FCONV = "elmo", "transformer-xl", "fconv"
# None of these models has position embeddings; the limit only saves time and memory.
MAX_TOKENS = 1024
# Maximum number of logits in memory at once: 64 MB.
LOGITS = 1 << 24
# Characters in ELMo's released weights: the bytes of UTF-8, and five control characters.
N_CHARACTERS = 261
# fconv: each cluster's projection is this many times narrower than the previous cluster's.
FACTOR = 4
MAX_LAYERS = 1000


def layer_widths(convolutions: Sequence[Sequence[int]]) -> list[int]:
    """Return the input width of each fconv layer, and the output width of the last.

    convolutions: width, kernel and residual of each layer. A residual of r adds the input of the
    layer that is r - 1 layers earlier to the layer's output; 0 adds nothing.
    """
    return [convolutions[0][0], *(width for width, _, _ in convolutions)]


def projections_of(convolutions: Sequence[Sequence[int]]) -> dict[int, tuple[int, int]]:
    """Return the residuals that must be projected: layer -> (residual's width, layer's width)."""
    widths = layer_widths(convolutions)
    added = {
        number: (widths[number + 1 - residual], width)
        for number, (width, _, residual) in enumerate(convolutions)
        if residual
    }
    return {number: sizes for number, sizes in added.items() if sizes[0] != sizes[1]}


def write_description(folder: Path, config: dict[str, Any], words: list[str]) -> None:
    """Write the configuration and the vocabulary of a converted release."""
    text = json.dumps(config, indent=1, ensure_ascii=False)
    (folder / CONFIG).write_text(text + "\n", encoding="utf-8")
    with (folder / VOCABULARY).open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{word}\n" for word in words)


def read_description(folder: Path, *names: str) -> tuple[SimpleNamespace, WordVocabulary]:
    """Return a release's sizes and vocabulary.

    names: required sizes. Raises UserError if a size is missing, the number of words differs from
    the configured `n_words`, or the signs don't match the vocabulary.
    """
    config = read_json(folder / CONFIG)
    for name in ("n_words", "signs", *names):
        if name not in config:
            raise UserError(f"{folder / CONFIG} has no {name}. Convert the release again.")
    words = read_file(folder / VOCABULARY).decode("utf-8", errors="replace").split("\n")[:-1]
    if len(words) != config["n_words"]:
        raise UserError(
            f"{folder / VOCABULARY} has {len(words):,} words, but config.json says "
            f"{config['n_words']}. Convert the release again."
        )
    try:
        signs = msgspec.convert(config["signs"], Signs)
        vocabulary = WordVocabulary(words, signs, max_tokens=MAX_TOKENS)
    except (KeyError, msgspec.ValidationError) as error:
        raise UserError(
            f"{folder / CONFIG}: its signs don't match its vocabulary ({error}). Convert the "
            "release again."
        ) from error
    sizes = {**config, "vocab_size": len(words), "is_encoder_decoder": False}
    return SimpleNamespace(**sizes), vocabulary


def open_release(
    folder: Path,
    sizes: Sequence[str],
    make: Callable[[SimpleNamespace], M],
    precision: str,
) -> tuple[M, WordVocabulary]:
    """Return a converted release's network, on the chosen device, and its vocabulary.

    Args:
        folder: The release.
        sizes: Required sizes in its configuration.
        make: Builds the network from a configuration; raises an exception for sizes that no network
            has, unless the weights don't have them, either.
        precision: `fp32` or `bf16`.

    Raises:
        UserError: If the configuration, the vocabulary or the weights are invalid.
    """
    import torch

    from lama_core.models.hf.layers import read_weights
    from lama_core.models.registry import dtype_of

    config, vocabulary = read_description(folder, *sizes)
    try:
        with torch.device("meta"):
            model = make(config)
    except LIBRARY_ERRORS as error:
        raise UserError(
            f"{folder / CONFIG} has invalid sizes. Convert the release again."
        ) from error
    read = read_weights(model, folder / WEIGHTS, dtype_of(precision))
    return read.to(one_device()), vocabulary
