"""One forward pass at a time: the question that has had the least share of the processor is next.

Passes are short, so that a long question lets the others in between its own: a visitor's short one
is answered at once, whoever rescores a thousand words, and none of them holds the processor. What
has waited for long has had a small share, so that no long one waits for ever, either.
"""

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


class Turns:
    """A lock; of those who wait, whoever has had it for the smallest part of the time is next.

    The time since `begin`. Of equals, who came first. Whoever has it may take it again.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._line: list[_Waiting] = []
        self._owner: int | None = None
        self._depth = 0
        self._since = 0.0
        self._used: dict[int, tuple[float, float]] = {}  # thread -> begun, used

    @property
    def n_waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._line)

    def begin(self) -> None:
        """A new question begins in this thread: it has had nothing yet."""
        with self._mutex:
            self._used[threading.get_ident()] = (time.monotonic(), 0.0)

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._mutex:
            if self._owner == me:
                self._depth += 1
                return
            if self._owner is None:
                self._take(me)
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
        with self._mutex:
            self._depth -= 1
            if self._depth or self._owner is None:
                return
            now = time.monotonic()
            begun, used = self._used.get(self._owner, (self._since, 0.0))
            self._used[self._owner] = (begun, used + now - self._since)
            self._owner = None
            if self._line:
                chosen = min(self._line, key=lambda one: one.share(now))  # of equals the first
                self._line.remove(chosen)
                self._take(chosen.thread)
                chosen.turn.set()

    def _take(self, thread: int) -> None:
        self._owner, self._depth, self._since = thread, 1, time.monotonic()


# Of this process: its models share one processor.
TURNS = Turns()
