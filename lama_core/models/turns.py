"""One forward pass at a time, in the order in which they were asked for.

Passes are short, so that a long request lets the others in between its own: thirty visitors share
the processor by the pass, and none of them holds it.
"""

import threading
from collections import deque
from types import TracebackType


class Turns:
    """A lock that is given in the order of asking; whoever has it may take it again."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._line: deque[tuple[int, threading.Event]] = deque()
        self._owner: int | None = None
        self._depth = 0

    @property
    def n_waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._line)

    def __enter__(self) -> None:
        me, turn = threading.get_ident(), threading.Event()
        with self._mutex:
            if self._owner in (None, me):
                self._owner, self._depth = me, self._depth + 1
                return
            self._line.append((me, turn))
        try:
            turn.wait()
        except BaseException:  # interrupted: what waits behind must not wait for this one
            with self._mutex:
                if (me, turn) in self._line:
                    self._line.remove((me, turn))
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
            if self._depth:
                return
            self._owner = None
            if self._line:
                self._owner, turn = self._line.popleft()
                self._depth = 1
                turn.set()


# Of this process: its models share one processor.
TURNS = Turns()
