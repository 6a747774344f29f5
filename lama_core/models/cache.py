"""Load models on demand and keep them in one cache with a limit in bytes.

The least recently used model is dropped first, before another is loaded. Two sessions that use the
same model share one object, loaded once.
"""

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import psutil

from lama_core.errors import UserError, int_from_env
from lama_core.models.cpu import computed_precision
from lama_core.models.devices import (
    check_room,
    chosen_device,
    free_bytes,
    free_gpu_cache,
    one_device,
)
from lama_core.models.model_folder import stored_tensors
from lama_core.models.registry import check_added, find_kind, open_model
from lama_core.models.sources.catalog import Entry, add_model, find_model, source_of
from lama_core.models.sources.locations import (
    LocatedModel,
    check_folder,
    check_hub,
    fetch,
    locate,
)
from lama_core.progress import OnProgress, Progress, ignore

if TYPE_CHECKING:
    from lama_core.models.registry import Model

# auto: fp32 on a CPU; on a GPU, bf16 if the stored weights are bf16. bf16-weights: the weights are
# rounded to bf16, and the model computes in fp32.
Precision = Literal["auto", "fp32", "bf16", "bf16-weights"]
SERVED = "auto"  # precision of served models: the server chooses it
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model in the cache. n_bytes: size of its weights in memory."""

    name: str
    precision: str
    device: str
    n_bytes: int


# transformers patches its classes process-wide during loading: one model at a time.
LOADING = threading.RLock()


class ModelCache:
    """Loaded models by name, precision and device.

    CPU memory holds at most `max_bytes` of weights, a GPU as many as fit. A single model that is
    larger than the limit is still loaded if there is memory for it; all others are dropped first.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._models: OrderedDict[tuple[str, str, str], Any] = OrderedDict()
        self._lock = threading.Lock()
        self._loaded_by = 0  # the process that loaded a model

    def find(self, name: str, precision: str, device: str = "cpu") -> Any:
        """Return a loaded model by name, precision and device; None if it isn't loaded."""
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
        """Return a model by name, precision and device; call `load` if it isn't loaded.

        Models are loaded one after another, never in parallel.

        Args:
            name: The model's name.
            precision: The model's precision.
            load: Loads the model.
            n_bytes: Size of the model's weights. Models on the same device are dropped, least
                recently used first, until they fit.
            device: The device that the model is loaded on.

        Returns:
            The model.

        Raises:
            UserError: If the model doesn't fit on the device, or `load` raises it.
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
                self._loaded_by = os.getpid()
                self._models[name, precision, device] = model
                self._shrink(device, keep=1)
            return model

    def _shrink(self, device: str, n_more: int = 0, keep: int = 0) -> None:
        """Drop a device's models, least recently used first, until `n_more` bytes fit.

        keep: number of the most recently used models that are never dropped.
        """
        if device != "cpu":
            free_gpu_cache()  # memory that PyTorch caches doesn't count as free
        loaded = [key for key in self._models if key[2] == device]
        for key in loaded[: len(loaded) - keep]:
            held = self._held(device) + n_more
            if held <= self.max_bytes if device == "cpu" else n_more <= free_bytes(device):
                return
            del self._models[key]
            free_gpu_cache()

    def _held(self, device: str) -> int:
        return sum(model.n_bytes for key, model in self._models.items() if key[2] == device)

    @property
    def n_bytes(self) -> int:
        """Bytes of all weights in CPU memory."""
        with self._lock:
            return self._held("cpu")

    def held(self) -> tuple[CachedModel, ...]:
        """Return the loaded models, least recently used first."""
        with self._lock:
            return tuple(
                CachedModel(name, precision, device, model.n_bytes)
                for (name, precision, device), model in self._models.items()
            )

    def identity(self, name: str, precision: str) -> str | None:
        """Return the identity of the most recently used model of that name; None if none is loaded.

        precision: a precision, or `auto` for any.
        """
        with self._lock:
            for key, model in reversed(self._models.items()):
                opened = (computed_precision(precision, key[2]), SERVED)
                if key[0] == name and (precision == "auto" or key[1] in opened):
                    return model.identity
        return None

    def check_fork(self) -> None:
        """Raise UserError in a fork of a process that used models with several threads.

        torch's threads don't exist in the fork, which would wait for them forever.
        """
        is_forked = self._loaded_by not in (0, os.getpid())
        if is_forked and (torch := sys.modules.get("torch")) and torch.get_num_threads() > 1:
            raise UserError(
                "This process was forked from one that has used a model, and torch would wait "
                "forever for threads that only exist there. Start processes by 'spawn' "
                "(multiprocessing.get_context('spawn')), or use models only in the new processes."
            )

    def drop(self, name: str, precision: str, device: str = "cpu") -> None:
        """Unload a model in one precision from one device."""
        with self._lock:
            self._models.pop((name, precision, device), None)
        if device != "cpu":
            free_gpu_cache()


CACHE = ModelCache(int_from_env("LAMA_MODEL_BYTES", psutil.virtual_memory().total // 2))


def load_model(
    name: str, *, precision: Precision = "auto", on_progress: OnProgress = ignore
) -> "Model":
    """Load a model on the chosen device, downloading it first if necessary.

    Args:
        name: Name of a listed model, a folder, a GGUF file, a hub name or server:URL#MODEL.
        precision: `auto`: fp32 on a CPU; on a GPU, bf16 if the stored weights are bf16. `bf16` is
            `bf16-weights` on a CPU without instructions for bf16.
        on_progress: Called with the progress of the download and of loading.

    Raises:
        UserError: If the model is unknown, unavailable or damaged, or if the device doesn't exist
            or has too little memory.
    """
    entry = find_model(name)
    if entry.source.how == "server":
        return _connect(entry)
    CACHE.check_fork()
    device = chosen_device()
    located = None
    if precision == "auto" and device != "cpu":
        located = fetch(entry, on_progress)
        signed = (
            one.n_elements if one.dtype == "BF16" else -one.n_elements
            for one in stored_tensors(located.folder).values()
        )
        used = "bf16" if sum(signed) > 0 else "fp32"  # as most of the weights
    else:
        used = "fp32" if precision == "auto" else computed_precision(precision, device)
    model = CACHE.find(entry.name, used, device)
    if model is not None:
        return model
    located = located or fetch(entry, on_progress)
    on_progress(Progress(f"Loading {entry.title}"))
    width = 2 if used == "bf16" else 4
    needed = sum(
        one.n_elements * (1 if one.dtype == "I8" else width)
        for one in stored_tensors(located.folder).values()
    )

    def load() -> "Model":
        return open_model(
            entry.name, located, entry.kind or find_kind(located.folder), used, entry.reading
        )

    return CACHE.get(entry.name, used, load, needed, device)


def load_auxiliary(
    reference: str, task: str, read: Callable[[Entry, LocatedModel], T], on_progress: OnProgress
) -> T:
    """Return a model for another task than scoring; load it unless it is cached.

    Args:
        reference: The model, as for `find_model`.
        task: A name of the task, which is part of the cached model's name.
        read: Reads the model's files.
        on_progress: Called with the progress of a download.

    Raises:
        UserError: If the model is unavailable, or `read` raises it.
    """
    entry = find_model(reference)

    name, device = f"{entry.name} ({task})", one_device()
    return CACHE.get(name, "fp32", lambda: read(entry, fetch(entry, on_progress)), device=device)


def check_and_add_model(reference: str) -> Entry:
    """Add a folder, a hub name or a server to the user's list, after checking that it is a model.

    A hub name must be on this machine or on the hub, with weights in a supported format.
    Raises UserError if it isn't a model, or if the hub can't be reached to check a hub name.
    """
    entry = find_model(reference)
    if entry.source.how == "folder":
        check_folder(Path(entry.source.place))
    if entry.source.how == "server":
        _connect(entry)
    # A GGUF file is expanded later, at its first query.
    here = locate(entry) if entry.added else None
    if entry.source.how == "folder" and here is not None:
        find_kind(here.folder)
    if entry.source.how == "hub" and entry.added and here is None:
        check_hub(entry)
    return add_model(reference)


def _connect(entry: Entry) -> Any:
    """Return a served model; if it is cached, its server isn't checked again."""
    from lama_core.models.server.addresses import is_chat
    from lama_core.models.server.backend import open_server
    from lama_core.models.server.chat import open_chat

    found = CACHE.find(entry.name, SERVED)
    if found is not None:
        return found
    # Outside the lock, so that other models can be loaded while the server answers.
    if source := source_of(entry.name):
        opened = source.open(entry.name.partition(":")[2])
        check_added(entry.name, opened)
    else:
        opened = open_chat(entry.name) if is_chat(entry.name) else open_server(entry.name)
    return CACHE.get(entry.name, SERVED, lambda: opened)
