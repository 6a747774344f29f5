"""Wait for a condition that another thread or process brings about."""

import time
from collections.abc import Callable

SECONDS = 120.0  # a busy machine is slow, not wrong


def until(what: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < end, f"not true after {SECONDS:.0f} s"
        time.sleep(0.005)
