"""How long work says how far it is, from the library to a terminal's bar and a page's job.

A callback gets a `Progress` for each step. Between processes the same travels as lines of JSON on
standard error, one key each: `{"progress": {...}}`, `{"note": "..."}`, `{"result": {...}}` and
`{"error": "..."}` (see `cli.show` for who writes them, and the pages' jobs for who reads them).
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Unit = Literal[
    "bytes",
    "steps",
    "queries",
    "decisions",
    "rows",
    "sentences",
    "passages",
    "statements",
    "questions",
    "tensors",
]
What = Literal["run", "model", "data"]


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of some work.

    stage: what is being done, for people. done, total: in `unit`; total is None where it isn't
    known. resumed: how much of `done` an earlier sitting had done. result: what this step finished,
    if anything.
    """

    stage: str
    done: int = 0
    total: int | None = None
    unit: Unit = "steps"
    resumed: int = 0
    result: "Result | None" = None


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run, model or dataset, by the name under which it is found again."""

    what: What
    name: str


WINDOW = 60.0  # seconds

OnProgress = Callable[[Progress], None]
OnNote = Callable[[str], None]


def silent(_: object) -> None:
    """Ignore progress or a note."""


def log_note(text: str) -> None:
    """Write a note to the logger `lama_core`, which notebooks show."""
    logging.getLogger("lama_core").warning(text)


class Pace:
    """How fast a stage goes, from the steps that were seen of it in the last minute.

    Work is uneven: what was done before is passed in a moment, and some queries cost many times
    others. Where a step takes longer than a minute, the last two count.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage = ""
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, step: Progress) -> None:
        """Take note of a step; another stage begins anew."""
        now = (self._clock(), step.done)
        if step.stage != self._stage or (self._seen and step.done < self._seen[-1][1]):
            self._stage = step.stage
            self._seen.clear()
        self._seen.append(now)
        while len(self._seen) > 2 and self._seen[1][0] <= now[0] - WINDOW:
            self._seen.popleft()

    @property
    def per_second(self) -> float:
        """Units a second of late in this stage; 0 before its second step."""
        if not self._seen:
            return 0.0
        (began, before), (last, done) = self._seen[0], self._seen[-1]
        return (done - before) / (last - began) if last > began else 0.0

    def seconds_left(self, step: Progress) -> float | None:
        """Seconds to the end of the stage at this pace; None where it isn't known."""
        if step.total is None or not self.per_second:
            return None
        return (step.total - step.done) / self.per_second


def describe(step: Progress, pace: Pace | None = None) -> str:
    """A step as people read it: the stage, how much is done, at what pace, and the time left."""
    if step.unit == "bytes":
        if step.total:
            return f"{step.stage}: {step.done / 1e6:.0f} of {step.total / 1e6:.0f} MB"
        return f"{step.stage}: {step.done / 1e6:.1f} MB" if step.done else step.stage
    if step.unit == "steps":
        return f"{step.stage}: step {step.done} of {step.total}" if step.total else step.stage
    if not step.total:
        return f"{step.stage}: {step.done:,} {step.unit}" if step.done else step.stage
    text = f"{step.stage}: {step.done:,} of {step.total:,} {step.unit}"
    if step.done >= step.total:
        return f"{text}, putting the results together"
    left = pace.seconds_left(step) if pace else None
    if pace is None or left is None:
        return f"{text}, {step.resumed:,} from before" if step.resumed else text
    minutes, seconds = divmod(round(left), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    rate = f", {pace.per_second:,.0f} a second" if pace.per_second >= 1 else ""
    return f"{text}{rate}, {clock} left"


def describe_briefly(title: str, step: Progress, pace: Pace) -> str:
    """A step in a few words, as `Run: 40 % · 2 min left`. title: what the work is."""
    if not step.total:
        return f"{title}: {step.stage}"
    share = f"{title}: {int(100 * min(1, step.done / step.total))} %"
    left = pace.seconds_left(step)
    if left is None or left <= 0:
        return share
    seconds = round(left)
    hours, minutes = divmod(round(seconds / 60), 60)
    if seconds < 60:
        return f"{share} · {seconds} s left"
    return f"{share} · {f'{hours} h {minutes} min' if hours else f'{minutes} min'} left"
