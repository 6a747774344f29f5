"""Select and weight the prompts of a study (Jiang et al. 2020)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from lama_core.models.protocols import Context
from lama_core.probes.making_runs import RunFunction, Runs
from lama_core.probes.prompts.plan import plan
from lama_core.probes.prompts.published_scores import make_table
from lama_core.probes.prompts.request import SelectRequest, StudyRequest
from lama_core.probes.prompts.spec import Study, save_ensembles
from lama_core.probes.prompts.study import RelationStudy
from lama_core.progress import Progress, Result
from lama_core.runs.info import Run
from lama_core.scoring.blanks import shows_subject

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class StudyResult:
    """A finished study of prompts.

    Attributes:
        study: The run of the study.
        relations: The measurements of each relation, in natural order.
        runs: The ensembles that were saved as runs.
    """

    study: Study
    relations: tuple[RelationStudy, ...]
    runs: tuple[Run, ...] = ()

    @property
    def table(self) -> Sequence[Any]:
        """A row for each set of prompts and method, over all relations (`published_scores`)."""
        return make_table(self.relations, self.relations[0].model)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each set of prompts and method."""
        return pd.DataFrame([asdict(row) for row in self.table])

    def to_json(self) -> dict[str, Any]:
        """Return what `prompts fit --json` prints."""
        return {
            "table": [asdict(row) for row in self.table],
            "relations": [asdict(score) for study in self.relations for score in study.scores()],
            "ensembles": [
                {
                    "relation": study.relation.name,
                    "set": fit.combination,
                    "method": fit.method,
                    "objective": fit.objective,
                    "n_epochs": fit.n_epochs,
                    "weights": {
                        template: round(float(weight), 6)
                        for template, weight in zip(study.pool.templates, fit.weights, strict=True)
                        if weight > 0
                    },
                }
                for study in self.relations
                for fit in study.ensembles
            ],
            "runs": [run.info.id for run in self.runs],
        }

    def prompts(self) -> Rows:
        """Return a row for each relation and prompt, ordered by accuracy on the training facts."""
        context = self.study.info.context
        return [row for relation in self.relations for row in _prompt_rows(relation, context)]


def _result(runs: Runs) -> StudyResult:
    study = Study(runs.runs[0])
    return StudyResult(study, tuple(study.relation(name) for name in study.relations))


def _saved(made: Runs) -> StudyResult:
    """Return the study; save its ensembles as runs if the request asks for it."""
    result, request = _result(made), made.request
    assert isinstance(request, StudyRequest)
    if not request.save_runs:
        return result
    runs = save_ensembles(result.study, request, folder=request.out)
    for one in runs:
        request.on_note(f"run {one.info.id}")
        request.on_progress(Progress("Saved", 1, 1, result=Result("run", one.info.id)))
    return replace(result, runs=runs)


def _prompt_rows(study: RelationStudy, context: Context) -> Rows:
    order = sorted(
        range(len(study.pool.entries)), key=lambda number: -study.train_accuracies[number]
    )
    only = study.only_right.sum(axis=1)
    return [
        {
            "relation": study.relation.name,
            "template": study.pool.prompts[number].template,
            "origin": study.pool.prompts[number].origin,
            "train": float(study.train_accuracies[number]),
            "test": float(study.test_accuracies[number]),
            "only_right": int(only[number]),
            "shows_subject": shows_subject(study.pool.prompts[number].template, context),
        }
        for number in order
    ]


select_prompts = RunFunction(
    SelectRequest,
    plan,
    _result,
    lambda result: pd.DataFrame(result.prompts()),
    """Measure each prompt's accuracy on training and test facts.

    Returns:
        A DataFrame with a row for each relation and prompt, the best on the training facts first.

    Raises:
        UserError: If the dataset, a relation or the model is unknown, or no prompt can be scored.
    """,
    example="prompts select --dataset starter --relation P36",
)
study = RunFunction(
    StudyRequest,
    plan,
    _saved,
    lambda result: result,
    """Select and weight prompts: Top-K and optimised ensembles, micro and macro accuracy.

    Returns:
        The study; `.frame` has a row for each set of prompts and method.

    Raises:
        UserError: If the dataset, a relation or the model is unknown, or no prompt can be scored.
    """,
    example="prompts fit --dataset starter --relation P36",
)
