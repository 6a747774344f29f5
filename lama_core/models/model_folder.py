"""Checks of a model folder's files before any model code reads them.

Configurations and headers are untrusted. Before memory is allocated, each number in them is bounded
and compared with the stored bytes. Links may point to files of the same folder and, in the hub's
cache, to the blobs of the same repository.
"""

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import psutil
from safetensors import SafetensorError, safe_open

from lama_core.errors import UserError, reason_of
from lama_core.files import MAX_FILE, format_bytes, open_file, read_file, write_text_atomically
from lama_core.paths import cache_dir

CONFIG, WEIGHTS = "config.json", "model.safetensors"
TOKENIZER_CONFIG, CHAT_TEMPLATE = "tokenizer_config.json", "chat_template.jinja"
INDEX = "model.safetensors.index.json"
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")
SHARD = re.compile(r"(.+)-\d{5}-of-(\d{5})\.safetensors")
TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
    "source.spm",
)
# The first bytes of the text that stands for a file in a repository cloned without Git LFS, and the
# size limit of such texts.
LFS_POINTER, MAX_POINTER = b"version https://git-lfs.github.com/spec/v1\n", 1024
# The names of files in the hub's `blobs`: SHA-1 of Git or SHA-256 of LFS.
BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# A folder's digest covers the files that can change a score: those with suffixes in COUNTED, except
# evaluation.json: measurements of the model, not a part of it.
COUNTED_TEXTS = (".json", ".txt", ".model", ".spm", ".tiktoken", ".codes", ".tokenizer")
COUNTED, TEXTS = (".safetensors", *COUNTED_TEXTS), (*COUNTED_TEXTS, ".jinja")
MAX_ENTRIES = 10_000
MAX_ADDED = 100_000  # added words of a tokenizer.json
MAX_TOKEN = 10_000_000  # number of a token in a tokenizer.json
MAX_SIZE = 1 << 26
# Keys in configurations. SIZES: sizes. PARTS: numbers of parts such as layers.
SIZES = re.compile(
    r"(\w+_)?(size|dim|heads|positions|position_embeddings|length|len|rank|buckets)|dim|d_\w+"
    r"|n_(embd|head|positions|ctx|inner|words|langs)"
)
PARTS = re.compile(
    r"(n|num)_(layer|group|labels)|(?!max_)(\w+_)?(layers|groups|experts|blocks|num)"
)
# TABLE: each of these sizes must be a dimension of a weight. NO_ZERO: numbers that can't be 0.
TABLE = ("vocab_size", "hidden_size", "n_embd", "dim", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
NO_ZERO = (*TABLE, *LAYERS, "num_attention_heads", "n_head", "n_heads")


# Exceptions that libraries raise for invalid files, or for inputs that a model can't handle.
LIBRARY_ERRORS = (
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
    """A stored tensor as its file's header describes it. dtype: safetensors' name of its type."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def n_elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def _check_quantised(folder: Path, config: Any) -> None:
    """Raise UserError for quantised weights other than torchao's weight-only int8.

    If activations are quantised too, an answer depends on the other texts in its batch.
    """
    if config is None:
        return
    config = config if isinstance(config, dict) else {}
    kinds = config.get("quant_type")
    default = kinds.get("default") if isinstance(kinds, dict) and len(kinds) == 1 else None
    name = default.get("_type") if isinstance(default, dict) else None
    if config.get("quant_method") != "torchao" or name != "Int8WeightOnlyConfig":
        raise UserError(
            f"{folder / CONFIG}: unsupported quantization_config. Use unquantised weights, or "
            "torchao's Int8WeightOnlyConfig."
        )
    if find_spec("torchao") is None:
        raise UserError(
            f"{folder / CONFIG}: the weights are in torchao's 8 bits, and torchao is not "
            "installed. Run `pip install torchao`, or use unquantised weights."
        )


def check_files(folder: Path) -> None:
    """Check the types, sizes and number of the files in a model folder.

    Raises:
        UserError: If a file is a link out of the folder, a pipe, a socket or a device, a text is
            too large, a file is a Git LFS pointer, a tokenizer.json adds too many words, or there
            are too many files.
    """

    def stop(error: OSError) -> None:
        raise UserError(f"Can't list {folder}: {reason_of(error)}.") from error

    paths = (  # without following links
        Path(parent, name)
        for parent, folders, names in os.walk(folder, onerror=stop)
        for name in (*folders, *names)
    )
    for number, path in enumerate(paths):
        if number >= MAX_ENTRIES:
            raise UserError(f"Not a model folder: {folder} has more than {MAX_ENTRIES:,} files.")
        status = _status(folder, path)
        if stat.S_ISDIR(status.st_mode):
            continue
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"Not a regular file: {path}. Remove it from the model's folder.")
        if path.suffix in TEXTS and status.st_size > MAX_FILE:
            raise UserError(f"{path} is too large: the limit is {format_bytes(MAX_FILE)}.")
        if (path.suffix in (*COUNTED, *TEXTS) or is_gguf(path)) and status.st_size < MAX_POINTER:
            check_lfs(path)
        if path.name == "tokenizer.json":
            _check_tokens(path, status.st_size, status.st_mtime_ns)


def check_lfs(path: Path) -> None:
    """Raise UserError if a file is only Git LFS's pointer to the file."""
    with open_file(path) as opened:
        if opened.read(len(LFS_POINTER)) == LFS_POINTER:
            raise UserError(
                f"{path} is a Git LFS pointer, not the file itself. Run `git lfs pull` in its "
                "repository, or download the file."
            )


class _Model(msgspec.Struct):
    """The part of a tokenizer's model that `_check_tokens` reads; Unigram's is a list."""

    vocab: dict[str, int] | list[msgspec.Raw] = {}


class _Tokenizer(msgspec.Struct):
    """The part of a tokenizer.json that `_check_tokens` reads."""

    added_tokens: list[msgspec.Raw] = []
    model: _Model | None = None


@lru_cache(maxsize=256)
def _check_tokens(path: Path, size: int, changed: int) -> None:
    """Raise UserError if a tokenizer.json adds too many words, or numbers a token too high.

    Reading it would take minutes for millions of words, and memory for each number up to the
    highest. The reader of tokenizers explains what else is wrong.
    """
    try:
        content = msgspec.json.decode(read_file(path), type=_Tokenizer)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
    if len(content.added_tokens) > MAX_ADDED:
        raise UserError(
            f"{path} adds {len(content.added_tokens):,} words; the limit is {MAX_ADDED:,}."
        )
    vocabulary = content.model.vocab if content.model else {}
    highest = max(vocabulary.values(), default=0) if isinstance(vocabulary, dict) else 0
    if highest > MAX_TOKEN:
        raise UserError(f"{path} numbers a token {highest:,}; the limit is {MAX_TOKEN:,}.")


def check_weights_fit(folder: Path) -> None:
    """Raise UserError if a folder's weights are larger than this machine's memory."""
    check_memory(str(folder), sum((folder / name).stat().st_size for name in weight_files(folder)))


def check_memory(name: str, n_bytes: int) -> None:
    """Raise UserError for weights that are larger than this machine's memory."""
    memory = psutil.virtual_memory().total
    if n_bytes > memory:
        raise UserError(
            f"{name} is too large: its weights take {format_bytes(n_bytes)}, this machine has "
            f"{format_bytes(memory)} of memory. Choose a smaller model."
        )


def _status(folder: Path, path: Path) -> os.stat_result:
    try:
        if path.is_symlink():
            home = folder.resolve()
            allowed = [home]
            if home.parent.name == "snapshots":  # the hub's cache: snapshots are links into blobs
                allowed.append(home.parent.parent / "blobs")
            target = Path(os.path.realpath(path))
            if not any(target.is_relative_to(place) for place in allowed) and not (
                # `blobs` may be a link to another disk; nothing but blobs is read there
                target.parent in [place.resolve() for place in allowed]
                and BLOB.fullmatch(target.name)
            ):
                raise UserError(
                    f"{path} links out of the model's folder: replace the link with the file."
                )
        return path.stat()
    except OSError as error:
        raise UserError(f"Can't read {path}: {reason_of(error)}.") from error


def check_contents(folder: Path) -> None:
    """Raise UserError if configuration, weights' headers, index and tokenizer don't match."""
    config = read_json(folder / CONFIG)
    if "model_type" not in config:
        raise UserError(f"Not a model's configuration: {folder / CONFIG} has no model_type.")
    _check_tokenizer(folder)
    if config.get("transformers_weights") is not None:
        raise UserError(f"{folder / CONFIG}: unsupported key transformers_weights; remove it.")
    _check_quantised(folder, config.get("quantization_config"))
    if "/" in str(config.get("attn_implementation")):
        raise UserError(
            f"{folder / CONFIG}: attn_implementation names code to download; remove it."
        )
    if (folder / ADAPTER).exists() and any(folder.glob(f"{ADAPTER_WEIGHTS}.*")):
        raise UserError(
            f"{folder} has the weights of a model and of an adapter. If the two are merged, move "
            f"{ADAPTER} and {ADAPTER_WEIGHTS}.* to another folder; else merge them first."
        )
    check_weights_fit(folder)
    _check_config(folder / CONFIG, config, stored_tensors(folder))


def check_complete(folder: Path) -> None:
    """Raise UserError unless a folder has a configuration, all its weights and a tokenizer."""
    if not (folder / CONFIG).is_file():
        raise UserError(f"{folder} has no {CONFIG}. Add it.")
    weight_files(folder)
    _check_tokenizer(folder)


def is_gguf(path: Path) -> bool:
    """Whether a file's name ends in `.gguf`, in upper or lower case."""
    return path.suffix.lower() == ".gguf"


def is_adapter(names: Collection[str]) -> bool:
    """Whether files are those of an adapter without a whole model. names: the files' names."""
    return ADAPTER in names and WEIGHTS not in names and INDEX not in names


def adapter_message(name: str) -> str:
    """Return the error for an adapter, with what to do."""
    return (
        f"{name} is an adapter (PEFT), not a whole model. Merge it with its base model: "
        "`AutoPeftModelForCausalLM.from_pretrained(ADAPTER).merge_and_unload()"
        ".save_pretrained(FOLDER)`, save the tokenizer there, too, and use that folder."
    )


def _check_tokenizer(folder: Path) -> None:
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise UserError(f"{folder} has no tokenizer. Add one of: {', '.join(TOKENIZERS)}.")


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; raise UserError if the file contains anything else."""
    try:
        content = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"Can't read {path}: {error}.") from error
    if not isinstance(content, dict):
        raise UserError(f"Can't read {path}: expected a JSON object.")
    return content


def stored_tensors(folder: Path) -> dict[str, Tensor]:
    """Return the tensors of a folder's weights by name, as the files' headers declare them.

    Raises:
        UserError: If a header is invalid or doesn't match its file's length, or if the index names
            a file or tensor that doesn't exist.
    """
    if (folder / WEIGHTS).is_file():
        return read_header(folder / WEIGHTS)
    places = _read_index(folder)
    headers = {place: read_header(folder / place) for place in dict.fromkeys(places.values())}
    for name, place in places.items():
        if name not in headers[place]:
            raise UserError(f"{folder / INDEX}: {place} doesn't contain {name[:80]!r}.")
    return {name: headers[place][name] for name, place in places.items()}


def has_weights(folder: Path) -> bool:
    """Whether a folder has safetensors weights, or the index of weights in several files."""
    return (folder / WEIGHTS).is_file() or (folder / INDEX).is_file()


def weight_files(folder: Path) -> frozenset[str]:
    """Return the names of the files with a model's weights, as transformers chooses them.

    Other safetensors files in the folder, such as an fp16 variant, aren't read.

    Raises:
        UserError: If the weights, or a file that the index names, are missing.
    """
    is_one = (folder / WEIGHTS).is_file()
    return frozenset({WEIGHTS} if is_one else _read_index(folder).values())


def _read_index(folder: Path) -> dict[str, str]:
    """Return the file of each tensor; raise UserError if an entry is invalid or a file missing."""
    if not (folder / INDEX).is_file():
        raise UserError(f"{folder} has neither {WEIGHTS} nor {INDEX}. Add the weights.")
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise UserError(f"{folder / INDEX}: weight_map names no files. Download it again.")
    for place in places.values():
        if not isinstance(place, str) or place in ("", ".", "..") or set(place) & set("/\\\0"):
            raise UserError(f"{folder / INDEX} references {str(place)[:80]!r}, not a file name.")
        if not place.endswith(".safetensors"):
            raise UserError(
                f"{folder / INDEX} references {place[:80]!r}: only safetensors weights are "
                "supported, because other formats can run code. Convert them first."
            )
    for place in dict.fromkeys(places.values()):
        if not os.path.isfile(folder / place):  # False for a name that is too long, too
            raise UserError(f"{folder / INDEX} references missing file {place[:80]!r}.")
    return places


def read_header(file: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name.

    Raises UserError unless the tensors are contiguous and each is as long as its shape requires.
    """
    open_file(file).close()
    try:
        with safe_open(file, "np") as stored:
            slices = {name: stored.get_slice(name) for name in stored.keys()}  # noqa: SIM118
            return {
                name: Tensor(tensor.get_dtype(), tuple(tensor.get_shape()))
                for name, tensor in slices.items()
            }
    except SafetensorError as error:
        raise UserError(f"Damaged safetensors file: {file}. Copy or download it again.") from error


def _check_config(path: Path, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Raise UserError for a size that no model can have, or that doesn't match the weights.

    Each layer or other part of a model has at least one tensor, so the number of tensors bounds the
    number of parts.
    """
    for name, value in _sizes(config):
        least = 1 if name in NO_ZERO else -1  # some configurations write -1 or 0 for none
        most = MAX_SIZE
        if name in LAYERS:
            most = len(tensors)
        elif PARTS.fullmatch(name):
            most = max(len(tensors), 100)
        if type(value) is not int or not least <= value <= most:
            raise UserError(
                f"{path}: {name} is {str(value)[:40]}, expected {least} to {most:,} for these "
                "weights."
            )
    sides = {side for tensor in tensors.values() for side in tensor.shape}
    for name in TABLE:
        if name in config and config[name] is not None and config[name] not in sides:
            raise UserError(f"{path}: {name} is {config[name]}, but no weight has that dimension.")


def _sizes(config: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield the sizes in a configuration and in its nested configurations."""
    for name, value in config.items():
        if isinstance(value, dict) and name.endswith("_config"):
            yield from _sizes(value)
        is_size = type(value) is int and (SIZES.fullmatch(name) or PARTS.fullmatch(name))
        if is_size or (name in NO_ZERO and value is not None):
            yield name, value


def folder_digest(folder: Path) -> str:
    """SHA-256 over a model folder's weights, configuration and tokenizer."""
    total = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in COUNTED and file.name != "evaluation.json" and file.is_file():
            total.update(f"{file.name} {file.stat().st_size}\n".encode())
            total.update(bytes.fromhex(file_digest(file)))
    return total.hexdigest()


def file_digest(file: Path) -> str:
    """SHA-256 of a file, cached by path, size and modification time.

    If the cache folder isn't writable, only this process caches the digest.
    """
    status = file.stat()
    return _digest(str(file.resolve()), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4096)
def _digest(path: str, size: int, changed: int) -> str:
    stamp = json.dumps([path, size, changed])
    cached = cache_dir() / "models" / "digests" / hashlib.sha256(stamp.encode()).hexdigest()
    with suppress(UserError, ValueError):  # missing, or damaged
        known = read_file(cached, 64).decode("ascii")
        if re.fullmatch("[0-9a-f]{64}", known):
            return known
    with open_file(Path(path)) as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    with suppress(OSError):  # the next process computes the digest again
        write_text_atomically(cached, digest)
    return digest
