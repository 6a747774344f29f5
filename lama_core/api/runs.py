"""Runs: make, resume, list, rename and delete them.

A run is saved part by part; the same call again resumes an interrupted run.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from lama_core.errors import UserError
from lama_core.metrics.score_tables import of_run, stacked
from lama_core.models.sources.checkpoints import checkpoint_of
from lama_core.probes import kinds
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.analogy.spec import ProbeRun
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.extraction.request import ExtractRequest, ReadRequest
from lama_core.probes.statements.request import StatementsRequest
from lama_core.probes.tracing.request import TraceRequest
from lama_core.probes.tracing.roles import ROLES as ROLES
from lama_core.probes.tracing.roles import RoleEffect as RoleEffect
from lama_core.probes.tracing.roles import average_effects
from lama_core.progress import Progress, Result
from lama_core.requests import Function, Request
from lama_core.rounding import counted
from lama_core.runs import find
from lama_core.runs.execute import RunStopped, execute_all
from lama_core.runs.exporting import ExportedRun as ExportedRun
from lama_core.runs.exporting import ExportRunRequest, export_files
from lama_core.runs.facts_table import read_columns
from lama_core.runs.info import FACTS_FILE, Run, RunInfo
from lama_core.runs.manage import KeptRun, ListRunsRequest, list_kept
from lama_core.runs.manage import delete_run as delete_run
from lama_core.runs.manage import own_folder as own_folder
from lama_core.runs.manage import rename_run as rename_run
from lama_core.runs.parts import read_request
from lama_core.runs.spec import RunSpec, load_by_name
from lama_core.scoring.executors import make_executor
from lama_core.scoring.shared_fields import DEFAULT_MODEL, OutSettings, RunSettings
from lama_core.tables import frame_of
from lama_core.views.analogies import Accuracies, AnalogiesRequest, analogies
from lama_core.views.view import Shown, show_runs

if TYPE_CHECKING:
    from lama_core.scoring.executors import Executor


@dataclass(frozen=True, eq=False)
class Runs(Sequence[Run]):
    """The finished runs of a request, one for each model.

    Attributes:
        request: The request that made the runs.
    """

    request: Request
    runs: tuple[Run, ...]

    def __getitem__(self, number: Any) -> Any:
        """Return a run by its index."""
        return self.runs[number]

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.runs)

    def __repr__(self) -> str:
        """Return a line for each run: its name, its rows and its folder."""
        return "\n".join(
            f"{info.id}: {info.n:,} rows, {info.n_excluded:,} excluded, {info.folder}"
            for info in (run.info for run in self.runs)
        )

    @property
    def frame(self) -> pd.DataFrame:
        """The columns `run` and `model`, then those of `load_run`, for all rows of all runs."""
        return stacked(of_run(run, **run.facts) for run in self.runs)


def _identity(runs: Runs) -> Runs:
    return runs


def make_runs(
    request: OutSettings, specs: Sequence[RunSpec], executor: "Executor | None" = None
) -> tuple[Run, ...]:
    """Return the runs of these specifications; score those that aren't finished.

    Args:
        request: The request; its callbacks receive progress and notes.
        specs: The specifications.
        executor: Computes the parts. Default: this process.

    Raises:
        UserError: If a run can't be scored or saved.
    """
    runs = execute_all(
        specs,
        folder=request.out,
        executor=executor,
        on_progress=request.on_progress,
        on_note=request.on_note,
        address=request.parts_at if isinstance(request, RunSettings) else "",
    )
    for run in runs:
        info = run.info
        request.on_note(f"{info.id}: {info.n:,} rows, {info.n_excluded:,} excluded, {info.folder}")
        request.on_progress(Progress("Finished", 1, 1, result=Result("run", info.id)))
    return runs


def run(request: OutSettings) -> Runs:
    """Make the runs of a request of any kind.

    Runs that share a model are made together, model by model unless the executor computes all
    together. A checkpoint whose run fails is excluded with a note if another checkpoint of its
    series has a run.
    """
    load = partial(load_by_name, on_progress=request.on_progress)
    planned = kinds.plan_runs(request, load)
    executor = make_executor(request.executor if isinstance(request, RunSettings) else "local")
    by_model = [[*specs] for _, specs in groupby(planned, lambda spec: spec.scorer_key())]
    runs: list[Run] = []
    failed: dict[str, UserError] = {}
    for specs in by_model if executor.here else [[*planned]]:
        try:
            runs += make_runs(request, specs, executor)
        except UserError as error:
            place = checkpoint_of(specs[0].model_name)
            damaged = not isinstance(error, RunStopped) and not isinstance(error.__cause__, OSError)
            if len(specs) > 1 or place is None or not damaged:
                raise
            failed[place.series] = error
            request.on_note(f"{specs[0].model_name} has no run: {error}")
    known = {run.info.checkpoint.series for run in runs if run.info.checkpoint}
    for series, last in failed.items():
        if series not in known:
            raise last
    return Runs(request, tuple(runs))


probe = Function(
    ProbeRequest,
    run,
    _identity,
    """Probe models with a dataset's cloze queries; make a run for each model.

    Returns:
        The runs; `.frame` has a row for each model and fact, excluded facts with their reason.

    Raises:
        UserError: If the dataset, a relation or a model is unknown, or settings contradict.

    >>> import lama_core as lama
    >>> runs = lama.probe("starter", models=["minilm-mlm"], relations=["P36"], limit=3)
    >>> runs.frame[["subject", "object", "rank_filtered"]].astype({"rank_filtered": int})
          subject object  rank_filtered
    0       Egypt  Cairo              1
    1      Norway   Oslo              1
    2  Bangladesh  Dhaka              1
    """,
)


statements = Function(
    StatementsRequest,
    run,
    _identity,
    """Rank each relation's answers by the likelihood of the whole statement, for each model.

    Returns:
        The runs; `.frame` has a row for each model and fact.

    Raises:
        UserError: If the dataset, a relation or a model is unknown, or settings contradict.
    """,
)


@dataclass(frozen=True, eq=False)
class AnalogyRuns(Runs):
    """The finished runs of an analogy probe.

    Attributes:
        shown: Their accuracies.
    """

    shown: Shown[AnalogiesRequest, Accuracies]

    def to_json(self) -> list[dict[str, Any]]:
        """Return what `analogy probe --json` prints."""
        return self.shown.view.json(self.shown)


def _analogy_probe(request: AnalogyRequest) -> AnalogyRuns:
    if not request.scorers:
        request = replace(request, models=(DEFAULT_MODEL,))
    runs = run(request).runs
    for reason in sorted(_exclusion_reasons([ProbeRun(one) for one in runs])):
        request.on_note(reason)
    shown = show_runs(analogies.view, runs, AnalogiesRequest(by=request.by))
    return AnalogyRuns(request, runs, shown)


def _exclusion_reasons(runs: Sequence[ProbeRun]) -> set[str]:
    """Return a sentence for each reason why instances are excluded."""
    reasons: set[str] = set()
    for run in runs:
        reasons |= {excluded.reason for excluded in run.details.left_out}
        if missing := run.details.missing:
            rest = f" and {len(missing) - 20} more" if len(missing) > 20 else ""
            reasons.add(
                f"{run.info.model} has no vector for {', '.join(missing[:20])}{rest}: instances "
                "with these words are excluded from this baseline."
            )
    return reasons


analogy_probe = Function(
    AnalogyRequest,
    _analogy_probe,
    _identity,
    """Probe models and word vectors with analogies; make a run for each model, setting and probe.

    Returns:
        The runs; `.frame` has a row for each model, probe and instance.

    Raises:
        UserError: If the dataset, a relation or a model is unknown, or settings contradict.
    """,
)


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


def _trace(request: TraceRequest) -> TraceRuns:
    runs = run(request)
    effects = []
    for one in runs:
        rows = read_columns(one.info.folder / FACTS_FILE).to_pylist()
        effects += average_effects(rows, model=one.info.model, restore=request.restore)
        for reason, n in one.details["reasons"].items():
            are = "is" if n == 1 else "are"
            request.on_note(f"{one.info.model}: {counted(n, 'fact')} {are} excluded: {reason}.")
    return TraceRuns(request, runs.runs, tuple(effects))


def _frame_of_effects(runs: TraceRuns) -> pd.DataFrame:
    names = [one.name for one in fields(RoleEffect)]
    return pd.DataFrame(runs.to_json(), columns=names)


trace = Function(
    TraceRequest,
    _trace,
    _frame_of_effects,
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
)


extract = Function(
    ExtractRequest,
    run,
    _identity,
    """Extract relations from the sentences that state the facts: LAMA's RE_n and RE_o.

    The extractor is trained on sentences of a corpus with other pairs than the queried one.

    Returns:
        The runs, one for each way of linking entities.

    Raises:
        UserError: If the dataset or corpus is unknown, or settings contradict.
    """,
)


read = Function(
    ReadRequest,
    run,
    _identity,
    """Find answers in a corpus with question-answering models, as LAMA does with DrQA.

    Returns:
        The runs, one for each reader.

    Raises:
        UserError: If the dataset, the corpus or a reader is unknown, or settings contradict.
    """,
)


def load_run(name: str | Path) -> pd.DataFrame:
    """Return a finished run's rows, one for each fact (or pair).

    Args:
        name: The run's name, a unique beginning of it, or its folder.

    Returns:
        A DataFrame. `excluded` is the reason of an excluded row, whose ranks are missing; ranks
        start at 1. For a generated answer, rank 1 means that the text is right, and 2147483647 that
        it isn't, so that only P@1 can be computed from these ranks.

    Raises:
        UserError: If there is no such run, or several names begin like this.

    >>> import lama_core as lama
    >>> run = lama.load_run("starter-minilm_mlm-manual")
    >>> bool((run["rank_filtered"] <= run["rank_raw"])[run["excluded"].isna()].all())
    True
    """
    return find.load_run(name).facts


@dataclass(frozen=True)
class RunList:
    """All finished and unfinished runs on this machine."""

    rows: tuple[KeptRun, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """Return what `runs list --json` prints."""
        return [row.record() for row in self.rows]


def _list_runs(request: ListRunsRequest) -> RunList:
    rows = list_kept(verify=request.verify)
    for row in rows:
        if row.problem:
            request.on_note(row.problem)
    return RunList(rows)


list_runs = Function(
    ListRunsRequest,
    _list_runs,
    frame_of,
    """List every run on this machine with its kind, state and size on disk.

    Returns:
        A DataFrame with a row for each run.
    """,
)


def saved_request(name: str) -> tuple[Request, Path]:
    """Return the request that started an unfinished run, and the working folder at that time.

    Args:
        name: Name of the run's folder, such as `starter-minilm_mlm-manual-0123456789.part`.

    Returns:
        The request, and the folder that its relative paths start from.

    Raises:
        UserError: If there is no such run, it is bundled, or its request wasn't saved.
    """
    stored = read_request(own_folder(name))
    return kinds.read_request(stored), Path(stored.folder)


def kind_title(info: RunInfo) -> str:
    """Return the title of a run's kind of probe."""
    return kinds.KINDS[info.kind].title if info.kind in kinds.KINDS else info.kind


export_run = Function(
    ExportRunRequest,
    export_files,
    lambda exported: exported.folder,
    """Write the answers of a run to files for other tools; lm-pub-quiz and `runs import` open them.

    Returns:
        The folder.

    Raises:
        UserError: If there is no such run, the folder exists, or the run doesn't store what the
            format needs.
    """,
)
