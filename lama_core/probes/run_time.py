"""The size of a run before it starts, and its time, estimated from a small run: its sample.

    seconds(run) = before(sample) + scoring(sample) * size(run) / size(sample)

`before` is the time until the first query is scored: imports, models, preparation.
"""

from dataclasses import dataclass, replace
from typing import Any

from lama_core.datasets import Dataset
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.plan import relations_with_facts
from lama_core.probes.prompts.plan import prompts_to_study
from lama_core.probes.prompts.request import StudyRequest
from lama_core.probes.statements.request import StatementsRequest
from lama_core.probes.tracing.request import TraceRequest
from lama_core.scoring.answer_spaces import answers_of, named_space

Startable = ProbeRequest | StatementsRequest | GenerateRequest | TraceRequest | StudyRequest
# Relations of a sample, and facts of each, so that it has about 50 queries.
SAMPLES: dict[type, tuple[int, int]] = {
    ProbeRequest: (3, 17),
    StatementsRequest: (3, 1),
    GenerateRequest: (3, 3),
    TraceRequest: (3, 2),
    StudyRequest: (1, 3),
}


@dataclass(frozen=True, slots=True)
class RunSize:
    """The amount that a run scores with each model. of_relation: relation -> number of `unit`."""

    unit: str
    of_relation: dict[str, int]

    @property
    def total(self) -> int:
        """The number of facts, statements or queries; excluded facts are counted, too."""
        return sum(self.of_relation.values())


def size_of(request: Startable, dataset: Dataset) -> RunSize:
    """Return the size of a run without loading a model.

    Raises:
        UserError: If the request names unknown relations or answers.
    """
    if isinstance(request, StudyRequest):
        return RunSize("queries", _study_sizes(request, dataset))
    names = [relation.name for relation in relations_with_facts(dataset, request.relations)]
    n_facts = {name: _limited(len(dataset.facts_of(name)), request.limit) for name in names}
    if not isinstance(request, StatementsRequest):
        return RunSize("facts", n_facts)
    space = named_space(request.answers)
    n_answers = {name: len(answers_of(space, dataset, name)) for name in names}
    return RunSize("statements", {name: n * n_answers[name] for name, n in n_facts.items()})


def sample_of(request: Startable, dataset: Dataset) -> Startable:
    """Return a run with the same settings on a few facts of some relations, spread evenly."""
    n_relations, n_facts = SAMPLES[type(request)]
    names = tuple(size_of(request, dataset).of_relation)
    step = max(1, len(names) // n_relations)
    chosen = names[step // 2 :: step][:n_relations]
    if isinstance(request, StudyRequest):
        limits: dict[str, Any] = {"limit": n_facts, "train_limit": n_facts, "save_runs": False}
        return replace(request, relations=chosen, **limits)
    return replace(request, relations=chosen, limit=n_facts)


def seconds_of(request: Startable, dataset: Dataset, *, before: float, scoring: float) -> float:
    """Return the estimated seconds of a run. before, scoring: the seconds of its sample."""
    measured = size_of(sample_of(request, dataset), dataset).total
    return before + scoring * size_of(request, dataset).total / max(1, measured)


def _study_sizes(request: StudyRequest, dataset: Dataset) -> dict[str, int]:
    """Relation -> number of queries: each prompt with each training and test fact."""
    sizes = {}
    for relation, pool in prompts_to_study(request, dataset):
        n_facts = len(dataset.facts_of(relation.name))
        n_test = n_facts if request.training else n_facts - n_facts // 2
        sizes[relation.name] = len(pool.entries) * sum(
            (_limited(n_test, request.limit), _limited(n_test, request.train_limit))
        )
    return sizes


def _limited(n: int, limit: int | None) -> int:
    return n if limit is None else min(n, limit)
