"""Exclude long-lived objects from Python's garbage collection.

Streamlit runs a full garbage collection after every run of a page. With the models' libraries
loaded it takes half a second and blocks all other threads; in a test with thirty visitors it took
longer than the answers. So after a model is loaded or unloaded, all objects are frozen
(`gc.freeze`).
"""

import gc
import threading

from lama_core.models.cache import CACHE

_settling = threading.Lock()
_settled: frozenset[tuple[str, str]] | None = None


def freeze_objects() -> None:
    """Freeze all objects if the loaded models have changed since the last call.

    Collects garbage first, the frozen objects included, to free the memory of unloaded models.
    """
    global _settled
    held = frozenset((model.name, model.precision) for model in CACHE.held())
    if held == _settled or not _settling.acquire(blocking=False):
        return
    try:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        _settled = held
    finally:
        _settling.release()
