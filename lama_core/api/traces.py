"""Finished runs of causal traces: their effects by layer and token role."""

from typing import TYPE_CHECKING

from lama_core.errors import UserError
from lama_core.probes.tracing.plan import TraceRequest
from lama_core.probes.tracing.roles import ROLES, RoleEffect, average_effects
from lama_core.probes.tracing.spec import TraceOptions, TraceSpec
from lama_core.runs.facts_table import read_columns
from lama_core.runs.find import list_runs
from lama_core.runs.info import FACTS_FILE, Run, RunInfo

if TYPE_CHECKING:
    import pandas as pd

ALL_FACTS = "all relations"  # instead of a relation, for averages over the facts of all relations


def trace_runs(dataset: str) -> tuple[RunInfo, ...]:
    """Return the finished runs of causal traces on a dataset that have a traced fact."""
    runs = list_runs(kinds=(TraceSpec.kind,)).intact()
    return tuple(run for run in runs if run.dataset == dataset and run.n)


def traced_facts(run: Run) -> "pd.DataFrame":
    """Return a row for each traced fact, layer and token role; see `probes.tracing.spec`."""
    rows = read_columns(run.info.path(FACTS_FILE)).to_pandas()
    return rows[rows["effect"].notna()].drop(columns="excluded").astype({"layer": int})


def effects_of(run: Run, *, pooled: bool = False) -> list[RoleEffect]:
    """Return the average effects of a run by relation, layer and token role.

    Args:
        run: A run of causal traces.
        pooled: Average over the facts of all relations together; the relation is `ALL_FACTS`.
    """
    rows = traced_facts(run)
    if pooled:
        rows = rows.assign(relation=ALL_FACTS)
    return average_effects(
        rows.to_dict("records"), model=run.info.model, restore=options_of(run).part
    )


def options_of(run: Run) -> TraceOptions:
    """Return what the traces of a run restore, and their noise.

    Raises:
        UserError: If the run doesn't store them.
    """
    stored = run.details.get("options")
    if stored is None:
        raise UserError(
            f"{run.info.id} was made by an earlier build, which didn't store a trace's options. "
            "Delete the run and make it again."
        )
    return TraceOptions(**stored)


def request_of(run: Run) -> TraceRequest:
    """Return the request that makes a run again."""
    info, how = run.info, options_of(run)
    return TraceRequest(
        info.dataset,
        (info.model,),
        tuple(relation.name for relation in info.relations),
        restore=how.part,
        window=how.window,
        draws=how.draws,
        seed=how.seed,
        candidates=info.candidates,
        precision=info.precision,
        limit=info.limit,
    )


def excluded_facts(run: Run) -> dict[str, int]:
    """Return why facts are excluded -> their number."""
    return dict(run.details["reasons"])


__all__ = [
    "ALL_FACTS",
    "ROLES",
    "RoleEffect",
    "TraceOptions",
    "effects_of",
    "excluded_facts",
    "options_of",
    "request_of",
    "trace_runs",
    "traced_facts",
]
