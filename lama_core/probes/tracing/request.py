"""The request of a run of causal traces."""

from dataclasses import dataclass

from lama_core.candidates.lists import COMMON
from lama_core.queries.lenses.trace import DRAWS, SEED, Draws, Restore, Seed, Window, check_window
from lama_core.scoring import shared_fields


@dataclass(frozen=True)
class TraceRequest(shared_fields.RunSettings, command="trace", python="trace"):
    """The facts to trace, and how: the fields of `trace`."""

    dataset: shared_fields.Dataset
    models: shared_fields.Models
    relations: shared_fields.Relations = ()
    restore: Restore = "states"
    window: Window = None
    draws: Draws = DRAWS
    seed: Seed = SEED
    candidates: shared_fields.AnyCandidates = COMMON
    precision: shared_fields.Precision = "auto"
    limit: shared_fields.Limit = None
    revisions: shared_fields.Revisions = ()

    def check(self) -> None:
        super().check()
        check_window(self.window, self.restore)
