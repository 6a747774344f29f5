"""A page's place in the queue of queries to models, and the answers that are kept.

A few queries are answered at a time (`lama_core.queue`); a caption shows a waiting visitor how many
are before, and going elsewhere leaves the queue.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import streamlit as st
from cachetools import LRUCache
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lama_core.models.devices import wanted_device
from lama_core.queue import PASSES, VisitorQueue

AT_ONCE = 8
MAX_KEPT = 2000

Answer = TypeVar("Answer")


class _NotKeptError(Exception):
    """An answer isn't kept, and no query was allowed."""


QUEUE = VisitorQueue(AT_ONCE)
KEPT: LRUCache[Hashable, Any] = LRUCache(MAX_KEPT)  # each under everything that it depends on
_kept_lock = threading.Lock()
_page = threading.local()  # a page is drawn by a thread of its own


def answered(key: Hashable, ask: Callable[[], Answer]) -> Answer:
    """Return the answer kept under `key`, else `ask()` in this visitor's slot, kept from now on.

    Answers of other devices are kept apart: each says where it was computed.
    """
    key = (wanted_device(), key)
    found = _find(key)
    if found is None:
        if not getattr(_page, "asks", True):
            raise _NotKeptError
        with turn():
            found = _find(key)  # another visitor may have asked the same
            if found is None:
                found = ask()
                with _kept_lock:
                    KEPT[key] = found
    return cast(Answer, found)


def _find(key: Hashable) -> Any:
    with _kept_lock:
        return KEPT.get(key)


def if_kept(find: Callable[[], Answer]) -> Answer | None:
    """Return what `find` gives if all answers that it needs are kept, else None without a query."""
    _page.asks = False
    try:
        return find()
    except _NotKeptError:
        return None
    finally:
        _page.asks = True


def step_back() -> None:
    """Queue further queries of this page behind those that wait by now.

    For a page with many queries: otherwise its queries come before those of pages that were
    requested later, which is right for a few.
    """
    _page.since = time.monotonic()


@contextmanager
def turn() -> Iterator[None]:
    """This visitor's slot; while others have it, a caption shows how many are before."""
    context = get_script_run_ctx()
    box = st.empty()

    def tell(n_before: int) -> None:
        others = f"{n_before} questions are" if n_before != 1 else "1 question is"
        text = f"{others} before this one." if n_before else "This question is the next."
        box.caption(f":material/hourglass_top: Others are asking, too. {text}")

    _page.since = since = getattr(_page, "since", time.monotonic())
    with QUEUE.slot(context.session_id if context else "", tell, since):
        box.empty()
        with PASSES.query():
            yield
