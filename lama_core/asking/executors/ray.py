"""Scoring on a Ray cluster: each worker opens whom it asks once, and scores whole parts.

A worker that dies has its part given to a new one; parts that are written down are never asked for
again. Ray moves objects between its processes in its own way; nothing of that is kept in a file of
ours. Ray is an optional extra (`pip install ray`); RAY_ADDRESS names a running cluster, else one is
begun on this machine.
"""

import importlib.util
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lama_core.asking.executors import Job, Task, Tick
from lama_core.errors import UserError


class RayExecutor:
    """Scores the parts on the workers of a Ray cluster.

    n_workers: None is one for every two processors of the cluster, at least one.
    """

    def __init__(self, n_workers: int | None = None) -> None:
        if importlib.util.find_spec("ray") is None:
            raise UserError(
                "Ray is not installed: run `pip install ray`, or leave out `--executor ray`."
            )
        self.n_workers = n_workers

    def tables(
        self, jobs: Sequence[Job], tasks: Sequence[Task], tick: Tick
    ) -> Iterator[tuple[Task, pa.Table]]:
        """Each task with its rows, as the workers hand them back."""
        import ray

        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
        processors = int(ray.cluster_resources().get("CPU", 1))
        n_workers = min(len(tasks), self.n_workers or max(1, processors // 2))
        remote: Any = ray.remote(max_restarts=-1, max_task_retries=-1)(_Worker)
        # In a list the references reach the worker as they are, so that a restart can follow them.
        works = [ray.put(job.work) for job in jobs]
        workers = [remote.remote(works, [job.reopen for job in jobs]) for _ in range(n_workers)]
        waiting = list(tasks)
        running: dict[Any, tuple[Any, Task]] = {}

        def begin(worker: Any) -> None:
            if waiting:
                task = waiting.pop(0)
                running[worker.score.remote(task.job, task.part)] = worker, task

        try:
            for worker in workers:
                begin(worker)
            while running:
                ready, _ = ray.wait(list(running), num_returns=1)
                worker, task = running.pop(ready[0])
                begin(worker)
                try:
                    table = ray.get(ready[0])
                except ray.exceptions.RayTaskError as error:
                    if isinstance(error.cause, UserError):
                        raise UserError(str(error.cause)) from error
                    raise
                tick(0)
                yield task, table
        finally:
            for worker in workers:
                ray.kill(worker)


class _Worker:
    """One process of the cluster; what it asks is opened at the first part that needs it."""

    def __init__(self, works: Sequence[Any], reopen: Sequence[Callable[[], Any]]) -> None:
        self._references = works
        self._reopen = reopen
        self._works: dict[int, Any] = {}
        self._scorers: dict[int, Any] = {}

    def score(self, job: int, part: int) -> pa.Table:
        """The rows of one part."""
        import ray

        if job not in self._works:
            self._works[job] = ray.get(self._references[job])
            self._scorers[job] = self._reopen[job]()
        return self._works[job].score(self._scorers[job], part, lambda _: None)
