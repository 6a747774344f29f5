"""What a model folder may hold, and whether its files say the same: looked at before any is read.

A configuration or a header is a claim of whoever wrote it. Each is bounded, and compared with the
bytes that are there, so that nothing is allocated on its word. Links may lead to files of the same
folder and, in the hub's cache, to the blobs of the same repository.
"""

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
from safetensors import SafetensorError, safe_open

from lama_core.errors import UserError
from lama_core.files import MAX_FILE, bytes_text, open_file, read_file, write_text_whole
from lama_core.paths import cache_dir

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")
SHARD = re.compile(r"(.+)-\d{5}-of-(\d{5})\.safetensors")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model")
# The files of a folder that can change a number. Not among them are chat templates (*.jinja): no
# query is put into one.
NOT_COUNTED = "evaluation.json"  # what was measured of the model is no part of it
COUNTED_TEXTS = (".json", ".txt", ".model", ".spm", ".tiktoken", ".codes", ".tokenizer")
COUNTED, TEXTS = (".safetensors", *COUNTED_TEXTS), (*COUNTED_TEXTS, ".jinja")
MAX_ENTRIES = 10_000
MAX_SIZE = 1 << 26
# The families' names for how large a model is and of how many parts.
SIZES = re.compile(
    r"(\w+_)?(size|dim|heads|positions|position_embeddings|length|len|rank|buckets)|dim|d_\w+"
    r"|n_(embd|head|positions|ctx|inner|words|langs)"
)
PARTS = re.compile(
    r"(n|num)_(layer|group|labels)|(?!max_)(\w+_)?(layers|groups|experts|blocks|num)"
)
MIN_PARTS = 100
# What no model is without. Its tables are as long and as wide as the first ones say.
TABLE = ("vocab_size", "hidden_size", "n_embd", "dim", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
NO_ZERO = (*TABLE, *LAYERS, "num_attention_heads", "n_head", "n_heads")


# What a library raises for files, or inputs, that a model isn't made for.
FAULTS = (
    OSError,
    ValueError,
    LookupError,
    ImportError,
    RuntimeError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    MemoryError,
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A stored tensor, as its file's header has it. dtype: safetensors' name of it."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def n_elements(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


def _check_quantised(folder: Path, how: Any) -> None:
    """Raise UserError for quantised weights, but those of 8 bits that are rounded by themselves.

    Where what goes into a layer is rounded too, an answer depends on the texts beside it.
    """
    if how is None:
        return
    how = how if isinstance(how, dict) else {}
    kinds = how.get("quant_type")
    default = kinds.get("default") if isinstance(kinds, dict) and len(kinds) == 1 else None
    name = default.get("_type") if isinstance(default, dict) else None
    if how.get("quant_method") != "torchao" or name != "Int8WeightOnlyConfig":
        raise UserError(
            f"{folder / CONFIG} says that its weights are quantised: take the plain ones, or those "
            "of torchao's Int8WeightOnlyConfig (quantization_config)."
        )
    if find_spec("torchao") is None:
        raise UserError(
            f"{folder / CONFIG} says that its weights are in torchao's 8 bits, and torchao is not "
            "installed: `pip install torchao`, or take the plain weights (quantization_config)."
        )


def check_files(folder: Path) -> None:
    """Raise UserError, naming the first, for files that no model folder holds.

    A link out of it, a pipe, socket or device, too long a text, too many files, or more weights
    than this machine has memory.
    """
    weights = 0
    for number, path in enumerate(_walk(folder)):
        if number >= MAX_ENTRIES:
            raise UserError(f"{folder} holds more than {MAX_ENTRIES:,} files: it is no model's.")
        status = _status(folder, path)
        if stat.S_ISDIR(status.st_mode):
            continue
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{path} is no plain file: take it out of the model's folder.")
        if path.suffix in TEXTS and status.st_size > MAX_FILE:
            raise UserError(
                f"{path} is larger than {bytes_text(MAX_FILE)}, the most that is read of it."
            )
        weights += status.st_size if path.suffix == ".safetensors" else 0
    check_memory(str(folder), weights)


def check_memory(name: str, n_bytes: int) -> None:
    """Raise UserError for weights that are larger than this machine's memory."""
    memory = psutil.virtual_memory().total
    if n_bytes > memory:
        raise UserError(
            f"{name}: its weights take {bytes_text(n_bytes)}, and this machine has "
            f"{bytes_text(memory)} of memory: choose a smaller model."
        )


def _walk(folder: Path) -> Iterator[Path]:
    """All that is in a folder and its own folders; links aren't followed."""

    def stop(error: OSError) -> None:
        raise UserError(f"{folder} can't be looked into: {error.strerror}.") from error

    for parent, folders, names in os.walk(folder, onerror=stop):
        for name in (*folders, *names):
            yield Path(parent, name)


def _status(folder: Path, path: Path) -> os.stat_result:
    try:
        if path.is_symlink():
            home = folder.resolve()
            allowed = [home]
            if home.parent.name == "snapshots":  # the hub's cache: snapshots are links into blobs
                allowed.append(home.parent.parent / "blobs")
            target = Path(os.path.realpath(path))
            if not any(target.is_relative_to(place) for place in allowed):
                raise UserError(f"{path} is a link out of the model's folder: put the file there.")
        return path.stat()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from error


def check_contents(folder: Path) -> None:
    """Raise UserError if configuration, headers of weights, index and tokenizer don't fit."""
    config = read_json(folder / CONFIG)
    if "model_type" not in config:
        raise UserError(f"{folder / CONFIG} names no model_type: it is no model's.")
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise UserError(f"{folder} has no tokenizer: it needs one of {', '.join(TOKENIZERS)}.")
    if config.get("transformers_weights") is not None:
        raise UserError(
            f"{folder / CONFIG} names weights of its own: take the name out (transformers_weights)."
        )
    _check_quantised(folder, config.get("quantization_config"))
    if "/" in str(config.get("attn_implementation")):
        raise UserError(f"{folder / CONFIG} names code to be fetched (attn_implementation).")
    if (folder / "adapter_config.json").exists():
        raise UserError(f"{folder} is an adapter to another model: merge the two first.")
    _check_config(folder / CONFIG, config, stored_tensors(folder))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object. Raises UserError for any other."""
    try:
        content = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} can't be read: {error}.") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} can't be read: it holds no object.")
    return content


def stored_tensors(folder: Path) -> dict[str, Tensor]:
    """The tensors that a folder's weights hold, by name, as the files' headers say.

    Raises UserError for a header that isn't one, or that doesn't fit its file's length, and for an
    index that names other files or tensors than there are.
    """
    if (folder / "model.safetensors").is_file():
        return read_header(folder / "model.safetensors")
    if not (folder / INDEX).is_file():
        raise UserError(
            f"{folder} holds neither model.safetensors nor {INDEX}, which names the parts."
        )
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise UserError(f"{folder / INDEX} names no files (weight_map).")
    headers: dict[str, dict[str, Tensor]] = {}
    found: dict[str, Tensor] = {}
    for name, place in places.items():
        if not isinstance(place, str) or place not in headers:
            headers[str(place)] = _part(folder, place)
        if name not in headers[str(place)]:
            raise UserError(f"{folder / INDEX}: {place} holds no weight {name[:80]!r}.")
        found[name] = headers[str(place)][name]
    return found


def _part(folder: Path, place: object) -> dict[str, Tensor]:
    """The header of a part of the weights, as an index names it."""
    if not isinstance(place, str) or place in ("", ".", "..") or set(place) & set("/\\\0"):
        raise UserError(f"{folder / INDEX} names {str(place)[:80]!r}, which is no file beside it.")
    if not place.endswith(".safetensors"):
        raise UserError(
            f"{folder / INDEX} names {place[:80]!r}: only safetensors are read, since other "
            "weights run code when they are: convert them first."
        )
    if not os.path.isfile(folder / place):  # a name may be too long to be one
        raise UserError(f"{folder / INDEX} names {place[:80]!r}, which isn't there.")
    return read_header(folder / place)


def read_header(file: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file, by name.

    Raises UserError unless they follow each other in it, each as long as its shape says.
    """
    open_file(file).close()
    try:
        with safe_open(file, "np") as stored:
            slices = {name: stored.get_slice(name) for name in stored.keys()}  # noqa: SIM118
            return {
                name: Tensor(one.get_dtype(), tuple(one.get_shape()))
                for name, one in slices.items()
            }
    except SafetensorError as error:
        raise UserError(f"{file} is no whole safetensors file: copy or fetch it again.") from error


def _check_config(path: Path, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Raise UserError for a size that no model has, or that these weights don't.

    A part of a model has at least one weight, which bounds how many there are.
    """
    for name, value in _sizes(config):
        least = 1 if name in NO_ZERO else -1  # some say so that there is none
        most = MAX_SIZE
        if name in LAYERS:
            most = len(tensors)
        elif PARTS.fullmatch(name):
            most = max(len(tensors), MIN_PARTS)
        if type(value) is not int or not least <= value <= most:
            raise UserError(
                f"{path}: {name} is {str(value)[:40]}, and with these weights it can be "
                f"{least} to {most:,}."
            )
    sides = {side for tensor in tensors.values() for side in tensor.shape}
    for name in TABLE:
        if name in config and config[name] is not None and config[name] not in sides:
            raise UserError(f"{path}: {name} is {config[name]}, and none of its weights are.")


def _sizes(config: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """The sizes that a configuration names, those of its parts with it."""
    for name, value in config.items():
        if isinstance(value, dict) and name.endswith("_config"):
            yield from _sizes(value)
        is_size = type(value) is int and (SIZES.fullmatch(name) or PARTS.fullmatch(name))
        if is_size or (name in NO_ZERO and value is not None):
            yield name, value


def folder_digest(folder: Path) -> str:
    """SHA-256 over the weights, the configuration and the tokenizer of a model folder."""
    total = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in COUNTED and file.name != NOT_COUNTED and file.is_file():
            total.update(f"{file.name} {file.stat().st_size}\n".encode())
            total.update(bytes.fromhex(file_digest(file)))
    return total.hexdigest()


def file_digest(file: Path) -> str:
    """SHA-256 of a file, kept in the cache under its path, size and time of change.

    Where the cache can't be written it is kept in this process.
    """
    status = file.stat()
    return _digest(str(file.resolve()), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4096)
def _digest(path: str, size: int, changed: int) -> str:
    stamp = json.dumps([path, size, changed])
    note = cache_dir() / "models" / "digests" / hashlib.sha256(stamp.encode()).hexdigest()
    kept = _read_note(note)
    if kept:
        return kept
    with open_file(Path(path)) as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    try:
        write_text_whole(note, digest)
    except OSError:
        return digest  # no place for notes: the next process reads the file again
    return digest


def _read_note(note: Path) -> str:
    """A digest that was noted; empty if it wasn't, or the note is damaged."""
    try:
        text = read_file(note, 64).decode("ascii")
    except (UserError, ValueError):
        return ""
    return text if re.fullmatch("[0-9a-f]{64}", text) else ""
