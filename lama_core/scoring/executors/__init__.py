"""Where the parts of runs are scored: in this process, or by the workers of a Ray cluster.

A run's work is cut into parts before anything is scored, the same in every process; a part is
scored whole, so where it is done changes no number. A new executor is a file here and a row in
`EXECUTORS`.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lama_core.errors import UserError, choose
from lama_core.progress import Unit

# Told how many more units of a part are done; may raise to stop the work.
Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a run that is scored, and written down, as one.

    name: of its file. size: in the work's unit. cost: about how many tokens are computed for it;
    words, or decisions, where a kind of probe makes its tokens late. Work is divided by it.
    """

    name: str
    size: int
    cost: int


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
    """One run's work, and who is asked.

    key: the same for jobs that ask the same one. scorer: opened here; None for an executor whose
    workers open it. reopen: how another process opens the same.
    """

    work: Work
    key: Hashable
    scorer: Any
    reopen: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One part of one of the jobs, by their places."""

    job: int
    part: int


class Executor(Protocol):
    """Scores parts.

    here: in this process, by the scorers that are open in it; so jobs of many models take their
    memory here, and are better given one model after the other.
    """

    here: bool

    def tables(
        self, jobs: Sequence[Job], tasks: Sequence[Task], tick: Tick
    ) -> Iterator[tuple[Task, pa.Table, str]]:
        """Each task with its rows and the device that scored it, in any order, each once."""
        ...


class LocalExecutor:
    """Scores the parts in this process, in the given order."""

    here = True

    def tables(
        self, jobs: Sequence[Job], tasks: Sequence[Task], tick: Tick
    ) -> Iterator[tuple[Task, pa.Table, str]]:
        """Each task with its rows and the device, in order."""
        for task in tasks:
            job = jobs[task.job]
            yield task, job.work.score(job.scorer, task.part, tick), job.scorer.device


def _ray() -> Executor:
    try:
        from lama_core.scoring.executors.ray import RayExecutor
    except ModuleNotFoundError as error:
        raise UserError(
            "Ray is not installed: run `pip install ray`, or leave out `--executor ray`."
        ) from error
    return RayExecutor()


EXECUTORS: dict[str, Callable[[], Executor]] = {"local": LocalExecutor, "ray": _ray}


def make_executor(name: str) -> Executor:
    """The executor of that name. Raises UserError for an unknown one, or one not installed."""
    return EXECUTORS[choose(name, EXECUTORS, "executor")]()
