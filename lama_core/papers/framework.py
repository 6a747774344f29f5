"""What every reproduction of a paper gives: ours, the paper's, and the difference, line by line.

What can't be fetched or run stays a line, with the reason.
"""

from dataclasses import dataclass
from typing import Protocol

from lama_core.progress import OnNote, OnProgress, silent


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """What a user may choose.

    dataset: a name or folder, None fetches the paper's. models: further ones, without a published
    value. limit: facts a relation.
    """

    dataset: str | None = None
    models: tuple[str, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ReproducedRow:
    """One number done again, in percent.

    ours: None when it could not be run, and `reason` says why. published: None when the paper has
    none. n: facts that count in ours.
    """

    table: str
    model: str
    what: str
    n: int
    ours: float | None
    published: float | None
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's; None where either is missing."""
        if self.ours is None or self.published is None:
            return None
        return self.ours - self.published


@dataclass(frozen=True, slots=True)
class Reproduction:
    """All lines of a paper, and what a reader should know of how they were made."""

    paper: str
    citation: str
    rows: tuple[ReproducedRow, ...]
    notes: tuple[str, ...] = ()


class Reproduce(Protocol):
    """What does a paper again."""

    def __call__(
        self,
        options: ReproduceOptions,
        *,
        on_progress: OnProgress = silent,
        on_note: OnNote = silent,
    ) -> Reproduction:
        """Our numbers beside the paper's."""
        ...


def fetching(name: str, installed: tuple[str, ...], on_progress: OnProgress) -> str:
    """A published source's name, fetched if it isn't among the installed ones.

    Raises UserError if it can't be had.
    """
    from lama_core.datasets.library.download import get_dataset

    if name not in installed:
        get_dataset(name, on_progress=on_progress)
    return name
