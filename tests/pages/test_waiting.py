"""The line of questions: in order, fair between visitors, bounded, and left without a trace."""

import threading
import time
from collections.abc import Callable

import pytest

from lama_core.errors import UserError
from pages.ui.shared import waiting
from pages.ui.shared.waiting import Kept, Line


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.002)


class Visitor(threading.Thread):
    """Asks one question, and is answered until it is let go."""

    def __init__(self, line: Line, who: str) -> None:
        super().__init__(daemon=True)
        self.line, self.who = line, who
        self.told: list[int] = []
        self.answered, self.done = threading.Event(), threading.Event()

    def run(self) -> None:
        with self.line.place(self.who, self.told.append):
            self.answered.set()
            assert self.done.wait(20)


def come(line: Line, *names: str) -> list[Visitor]:
    found = []
    for name in names:
        found.append(Visitor(line, name))
        found[-1].start()
        until(lambda: bool(found[-1].told) or found[-1].answered.is_set())
    return found


def leave(*visitors: Visitor) -> None:
    for one in visitors:
        one.done.set()
        one.join()


def test_questions_are_answered_in_order_and_whoever_waits_is_told() -> None:
    line = Line(at_once=2)
    first, second, third, fourth = come(line, "a", "b", "c", "d")
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
    line = Line(at_once=2)
    greedy = come(line, "a", "a", "a", "a")
    (other,) = come(line, "b")
    assert other.told == [0]  # before the two of "a" that came earlier
    leave(greedy[0])
    until(other.answered.is_set)
    assert not greedy[2].answered.is_set()
    leave(other, greedy[1])
    until(greedy[2].answered.is_set)
    leave(*greedy[2:])


def test_whoever_leaves_the_line_is_not_waited_for() -> None:
    line = Line(at_once=1)
    (first,) = come(line, "a")

    def go_away(n_before: int) -> None:
        raise RuntimeError("another page")

    with pytest.raises(RuntimeError), line.place("b", go_away):
        pytest.fail("it was not its turn")
    (third,) = come(line, "c")
    assert third.told == [0]
    leave(first)
    until(third.answered.is_set)
    leave(third)


def test_a_question_that_fails_makes_room() -> None:
    line = Line(at_once=1)
    with pytest.raises(ValueError, match="broken"), line.place("a", lambda n: None):
        raise ValueError("broken")
    leave(*come(line, "b"))


def test_the_line_is_bounded() -> None:
    line = Line(at_once=1, max_waiting=2)
    visitors = come(line, "a", "b", "c")
    with pytest.raises(UserError, match="ask again in a minute"), line.place("d", lambda n: None):
        pytest.fail("it was full")
    for one in visitors:
        one.done.set()


def test_the_answer_that_was_not_looked_at_for_longest_goes_first() -> None:
    kept = Kept(n_max=2)
    kept.keep("a", 1)
    kept.keep("b", 2)
    assert kept.find("a") == 1
    kept.keep("c", 3)
    assert (kept.find("a"), kept.find("b"), kept.find("c")) == (1, None, 3)


def test_only_what_is_kept_is_had_without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "KEPT", Kept())
    asked: list[str] = []

    def ask(key: str) -> str:
        return waiting.answered(key, lambda: asked.append(key) or key.upper())

    assert waiting.if_kept(lambda: ask("a")) is None and not asked
    assert ask("a") == "A"
    assert waiting.if_kept(lambda: ask("a")) == "A"
    assert waiting.if_kept(lambda: ask("a") + ask("b")) is None
    assert ask("b") == "B", "asking goes on afterwards"
    assert asked == ["a", "b"]
    with pytest.raises(ValueError, match="none"):
        waiting.if_kept(lambda: int("none"))
    assert ask("c") == "C"


def test_whoever_steps_back_waits_behind_those_who_came_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = Line(at_once=1)
    monkeypatch.setattr(waiting, "LINE", line)
    order: list[str] = []

    def many() -> None:
        for number in range(2):
            waiting.step_back()
            with waiting.turn():
                order.append(f"many {number}")
                if not number:
                    begun.set()
                    assert other.is_set() or other.wait(20)

    begun, other = threading.Event(), threading.Event()
    greedy = threading.Thread(target=many)
    greedy.start()
    assert begun.wait(20)
    (single,) = come(line, "single")
    other.set()
    until(single.answered.is_set)
    assert order == ["many 0"]
    leave(single)
    greedy.join()
    assert order == ["many 0", "many 1"]


def test_a_pages_second_question_comes_before_a_later_pages_first() -> None:
    line = Line(at_once=1)
    (first,) = come(line, "a")
    (later,) = come(line, "b")
    order: list[str] = []
    earlier = threading.Thread(target=lambda: _ask(line, "c", 0.0, order))
    earlier.start()
    until(lambda: later.told == [0, 1])
    leave(first)
    earlier.join()
    assert order == ["c"]
    until(later.answered.is_set)
    leave(later)


def _ask(line: Line, who: str, since: float, order: list[str]) -> None:
    with line.place(who, lambda n: None, since):
        order.append(who)
