"""Queues for what only a few can use at a time: queries of visitors, and passes through a model.

A queue has slots. A free slot goes at once to the ticket that ranks first among those that wait; of
equals, to the one that came first.

- `VisitorQueue`: whole queries, one of each visitor before a second of anybody.
- `PassQueue`: single forward passes, each next one to the query that had its slot for the smallest
  share of the time since it began. Passes are short, so a short query is answered at once, whoever
  rescores a thousand words; and what has waited long had a small share, so no long one starves.
"""

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lama_core.errors import UserError

MAX_WAITING = 60
LOOK_SECONDS = 0.25


@dataclass(eq=False)
class Ticket:
    """A place in a queue. who: a visitor or a thread. since: when the query began, in seconds."""

    who: Hashable
    since: float
    granted: threading.Event = field(default_factory=threading.Event)


class Queue:
    """A number of slots, and the tickets that have one or wait for one."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._mutex = threading.Lock()
        self._waiting: list[Ticket] = []
        self._running: list[Ticket] = []

    @property
    def n_waiting(self) -> int:
        """How many wait for a slot."""
        return len(self._waiting)

    @property
    def n_running(self) -> int:
        """How many have a slot."""
        return len(self._running)

    def _rank(self, ticket: Ticket) -> tuple[float, ...]:
        """By which a slot is given; the lowest first."""
        raise NotImplementedError

    @contextmanager
    def _slot(
        self, ticket: Ticket, wait: Callable[[Ticket], object] = lambda one: one.granted.wait()
    ) -> Iterator[None]:
        """Wait for a slot and have it in the block. wait: returns once the ticket is granted.

        What interrupts the waiting leaves the queue, too.
        """
        with self._mutex:
            self._waiting.append(ticket)
            self._grant()
        try:
            wait(ticket)
            yield
        finally:
            with self._mutex:
                (self._running if ticket.granted.is_set() else self._waiting).remove(ticket)
                self._grant()

    def _grant(self) -> None:
        while self._waiting and len(self._running) < self.slots:
            first = min(self._waiting, key=self._rank)
            self._waiting.remove(first)
            self._running.append(first)
            first.granted.set()


class VisitorQueue(Queue):
    """Slots for whole queries, shared between visitors."""

    def __init__(self, slots: int, max_waiting: int = MAX_WAITING) -> None:
        super().__init__(slots)
        self.max_waiting = max_waiting

    def _rank(self, ticket: Ticket) -> tuple[float, ...]:
        return sum(one.who == ticket.who for one in self._running), ticket.since

    @contextmanager
    def slot(
        self, who: str, tell: Callable[[int], None], since: float | None = None
    ) -> Iterator[None]:
        """Wait for a slot and have it in the block.

        who: of one visitor, one query at a time comes before other visitors'. tell: gets the number
        of queries before this one whenever it changes; what it raises ends the waiting. since: when
        the page was requested (`time.monotonic`): its second model comes before later visitors'
        first.
        Raises UserError if too many wait already.
        """

        def wait(ticket: Ticket) -> None:
            told = None
            while not ticket.granted.is_set():
                before = self._n_before(ticket)
                if before != told:
                    told = before
                    tell(before)
                ticket.granted.wait(LOOK_SECONDS)

        if self.n_waiting >= self.max_waiting:
            raise UserError(
                f"{self.n_waiting} questions wait for a model already: ask again in a minute."
            )
        with self._slot(Ticket(who, time.monotonic() if since is None else since), wait):
            yield

    def _n_before(self, ticket: Ticket) -> int:
        with self._mutex:
            own = self._rank(ticket)
            return sum(self._rank(one) < own for one in self._waiting)


class PassQueue(Queue):
    """Slots for forward passes, shared between queries, each in a thread of its own."""

    def __init__(self, slots: int = 1) -> None:
        super().__init__(slots)
        self._here = threading.local()  # of each thread: whether it has a slot
        self._used: dict[Hashable, tuple[float, float]] = {}  # thread -> begun, seconds used

    def _rank(self, ticket: Ticket) -> tuple[float, ...]:
        begun, used = self._used.get(ticket.who, (ticket.since, 0.0))
        return (used / max(time.monotonic() - begun, 1e-3),)

    @contextmanager
    def query(self) -> Iterator[None]:
        """In the block, this thread's passes are those of a new query, which had no share yet."""
        me = threading.get_ident()
        self._used[me] = (time.monotonic(), 0.0)
        try:
            yield
        finally:
            self._used.pop(me, None)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait for a slot and have it in the block; a thread that has one keeps it."""
        if getattr(self._here, "has_slot", False):
            yield
            return
        me = threading.get_ident()
        with self._slot(Ticket(me, time.monotonic())):
            self._here.has_slot, start = True, time.monotonic()
            try:
                yield
            finally:
                self._here.has_slot = False
                if me in self._used:
                    begun, used = self._used[me]
                    self._used[me] = (begun, used + time.monotonic() - start)


# Of this process: its models share its cores.
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
PASSES = PassQueue(CORES)
