"""The plan of statement runs: a `StatementsRequest` becomes a `StatementSpec` for each model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from lama_core.datasets import Dataset, load_dataset
from lama_core.errors import UserError, choose
from lama_core.models.protocols import HIDINGS
from lama_core.probes.plan import (
    Planned,
    check_models_and_limit,
    dataset_fields,
    load_known_models,
    model_spec_fields,
    relations_with_facts,
)
from lama_core.probes.statements.spec import StatementSpec
from lama_core.requests import option
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring import shared_fields
from lama_core.scoring.answer_spaces import RELATION, named_space
from lama_core.scoring.prompt_choice import PromptSet
from lama_core.scoring.queries import check_questions
from lama_core.scoring.statement_scores import (
    AGGREGATES,
    PARTS,
    AggregateChoice,
    PartChoice,
    Scoring,
)
from lama_core.types import Relation


@dataclass(frozen=True)
class StatementsRequest(shared_fields.RunSettings):
    """The fields of `statements`: a dataset whose facts' answers are ranked as statements.

    With relations () all relations with facts are used. For relations without templates, the
    sentences of their facts are used.
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
        str,
        option(
            "The answers to rank: relation (each relation's answers), or file:PATH (one per line)."
        ),
    ] = RELATION
    aggregate: AggregateChoice = "sum"
    part: PartChoice = "statement"
    hiding: shared_fields.Hiding = "within-word"
    ranking: shared_fields.Ranking = "filtered"
    precision: shared_fields.Precision = "auto"
    limit: shared_fields.Limit = None
    revisions: shared_fields.Revisions = ()


def plan(request: StatementsRequest, *, load: Load = load_by_name) -> Planned[StatementSpec]:
    """Return one specification for each model; load: loads a model by name."""
    check_models_and_limit(request.models, request.limit, request.ranking)
    choose(request.aggregate, AGGREGATES, "aggregate")
    choose(request.part, PARTS, "part")
    choose(request.hiding, HIDINGS, "hiding")
    space = named_space(request.answers)
    dataset = load_dataset(request.dataset)
    chosen = relations_with_facts(dataset, request.relations)
    prompts = numbered_template(chosen, request.template)
    names = tuple(
        relation.name for relation in chosen if request.template == 0 or prompts.of(relation.name)
    )
    check_questions(dataset, names, prompts, request.limit)
    models = load_known_models(request, load)
    shared = dataset_fields(request.dataset, dataset, names, request.ranking, request.limit)
    specs = [
        StatementSpec(
            **shared,
            **model_spec_fields(model, model.reference),
            prompts=prompts,
            candidates=space,
            context="both",
            scoring=Scoring(request.aggregate, request.part, request.hiding),
        )
        for model in models
    ]
    return Planned(tuple(specs), tuple(dataset.report.notes))


def most_templates(dataset: Dataset, relations: Sequence[str] = ()) -> int:
    """Return the largest number of templates of any relation (() for all relations), at least 1."""
    numbers = (
        len(relation.prompts)
        for relation in dataset.relations
        if not relations or relation.name in relations
    )
    return max(1, max(numbers, default=1))


def numbered_template(relations: Sequence[Relation], number: int) -> PromptSet:
    """Return template `number`, counted from 0, of each relation that has it.

    Raises:
        UserError: If the number is negative, or is above 0 and no relation has the template.
    """
    if number < 0:
        raise UserError(f"The template is {number}: choose 0 or more.")
    templates = tuple(
        (relation.name, (relation.prompts[number].template,))
        for relation in relations
        if number < len(relation.prompts)
    )
    if not templates and number:
        most = max((len(relation.prompts) for relation in relations), default=0)
        raise UserError(
            f"No relation has a template {number}: the highest number is {max(most - 1, 0)}, "
            "counted from 0."
        )
    return PromptSet(f"template {number}", "template", templates)
