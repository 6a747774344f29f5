"""Runs of causal traces: make them, and read their effects by layer and token role."""

from dataclasses import asdict, dataclass, fields
from typing import Any

import pandas as pd

from lama_core.errors import UserError
from lama_core.probes.making_runs import RunFunction, Runs
from lama_core.probes.tracing.plan import plan
from lama_core.probes.tracing.request import TraceRequest
from lama_core.probes.tracing.roles import BLANK, RoleEffect, average_effects
from lama_core.probes.tracing.spec import TraceOptions, TraceSpec
from lama_core.rounding import counted
from lama_core.runs.facts_table import read_columns
from lama_core.runs.find import list_runs
from lama_core.runs.info import FACTS_FILE, Run, RunInfo

ALL_FACTS = "all relations"  # instead of a relation, for averages over the facts of all relations
SAME = 0.02  # effects that differ by less are called the same


@dataclass(frozen=True, eq=False)
class TraceRuns(Runs):
    """The finished runs of causal traces.

    Attributes:
        effects: The averages of all runs, by relation, layer and token role.
    """

    effects: tuple[RoleEffect, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """Return what `trace --json` prints."""
        return [asdict(effect) for effect in self.effects]


def _average(runs: Runs) -> TraceRuns:
    """Average the effects, and add a note for each reason why facts are excluded."""
    request, effects = runs.request, []
    assert isinstance(request, TraceRequest)
    for run in runs:
        rows = read_columns(run.info.path(FACTS_FILE)).to_pylist()
        effects += average_effects(rows, model=run.info.model, restore=request.restore)
        for reason, n in run.details["reasons"].items():
            are = "is" if n == 1 else "are"
            request.on_note(f"{run.info.model}: {counted(n, 'fact')} {are} excluded: {reason}.")
    return TraceRuns(request, runs.runs, tuple(effects))


trace = RunFunction(
    TraceRequest,
    plan,
    _average,
    lambda runs: pd.DataFrame(runs.to_json(), columns=[one.name for one in fields(RoleEffect)]),
    """Average causal traces over a relation's facts, by token role and layer.

    Facts whose object is the model's first answer are traced; the others are excluded. An
    interrupted run resumes when the same call is made again.

    Returns:
        A DataFrame with a row for each model, relation, layer and role of tokens: the mean effect
        (restored minus corrupted probability of the object), its 95 % interval, and the number of
        facts.

    Raises:
        UserError: If the dataset, a relation or a model is unknown, or a model can't be traced.
    """,
    example="trace --dataset starter --relation P36 --model minilm-mlm --limit 20",
)


def trace_runs(dataset: str) -> tuple[RunInfo, ...]:
    """Return the finished runs of causal traces on a dataset that have a traced fact."""
    runs = list_runs(kinds=(TraceSpec.kind,)).intact()
    return tuple(run for run in runs if run.dataset == dataset and run.n)


@dataclass(frozen=True)
class Traces:
    """The traces of a run's facts, of one relation or all.

    Attributes:
        options: What is restored, and the noise.
        facts: A row for each traced fact, layer and token role; see `probes.tracing.spec`.
        effects: The averages over these facts; the columns are the fields of `RoleEffect`.
        reasons: Reason -> number of facts of the run that are excluded for it.
    """

    options: TraceOptions
    facts: pd.DataFrame
    effects: pd.DataFrame
    reasons: dict[str, int]

    @property
    def largest(self) -> RoleEffect:
        """The largest effect, except at the blank.

        In every model, the last layers' states at the blank contain the answer.
        """
        return _largest(self.effects[self.effects["role"] != BLANK])

    @property
    def at_blank(self) -> RoleEffect:
        """The largest effect at the blank."""
        return _largest(self.effects[self.effects["role"] == BLANK])

    @property
    def best_layers(self) -> tuple[int, int]:
        """First and last of the layers around the largest effect with the same effect."""
        best = self.largest
        ours = self.effects[self.effects["role"] == best.role]
        same = {*ours["layer"][ours["effect"] >= best.effect - SAME]}
        first = last = best.layer
        while first - 1 in same:
            first -= 1
        while last + 1 in same:
            last += 1
        return first, last


def _largest(effects: pd.DataFrame) -> RoleEffect:
    best = effects.sort_values("effect", ascending=False, kind="stable").to_dict("records")[0]
    return RoleEffect(**{str(name): value for name, value in best.items()})


def read_traces(run: Run, relation: str = ALL_FACTS) -> Traces:
    """Return the traces of a run's facts.

    Args:
        run: A run of causal traces.
        relation: The relation. Default: all facts together.

    Raises:
        UserError: If a file of the run is damaged, or it doesn't store the options.
    """
    options, rows = options_of(run), read_columns(run.info.path(FACTS_FILE)).to_pandas()
    rows = rows[rows["effect"].notna() & ((rows["relation"] == relation) | (relation == ALL_FACTS))]
    facts = rows.drop(columns="excluded").astype({"layer": int}).reset_index(drop=True)
    effects = average_effects(
        facts.assign(relation=relation).to_dict("records"),
        model=run.info.model,
        restore=options.part,
    )
    return Traces(options, facts, pd.DataFrame(effects), dict(run.details["reasons"]))


def options_of(run: Run) -> TraceOptions:
    """Return the options of a run's traces: the restored part and the noise.

    Raises:
        UserError: If the run doesn't store the options.
    """
    stored = run.details.get("options")
    if stored is None:
        raise UserError(
            f"{run.info.id} was made by an earlier build, which didn't store a trace's options. "
            "Delete the run and make it again."
        )
    return TraceOptions(**stored)
