"""Passes of several threads take turns: the smallest share first, then in the order of asking."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from lama_core.models.turns import Turns


def wait_for(n: int, turns: Turns) -> None:
    end = time.monotonic() + 20
    while turns.n_waiting != n:
        assert time.monotonic() < end, "nobody came"
        time.sleep(0.001)


def test_turns_are_given_in_the_order_of_asking() -> None:
    turns = Turns()
    order: list[int] = []

    def ask(number: int) -> None:
        for _ in range(2):  # everybody's second pass comes after everybody's first
            with turns:
                order.append(number)
                time.sleep(0.001)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    with turns:
        for number, thread in enumerate(threads):
            thread.start()
            wait_for(number + 1, turns)
    for thread in threads:
        thread.join()
    assert order[:6] == list(range(6))
    assert sorted(order[6:]) == list(range(6))


def test_a_short_question_comes_before_the_rest_of_a_long_one() -> None:
    turns = Turns()
    order: list[str] = []
    held = threading.Event()

    def ask(name: str, n_passes: int) -> None:
        turns.begin()
        for _ in range(n_passes):
            with turns:
                order.append(name)
                held.set()
                time.sleep(0.05)

    long = [threading.Thread(target=ask, args=("long", 4)) for _ in range(2)]
    for thread in long:
        thread.start()
    held.wait(20)
    while len(order) < 4:
        time.sleep(0.001)
    short = threading.Thread(target=ask, args=("short", 1))
    short.start()
    for thread in (*long, short):
        thread.join()
    assert order.index("short") <= 6  # one pass was going on, and one may have been given
    assert order[-1] == "long"


def test_a_new_question_has_had_nothing() -> None:
    turns = Turns()
    turns.begin()
    with turns:
        time.sleep(0.01)
    assert turns._used[threading.get_ident()][1] > 0
    turns.begin()
    assert turns._used[threading.get_ident()][1] == 0
    turns.end()
    assert turns._used == {}


def test_whoever_has_the_turn_may_take_it_again() -> None:
    turns, got = Turns(), threading.Event()

    def ask() -> None:
        with turns:
            got.set()

    other = threading.Thread(target=ask)
    with turns, turns:
        other.start()
        wait_for(1, turns)
        with turns:
            assert not got.is_set()
    other.join()
    assert got.is_set() and turns.n_waiting == 0


def test_an_interrupted_wait_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    waited: list[str] = []

    def interrupted() -> None:
        with pytest.raises(KeyboardInterrupt), turns:
            waited.append("never")

    def calm() -> None:
        with turns:
            waited.append("calm")

    with turns:
        wait = threading.Event.wait

        def raise_first(self: threading.Event, timeout: float | None = None) -> bool:
            if threading.current_thread() is first:
                wait_for(1, turns)
                raise KeyboardInterrupt
            return wait(self, timeout)

        first = threading.Thread(target=interrupted)
        monkeypatch.setattr(threading.Event, "wait", raise_first)
        first.start()
        first.join()
        monkeypatch.undo()
        assert turns.n_waiting == 0
        second = threading.Thread(target=calm)
        second.start()
        wait_for(1, turns)
    second.join()
    assert waited == ["calm"]


def test_as_many_as_there_are_cores_have_their_turn_at_once() -> None:
    turns = Turns(at_once=2)
    inside = threading.Barrier(2)
    running = []

    def ask() -> None:
        with turns:
            inside.wait(20)  # the other is inside, too
            running.append(turns.n_running)
            inside.wait(20)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert running == [2] * 4
    assert turns.n_running == 0


@pytest.mark.parametrize("family", ("bert-uncased", "smollm2", "gpt2"))
def test_passes_side_by_side_give_what_they_give_alone(
    family: str, tiny_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lama_core.models.transformer.TURNS", Turns(at_once=4))
    model = tiny_model(family)
    rows = [[number % 50 + 5 for number in range(one, one + 3 + one % 7)] for one in range(24)]
    alone = [model.logits([row], [[len(row) - 1]]) for row in rows]
    found: dict[int, Any] = {}

    def ask(first: int) -> None:
        for number in range(first, len(rows), 4):
            found[number] = model.logits([rows[number]], [[len(rows[number]) - 1]])

    for _ in range(5):
        threads = [threading.Thread(target=ask, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, one in enumerate(alone):
            assert found[number].shape == one.shape
            assert torch.allclose(found[number], one, atol=1e-4)
