"""What stays in memory for long is not looked through again and again.

Streamlit collects garbage after every run of a page, through all objects there are, while nothing
else runs: with the libraries of the models in memory half a second. Thirty visitors waited for that
more than for their answers. So what is there once a model is loaded, or gone, is set apart.
"""

import gc
import threading

from lama_core.models.cache import CACHE

_settling = threading.Lock()
_settled: frozenset[tuple[str, str]] | None = None


def settle() -> None:
    """Set apart what is in memory now, if other models are loaded than when this was last done.

    What was set apart is looked through first, so that the memory of a model that is gone is freed.
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
