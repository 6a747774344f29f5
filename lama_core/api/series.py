"""Series of checkpoints: what a model has learned at each training step."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from lama_core.errors import UserError
from lama_core.metrics.readings import precision_by_readings, readings_of
from lama_core.metrics.score_tables import stacked
from lama_core.metrics.training import ALL, Grouping, Training, training_of
from lama_core.metrics.training import Measure as Measure
from lama_core.runs.info import Run
from lama_core.runs.series import Series as Series
from lama_core.runs.series import earlier_checkpoints as earlier_checkpoints
from lama_core.runs.series import find_series as find_series
from lama_core.runs.series import place_of as place_of
from lama_core.views.scores import ScoresRequest


@dataclass(frozen=True)
class TrainedSeries:
    """A series of checkpoints and the answers of its runs to the same facts."""

    series: Series
    training: Training

    @cached_property
    def by_readings(self) -> pd.DataFrame:
        """`metrics.readings.precision_by_readings`; empty if the readings aren't known."""
        readings = readings_of(self.series.name)
        return precision_by_readings(self.training, readings) if readings else pd.DataFrame()

    def curves(self, by: Grouping = "all") -> pd.DataFrame:
        """Return `Training.curves` with the columns series, dataset, prompts, run and model."""
        table = self.training.curves(by)
        info = self.series.last
        runs = dict(zip(self.series.steps, self.series.runs, strict=True))
        table.insert(0, "model", [runs[step].model for step in table["step"]])
        table.insert(0, "run", [runs[step].id for step in table["step"]])
        for name, value in (
            ("prompts", info.prompts),
            ("dataset", info.dataset),
            ("series", self.series.name),
        ):
            table.insert(0, name, value)
        return table


@dataclass(frozen=True)
class SeriesResults:
    """The series among the runs of a request."""

    request: ScoresRequest
    found: tuple[TrainedSeries, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each series and step: means over relations."""
        return stacked([one.curves() for one in self.found])

    def to_json(self) -> list[dict[str, Any]]:
        """Return what `results --series --json` prints."""
        by: Grouping = "source" if self.request.by == "source" else "relation"
        return [
            {
                "series": one.series.name,
                "dataset": one.series.last.dataset,
                "prompts": one.series.last.prompts,
                "k": self.request.k,
                "n": len(one.training.facts),
                "n_dropped": one.training.n_dropped,
                "steps": _plain(one.curves()),
                "groups": _plain(one.curves(by)),
                "relations": _plain(one.training.relations()),
                "facts": _plain(one.training.fates),
                "readings": one.by_readings.to_dict("records"),
            }
            for one in self.found
        ]


REPEATED = ["series", "dataset", "prompts", "group", "label"]


def _plain(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows as dictionaries; steps are int, or NaN if unknown."""
    single = "group" in table and table["group"].eq(ALL).all()
    lines = table.drop(columns=REPEATED[: 5 if single else 3], errors="ignore").to_dict("records")
    for line in lines:
        for name in ("first", "learned", "last"):
            if name in line and line[name] == line[name]:
                line[name] = int(line[name])
    return lines


def train_series(series: Series, runs: Sequence[Run], request: ScoresRequest) -> TrainedSeries:
    """Return a series with its answers.

    Args:
        series: The series.
        runs: Its runs, by step.
        request: Gives the ranking, k and the relations.

    Raises:
        UserError: If no fact counts at every step.
    """
    training = training_of(
        runs,
        series.steps,
        ranking=request.ranking or series.last.ranking,
        relations=request.relations,
        k=request.k,
    )
    if training.facts.empty:
        raise UserError(
            f"No fact of {series.last.dataset} counts at every step of {series.name}. Choose other "
            "runs or relations."
        )
    return TrainedSeries(series, training)


def series_results(request: ScoresRequest, runs: Sequence[Run]) -> SeriesResults:
    """Return the series of checkpoints among the runs; a note reports each unusable series.

    Raises:
        UserError: If there is no series, or none with a fact that counts at every step.
    """
    by_id = {run.info.id: run for run in runs}
    found, problems = [], []
    for series in find_series(run.info for run in runs):
        try:
            chosen = [by_id[info.id] for info in series.runs]
            found.append(train_series(series, chosen, request))
        except UserError as error:
            problems.append(error)
    if problems and not found:
        raise problems[0]
    if not found:
        raise UserError(
            "There is no series: a series needs runs of at least two checkpoints of one model. "
            "Make them with `probe --model OWNER/NAME --revisions step1000,step4000`, or with the "
            "folder of the checkpoints as the model."
        )
    for problem in problems:
        request.on_note(str(problem))
    return SeriesResults(request, tuple(found))
