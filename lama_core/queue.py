"""Queues that limit how many queries, forward passes and loads of models run at the same time.

A queue has a fixed number of slots. A free slot goes to the waiting ticket with the lowest rank; of
equal ranks, to the one that arrived first.

- `VisitorQueue` schedules whole queries: a visitor's second query waits until every other visitor
  with a waiting query has a slot.
- `PassQueue` schedules single forward passes: the next slot goes to the query whose passes took the
  smallest share of the time since the query began. Passes are short, so a short query is answered
  quickly while a long one runs, and a long query isn't blocked by many short ones.
- `LoadQueue` schedules loads of models, one at a time: the next slot goes to the address whose last
  load began longest ago. A query waits a limited time for a load.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from lama_core.errors import UserError

MAX_WAITING = 60
# Maximum of one address's waiting queries, and places reserved for addresses without waiting ones.
MAX_OF_ADDRESS = 30
RESERVED = 20
SLOTS_FOR_OTHERS = 2  # slots that one address can't hold
LOOK_SECONDS = 0.25
ROOM_SECONDS = 10.0
MAX_ADDRESSES = 1000  # that a LoadQueue remembers

Loaded = TypeVar("Loaded")


def nothing() -> None:
    """Do nothing."""


@dataclass(eq=False)
class Ticket:
    """A place in a queue.

    Attributes:
        who: The visitor or thread.
        address: The visitor's network address; "" has no limits.
        since: Start of the query, in seconds of `time.monotonic`.
        granted: Set once the ticket has a slot.
    """

    who: Hashable
    since: float
    address: str = ""
    granted: threading.Event = field(default_factory=threading.Event)


class Queue:
    """A fixed number of slots, and the tickets that hold one or wait for one."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._mutex = threading.Lock()
        self._waiting: list[Ticket] = []
        self._running: list[Ticket] = []

    @property
    def n_waiting(self) -> int:
        """Number of tickets that wait for a slot."""
        return len(self._waiting)

    @property
    def n_running(self) -> int:
        """Number of tickets that hold a slot."""
        return len(self._running)

    def _rank(self, ticket: Ticket) -> tuple[float, ...]:
        """Return the ticket's rank; the lowest gets the next slot."""
        raise NotImplementedError

    def _may_run(self, ticket: Ticket) -> bool:
        """Whether the ticket may get a free slot."""
        return True

    @contextmanager
    def _slot(
        self,
        ticket: Ticket,
        wait: Callable[[Ticket], object] = lambda queued: queued.granted.wait(),
    ) -> Iterator[None]:
        """Wait for a slot and hold it in the block; an exception in `wait` dequeues the ticket.

        wait: Returns once the ticket is granted.
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
        while len(self._running) < self.slots:
            first = min(filter(self._may_run, self._waiting), key=self._rank, default=None)
            if first is None:
                return
            self._waiting.remove(first)
            self._running.append(first)
            first.granted.set()


class VisitorQueue(Queue):
    """Slots for whole queries, shared fairly between addresses, then between visitors."""

    def __init__(self, slots: int, max_waiting: int = MAX_WAITING) -> None:
        super().__init__(slots)
        self.max_waiting = max_waiting
        self._seconds = math.nan  # that recent queries held a slot, their moving average

    def seconds_to_wait(self, n_ahead: int) -> float:
        """Return about how many seconds a query with so many ahead waits; nan before the first."""
        return self._seconds * (n_ahead + 1) / self.slots

    def _rank(self, ticket: Ticket) -> tuple[float, ...]:
        of_visitor = sum(running.who == ticket.who for running in self._running)
        return self._n_slots(ticket.address), of_visitor, ticket.since

    def _n_slots(self, address: str) -> int:
        return sum(running.address == address for running in self._running)

    def _may_run(self, ticket: Ticket) -> bool:
        most = max(1, self.slots - SLOTS_FOR_OTHERS)
        return not ticket.address or self._n_slots(ticket.address) < most

    def _wait_for_room(self, address: str) -> None:
        """Wait up to ROOM_SECONDS until a query of this address may wait, else raise UserError.

        A client that asks again whenever it is refused would otherwise keep the CPU busy.
        """
        until = time.monotonic() + ROOM_SECONDS
        while True:
            try:
                with self._mutex:
                    self._check_room(address)
                return
            except UserError:
                if not address or time.monotonic() > until:
                    raise
            time.sleep(LOOK_SECONDS)

    def _check_room(self, address: str) -> None:
        """Raise UserError if no further query of this address may wait."""
        n_waiting = self.n_waiting
        n_own = sum(waiting.address == address for waiting in self._waiting) if address else 0
        reserved = RESERVED if n_own else 0
        if n_own >= MAX_OF_ADDRESS:
            raise UserError(
                f"{n_own} queries from your network address are waiting, the maximum. Try again in "
                "a minute."
            )
        if n_waiting >= self.max_waiting - reserved:
            raise UserError(
                f"The queue is full: {n_waiting} queries are waiting. Try again in a minute."
            )

    @contextmanager
    def slot(
        self,
        who: str,
        tell: Callable[[int], None],
        since: float | None = None,
        address: str = "",
    ) -> Iterator[None]:
        """Wait for a slot and hold it during the block.

        Args:
            who: The visitor. Each visitor's first query ranks before any visitor's second.
            address: The visitor's network address, an IPv4 address or an IPv6 network. Each
                address's first query ranks before any address's second. "" has no limits.
            tell: Receives the number of queries ahead whenever it changes; an exception from `tell`
                removes this query from the queue.
            since: When the page was requested (`time.monotonic`). A page that queries several
                models gives it, so that all its queries rank before those of later visitors.
                Default: now.

        Raises:
            UserError: If the queue is full, or has too many queries of this address.
        """

        def wait(ticket: Ticket) -> None:
            reported = None
            while not ticket.granted.is_set():
                with self._mutex:
                    rank = self._rank(ticket)
                    n_ahead = sum(self._rank(waiting) < rank for waiting in self._waiting)
                if n_ahead != reported:
                    reported = n_ahead
                    tell(n_ahead)
                ticket.granted.wait(LOOK_SECONDS)

        self._wait_for_room(address)
        since = time.monotonic() if since is None else since
        with self._slot(Ticket(who, since, address), wait):
            start = time.monotonic()
            try:
                yield
            finally:
                held = time.monotonic() - start
                old = held if math.isnan(self._seconds) else self._seconds
                self._seconds = old + (held - old) / self.slots


class PassQueue(Queue):
    """Slots for forward passes, shared fairly between queries; each query has its own thread."""

    def __init__(self, slots: int = 1) -> None:
        super().__init__(slots)
        self._thread = threading.local()  # has_slot: whether this thread holds a slot
        self._used: dict[Hashable, tuple[float, float]] = {}  # thread -> start, seconds used

    def _rank(self, ticket: Ticket) -> tuple[float, ...]:
        start, used = self._used.get(ticket.who, (ticket.since, 0.0))
        return (used / max(time.monotonic() - start, 1e-3),)

    @contextmanager
    def query(self, check: Callable[[], object] = nothing) -> Iterator[None]:
        """Count this thread's passes during the block as those of a new query.

        check: Called before each pass; an exception from it ends the query.
        """
        me = threading.get_ident()
        self._used[me], self._thread.check = (time.monotonic(), 0.0), check
        try:
            yield
        finally:
            self._used.pop(me, None)
            self._thread.check = nothing

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait for a slot and hold it during the block; a nested call shares the thread's slot."""
        if getattr(self._thread, "has_slot", False):
            yield
            return
        getattr(self._thread, "check", nothing)()
        me = threading.get_ident()
        with self._slot(Ticket(me, time.monotonic())):
            self._thread.has_slot, granted = True, time.monotonic()
            try:
                yield
            finally:
                self._thread.has_slot = False
                if me in self._used:
                    start, used = self._used[me]
                    self._used[me] = (start, used + time.monotonic() - granted)


