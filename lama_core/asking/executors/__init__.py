"""Where a run's batches are scored: in this process, or by the workers of a Ray cluster.

Both give the same blocks: the batches of a segment are planned over all its queries, and a worker
scores whole batches of that plan.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from lama_core.asking.preparation import Segment
from lama_core.models.base import BlankFiller
from lama_core.runs.block_log import Block


@dataclass(frozen=True, slots=True)
class Job:
    """The model (loaded here, and how to load it elsewhere) and how its batches are planned."""

    model: BlankFiller
    reference: str
    precision: str
    batch_rows: int
    batch_tokens: int


@dataclass(frozen=True, slots=True)
class Span:
    """Batches `first` up to, not including, `last` of a segment; None is its end."""

    segment: int
    first: int
    last: int | None


class Executor(Protocol):
    """Scores the spans of a run's segments."""

    def blocks(
        self, job: Job, segments: Sequence[Segment], spans: Sequence[Span]
    ) -> Iterator[Block]:
        """The scored blocks of the spans, in any order, each exactly once."""
        ...


def make_executor(name: str) -> Executor:
    """The executor called `local` or `ray`. Raises UserError where Ray isn't installed."""
    if name == "local":
        from lama_core.asking.executors.local import LocalExecutor

        return LocalExecutor()
    from lama_core.asking.executors.ray import RayExecutor

    return RayExecutor()
