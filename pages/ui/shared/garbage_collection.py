"""Collect Python's garbage less often than Streamlit and Python do.

Streamlit runs a full garbage collection after every run of a page. With many libraries and tables
loaded, it lasts up to half a second and blocks all other threads: with thirty visitors, five sixths
of the time. Python also collects garbage when enough objects are new. With its default, 700, this
takes a tenth of the time of importing the libraries and drawing a first page.

After the first page, nothing is collected, and all objects are excluded from later collections:
most of them are the libraries', which the app needs until it ends. Looking through them would take
a tenth of a second each time.
"""

import gc
import time
from types import SimpleNamespace

from streamlit.runtime.scriptrunner import script_runner

SECONDS = 30.0
N_NEW = 50_000  # objects
_last: float | None = None  # when Streamlit last asked and garbage was collected


def collect_rarely() -> None:
    """Make Streamlit collect at most once in `SECONDS`, and Python after `N_NEW` new objects.

    A second call has no effect.
    """
    gc.set_threshold(N_NEW)
    script_runner.gc = SimpleNamespace(collect=_collect)  # type: ignore[assignment, attr-defined]


def _collect(generation: int = 2) -> int:
    global _last
    now, last = time.monotonic(), _last
    if last is not None and now < last + SECONDS:
        return 0
    _last = now
    if last is None:
        gc.freeze()
        return 0
    return gc.collect(generation)
