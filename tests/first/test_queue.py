"""Queues: passes by the smallest share; visitors in order, fairly, bounded, without a trace."""

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from until import SECONDS, until

from lama_core.errors import UserError
from lama_core.queue import LoadQueue, PassQueue, VisitorQueue


def wait_for(n: int, passes: PassQueue) -> None:
    until(lambda: passes.n_waiting == n)


def test_a_short_question_comes_before_the_rest_of_a_long_one() -> None:
    passes = PassQueue()
    order: list[str] = []
    may_end = threading.Semaphore(0)

    def ask(name: str, n_passes: int) -> None:
        with passes.query():
            for _ in range(n_passes):
                with passes.slot():
                    order.append(name)
                    may_end.acquire()

    first, second = (threading.Thread(target=ask, args=("long", 4)) for _ in range(2))
    short = threading.Thread(target=ask, args=("short", 1))
    first.start()
    until(lambda: len(order) == 1)
    second.start()
    wait_for(1, passes)
    may_end.release(3)  # both long ones have had a pass, and the fourth pass is going on
    until(lambda: len(order) == 4)
    wait_for(1, passes)
    short.start()
    wait_for(2, passes)
    may_end.release(6)
    for thread in (first, second, short):
        thread.join()
    assert order == ["long"] * 4 + ["short"] + ["long"] * 4


def test_an_interrupted_wait_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = PassQueue()
    waited: list[str] = []

    def interrupted() -> None:
        with pytest.raises(KeyboardInterrupt), passes.slot():
            waited.append("never")

    def calm() -> None:
        with passes.slot():
            waited.append("calm")

    with passes.slot():
        wait = threading.Event.wait

        def raise_first(self: threading.Event, timeout: float | None = None) -> bool:
            if threading.current_thread() is first:
                wait_for(1, passes)
                raise KeyboardInterrupt
            return wait(self, timeout)

        first = threading.Thread(target=interrupted)
        monkeypatch.setattr(threading.Event, "wait", raise_first)
        first.start()
        first.join()
        monkeypatch.undo()
        assert passes.n_waiting == 0
        second = threading.Thread(target=calm)
        second.start()
        wait_for(1, passes)
    second.join()
    assert waited == ["calm"]


class Visitor(threading.Thread):
    """Asks one question, and is answered until it is let go."""

    def __init__(self, queue: VisitorQueue, who: str) -> None:
        super().__init__(daemon=True)
        self.queue, self.who = queue, who
        self.told: list[int] = []
        self.answered, self.done = threading.Event(), threading.Event()

    def run(self) -> None:
        with self.queue.slot(self.who, self.told.append):
            self.answered.set()
            assert self.done.wait(SECONDS)


def come(queue: VisitorQueue, *names: str) -> list[Visitor]:
    found = []
    for name in names:
        found.append(Visitor(queue, name))
        found[-1].start()
        until(lambda: bool(found[-1].told) or found[-1].answered.is_set())
    return found


def leave(*visitors: Visitor) -> None:
    for one in visitors:
        one.done.set()
        one.join()


def test_questions_are_answered_in_order_and_whoever_waits_is_told() -> None:
    queue = VisitorQueue(slots=2)
    first, second, third, fourth = come(queue, "a", "b", "c", "d")
    assert first.answered.is_set() and second.answered.is_set()
    assert (third.told, fourth.told) == ([0], [1])
    leave(first)
    until(third.answered.is_set)
    until(lambda: fourth.told == [1, 0])
    assert not fourth.answered.is_set()
    leave(second)
    until(fourth.answered.is_set)
    leave(third, fourth)


def test_one_visitor_with_many_questions_does_not_hold_the_others() -> None:
    queue = VisitorQueue(slots=2)
    greedy = come(queue, "a", "a", "a", "a")
    (other,) = come(queue, "b")
    assert other.told == [0]  # before the two of "a" that came earlier
    leave(greedy[0])
    until(other.answered.is_set)
    assert not greedy[2].answered.is_set()
    leave(other, greedy[1])
    until(greedy[2].answered.is_set)
    leave(*greedy[2:])


