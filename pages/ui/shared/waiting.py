"""The line in which questions to models wait, and the answers that are kept.

A few questions are answered at a time, and share the processor by the pass (`models.turns`); the
others wait in the order in which their pages were asked for, one of each visitor before a second of
anybody. Whoever waits sees how many are before them, and leaves the line by going elsewhere.
"""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lama_core.errors import UserError
from lama_core.models.devices import wanted_device
from lama_core.models.turns import TURNS

AT_ONCE = 8
MAX_WAITING = 60
MAX_KEPT = 2000
LOOK_SECONDS = 0.25

Answer = TypeVar("Answer")


class _NotKeptError(Exception):
    """An answer isn't kept, and none was to be asked for."""


@dataclass(frozen=True, eq=False)
class _Ticket:
    """Somebody's place in the line."""

    who: str
    since: float


class Line:
    """Who waits, in which order, and who is being answered."""

    def __init__(self, at_once: int = AT_ONCE, max_waiting: int = MAX_WAITING) -> None:
        self.at_once = at_once
        self.max_waiting = max_waiting
        self._changed = threading.Condition()
        self._waiting: list[_Ticket] = []
        self._answered: Counter[str] = Counter()

    @contextmanager
    def place(
        self, who: str, tell: Callable[[int], None], since: float | None = None
    ) -> Iterator[None]:
        """Wait for one's turn, have it in the block.

        who: of one visitor, one question at a time comes before other visitors'. tell: is told how
        many are before, whenever that changes; what it raises ends the waiting. since: when the
        page was asked for (`time.monotonic`): its second model comes before later visitors' first.
        Raises UserError if too many wait already.
        """
        ticket = _Ticket(who, time.monotonic() if since is None else since)
        with self._changed:
            if len(self._waiting) >= self.max_waiting:
                raise UserError(
                    f"{len(self._waiting)} questions wait for a model already: ask again in a "
                    "minute."
                )
            self._waiting.append(ticket)
        try:
            self._wait(ticket, tell)
        finally:
            with self._changed:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._answered[who] -= 1
                self._changed.notify_all()

    def _wait(self, ticket: "_Ticket", tell: Callable[[int], None]) -> None:
        told = None
        while True:
            with self._changed:
                before = self._n_before(ticket)
                if not before and self._answered.total() < self.at_once:
                    self._answered[ticket.who] += 1
                    return
            if before != told:
                told = before
                tell(before)
            with self._changed:
                self._changed.wait(LOOK_SECONDS)

    def _n_before(self, ticket: "_Ticket") -> int:
        """How many of those who wait come first: fewer of theirs are answered, or they came."""
        own = (self._answered[ticket.who], ticket.since)
        return sum((self._answered[one.who], one.since) < own for one in self._waiting)


class Kept:
    """The last answers, each under everything it depends on; the one unused longest goes first."""

    def __init__(self, n_max: int = MAX_KEPT) -> None:
        self.n_max = n_max
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Any:
        """The answer, or None."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def keep(self, key: Hashable, answer: Answer) -> Answer:
        """The answer itself, kept from now on."""
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > self.n_max:
                self._answers.popitem(last=False)
        return answer


LINE, KEPT = Line(), Kept()
_page = threading.local()  # a page is drawn by a thread of its own


def answered(key: Hashable, ask: Callable[[], Answer]) -> Answer:
    """The answer that is kept under `key`, else what `ask` gives once it is this visitor's turn.

    Answers of other devices are kept apart: each says where it was computed.
    """
    key = (wanted_device(), key)
    found = KEPT.find(key)
    if found is None:
        if not getattr(_page, "asks", True):
            raise _NotKeptError
        with turn():
            found = KEPT.find(key)  # somebody before may have asked the same
            if found is None:
                found = KEPT.keep(key, ask())
    return cast(Answer, found)


def if_kept(find: Callable[[], Answer]) -> Answer | None:
    """What `find` gives where all answers that it takes are kept; else None: nothing is asked."""
    _page.asks = False
    try:
        return find()
    except _NotKeptError:
        return None
    finally:
        _page.asks = True


def step_back() -> None:
    """Further questions of this page stand behind those that wait by now.

    For what goes on asking: a page's questions come before those of pages that were asked for
    later, which is right for a few.
    """
    _page.since = time.monotonic()


@contextmanager
def turn() -> Iterator[None]:
    """This visitor's turn; while it is others', a line on the page says how many they are."""
    context = get_script_run_ctx()
    box = st.empty()

    def tell(n_before: int) -> None:
        others = f"{n_before} questions are" if n_before != 1 else "1 question is"
        text = f"{others} before this one." if n_before else "This question is the next."
        box.caption(f":material/hourglass_top: Others are asking, too. {text}")

    _page.since = since = getattr(_page, "since", time.monotonic())
    with LINE.place(context.session_id if context else "", tell, since):
        box.empty()
        TURNS.begin()
        try:
            yield
        finally:
            TURNS.end()