class LoadQueue(Queue):
    """One slot for loading models, shared fairly between addresses."""

    def __init__(self) -> None:
        super().__init__(1)
        self._last: dict[str, float] = {}  # address -> when its last load began, oldest first

    def _rank(self, ticket: Ticket) -> tuple[float, ...]:
        return self._last.get(ticket.address, -math.inf), ticket.since

    def run(
        self,
        load: Callable[[], Loaded],
        is_loaded: Callable[[], bool],
        *,
        name: str,
        address: str,
        seconds: float,
    ) -> Loaded:
        """Wait for the slot and load a model, both in a new thread, and return the model.

        A load that has begun continues after the time limit, so that a later query finds the model
        loaded; a load that hasn't begun is removed from the queue.

        Args:
            load: Loads the model; returns it immediately if it is loaded.
            is_loaded: Whether the model is already loaded, so that the query doesn't need the slot.
            name: The model's name in the error.
            address: The visitor's network address.
            seconds: The time limit.

        Raises:
            UserError: If the model isn't loaded within the time limit, or `load` raises it.
        """
        outcome: Future[Loaded] = Future()
        since = time.monotonic()
        ticket = Ticket(outcome, since, address)
        threading.Thread(target=self._work, args=(ticket, outcome, load), daemon=True).start()
        while True:
            try:
                return outcome.result(LOOK_SECONDS)
            except TimeoutError:
                if outcome.done():  # the load itself raised it
                    raise
            if is_loaded() and outcome.cancel():
                return load()
            if time.monotonic() - since >= seconds:
                outcome.cancel()
                raise UserError(
                    f"{name} wasn't loaded within {seconds:.0f} seconds, the maximum here. Try "
                    "again in a minute."
                )

    def _work(self, ticket: Ticket, outcome: Future[Loaded], load: Callable[[], Loaded]) -> None:
        def wait(queued: Ticket) -> None:
            while not queued.granted.wait(LOOK_SECONDS):
                if outcome.cancelled():
                    raise CancelledError

        with suppress(CancelledError), self._slot(ticket, wait):
            if not outcome.set_running_or_notify_cancel():
                return
            self._last.pop(ticket.address, None)
            self._last[ticket.address] = time.monotonic()
            if len(self._last) > MAX_ADDRESSES:
                del self._last[next(iter(self._last))]
            try:
                outcome.set_result(load())
            except BaseException as error:  # noqa: BLE001 - the query's thread raises it
                outcome.set_exception(error)


# One queue per process: its models share the CPU cores.
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
PASSES = PassQueue(CORES)
