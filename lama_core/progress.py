"""Progress reports of long-running work, for the terminal's progress bar and the pages' jobs.

A callback receives a `Progress` for each step. A child process writes its reports to standard
error, as lines of JSON with one key each: `{"progress": {...}}`, `{"note": "..."}`,
`{"result": {...}}` or `{"error": "..."}`. `lama_core.cli.output` writes them; the pages' jobs read
them.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal

Unit = Literal[
    "bytes",
    "steps",
    "queries",
    "answers",
    "decisions",
    "rows",
    "sentences",
    "passages",
    "statements",
    "questions",
    "passes",
    "tensors",
    "words",
    "tokens",
]
ResultKind = Literal["run", "model", "data"]


@dataclass(frozen=True, slots=True)
class Progress:
    """One progress report.

    Attributes:
        stage: The current activity, as users read it.
        done: Finished units.
        total: All units; None if unknown.
        unit: What `done` and `total` count.
        resumed: How much of `done` was finished before this process started.
        result: The run, model or dataset that this step finished, if any.
        is_wait: Whether this process only waits, for example for a server.
    """

    stage: str
    done: int = 0
    total: int | None = None
    unit: Unit = "steps"
    resumed: int = 0
    result: "Result | None" = None
    is_wait: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The name of a finished run, model or dataset."""

    what: ResultKind
    name: str


WINDOW = 60.0  # seconds

OnProgress = Callable[[Progress], None]
OnNote = Callable[[str], None]


def ignore(_: object) -> None:
    """Do nothing: the default callback for progress and notes."""


_CALLBACK: ContextVar[OnProgress] = ContextVar("on_progress", default=ignore)


_STEPS: ContextVar[OnProgress] = ContextVar("on_step", default=ignore)


@contextmanager
def _calling(variable: ContextVar[OnProgress], callback: OnProgress) -> Iterator[None]:
    """Let a variable have a callback in the block, in this thread."""
    before = variable.set(callback)
    try:
        yield
    finally:
        variable.reset(before)


def reporting(on_progress: OnProgress) -> AbstractContextManager[None]:
    """Send what `report_wait` reports in the block, in this thread, to a callback."""
    return _calling(_CALLBACK, on_progress)


def reporting_steps(on_progress: OnProgress) -> AbstractContextManager[None]:
    """Send what `report_step` reports in the block, in this thread, to a callback."""
    return _calling(_STEPS, on_progress)


def report_step(step: Progress) -> None:
    """Report a step of one answer, which only those who wait for this answer want to know."""
    _STEPS.get()(step)


@contextmanager
def part_of(number: int, n_parts: int) -> Iterator[None]:
    """Report the steps in the block as steps of one of several parts of about the same size."""
    whole = _STEPS.get()

    def report(step: Progress) -> None:
        total = step.total or 0
        whole(replace(step, done=number * total + step.done, total=n_parts * total))

    with reporting_steps(report):
        yield


def report_wait(what: str) -> None:
    """Report what this process waits for."""
    _CALLBACK.get()(Progress(f"Waiting for {what}", is_wait=True))


def log_note(text: str) -> None:
    """Write a note to the logger `lama_core`, which notebooks show."""
    logging.getLogger("lama_core").warning(text)


class Pace:
    """The speed of a stage over the last minute.

    A mean over the whole stage would be misleading: resumed parts count as done in a moment, and
    some queries take many times longer than others. If a step takes longer than a minute, the speed
    is computed from the last two reports.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage = ""
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, step: Progress) -> None:
        """Record a report; a new stage resets the speed."""
        now = (self._clock(), step.done)
        if step.stage != self._stage or (self._seen and step.done < self._seen[-1][1]):
            self._stage = step.stage
            self._seen.clear()
        self._seen.append(now)
        while len(self._seen) > 2 and self._seen[1][0] <= now[0] - WINDOW:
            self._seen.popleft()

    @property
    def per_second(self) -> float:
        """Recent units per second in this stage; 0 before its second report."""
        if not self._seen:
            return 0.0
        (began, before), (last, done) = self._seen[0], self._seen[-1]
        return (done - before) / (last - began) if last > began else 0.0

    def seconds_left(self, step: Progress) -> float | None:
        """Return the seconds to the end of the stage at this speed; None if unknown."""
        if step.total is None or not self.per_second:
            return None
        return (step.total - step.done) / self.per_second


def describe(step: Progress, pace: Pace | None = None) -> str:
    """Return a report as text: the stage, the amount done, the speed and the time left."""
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
        return f"{text}, saving the results"
    left = pace.seconds_left(step) if pace else None
    if pace is None or left is None:
        return f"{text}, {step.resumed:,} done earlier" if step.resumed else text
    minutes, seconds = divmod(round(left), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    rate = f", {pace.per_second:,.0f} a second" if pace.per_second >= 1 else ""
    return f"{text}{rate}, {clock} left"


def describe_briefly(title: str, step: Progress, pace: Pace) -> str:
    """Return a report in a few words, such as `Run: 40 % · 2 min left`; `title` names the work."""
    if not step.total:
        return f"{title}: {step.stage}"
    share = f"{title}: {int(100 * min(1, step.done / step.total))} %"
    left = pace.seconds_left(step)
    if left is None or left <= 0:
        return share
    return f"{share} · {brief_time(left)} left"


def brief_time(seconds: float) -> str:
    """Return a duration in seconds, minutes, or hours and minutes, such as `2 h 5 min`."""
    hours, minutes = divmod(round(seconds / 60), 60)
    if round(seconds) < 60:
        return f"{round(seconds)} s"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
