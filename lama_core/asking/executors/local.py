"""Scoring in this process, one part after the other."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lama_core.asking.executors import Job, Task, Tick


class LocalExecutor:
    """Scores the parts here, in the given order."""

    here = True

    def tables(
        self, jobs: Sequence[Job], tasks: Sequence[Task], tick: Tick
    ) -> Iterator[tuple[Task, pa.Table, str]]:
        """Each task with its rows and the device, in order."""
        for task in tasks:
            job = jobs[task.job]
            yield task, job.work.score(job.scorer, task.part, tick), job.scorer.device
