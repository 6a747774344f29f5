"""Scoring on a Ray cluster: each worker loads one model at a time and scores whole parts.

A worker uses one GPU if the cluster has any and LAMA_DEVICE isn't `cpu`, otherwise two CPUs. It
gets two parts at a time and returns a part's rows as soon as the part is finished. If a worker
dies, alone or with its node, other workers get its parts, and a new worker starts where resources
are free. Saved parts are not scored again. No file that this project writes contains Ray objects.

Ray is an optional extra (`pip install ray`). RAY_ADDRESS names a running cluster; without it, one
is started on this machine. Every node needs the weights and data at the same paths: docs/scale.md.
"""

import itertools
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import ray

from lama_core.errors import UserError
from lama_core.models.devices import VARIABLE as DEVICE
from lama_core.models.devices import requested_device
from lama_core.scoring.executors import Job, Task, Tick
from lama_core.scoring.executors.assignment import Unassigned

PARTS_PER_WORKER = 2  # so that a worker scores one part while it sends the rows of another
CPUS = 2  # per worker, if nodes have as many
MAX_DEATHS = 3  # number of workers that may die during the same part
CONNECT_SECONDS = 10.0  # timeout of the connection to a cluster
POLL_SECONDS = 1.0  # time between two checks of whether the user stopped the run
MAX_IDLE_SECONDS = 300.0  # maximum time without a busy worker or free resources


class RayExecutor:
    """Scores the parts on the workers of a Ray cluster.

    Attributes:
        n_workers: Maximum number of workers; None is as many as the cluster has resources for.
    """

    here = False

    def __init__(self, n_workers: int | None = None) -> None:
        self.n_workers = n_workers

    def tables(
        self, jobs: Sequence[Job], tasks: Sequence[Task], tick: Tick
    ) -> Iterator[tuple[Task, pa.Table, str]]:
        """Yield each task with its rows and the worker's device, as they are finished.

        Raises:
            UserError: If a worker can't load or score something, several workers died during one
                part, or the cluster has no resources for a worker.
        """
        workers = _Workers(jobs, tasks, self.n_workers)
        try:
            yield from workers.tables(tick)
        finally:
            workers.stop()


@dataclass(frozen=True, slots=True)
class _Resources:
    """The resources of each worker, and the number of workers that the cluster can run."""

    cpus: int
    gpus: int
    n_workers: int


def _resources() -> _Resources:
    """Return the resources that the cluster has now."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    if gpus and _device() != "cpu":
        return _Resources(1, 1, gpus)
    counts = [int(node["CPU"]) for node in nodes if node.get("CPU", 0) >= 1]
    cpus = min([CPUS, *counts])
    return _Resources(cpus, 0, max(1, sum(count // cpus for count in counts)))


def _device() -> str:
    """Return LAMA_DEVICE for the workers: this process's value, without the number of the GPU."""
    return "cuda" if requested_device().startswith("cuda") else requested_device()


def _connect() -> None:
    """Connect to the cluster at RAY_ADDRESS, or start one on this machine."""
    if ray.is_initialized():
        return
    address = os.environ.get("RAY_ADDRESS", "")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    except (OSError, ValueError) as error:
        raise UserError(
            f"No Ray cluster answers at RAY_ADDRESS={address[:80]!r}: start one with `ray start "
            "--head`, or unset RAY_ADDRESS to start one on this machine."
        ) from error


