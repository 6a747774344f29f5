"""The plan of runs of causal traces: a `TraceRequest` becomes a `TraceSpec` for each model."""

from dataclasses import dataclass, fields
from typing import ClassVar

from lama_core.candidates.lists import COMMON
from lama_core.probes.plan import Planned, ProbeRequest
from lama_core.probes.plan import plan as plan_queries
from lama_core.probes.tracing.spec import TraceOptions, TraceSpec
from lama_core.queries.lenses.trace import (
    DRAWS,
    SEED,
    Draws,
    Restore,
    Seed,
    Window,
    check_window,
)
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring import shared_fields


@dataclass(frozen=True)
class TraceRequest(shared_fields.RunSettings):
    """The facts to trace, and how: the fields of `trace`."""

    command: ClassVar[tuple[str, ...]] = ("trace",)
    python: ClassVar[str] = "trace"

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


def plan(request: TraceRequest, *, load: Load = load_by_name) -> Planned[TraceSpec]:
    """Return one specification for each model, with the dataset's templates.

    Raises:
        UserError: If the request is invalid, or its data or models can't be loaded.
    """
    request.check()
    names = ("dataset", "models", "relations", "candidates", "precision", "limit", "revisions")
    same = {name: getattr(request, name) for name in names}
    planned = plan_queries(ProbeRequest(**same, on_note=request.on_note), load=load)
    options = TraceOptions(request.restore, request.window, request.draws, request.seed)
    specs = (
        TraceSpec(
            **{one.name: getattr(spec, one.name) for one in fields(spec)} | {"n_ranges": 1},
            trace_options=options,
        )
        for spec in planned.specs
    )
    return Planned(tuple(specs), planned.notes)
