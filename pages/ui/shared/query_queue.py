"""The queue of the pages' queries to models, and the cache of their answers.

At most `AT_ONCE` queries run concurrently, and each address has a limit of waiting and running
queries (`lama_core.queue`). A caption shows a waiting visitor the number of queries ahead and about
how many seconds they take. Leaving the page leaves the queue. A query that several visitors ask at
the same time is computed once.
"""

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from weakref import WeakValueDictionary

import streamlit as st
from cachetools import LRUCache
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lama_core.models.devices import requested_device
from lama_core.queue import LOOK_SECONDS, VisitorQueue
from lama_core.rounding import counted
from lama_core.service.process import Answer
from pages.ui.shared import visitors

AT_ONCE = 8
MAX_KEPT = 2000


class _NotKeptError(Exception):
    """Raised inside `if_cached` if an answer isn't cached."""


QUEUE = VisitorQueue(AT_ONCE)
ANSWERS: LRUCache[Hashable, Any] = LRUCache(MAX_KEPT)  # the keys contain all inputs of an answer
_kept_lock = threading.Lock()
_asking: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()  # key -> lock while it is asked
_page = threading.local()  # each page is drawn in its own thread


def cached_answer(key: Hashable, ask: Callable[[], Answer]) -> Answer:
    """Return the cached answer of `key`; if there is none, queue for `ask()` and cache its answer.

    Answers computed on different devices are cached separately.
    """
    key = (requested_device(), key)
    found = _find(key)
    if found is None:
        if not getattr(_page, "asks", True):
            raise _NotKeptError
        with queue_slot(), _turn(key):
            found = _find(key)  # another visitor may have run the same query
            if found is None:
                found = ask()
                with _kept_lock:
                    ANSWERS[key] = found
    return cast(Answer, found)


def _find(key: Hashable) -> Any:
    with _kept_lock:
        return ANSWERS.get(key)


@contextmanager
def _turn(key: Hashable) -> Iterator[None]:
    """Wait while another visitor's query has the same key. A turn includes a slot."""
    with _kept_lock:
        lock = _asking.setdefault(key, threading.Lock())
    box = st.empty()
    while not lock.acquire(timeout=LOOK_SECONDS):
        box.caption(":material/hourglass_top: The same query of another visitor is being computed.")
    try:
        box.empty()
        yield
    finally:
        lock.release()


def if_cached(find: Callable[[], Answer]) -> Answer | None:
    """Return `find()` if all answers that it needs are cached, else None; no query runs."""
    _page.asks = False
    try:
        return find()
    except _NotKeptError:
        return None
    finally:
        _page.asks = True


def queue_last() -> None:
    """Queue this page's further queries behind those that are waiting now.

    For pages with many queries. Normally a page's queries come before those of pages that were
    opened later.
    """
    _page.since = time.monotonic()


@contextmanager
def queue_slot() -> Iterator[None]:
    """Wait for this visitor's slot in the queue and hold it; a caption shows the position.

    A nested call shares the page's slot.
    """
    if getattr(_page, "has_slot", False):
        yield
        return
    context = get_script_run_ctx()
    box = st.empty()

    def tell(n_ahead: int) -> None:
        text = f"{counted(n_ahead, 'query')} ahead" if n_ahead else "You are next"
        seconds = QUEUE.seconds_to_wait(n_ahead)
        if not math.isnan(seconds):
            text += f", about {max(1, round(seconds))} s"
        box.caption(f":material/hourglass_top: Queued: {text}.")

    _page.since = since = getattr(_page, "since", time.monotonic())
    with QUEUE.slot(context.session_id if context else "", tell, since, visitors.address()):
        box.empty()
        _page.has_slot = True
        try:
            yield
        finally:
            _page.has_slot = False