class _Workers:
    """The workers of the cluster, and the parts that they are scoring."""

    def __init__(self, jobs: Sequence[Job], tasks: Sequence[Task], n_workers: int | None) -> None:
        _connect()
        self._unassigned = Unassigned(jobs, tasks)
        self._jobs = jobs
        self._resources = _resources()
        self._numbers = itertools.count()
        self._actors: dict[int, Any] = {}
        self._idle: set[int] = set()
        self._started: set[int] = set()
        # Ray's reference -> (worker, part that it scores); the part is None for a ping.
        self._pending: dict[Any, tuple[int, Task | None]] = {}
        self._deaths: Counter[Task | None] = Counter()
        # Ray doesn't fetch references inside a list, so a worker can fetch only the works it needs.
        self._works = [ray.put(job.work) for job in jobs]
        for _ in range(min(len(tasks), n_workers or self._resources.n_workers)):
            self._start_worker()

    def tables(self, tick: Tick) -> Iterator[tuple[Task, pa.Table, str]]:
        """Yield each task with its rows and the device."""
        last_answer = time.monotonic()
        # Workers that still wait for resources have no part: the loop doesn't wait for them.
        while self._is_busy() or not self._unassigned.is_empty:
            ready, _ = ray.wait(list(self._pending), num_returns=1, timeout=POLL_SECONDS)
            tick(0)
            if ready:
                last_answer = time.monotonic()
                yield from self._receive(ready[0])
            elif not self._is_busy() and time.monotonic() - last_answer > MAX_IDLE_SECONDS:
                gpus = f", {self._resources.gpus} GPU" if self._resources.gpus else ""
                raise UserError(
                    "The Ray cluster has had no resources for a worker for "
                    f"{MAX_IDLE_SECONDS:.0f} seconds (a worker needs {self._resources.cpus} CPU"
                    f"{gpus}). See `ray status`. Finished parts are kept."
                )

    def _is_busy(self) -> bool:
        return any(task is not None for _, task in self._pending.values())

    def _start_worker(self) -> None:
        """Start one more worker; it gets parts once it runs."""
        remote: Any = ray.remote(_Worker).options(
            num_cpus=self._resources.cpus,
            num_gpus=self._resources.gpus,
            max_restarts=0,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": {DEVICE: _device()}},
        )
        number = next(self._numbers)
        keys = [job.key for job in self._jobs]
        actor = remote.remote(self._works, keys, [job.reopen for job in self._jobs])
        self._actors[number] = actor
        self._pending[actor.ping.remote()] = number, None

    def _assign(self, number: int) -> None:
        """Assign a worker its next part; it is idle if none is left."""
        task = self._unassigned.take(number)
        if task is None:
            self._idle.add(number)
        else:
            self._idle.discard(number)
            reference = self._actors[number].score.remote(task.job, task.part)
            self._pending[reference] = number, task

    def _receive(self, reference: Any) -> Iterator[tuple[Task, pa.Table, str]]:
        """Handle a worker's answer: the rows of a part, its start, or its death."""
        number, task = self._pending.pop(reference)
        try:
            answer = ray.get(reference)
        except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
            self._replace(number, task, error)
            return
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, UserError):
                raise UserError(str(error.cause)) from error
            raise
        if task is None:
            self._started.add(number)
            for _ in range(PARTS_PER_WORKER):
                self._assign(number)
            return
        self._deaths[None] = 0  # workers do start: forget those that died before they started
        self._assign(number)
        yield task, *answer

    def _replace(self, number: int, task: Task | None, error: Exception) -> None:
        """Give the parts of a dead worker to others and start another worker.

        Counts the death for the part that the worker was scoring, or as a failed start; the death
        of an idle worker isn't counted.

        Raises:
            UserError: If too many workers died during one part, or before they started.
        """
        lost = [(ref, part) for ref, (worker, part) in self._pending.items() if worker == number]
        for reference, _ in lost:
            del self._pending[reference]
        ray.kill(self._actors.pop(number))
        self._idle.discard(number)
        self._unassigned.remove_worker(number)
        parts = (task, *(part for _, part in lost))
        self._unassigned.give_back([part for part in parts if part is not None])
        was_idle = task is None and number in self._started
        self._deaths[task] += 0 if was_idle else 1
        if self._deaths[task] >= MAX_DEATHS:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
            when = "before they started"
            if task is not None:
                when = f"at part {self._jobs[task.job].work.parts[task.part].name}"
            raise UserError(
                f"{MAX_DEATHS} workers of the Ray cluster died {when} ({reason[:200]}): check that "
                "every node has this project, its packages and enough memory for the model. "
                "Finished parts are kept."
            ) from error
        # Idle workers may have died, too: they get a part only after they answer.
        for idle in sorted(self._idle):
            self._pending[self._actors[idle].ping.remote()] = idle, None
        self._idle.clear()
        if not self._unassigned.is_empty:
            self._start_worker()

    def stop(self) -> None:
        """Stop the workers."""
        for actor in self._actors.values():
            ray.kill(actor)


class _Worker:
    """A process of the cluster; it holds one model at a time, and the works that use it."""

    def __init__(
        self,
        works: Sequence[Any],
        keys: Sequence[Hashable],
        reopen: Sequence[Callable[[], Any]],
    ) -> None:
        self._references = works
        self._keys = keys
        self._reopen = reopen
        self._works: dict[int, Any] = {}
        self._open: tuple[Hashable, Any] | None = None

    def ping(self) -> None:
        """Answer, to show that the worker runs."""

    def score(self, job: int, part: int) -> tuple[pa.Table, str]:
        """Return the rows of one part and the device that scored it; load the model if needed.

        Raises:
            UserError: If this node can't load the model.
        """
        if self._open is None or self._open[0] != self._keys[job]:
            self._open = None  # frees its memory before the next model is loaded
            self._works.clear()
            try:
                self._open = self._keys[job], self._reopen[job]()
            except UserError as error:
                raise UserError(
                    f"On the node {ray.util.get_node_ip_address()}: {error} Every node needs the "
                    "weights and the data of a run, or access to a shared disk with them."
                ) from error
        if job not in self._works:
            self._works[job] = ray.get(self._references[job])
        scorer = self._open[1]
        return self._works[job].score(scorer, part, lambda _: None), scorer.device
