"""Loading models late, and keeping them in one cache that is bounded in bytes.

The model used longest ago is dropped first, before another is loaded. Two sessions that ask for the
same model get the same object, loaded once.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psutil

from lama_core.errors import positive
from lama_core.models.devices import check_room, chosen_device, free_bytes, release
from lama_core.models.model_folder import stored_tensors
from lama_core.models.registry import find_kind, open_model
from lama_core.models.sources.catalog import Entry, add_model, find_model
from lama_core.models.sources.locations import check_folder, check_hub, fetch, locate
from lama_core.progress import OnProgress, Progress, silent

if TYPE_CHECKING:
    from lama_core.models.registry import Model

# auto: fp32 on a processor; on a graphics card bf16 where the stored weights are bf16.
Precision = Literal["auto", "fp32", "bf16"]
SERVED = "auto"  # the precision of what a server holds: it chooses


@dataclass(frozen=True, slots=True)
class Held:
    """A model in the cache. device: where it is. n_bytes: of its weights."""

    name: str
    precision: str
    device: str
    n_bytes: int


# transformers swaps methods of its classes for the whole process while it loads: one at a time.
LOADING = threading.RLock()


class ModelCache:
    """Loaded models by name, precision and device, at most `max_bytes` of weights in memory, and
    on a graphics card as many as have room.

    A single model larger than the bound is loaded all the same, alone, where there is room for it.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._models: OrderedDict[tuple[str, str, str], Any] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, name: str, precision: str, device: str = "cpu") -> Any:
        """The model of that name and precision on a device, None if it isn't loaded."""
        key = (name, precision, device)
        with self._lock:
            if key in self._models:
                self._models.move_to_end(key)
            return self._models.get(key)

    def get(
        self,
        name: str,
        precision: str,
        load: Callable[[], Any],
        n_bytes: int = 0,
        device: str = "cpu",
    ) -> Any:
        """The model of that name and precision on a device; `load()` makes it if it isn't here.

        n_bytes: what it will take; as much is made free first. One model is loaded at a time.
        """
        with LOADING:
            model = self.find(name, precision, device)
            if model is not None:
                return model
            with self._lock:
                self._shrink(device, n_bytes)
            check_room(name, n_bytes, device)
            model = load()
            with self._lock:
                self._models[name, precision, device] = model
                self._shrink(device, keep=1)
            return model

    def _shrink(self, device: str, n_more: int = 0, keep: int = 0) -> None:
        """Drop models of a device, the longest unused first, until there is room for so much."""
        if device != "cpu":
            release()  # what PyTorch only keeps isn't free
        there = [key for key in self._models if key[2] == device]
        for key in there[: len(there) - keep]:
            held = self._held(device) + n_more
            if held <= self.max_bytes if device == "cpu" else n_more <= free_bytes(device):
                return
            del self._models[key]
            release()

    def _held(self, device: str) -> int:
        return sum(model.n_bytes for key, model in self._models.items() if key[2] == device)

    @property
    def n_bytes(self) -> int:
        """Bytes of all weights held in memory."""
        with self._lock:
            return self._held("cpu")

    def held(self) -> tuple[Held, ...]:
        """What is loaded, the longest unused first."""
        with self._lock:
            return tuple(
                Held(name, precision, device, model.n_bytes)
                for (name, precision, device), model in self._models.items()
            )

    def identity(self, name: str, precision: str) -> str | None:
        """The identity of a model that is loaded, the one used last; None if it isn't.

        precision: `auto` is any.
        """
        with self._lock:
            for key, model in reversed(self._models.items()):
                if key[0] == name and (precision in ("auto", key[1]) or key[1] == SERVED):
                    return model.identity
        return None

    def drop(self, name: str, precision: str, device: str = "cpu") -> None:
        """Unload a model in one precision on one device; others stay."""
        with self._lock:
            self._models.pop((name, precision, device), None)
        if device != "cpu":
            release()


CACHE = ModelCache(positive("LAMA_MODEL_BYTES", psutil.virtual_memory().total // 2))


def load_model(
    reference: str, *, precision: Precision = "auto", on_progress: OnProgress = silent
) -> "Model":
    """The model that a user means, fetched and loaded where it must be, on the chosen device.

    Raises UserError for an unknown model, one that can't be had, files that are no model, a device
    that isn't here, or one that has no room for it.
    """
    entry = find_model(reference)
    if entry.source.how == "server":
        return _connect(entry)
    device = chosen_device()
    located = None
    if precision == "auto" and device != "cpu":
        located = fetch(entry, on_progress)
        used = "bf16" if _is_bf16(located.folder) else "fp32"
    else:
        used = "fp32" if precision == "auto" else precision
    model = CACHE.find(entry.name, used, device)
    if model is not None:
        return model
    located = located or fetch(entry, on_progress)
    on_progress(Progress(f"Loading {entry.title}"))
    needed = _weights_bytes(located.folder, used)

    def load() -> "Model":
        kind = entry.kind or find_kind(located.folder)
        return open_model(entry.name, located, kind, used, entry.reading)

    return CACHE.get(entry.name, used, load, needed, device)


def add_checked(reference: str) -> Entry:
    """Keep a folder, a hub name or a server in the user's list; it must hold a model.

    A hub name must be on this machine or on the hub, with weights that can be read.
    Raises UserError, saying what is wrong, for one that doesn't hold a model, and for a hub name
    that can't be checked because the hub can't be reached.
    """
    entry = find_model(reference)
    if entry.source.how == "folder":
        check_folder(Path(entry.source.place))
        here = locate(entry)
        if here is not None:  # a GGUF file is expanded first, when it is first asked
            find_kind(here.folder)
    if entry.source.how == "hub" and entry.added and locate(entry) is None:
        check_hub(entry)
    if entry.source.how == "server":
        _connect(entry)
    return add_model(reference)


def _connect(entry: Entry) -> Any:
    """The model that a server holds; it is asked nothing more where that was proved before."""
    from lama_core.models.server.addresses import is_chat
    from lama_core.models.server.backend import open_server
    from lama_core.models.server.chat import open_chat

    found = CACHE.find(entry.name, SERVED)
    if found is not None:
        return found
    opened = (
        open_chat(entry.name) if is_chat(entry.name) else open_server(entry.name)
    )  # others load meanwhile
    return CACHE.get(entry.name, SERVED, lambda: opened)


def _is_bf16(folder: Path) -> bool:
    """Whether most of a folder's weights are stored as bf16."""
    tensors = stored_tensors(folder).values()
    return sum(one.n_elements if one.dtype == "BF16" else -one.n_elements for one in tensors) > 0


def _weights_bytes(folder: Path, precision: str) -> int:
    """Bytes that a folder's weights take in memory, as their headers say."""
    width = 2 if precision == "bf16" else 4
    tensors = stored_tensors(folder).values()
    return sum(one.n_elements * (1 if one.dtype == "I8" else width) for one in tensors)
