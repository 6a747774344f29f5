"""Scoring on a Ray cluster: each worker loads the model once and scores spans of batches.

The plan of batches is that of the local executor, so the blocks are the same. A worker that dies
has its span given to a new one; spans whose blocks are in the log are never asked for again.
Ray moves objects between its processes in its own way; nothing of that is kept in a file of ours.
Ray is an optional extra (`pip install ray`); RAY_ADDRESS names a running cluster, else one is begun
on this machine.
"""

import importlib.util
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from lama_core.asking.executors import Job, Span
from lama_core.asking.executors.local import SegmentScorer
from lama_core.asking.preparation import Segment
from lama_core.errors import UserError
from lama_core.runs.block_log import Block

# Batches a worker scores before it hands them back: what a killed worker loses.
SPAN = 8


class RayExecutor:
    """Scores the spans on the workers of a Ray cluster.

    n_workers: None is one for every two processors of the cluster, at least one.
    load: how a worker gets its model from (reference, precision); by default `load_model`.
    """

    def __init__(self, n_workers: int | None = None, load: Any = None) -> None:
        if importlib.util.find_spec("ray") is None:
            raise UserError(
                "Ray is not installed: run `pip install ray`, or leave out `--executor ray`."
            )
        self.n_workers = n_workers
        self.load = load

    def blocks(
        self, job: Job, segments: Sequence[Segment], spans: Sequence[Span]
    ) -> Iterator[Block]:
        """The scored blocks of the spans, as the workers hand them back."""
        import ray

        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
        processors = int(ray.cluster_resources().get("CPU", 1))
        n_workers = self.n_workers or max(1, processors // 2)
        shared = ray.put(tuple(segments))
        options = (job.reference, job.precision, self.load)
        sizes = (job.batch_rows, job.batch_tokens)
        remote: Any = ray.remote(max_restarts=-1, max_task_retries=-1)(_Worker)
        # In a list the reference reaches the worker as it is, so that a restart can follow it.
        workers = [remote.remote([shared], sizes, *options) for _ in range(n_workers)]
        waiting = [short for span in spans for short in _split(span, job, segments)]
        running: dict[Any, Any] = {}
        try:
            for worker in workers:
                if waiting:
                    running[worker.score.remote(waiting.pop(0))] = worker
            while running:
                ready, _ = ray.wait(list(running), num_returns=1)
                worker = running.pop(ready[0])
                if waiting:
                    running[worker.score.remote(waiting.pop(0))] = worker
                try:
                    blocks = ray.get(ready[0])
                except ray.exceptions.RayTaskError as error:
                    if isinstance(error.cause, UserError):
                        raise UserError(str(error.cause)) from error
                    raise
                yield from blocks
        finally:
            for worker in workers:
                ray.kill(worker)


class _Worker:
    """One process of the cluster, with the model in it."""

    def __init__(
        self,
        shared: Sequence[Any],
        sizes: tuple[int, int],
        reference: str,
        precision: str,
        load: Any,
    ) -> None:
        import ray

        if load is None:
            from lama_core.models.loader import load_model

            load = load_model
        model = load(reference, precision=precision)
        self.segments: Sequence[Segment] = ray.get(shared[0])
        self.job = Job(model, reference, precision, *sizes)
        self.scorers: dict[int, SegmentScorer] = {}

    def score(self, span: Span) -> list[Block]:
        """The blocks of one span."""
        number = span.segment
        if number not in self.scorers:
            self.scorers[number] = SegmentScorer(self.job, self.segments[number], number)
        return list(self.scorers[number].blocks(span))


def _split(span: Span, job: Job, segments: Sequence[Segment]) -> Iterator[Span]:
    """A span as spans of at most `SPAN` batches."""
    last = span.last
    if last is None:
        last = len(SegmentScorer(job, segments[span.segment], span.segment).batches)
    for first in range(span.first, last, SPAN):
        yield Span(span.segment, first, min(first + SPAN, last))
