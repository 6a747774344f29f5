"""Models that passed all self-checks, remembered in the cache so that later processes skip them.

There is one small file per model folder (by the digest of its files), kind, precision, device, CPU
instructions and versions of the libraries. If it is missing or damaged, the checks run again.
Models that failed a check aren't remembered.
"""

import hashlib
import json
import platform
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import torch

from lama_core import __version__
from lama_core.errors import UserError
from lama_core.files import read_file, write_text_atomically
from lama_core.models.devices import chosen_device
from lama_core.models.model_folder import MAX_SIZE, folder_digest
from lama_core.paths import cache_dir

VERSION = 2  # raise it when a check changes
LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")
MAX_BYTES = 4096


def checks_file(folder: Path, kind: str, precision: str) -> Path:
    """Return the file for a model's checks in one kind and precision, on the chosen device."""
    settings = [
        VERSION,
        __version__,
        folder_digest(folder),
        kind,
        precision,
        chosen_device(),
        platform.machine(),
        torch.backends.cpu.get_cpu_capability(),
        *map(version, LIBRARIES),
    ]
    name = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    return cache_dir() / "models" / "checked" / f"{name}.json"


def find_passed(file: Path) -> int | None:
    """Return the number of rows of the embedding table if the model passed; else None."""
    try:
        stored = json.loads(read_file(file, MAX_BYTES))
    except (UserError, ValueError, RecursionError):
        return None
    rows = stored.get("rows") if isinstance(stored, dict) else None
    return rows if type(rows) is int and 0 < rows <= MAX_SIZE else None


def store_passed(file: Path, rows: int) -> None:
    """Store that the model passed all checks. rows: number of rows of its embedding table."""
    with suppress(OSError):  # the next process runs the checks again
        write_text_atomically(file, json.dumps({"rows": rows}))
