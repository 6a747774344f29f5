"""Executors: they score the parts of runs in this process, or on the workers of a Ray cluster.

A run's work is divided into the same parts in every process, before scoring starts. Each part is
scored as a whole, so the executor doesn't affect the scores. To add an executor, add a file here
and a row to `EXECUTORS`.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lama_core.errors import UserError, choose
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
        cost: Approximate number of tokens that are computed for it; for probes that tokenize while
            they score, the number of words or decisions. Executors balance workers by cost.
    """

    name: str
    size: int
    cost: int


class Work(Protocol):
    """The work of one run, in parts. It holds no model and can be sent to another process."""

    @property
    def unit(self) -> Unit:
        """What a part's size counts."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts, the same in every process."""

    def score(self, scorer: Any, number: int, tick: Tick) -> pa.Table:
        """Return the rows of one part, scored by a model or baseline."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run's work and its scorer.

    Attributes:
        work: The work.
        key: Identifies the scorer: equal for jobs with the same scorer.
        scorer: The scorer, loaded in this process; None if the executor's workers load it.
        reopen: Loads the same scorer in another process.
    """

    work: Work
    key: Hashable
    scorer: Any
    reopen: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Task:
    """A part of a job. job: Index of the job. part: Index of the part in the job's work."""

    job: int
    part: int


class Executor(Protocol):
    """Scores parts.

    Attributes:
        here: Whether it scores in this process, with scorers that are loaded in it. If so, call it
            with the jobs of one model at a time to save memory.
    """

    here: bool

    def tables(
        self, jobs: Sequence[Job], tasks: Sequence[Task], tick: Tick
    ) -> Iterator[tuple[Task, pa.Table, str]]:
        """Yield each task once, in any order, with its rows and the device that scored it.

        Args:
            jobs: The jobs.
            tasks: The parts to score.
            tick: Called while parts are scored.
        """


class LocalExecutor:
    """Scores the parts in this process, in the given order."""

    here = True

    def tables(
        self, jobs: Sequence[Job], tasks: Sequence[Task], tick: Tick
    ) -> Iterator[tuple[Task, pa.Table, str]]:
        """Yield each task in order, with its rows and the device."""
        for task in tasks:
            job = jobs[task.job]
            yield task, job.work.score(job.scorer, task.part, tick), job.scorer.device


def _ray() -> Executor:
    try:
        from lama_core.scoring.executors.ray import RayExecutor
    except ModuleNotFoundError as error:
        raise UserError(
            "Ray is not installed: run `pip install ray`, or remove `--executor ray`."
        ) from error
    return RayExecutor()


EXECUTORS: dict[str, Callable[[], Executor]] = {"local": LocalExecutor, "ray": _ray}


def make_executor(name: str) -> Executor:
    """Return an executor. Raises UserError for an unknown name, or one that isn't installed."""
    return EXECUTORS[choose(name, EXECUTORS, "executor")]()
