"""From what a user asks for to the specifications of runs of statements.

StatementsRequest --plan--> StatementSpec, one a model
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from lama_core.datasets import Dataset, load_dataset
from lama_core.errors import UserError, choose
from lama_core.models.protocols import HIDINGS
from lama_core.probes.plan import (
    Planned,
    ask_of,
    check_asked,
    choose_with_facts,
    from_data,
    of_model,
)
from lama_core.probes.statements.answer_spaces import RELATION, named_space
from lama_core.probes.statements.scoring import (
    AGGREGATES,
    PARTS,
    AggregateChoice,
    PartChoice,
    Scoring,
)
from lama_core.probes.statements.spec import StatementSpec
from lama_core.requests import option
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring import shared_fields
from lama_core.scoring.prompt_choice import PromptSet
from lama_core.scoring.queries import check_questions
from lama_core.types import Relation


@dataclass(frozen=True)
class StatementsRequest(shared_fields.RunSettings):
    """Whole answers to rank on a dataset: the fields of `statements`.

    relations: () is all with facts; those without templates use the sentences of their facts.
    """

    command: ClassVar[tuple[str, ...]] = ("statements",)
    python: ClassVar[str] = "statements"

    dataset: shared_fields.Dataset
    models: shared_fields.Models
    relations: shared_fields.Relations = ()
    template: Annotated[
        int, option("Number of the template of each relation, counted from 0.", ge=0)
    ] = 0
    answers: Annotated[
        str, option("What is ranked: relation (the relation's answers), or file:PATH, one a line.")
    ] = RELATION
    aggregate: AggregateChoice = "sum"
    part: PartChoice = "statement"
    hiding: shared_fields.Hiding = "within-word"
    ranking: shared_fields.Ranking = "filtered"
    precision: shared_fields.Precision = "auto"
    limit: shared_fields.Limit = None


def plan(request: StatementsRequest, *, load: Load = load_by_name) -> Planned[StatementSpec]:
    """Return one specification for each model. load: how to get a model."""
    check_asked(request.models, request.limit, request.ranking)
    choose(request.aggregate, AGGREGATES, "aggregate")
    choose(request.part, PARTS, "part")
    choose(request.hiding, HIDINGS, "hiding")
    space = named_space(request.answers)
    dataset = load_dataset(request.dataset)
    chosen = choose_with_facts(dataset, request.relations)
    prompts = numbered_template(chosen, request.template)
    names = tuple(one.name for one in chosen if request.template == 0 or prompts.of(one.name))
    check_questions(dataset, names, prompts, request.limit)
    models = [ask_of(name, load, request.precision) for name in dict.fromkeys(request.models)]
    shared = from_data(request.dataset, dataset, names, request.ranking, request.limit)
    specs = [
        StatementSpec(
            **shared,
            **of_model(model, model.reference),
            prompts=prompts,
            candidates=space,
            context="both",
            scoring=Scoring(request.aggregate, request.part, request.hiding),
        )
        for model in models
    ]
    return Planned(tuple(specs), tuple(dataset.report.notes))


def most_templates(dataset: Dataset, relations: Sequence[str] = ()) -> int:
    """The most templates that one of these relations has, at least 1; () is all."""
    known = [one for one in dataset.relations if not relations or one.name in relations]
    return max((len(one.prompts) for one in known), default=1) or 1


def numbered_template(relations: Sequence[Relation], number: int) -> PromptSet:
    """Return the template of that number, from 0, of each relation that has so many."""
    if number < 0:
        raise UserError(f"The template is {number}: they are counted from 0.")
    found = tuple(
        (one.name, (one.prompts[number].template,))
        for one in relations
        if number < len(one.prompts)
    )
    if not found and number:
        most = max((len(one.prompts) for one in relations), default=0)
        raise UserError(
            f"No relation has a template {number}: they are counted from 0, and there are {most}."
        )
    return PromptSet(f"template {number}", "template", found)
