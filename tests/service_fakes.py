"""Queries for tests of the scoring process, which imports them."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lama_core.progress import OnProgress, Progress
from lama_core.service import queries

RUNNING: list[str] = []  # queries that have begun and not ended


def fail(error: Exception) -> None:
    raise error


def call_often(*, on_progress: OnProgress) -> None:
    """Report progress until the caller's function raises."""
    with _running("call_often"):
        while True:
            on_progress(Progress("Counting"))


@contextmanager
def _running(name: str) -> Iterator[None]:
    RUNNING.append(name)
    try:
        yield
    finally:
        RUNNING.remove(name)


def running() -> list[str]:
    return list(RUNNING)


def unpicklable() -> object:
    return threading.Lock()


def end() -> None:
    """End the scoring process as a lack of memory would."""
    os.kill(os.getpid(), signal.SIGKILL)


def process_id() -> int:
    return os.getpid()


def load_until_refused() -> None:
    """Query a model whose load ends only after the query."""
    refused = threading.Event()
    load = queries.load_model
    queries.load_model = lambda *_, **__: refused.wait()  # type: ignore[assignment]
    try:
        queries.loaded_model("minilm-mlm", "bf16")
    finally:
        refused.set()
        queries.load_model = load


def loads_here() -> bool:
    """Whether the query's own thread loads a model, so that no time limit ends the wait."""
    load = queries.load_model
    queries.load_model = lambda *_, **__: threading.get_ident()  # type: ignore[assignment]
    try:
        return bool(queries.loaded_model("minilm-mlm", "bf16") == threading.get_ident())
    finally:
        queries.load_model = load
