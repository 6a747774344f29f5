"""Benchmarks: every claim of speed, measured next to an alternative and to a limit in one run.

Machines are shared and noisy, so the ratios count, not the seconds. Each benchmark is a module
with `run(**options) -> list[BenchRow]` and a row in `bench.table.BENCHMARKS`.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from lama_core.paths import IMPORT_ROOT

BOUND = "the bound this project sets itself"

Way = Callable[[], object]


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One measurement.

    what: the thing measured. unit: of all three figures, such as `queries/s` or `s`.
    ours: this library. peer: an alternative. limit: what can't be beaten, such as the bare
    forward passes. All measured in the same run; None where there is none.
    """

    what: str
    unit: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    limit: float | None = None
    limit_name: str = ""

    def to_json(self) -> dict[str, Any]:
        """The row with its two ratios, null where there is nothing to compare."""
        ratios = {
            "ours_to_peer": self.ours / self.peer if self.peer else None,
            "ours_to_limit": self.ours / self.limit if self.limit else None,
        }
        return asdict(self) | ratios


def medians(
    ways: Sequence[Way], repetitions: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Seconds that each way takes, the median over the repetitions, the ways in turn.

    In turn, so that what else the machine does slows all of them alike. A first round warms up and
    isn't counted. clock: `time.process_time` counts the CPU's seconds.
    """
    seconds: list[list[float]] = [[] for _ in ways]
    for repetition in range(repetitions + 1):
        for taken, way in zip(seconds, ways, strict=True):
            start = clock()
            way()
            if repetition:
                taken.append(clock() - start)
    return [median(taken) for taken in seconds]


def rates(
    n: int, ways: Sequence[Way], repetitions: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """How many of `n` things a second each way does, measured as `medians`."""
    return [n / seconds for seconds in medians(ways, repetitions, clock)]


def in_a_fresh_process(code: str) -> str:
    """What a piece of code prints in a Python process of its own."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, check=True, cwd=IMPORT_ROOT, capture_output=True, encoding="utf-8"
    )
    return done.stdout


def seconds_in_a_fresh_process(code: str) -> float:
    """Seconds that a Python process takes from start to end for a piece of code."""
    start = time.perf_counter()
    in_a_fresh_process(code)
    return time.perf_counter() - start


def called_in_a_fresh_process(function: Callable[..., Any], *given: Any) -> tuple[Any, int]:
    """What a function returns in a process of its own, by JSON; and the peak of its memory."""
    printed = in_a_fresh_process(
        f"import json; from {function.__module__} import {function.__name__} as call; "
        f"from lama_core.bench import peak_bytes; "
        f"print(json.dumps([call(*{given!r}), peak_bytes()]))"
    )
    value, peak = json.loads(printed.splitlines()[-1])
    return value, peak


def peak_bytes() -> int:
    """The most memory that this process has held."""
    # The kernel's own figure where it has one: ru_maxrss of a child begins with its parent's.
    status = Path("/proc/self/status")
    if status.is_file():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
