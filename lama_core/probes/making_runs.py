"""Make the runs of a request, of any kind.

A run is saved part by part; the same call again resumes an interrupted run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import pandas as pd

from lama_core.errors import UserError
from lama_core.metrics.score_tables import of_run, stacked
from lama_core.models.sources.checkpoints import checkpoint_of
from lama_core.progress import Progress, Result
from lama_core.requests import Answer, Function, P, Request, Returned
from lama_core.runs.execute import RunStopped, execute_all
from lama_core.runs.info import Run
from lama_core.runs.spec import RunSpec, load_by_name
from lama_core.scoring.executors import make_executor
from lama_core.scoring.preparation import NoFactCounts
from lama_core.scoring.shared_fields import OutSettings, RunSettings

NO_SERIES = ""  # of a model that is no checkpoint of a training run
Plan = Callable[..., tuple[RunSpec, ...]]  # (request, load=...) -> the specifications of its runs


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
        return "\n".join(map(_line, self.runs))

    @property
    def frame(self) -> pd.DataFrame:
        """The columns `run` and `model`, then those of `load_run`, for all rows of all runs."""
        return stacked(of_run(run, **run.facts) for run in self.runs)


def _line(run: Run) -> str:
    info = run.info
    return f"{info.id}: {info.n:,} rows, {info.n_excluded:,} excluded, {info.folder}"


def make_runs(request: OutSettings, plan: Plan) -> Runs:
    """Return the runs of a request; score those that aren't finished.

    Runs that share a model are made together, model by model unless the executor computes all
    together. A checkpoint whose run fails is excluded with a note if another checkpoint of its
    series has a run, and a model without any fact that counts if another model has a run.

    Args:
        request: The request; its callbacks receive progress and notes.
        plan: Returns the specifications of its runs.

    Raises:
        UserError: If a run can't be planned, scored or saved.
    """
    planned = plan(request, load=partial(load_by_name, on_progress=request.on_progress))
    settings = request if isinstance(request, RunSettings) else RunSettings()
    executor = make_executor(settings.executor)
    by_model = [[*specs] for _, specs in groupby(planned, lambda spec: spec.scorer_key())]
    runs: list[Run] = []
    failed: list[tuple[str, str, UserError]] = []  # model, its series, why
    for specs in by_model if executor.here else [[*planned]]:
        try:
            made = execute_all(
                specs,
                folder=request.out,
                executor=executor,
                on_progress=request.on_progress,
                on_note=request.on_note,
                address=settings.parts_at,
            )
        except UserError as error:
            place = checkpoint_of(specs[0].model_name)
            damaged = not isinstance(error, RunStopped) and not isinstance(error.__cause__, OSError)
            is_alone = place is None and not isinstance(error, NoFactCounts)
            if len(specs) > 1 or is_alone or not damaged:
                raise
            failed.append((specs[0].model_name, place.series if place else NO_SERIES, error))
            continue
        for run in made:
            request.on_note(_line(run))
            request.on_progress(Progress("Finished", 1, 1, result=Result("run", run.info.id)))
        runs += made
    known = {run.info.checkpoint.series for run in runs if run.info.checkpoint}
    known |= {NO_SERIES} if runs else set()
    lost = [why for _, series, why in failed if series not in known]
    for name, _, why in failed:
        if why not in lost[-1:]:
            request.on_note(f"{name} has no run: {why}")
    if lost:
        raise lost[-1]
    return Runs(request, tuple(runs))


def unchanged(runs: Runs) -> Runs:
    """Return the runs, for functions that return nothing else."""
    return runs


class RunFunction(Function[P, Any, Answer, Returned]):
    """The Python function of a kind of run.

    Attributes:
        plan: Returns the specifications of a request's runs.
        example: A command, without the program's name.
    """

    def __init__(
        self,
        request: Callable[P, OutSettings],
        plan: Plan,
        finish: Callable[[Runs], Answer],
        shown: Callable[[Answer], Returned],
        doc: str,
        *,
        example: str,
    ) -> None:
        super().__init__(request, lambda given: finish(make_runs(given, plan)), shown, doc)
        self.plan, self.example = plan, example
