"""Runs made on a Ray cluster: each worker holds one model at a time and makes whole shares of runs.

A share is one task of Ray, which yields a line for each part that it wrote. Ray assigns the tasks,
uses nodes that join, and repeats the task of a worker that dies, alone or with its node, elsewhere;
the parts that the dead worker finished are on disk and aren't made again. Tasks and not actors:
an actor whose node is gone waits for resources with its work, while others are idle. A worker
process keeps what it opened for its next task, and shares are handed out model by model, so that a
worker loads each model once; whoever saves a run may load its model once more. No file that this
project writes contains Ray objects.

A worker uses one GPU if the cluster has any and LAMA_DEVICE isn't `cpu`, otherwise two CPUs.

Ray is an optional extra (`pip install ray`). RAY_ADDRESS names a running cluster; without it, one
is started on this machine. Every node needs the weights and data at the same paths, and the folder
of the runs: see README.md.
"""

import logging
import math
import os
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from lama_core.errors import UserError
from lama_core.models.devices import VARIABLE as DEVICE
from lama_core.models.devices import requested_device
from lama_core.scoring.executors import Event, Maker, Opened, RunShare, Saved, Tick, Wrote

SHARES_PER_WORKER = 4  # so that workers end at about the same time, and new nodes get work
CPUS = 2  # per worker, if nodes have as many
MAX_DEATHS = 3  # number of workers that may die during the same share
CONNECT_SECONDS = 10.0  # timeout of the connection to a cluster
POLL_SECONDS = 1.0  # time between two checks of whether the user stopped the run
MAX_IDLE_SECONDS = 300.0  # maximum time without a busy worker or free resources


@dataclass(frozen=True, slots=True)
class _Resources:
    """The resources of each worker, and the number of workers that the cluster can run."""

    cpus: int
    gpus: int
    n_workers: int


class RayExecutor:
    """Has runs made by as many workers as a Ray cluster has resources for."""

    here = False

    def events(
        self, open_maker: Callable[[], Maker], n_ranges: Sequence[int], tick: Tick
    ) -> Iterator[Event]:
        """Yield what workers report.

        Raises:
            UserError: If a worker can't load or score something, several workers died during one
                share, or the cluster has no resources for a worker.
        """
        _connect()
        tasks = _Tasks(open_maker, n_ranges)
        try:
            yield from tasks.events(tick)
        finally:
            tasks.stop()