def test_whoever_leaves_the_queue_is_not_waited_for() -> None:
    queue = VisitorQueue(slots=1)
    (first,) = come(queue, "a")

    def go_away(n_before: int) -> None:
        raise RuntimeError("another page")

    with pytest.raises(RuntimeError), queue.slot("b", go_away):
        pytest.fail("it was not its turn")
    (third,) = come(queue, "c")
    assert third.told == [0]
    leave(first)
    until(third.answered.is_set)
    leave(third)


def test_the_wait_is_that_of_recent_questions_shared_by_the_slots() -> None:
    queue = VisitorQueue(slots=2)
    assert math.isnan(queue.seconds_to_wait(0))
    times = iter([0.0, 0.0, 8.0, 8.0, 8.0, 12.0])  # asked, begun, ended: held 8 s, then 4 s
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lama_core.queue.time.monotonic", lambda: next(times))
        for expected in (8.0, 6.0):
            _ask(queue, "a", 0.0, [])
            assert queue.seconds_to_wait(1) == expected


def test_the_queue_is_bounded() -> None:
    queue = VisitorQueue(slots=1, max_waiting=2)
    visitors = come(queue, "a", "b", "c")
    with pytest.raises(UserError, match="Try again in a minute"), queue.slot("d", lambda n: None):
        pytest.fail("it was full")
    for one in visitors:
        one.done.set()


def _ask(queue: VisitorQueue, who: str, since: float, order: list[str]) -> None:
    with queue.slot(who, lambda n: None, since):
        order.append(who)


@pytest.mark.parametrize("family", ("bert-uncased", "smollm2", "gpt2"))
def test_passes_side_by_side_give_what_they_give_alone(
    family: str, tiny_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lama_core.models.hf.transformer.PASSES", PassQueue(slots=4))
    model = tiny_model(family)
    rows = [[number % 50 + 5 for number in range(one, one + 3 + one % 7)] for one in range(24)]
    alone = [model.logits([row], [[len(row) - 1]]) for row in rows]
    found: dict[int, Any] = {}

    def ask(first: int) -> None:
        for number in range(first, len(rows), 4):
            found[number] = model.logits([rows[number]], [[len(rows[number]) - 1]])

    for _ in range(5):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(4)))
        for number, one in enumerate(alone):
            assert found[number].shape == one.shape
            assert torch.allclose(found[number], one, atol=1e-4)


class SlowLoad:
    """A model whose load ends when `finish` is set."""

    def __init__(self) -> None:
        self.begun, self.finish, self.n_loads = threading.Event(), threading.Event(), 0

    def __call__(self) -> str:
        self.n_loads += 1
        self.begun.set()
        assert self.finish.wait(SECONDS)
        return "model"

    def run(self, loads: LoadQueue, address: str = "10.0.0.1", seconds: float = SECONDS) -> str:
        """Load the model in its turn."""
        loaded = self.finish.is_set
        return loads.run(self, loaded, name="Big", address=address, seconds=seconds)


def test_a_query_waits_a_limited_time_for_a_load_which_continues() -> None:
    loads, load = LoadQueue(), SlowLoad()
    with pytest.raises(UserError, match=r"^Big wasn't loaded within 1 seconds, the maximum here"):
        load.run(loads, seconds=1)
    assert loads.n_running == 1
    waiting = SlowLoad()
    with pytest.raises(UserError, match="within 0 seconds"):
        waiting.run(loads, seconds=0)
    load.finish.set()
    assert load.run(loads) == "model"
    until(lambda: not (loads.n_running or loads.n_waiting))
    assert waiting.n_loads == 0, "it had left the queue"


def test_an_error_of_a_load_reaches_its_query_and_frees_the_queue() -> None:
    loads = LoadQueue()

    def fail() -> str:
        raise UserError("damaged")

    options: Any = {"name": "Big", "address": "", "seconds": SECONDS}
    with pytest.raises(UserError, match="damaged"):
        loads.run(fail, lambda: False, **options)
    assert loads.run(lambda: "model", lambda: False, **options) == "model"
