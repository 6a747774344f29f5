"""Where the parts of runs are scored: in this process, or by the workers of a Ray cluster.

A run's work is cut into parts before anything is scored, the same in every process; a part is
scored whole, so where it is done changes no number. A new executor is a file here and a row in
`EXECUTORS`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lama_core.errors import choose
from lama_core.progress import Unit

# Told how many more units of a part are done; may raise to stop the work.
Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a run that is scored, and written down, as one.

    name: of its file. size: in the work's unit.
    """

    name: str
    size: int


class Work(Protocol):
    """What one run asks, in parts. It can be sent to another process, and holds no model."""

    @property
    def unit(self) -> Unit:
        """What the size of a part counts."""
        ...

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts, the same in every process."""
        ...

    def score(self, scorer: Any, number: int, tick: Tick) -> pa.Table:
        """The rows of one part, by whoever is asked."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One run's work, who is asked (opened here), and how another process opens the same."""

    work: Work
    scorer: Any
    reopen: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One part of one of the jobs, by their places."""

    job: int
    part: int


class Executor(Protocol):
    """Scores parts."""

    def tables(
        self, jobs: Sequence[Job], tasks: Sequence[Task], tick: Tick
    ) -> Iterator[tuple[Task, pa.Table]]:
        """Each task with its rows, in any order, each exactly once."""
        ...


def _local() -> Executor:
    from lama_core.asking.executors.local import LocalExecutor

    return LocalExecutor()


def _ray() -> Executor:
    from lama_core.asking.executors.ray import RayExecutor

    return RayExecutor()


EXECUTORS: dict[str, Callable[[], Executor]] = {"local": _local, "ray": _ray}


def make_executor(name: str) -> Executor:
    """The executor of that name. Raises UserError for an unknown one, or one not installed."""
    return EXECUTORS[choose(name, EXECUTORS, "executor")]()
