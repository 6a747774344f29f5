"""A converted release: `config.json`, `model.safetensors`, and `vocab.txt`, one word a line.

The configuration names the family (`model_type`), its sizes, and how its vocabulary writes what is
no word (`signs`, see `words.Signs`).
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from lama_core.errors import UserError
from lama_core.files import read_file
from lama_core.models.model_folder import CONFIG, read_json
from lama_core.models.whole_words import Signs, WordVocabulary

if TYPE_CHECKING:
    import torch

M = TypeVar("M", bound="torch.nn.Module")
VOCABULARY, WEIGHTS = "vocab.txt", "model.safetensors"
ELMO, TRANSFORMER_XL, FCONV = "elmo", "transformer-xl", "fconv"
# None of them has a table of positions: the bound is of time and memory.
MAX_TOKENS = 1024
# Numbers of logits that are held at once: 64 MB.
LOGITS = 1 << 24
# As the releases have them. Of ELMo: the bytes of UTF-8, and five signs.
N_CHARACTERS = 261
# Of fconv: each cluster's projection is so many times narrower than the one before.
FACTOR = 4
MAX_LAYERS = 1000


def widths_of(convolutions: Sequence[Sequence[int]]) -> list[int]:
    """How wide what goes into each layer of fconv is, and what comes out of the last.

    convolutions: width, kernel and residual of each layer: behind how many layers what is added to
    its output went in, 0 for nothing.
    """
    return [convolutions[0][0], *(width for width, _, _ in convolutions)]


def projections_of(convolutions: Sequence[Sequence[int]]) -> dict[int, tuple[int, int]]:
    """The layers whose output something of another width is added to, with its width and theirs."""
    widths = widths_of(convolutions)
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
    """A release's sizes and its vocabulary.

    names: of the sizes that it must have. Raises UserError for one that is missing or strange, and
    for a vocabulary of another length.
    """
    config = read_json(folder / CONFIG)
    for name in ("n_words", "signs", *names):
        if name not in config:
            raise UserError(f"{folder / CONFIG} names no {name}: convert the release again.")
    words = read_file(folder / VOCABULARY).decode("utf-8", errors="replace").split("\n")[:-1]
    if len(words) != config["n_words"]:
        raise UserError(
            f"{folder / VOCABULARY} has {len(words):,} words, and its config.json says "
            f"{config['n_words']}: convert the release again."
        )
    try:
        given: dict[str, Any] = {
            name: tuple(said) if isinstance(said, list) else said
            for name, said in config["signs"].items()
        }
        vocabulary = WordVocabulary(words, Signs(**given), max_tokens=MAX_TOKENS)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{folder / CONFIG}: its signs are not those of its vocabulary ({error}): convert the "
            "release again."
        ) from error
    sizes = {**config, "vocab_size": len(words), "is_encoder_decoder": False}
    return SimpleNamespace(**sizes), vocabulary


def are_sizes(values: Iterable[object], *, least: int = 1) -> bool:
    """Whether all values are numbers that a size can be."""
    return all(type(value) is int and least <= value < 1 << 24 for value in values)


def are_cutoffs(cutoffs: Sequence[int], n_words: int) -> bool:
    """Whether clusters of words can end there, the last at the end of the vocabulary."""
    rising = are_sizes(cutoffs) and list(cutoffs) == sorted(set(cutoffs))
    return rising and cutoffs[-1] == n_words


def open_release(
    folder: Path,
    sizes: Sequence[str],
    fits: Callable[[SimpleNamespace], bool],
    make: Callable[[SimpleNamespace], M],
    dtype: "torch.dtype",
) -> tuple[M, WordVocabulary]:
    """The network that `make` gives of a configuration, with its weights, and its vocabulary.

    fits: whether a release can have such sizes. Raises UserError where not.
    """
    import torch

    from lama_core.models.hf.layers import read_weights

    config, vocabulary = read_description(folder, *sizes)
    try:
        known = fits(config)
    except (TypeError, ValueError, LookupError):
        known = False
    if not known:
        raise UserError(f"{folder / CONFIG}: its sizes are no model's: convert the release again.")
    with torch.device("meta"):
        made = make(config)
    return read_weights(made, folder / WEIGHTS, dtype), vocabulary
