"""Queries for tests of the scoring process, which imports them."""

import os
import signal
import threading
import time

from lama_core.progress import OnProgress, Progress
from lama_core.service import queries

SLOTS: list[None] = []


def fail(error: Exception) -> None:
    """Raise an error in the scoring process."""
    raise error


def call_often(*, on_progress: OnProgress) -> None:
    """Report progress until the caller's function raises."""
    while True:
        on_progress(Progress("Counting"))


def take_slots() -> None:
    """Take a slot for a forward pass again and again; count the slots."""
    for _ in range(3000):
        with queries.PASSES.slot():
            SLOTS.append(None)
            time.sleep(0.01)


def n_slots() -> int:
    """The number of slots that `take_slots` has taken."""
    return len(SLOTS)


def unpicklable() -> object:
    """Return an object that can't be sent."""
    return threading.Lock()


def end() -> None:
    """End the scoring process as a lack of memory would."""
    os.kill(os.getpid(), signal.SIGKILL)


def process_id() -> int:
    """The number of the process that answers."""
    return os.getpid()


def load_slowly() -> None:
    """Query a model whose load takes a second."""
    load = queries.load_model
    queries.load_model = lambda *_, **__: time.sleep(1)  # type: ignore[assignment]
    try:
        queries.loaded_model("minilm-mlm", "bf16")
    finally:
        queries.load_model = load
