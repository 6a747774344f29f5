"""Benchmarks: speed and memory, compared with an alternative and with the best possible value.

Compare the ratios, not the seconds, because machines are shared and noisy. Each benchmark is a
module with `run(**options)`, which yields each row when it is measured, and an entry in
`bench.report.BENCHMARKS`.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from lama_core.paths import IMPORT_ROOT

TARGET = "this project's target"

Way = Callable[[], object]


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One measurement; all its values are measured in the same run.

    Attributes:
        what: The workload.
        unit: Unit of all values, such as `queries/s` or `s`.
        ours: The value of this library.
        peer: The value of an alternative; None if there is none.
        peer_name: The alternative.
        limit: The best possible value, such as that of the forward passes alone, or this
            project's target; None if unknown.
        limit_name: What the limit is.
    """

    what: str
    unit: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    limit: float | None = None
    limit_name: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the row with its ratios to peer and limit; None without a peer or limit."""
        ratios = {
            "ours_to_peer": self.ours / self.peer if self.peer else None,
            "ours_to_limit": self.ours / self.limit if self.limit else None,
        }
        return asdict(self) | ratios

    def __str__(self) -> str:
        """Return one line: `what: 120 queries/s; pipeline 40 (3x); limit 150 (0.8x)`."""
        parts = [f"{self.what}: {self.ours:.3g} {self.unit}"]
        for value, name in ((self.peer, self.peer_name), (self.limit, self.limit_name)):
            if value is not None:
                times = f" ({self.ours / value:.3g}x)" if value else ""
                parts.append(f"{name} {value:.3g}{times}")
        return "; ".join(parts)


def medians(
    ways: Sequence[Way], repetitions: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the median seconds of each function.

    Each round runs every function once, so that other load on the machine slows all of them
    equally. The first round warms up and isn't counted.

    Args:
        ways: The functions to measure.
        repetitions: Number of counted rounds.
        clock: Returns the time in seconds; `time.process_time` counts CPU seconds.
    """
    seconds: list[list[float]] = [[] for _ in ways]
    for repetition in range(repetitions + 1):
        for measured, way in zip(seconds, ways, strict=True):
            start = clock()
            way()
            if repetition:
                measured.append(clock() - start)
    return list(map(median, seconds))


def rates(
    n: int, ways: Sequence[Way], repetitions: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the items per second of each function; each processes `n` items. See `medians`."""
    return [n / seconds for seconds in medians(ways, repetitions, clock)]


def called_in_a_fresh_process(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a new process, and return its JSON result."""
    code = (
        f"import json; from {function.__module__} import {function.__name__} as call; "
        f"print(json.dumps(call(*{args!r})))"
    )
    printed = subprocess.check_output([sys.executable, "-c", code], cwd=IMPORT_ROOT)
    return json.loads(printed.splitlines()[-1])
