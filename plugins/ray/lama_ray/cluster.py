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
from typing import Any

import ray

from lama_core.errors import UserError
from lama_core.models.devices import VARIABLE as DEVICE
from lama_core.models.devices import requested_device
from lama_core.scoring.executors import Event, Maker, RunShare, Tick

SHARES_PER_WORKER = 4  # so that workers end at about the same time, and new nodes get work
CPUS = 2  # per worker, if nodes have as many
MAX_DEATHS = 3  # number of workers that may die during the same share
CONNECT_SECONDS = 10.0  # timeout of the connection to a cluster
POLL_SECONDS = 1.0  # time between two checks of whether the user stopped the run
MAX_IDLE_SECONDS = 300.0  # maximum time without a busy worker or free resources


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
        cpus, gpus, n_workers = _resources()
        options: dict[str, Any] = {
            "num_cpus": cpus,
            "num_gpus": gpus,
            "max_retries": MAX_DEATHS - 1,
            "max_calls": 0,  # a process that has a GPU goes on, too
            "scheduling_strategy": "SPREAD",
            "runtime_env": {"env_vars": {DEVICE: _device()}},
            "num_returns": "streaming",
        }
        work: Any = ray.remote(**options)(_work)
        maker = uuid.uuid4().hex, ray.put(open_maker)
        shares = _shares(n_ranges, n_workers)
        n_left = list(map(len, shares))  # shares of each run
        waiting: deque[RunShare | int] = deque(share for of_run in shares for share in of_run)
        pending: dict[Any, RunShare | int] = {}  # Ray's generator of a task's reports -> the task
        started: set[Any] = set()
        last_report = time.monotonic()
        try:
            while waiting or pending:
                while waiting and len(pending) < n_workers:
                    task = waiting.popleft()
                    pending[work.remote(*maker, task)] = task
                ready, _ = ray.wait([*pending], num_returns=1, timeout=POLL_SECONDS)
                tick(0)
                if not ready:
                    cpus, gpus, n_workers = _resources()  # nodes may have joined
                    if not started and time.monotonic() - last_report > MAX_IDLE_SECONDS:
                        raise UserError(
                            "The Ray cluster has had no resources for a worker for "
                            f"{MAX_IDLE_SECONDS:.0f} seconds (a worker needs {cpus} CPU"
                            f"{f', {gpus} GPU' * bool(gpus)}). See `ray status`. Finished parts "
                            "are kept."
                        )
                    continue
                last_report = time.monotonic()
                reports: Any = ready[0]
                started.add(reports)
                try:
                    event: Any = ray.get(next(reports))
                except StopIteration:
                    task = pending.pop(reports)
                    started.discard(reports)
                    cpus, gpus, n_workers = _resources()
                    if isinstance(task, RunShare):
                        n_left[task.run] -= 1
                        if not n_left[task.run]:
                            waiting.appendleft(task.run)  # to be finished
                except (ray.exceptions.RayTaskError, ray.exceptions.RayError) as error:
                    raise _failure(error) from error
                else:
                    yield event
        finally:
            for left in pending:
                ray.cancel(left, force=True)


def _failure(error: Exception) -> Exception:
    """Return the error to raise for a task that failed."""
    if isinstance(error, ray.exceptions.RayTaskError):
        return UserError(str(error.cause)) if isinstance(error.cause, UserError) else error
    reason = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
    return UserError(
        f"{MAX_DEATHS} workers of the Ray cluster died during the same work "
        f"({reason[:200]}): check that every node has this project, its packages and enough "
        "memory for the model. Finished parts are kept."
    )


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


def _work(key: str, open_maker: Callable[[], Maker], task: RunShare | int) -> Iterator[Event]:
    """Make a share of a run, or save a run, in a worker process.

    The process keeps the maker of these runs from task to task.
    """
    global _opened
    if _opened is None or _opened[0] != key:
        _opened = None  # frees the memory of its model first
        _opened = key, open_maker()
    maker = _opened[1]
    if isinstance(task, int):
        yield maker.finish(task)
        return
    try:
        maker.open(task.run)
    except UserError as error:
        raise UserError(
            f"On the node {ray.util.get_node_ip_address()}: {error} Every node needs the weights "
            "and the data of a run, or access to a shared disk with them."
        ) from error
    yield from maker.make(task, lambda _: None)


def _resources() -> tuple[int, int, int]:
    """Return the CPUs and GPUs of each worker, and how many workers the cluster can run now."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    if gpus and _device() != "cpu":
        return 1, 1, gpus
    counts = [int(node["CPU"]) for node in nodes if node.get("CPU", 0) >= 1]
    cpus = min([CPUS, *counts])
    return cpus, 0, max(1, sum(count // cpus for count in counts))


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
