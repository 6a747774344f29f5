"""A page's place in the queue, and the answers that are kept."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest
from cachetools import LRUCache
from streamlit.delta_generator import DeltaGenerator
from until import SECONDS, until

from lama_core.queue import VisitorQueue
from pages.ui.shared import query_queue


def test_whoever_steps_back_waits_behind_those_who_came_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = VisitorQueue(slots=1)
    monkeypatch.setattr(query_queue, "QUEUE", queue)
    order: list[str] = []

    def many() -> None:
        for number in range(2):
            query_queue.queue_last()
            with query_queue.queue_slot():
                order.append(f"many {number}")
                if not number:
                    begun.set()
                    assert other.is_set() or other.wait(SECONDS)

    def alone() -> None:
        with queue.slot("single", lambda n: None):
            order.append("single")

    begun, other = threading.Event(), threading.Event()
    greedy = threading.Thread(target=many)
    greedy.start()
    assert begun.wait(SECONDS)
    single = threading.Thread(target=alone)
    single.start()
    until(lambda: queue.n_waiting)
    other.set()
    single.join(SECONDS)
    greedy.join(SECONDS)
    assert order == ["many 0", "single", "many 1"]


def test_the_page_says_how_many_queries_are_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    @contextmanager
    def slot(_: str, tell: Callable[[int], None], *__: object) -> Iterator[None]:
        for n_ahead in (2, 1, 0):
            tell(n_ahead)
        yield

    queue = VisitorQueue(slots=2)
    monkeypatch.setattr(queue, "slot", slot)
    monkeypatch.setattr(query_queue, "QUEUE", queue)
    monkeypatch.setattr(DeltaGenerator, "caption", lambda _, text: said.append(text))
    with query_queue.queue_slot():
        pass
    assert [text.partition("Queued: ")[2] for text in said] == [
        "2 queries ahead.", "1 query ahead.", "You are next.",
    ]  # fmt: skip
    monkeypatch.setattr(queue, "_seconds", 6.0)
    said.clear()
    with query_queue.queue_slot():
        pass
    assert [text.partition("Queued: ")[2] for text in said] == [
        "2 queries ahead, about 9 s.", "1 query ahead, about 6 s.", "You are next, about 3 s.",
    ]  # fmt: skip


def test_the_same_query_of_several_visitors_is_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(query_queue, "ANSWERS", LRUCache(9))
    queue = VisitorQueue(slots=4)
    monkeypatch.setattr(query_queue, "QUEUE", queue)
    monkeypatch.setattr(query_queue, "LOOK_SECONDS", 0.01)
    asked: list[str] = []
    may_end = threading.Event()

    def ask(key: str) -> str:
        asked.append(key)
        assert may_end.wait(SECONDS)
        if key == "broken" and asked.count(key) == 1:
            raise ValueError(key)
        return key.upper()

    with ThreadPoolExecutor(4) as pool:
        answers = [
            pool.submit(query_queue.cached_answer, key, partial(ask, key))
            for key in ("same", "same", "other", "same")
        ]
        until(lambda: sorted(asked) == ["other", "same"] and queue.n_running == 4)
        may_end.set()
        assert [one.result(SECONDS) for one in answers] == ["SAME", "SAME", "OTHER", "SAME"]
        assert sorted(asked) == ["other", "same"]
        may_end.clear()
        answers = [
            pool.submit(query_queue.cached_answer, "broken", partial(ask, "broken"))
            for _ in range(3)
        ]
        until(lambda: queue.n_running == 3)
        may_end.set()
        errors = [one.exception(SECONDS) for one in answers]
    assert sum(error is None for error in errors) == 2, "the next one asks again"
    assert asked.count("broken") == 2