class _Tasks:
    """The tasks of some runs: shares, and the end of each run."""

    def __init__(self, open_maker: Callable[[], Maker], n_ranges: Sequence[int]) -> None:
        self._resources = _resources()
        options: dict[str, Any] = {
            "num_cpus": self._resources.cpus,
            "num_gpus": self._resources.gpus,
            "max_retries": MAX_DEATHS - 1,
            "max_calls": 0,  # a process that has a GPU goes on, too
            "scheduling_strategy": "SPREAD",
            "runtime_env": {"env_vars": {DEVICE: _device()}},
            "num_returns": "streaming",
        }
        remote: Any = ray.remote(**options)
        self._make, self._finish = remote(_make_share), remote(_finish_run)
        self._maker = uuid.uuid4().hex, ray.put(open_maker)
        shares = _shares(n_ranges, self._resources.n_workers)
        self._waiting: deque[RunShare | int] = deque(share for of_run in shares for share in of_run)
        self._n_left = [len(of_run) for of_run in shares]  # shares of each run
        # Ray's generator of a task's reports -> share, or run to finish
        self._pending: dict[Any, RunShare | int] = {}
        self._started: set[Any] = set()

    def events(self, tick: Tick) -> Iterator[Event]:
        """Yield what workers report."""
        last_report = time.monotonic()
        while self._waiting or self._pending:
            while self._waiting and len(self._pending) < self._resources.n_workers:
                self._submit(self._waiting.popleft())
            ready, _ = ray.wait([*self._pending], num_returns=1, timeout=POLL_SECONDS)
            tick(0)
            if ready:
                last_report = time.monotonic()
                yield from self._report(ready[0])
                continue
            self._resources = _resources()
            if not self._started and time.monotonic() - last_report > MAX_IDLE_SECONDS:
                gpus = f", {self._resources.gpus} GPU" if self._resources.gpus else ""
                raise UserError(
                    "The Ray cluster has had no resources for a worker for "
                    f"{MAX_IDLE_SECONDS:.0f} seconds (a worker needs {self._resources.cpus} CPU"
                    f"{gpus}). See `ray status`. Finished parts are kept."
                )

    def _submit(self, task: RunShare | int) -> None:
        """Give Ray a task."""
        remote = self._finish if isinstance(task, int) else self._make
        self._pending[remote.remote(*self._maker, task)] = task

    def _report(self, reports: Any) -> Iterator[Event]:
        """Yield the next report of a task, unless it has ended."""
        self._started.add(reports)
        try:
            event = ray.get(next(reports))
        except StopIteration:
            self._end(reports)
            return
        except (ray.exceptions.RayTaskError, ray.exceptions.RayError) as error:
            raise self._failure(reports, error) from error
        yield event

    def _end(self, reports: Any) -> None:
        """Forget a task that has ended; after a run's last share, the run is to be finished."""
        task = self._pending.pop(reports)
        self._started.discard(reports)
        self._resources = _resources()  # nodes may have joined
        if isinstance(task, RunShare):
            self._n_left[task.run] -= 1
            if not self._n_left[task.run]:
                self._waiting.appendleft(task.run)

    def _failure(self, reports: Any, error: Exception) -> Exception:
        """Return the error to raise for a task that failed."""
        if isinstance(error, ray.exceptions.RayTaskError):
            return UserError(str(error.cause)) if isinstance(error.cause, UserError) else error
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
        return UserError(
            f"{MAX_DEATHS} workers of the Ray cluster died during the same work "
            f"({reason[:200]}): check that every node has this project, its packages and enough "
            "memory for the model. Finished parts are kept."
        )

    def stop(self) -> None:
        """Stop the tasks that aren't finished."""
        for reports in self._pending:
            ray.cancel(reports, force=True)


def _shares(n_ranges: Sequence[int], n_workers: int) -> list[list[RunShare]]:
    """Return the shares of each run.

    A run of several ranges has a share for each, so that each is prepared once. Any other run has
    as many shares as keep the workers busy to the end, and one if there are many runs, so that few
    workers load its model.
    """
    step = math.ceil(SHARES_PER_WORKER * n_workers / max(1, len(n_ranges)))
    return [
        [RunShare(run, number) for number in range(n)]
        if n > 1
        else [RunShare(run, 0, first, step) for first in range(step)]
        for run, n in enumerate(n_ranges)
    ]


# What this worker process has opened last: the key of the runs, and their maker.
_opened: tuple[str, Maker] | None = None


def _maker(key: str, open_maker: Callable[[], Maker]) -> Maker:
    """Return the maker of some runs, which a worker process keeps from task to task."""
    global _opened
    if _opened is None or _opened[0] != key:
        _opened = None  # frees the memory of its model first
        _opened = key, open_maker()
    return _opened[1]


def _make_share(
    key: str, open_maker: Callable[[], Maker], share: RunShare
) -> Iterator[Opened | Wrote]:
    """Make a share of a run in a worker process."""
    maker = _maker(key, open_maker)
    try:
        maker.open(share.run)
    except UserError as error:
        raise UserError(
            f"On the node {ray.util.get_node_ip_address()}: {error} Every node needs the weights "
            "and the data of a run, or access to a shared disk with them."
        ) from error
    yield from maker.make(share, lambda _: None)


def _finish_run(key: str, open_maker: Callable[[], Maker], run: int) -> Iterator[Saved]:
    """Save a run in a worker process."""
    yield _maker(key, open_maker).finish(run)


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
