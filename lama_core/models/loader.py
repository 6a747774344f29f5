"""Loading models late, and keeping them in one cache that is bounded in bytes.

The model used longest ago is dropped first, before another is loaded. Two sessions that ask for the
same model get the same object, loaded once.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psutil

from lama_core.errors import UserError
from lama_core.models.catalog import Entry, add_model, find_model
from lama_core.models.folders import stored_tensors
from lama_core.models.sources import Located, check_folder, fetch, locate
from lama_core.progress import OnProgress, Progress, silent

if TYPE_CHECKING:
    from lama_core.models.backends import Model

Precision = Literal["auto", "fp32", "bf16"]


@dataclass(frozen=True, slots=True)
class Held:
    """A model in the cache. n_bytes: of its weights."""

    name: str
    precision: str
    n_bytes: int


# transformers swaps methods of its classes for the whole process while it loads: one at a time.
LOADING = threading.RLock()


class ModelCache:
    """Loaded models by name and precision, at most `max_bytes` of weights.

    A single model larger than the bound is loaded all the same, alone.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._models: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, name: str, precision: str) -> Any:
        """The model of that name and precision, None if it isn't loaded."""
        key = (name, precision)
        with self._lock:
            if key in self._models:
                self._models.move_to_end(key)
            return self._models.get(key)

    def get(self, name: str, precision: str, load: Callable[[], Any], n_bytes: int = 0) -> Any:
        """The model of that name and precision; `load()` makes it if it isn't here.

        n_bytes: what it will take; as much is made free first. One model is loaded at a time.
        """
        with LOADING:
            model = self.find(name, precision)
            if model is not None:
                return model
            with self._lock:
                self._shrink(n_bytes)
            model = load()
            with self._lock:
                self._models[name, precision] = model
                self._shrink(keep=1)
            return model

    def _shrink(self, n_more: int = 0, keep: int = 0) -> None:
        while len(self._models) > keep and self._held() + n_more > self.max_bytes:
            self._models.popitem(last=False)

    def _held(self) -> int:
        return sum(model.n_bytes for model in self._models.values())

    @property
    def n_bytes(self) -> int:
        """Bytes of all weights held."""
        with self._lock:
            return self._held()

    def held(self) -> tuple[Held, ...]:
        """What is loaded, the longest unused first."""
        with self._lock:
            return tuple(
                Held(name, precision, model.n_bytes)
                for (name, precision), model in self._models.items()
            )

    def identity(self, name: str, precision: str) -> str | None:
        """The identity of a model that is loaded; None if it isn't."""
        with self._lock:
            model = self._models.get((name, precision))
            return model.identity if model is not None else None

    def drop(self, name: str, precision: str) -> None:
        """Unload a model in one precision; in another it stays."""
        with self._lock:
            self._models.pop((name, precision), None)


def _default_bound() -> int:
    given = os.environ.get("LAMA_MODEL_BYTES", "").strip()
    if given and not given.isdecimal():
        raise UserError(f"LAMA_MODEL_BYTES is {given[:40]!r}: write a number of bytes.")
    return int(given) if given else psutil.virtual_memory().total // 2


CACHE = ModelCache(_default_bound())


def load_model(
    reference: str, *, precision: Precision = "fp32", on_progress: OnProgress = silent
) -> "Model":
    """The model that a user means, fetched and loaded where it must be.

    precision: `auto` is bf16 where the processor computes in it, else fp32.
    Raises UserError for an unknown model, one that can't be had, or files that are no model.
    """
    entry = find_model(reference)
    used = chosen_precision(precision)
    model = CACHE.find(entry.name, used)
    if model is not None:
        return model
    located = fetch(entry, on_progress)
    on_progress(Progress(f"Loading {entry.title}"))
    needed = _weights_bytes(located.folder, used)
    return CACHE.get(entry.name, used, lambda: _open(entry, located, used), needed)


def add_checked(reference: str) -> Entry:
    """Keep a folder or a hub name in the user's list; a folder must hold a model that can be asked.

    Raises UserError, saying what is wrong, for one that doesn't. A hub name is looked at when it is
    fetched.
    """
    entry = find_model(reference)
    if entry.source.how == "folder":
        from lama_core.models.backends import find_kind

        check_folder(Path(entry.source.place))
        here = locate(entry)
        if here is not None:  # a GGUF file is expanded first, when it is first asked
            find_kind(here.folder)
    return add_model(reference)


def chosen_precision(precision: Precision) -> Literal["fp32", "bf16"]:
    """fp32 or bf16; `auto` looks at the processor."""
    if precision == "auto":
        return "bf16" if has_bf16() else "fp32"
    return precision


def has_bf16() -> bool:
    """Whether the processor multiplies bf16 matrices itself (AVX-512 BF16 or AMX)."""
    import torch

    flags = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    if flags:
        return bool(flags.get("avx512_bf16") or flags.get("amx_bf16") or flags.get("bf16"))
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "avx512_bf16" in text or "amx_bf16" in text


def _weights_bytes(folder: Path, precision: str) -> int:
    """Bytes that a folder's weights take in memory, as their headers say."""
    n_weights = sum(tensor.n_elements for tensor in stored_tensors(folder).values())
    return n_weights * (2 if precision == "bf16" else 4)


def _open(entry: Entry, located: Located, precision: str) -> "Model":
    from lama_core.models.backends import find_kind, open_model

    kind = entry.kind or find_kind(located.folder)
    return open_model(entry.name, located, kind, precision)
