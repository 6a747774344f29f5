"""Executors: they have runs made in this process, or elsewhere, by a plug-in's.

A `Maker` does all the work on a run: it prepares queries, scores, ranks and writes rows. The
process that starts a run hands out shares of runs and gets back what was written, by name; neither
queries nor rows pass through it. Each part of a run is scored as a whole, so the executor doesn't
affect the scores. A plug-in adds an executor by its table `executors`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lama_core import plugins
from lama_core.errors import choose
from lama_core.progress import Unit

# Called with the number of units of a part that were finished since the last call; may raise an
# exception to stop the work.
Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run that is scored and saved as a whole.

    Attributes:
        name: Name of its file.
        size: Number of units (`Work.unit`) in it.
    """

    name: str
    size: int


class Work(Protocol):
    """The work on a range of a run's facts, in parts."""

    @property
    def unit(self) -> Unit:
        """The unit of a part's size."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts, the same in every process."""

    def score(self, scorer: Any, number: int, tick: Tick) -> pa.Table:
        """Return the rows of one part, scored by a model or baseline."""


@dataclass(frozen=True, slots=True)
class RunShare:
    """Parts of a run that one worker makes.

    Attributes:
        run: Index of the run.
        range: Index of the range of its facts.
        first, step: The range's parts `first`, `first + step`, and so on.
    """

    run: int
    range: int = 0
    first: int = 0
    step: int = 1


@dataclass(frozen=True, slots=True)
class Opened:
    """A worker has prepared a range.

    Attributes:
        share: The share that it makes.
        size: Number of units in the range.
        unit: What `size` counts.
        notes: Sentences for the user.
    """

    share: RunShare
    size: int
    unit: Unit
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wrote:
    """A part, or the rows of a range, is on disk.

    Attributes:
        run: Index of the run.
        name: Name of the part.
        size: Number of units in it.
        kept: Whether it was there already.
        notes: Sentences for the user.
    """

    run: int
    name: str
    size: int
    kept: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Saved:
    """A run is finished and on disk. run: Its index. notes: Sentences for the user."""

    run: int
    notes: tuple[str, ...] = ()


Event = Opened | Wrote | Saved


class Maker(Protocol):
    """Makes shares of runs; it holds the models."""

    def open(self, run: int) -> None:
        """Load a run's model, unless it is loaded. Raises UserError if it can't be."""

    def make(self, share: RunShare, tick: Tick) -> Iterator[Opened | Wrote]:
        """Make the missing parts of a share; yield once when it is prepared, and for each part."""

    def finish(self, run: int) -> Saved:
        """Save a run whose parts are all there."""


class Executor(Protocol):
    """Has runs made.

    Attributes:
        here: Whether this process makes them. If so, call it with the runs of one model at a time
            to save memory.
    """

    here: bool

    def events(
        self, open_maker: Callable[[], Maker], n_ranges: Sequence[int], tick: Tick
    ) -> Iterator[Event]:
        """Make runs; yield what was done.

        Args:
            open_maker: Makes a maker, here or in another process.
            n_ranges: The number of ranges of each run.
            tick: Called while parts are scored, or while this process waits.
        """


class LocalExecutor:
    """Makes the runs in this process: the first part of each, then the second of each.

    Runs that share a model thus compute shared results once.
    """

    here = True

    def events(
        self, open_maker: Callable[[], Maker], n_ranges: Sequence[int], tick: Tick
    ) -> Iterator[Event]:
        """Make the runs' parts in turn."""
        maker = open_maker()

        def of_run(run: int, n: int) -> Iterator[Event]:
            for number in range(n):
                yield from maker.make(RunShare(run, number), tick)
            yield maker.finish(run)

        runs = [of_run(run, n) for run, n in enumerate(n_ranges)]
        yield from [next(events) for events in runs]  # so that the size of all is known
        while runs:
            for events in [*runs]:
                event = next(events, None)
                if event is None:
                    runs.remove(events)
                else:
                    yield event


def make_executor(name: str) -> Executor:
    """Return an executor. Raises UserError for an unknown name, or one that isn't installed."""
    if name == "local":
        return LocalExecutor()
    choose(name, ["local", *plugins.names("executors")], "executor")
    executor: Executor = plugins.find("executors", name)()
    return executor
