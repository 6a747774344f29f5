"""A forward pass a core at a time: the question that has had the least share of it comes next.

Passes are short, so that a long question lets the others in between its own: a visitor's short one
is answered at once, whoever rescores a thousand words, and none of them holds the processor. What
has waited for long has had a small share, so that no long one waits for ever, either.
"""

import os
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType


@dataclass(eq=False)
class _Waiting:
    """A thread that waits. begun: when its question began; used: seconds that it has had since."""

    thread: int
    begun: float
    used: float
    turn: threading.Event = field(default_factory=threading.Event)

    def share(self, now: float) -> float:
        """Which part of the time it has had its turn for."""
        return self.used / max(now - self.begun, 1e-3)


@dataclass
class _Having:
    """A thread that has its turn. since: when it began; depth: how often it has taken it."""

    since: float
    depth: int = 1


class Turns:
    """A lock for a few at a time; of those who wait, who has had it for the smallest part is next.

    The part of the time since `begin`. Of equals, who came first. Whoever has it may take it again.
    """

    def __init__(self, at_once: int = 1) -> None:
        self.at_once = at_once
        self._mutex = threading.Lock()
        self._line: list[_Waiting] = []
        self._having: dict[int, _Having] = {}
        self._used: dict[int, tuple[float, float]] = {}  # thread -> begun, used

    @property
    def n_waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._line)

    @property
    def n_running(self) -> int:
        """How many have their turn."""
        return len(self._having)

    def begin(self) -> None:
        """A new question begins in this thread: it has had nothing yet."""
        with self._mutex:
            self._used[threading.get_ident()] = (time.monotonic(), 0.0)

    def end(self) -> None:
        """The question of this thread is answered: nothing is kept of it."""
        with self._mutex:
            self._used.pop(threading.get_ident(), None)

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._mutex:
            if me in self._having:
                self._having[me].depth += 1
                return
            if len(self._having) < self.at_once:
                self._having[me] = _Having(time.monotonic())
                return
            mine = _Waiting(me, *self._used.get(me, (time.monotonic(), 0.0)))
            self._line.append(mine)
        try:
            mine.turn.wait()
        except BaseException:  # interrupted: what waits behind must not wait for this one
            with self._mutex:
                if mine in self._line:
                    self._line.remove(mine)
                    raise
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        me = threading.get_ident()
        with self._mutex:
            mine = self._having[me]
            mine.depth -= 1
            if mine.depth:
                return
            del self._having[me]
            now = time.monotonic()
            if me in self._used:
                begun, used = self._used[me]
                self._used[me] = (begun, used + now - mine.since)
            if self._line:
                chosen = min(self._line, key=lambda one: one.share(now))  # of equals the first
                self._line.remove(chosen)
                self._having[chosen.thread] = _Having(now)
                chosen.turn.set()


# Of this process: its models share its cores.
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
TURNS = Turns(CORES)
