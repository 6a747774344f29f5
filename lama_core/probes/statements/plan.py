"""The plan of statement runs: a `StatementsRequest` becomes a `StatementSpec` for each model."""

from collections.abc import Sequence

from lama_core.datasets import Dataset, load_dataset
from lama_core.errors import UserError
from lama_core.probes.making_runs import RunFunction, unchanged
from lama_core.probes.plan import (
    data_fields,
    load_known_models,
    model_fields,
    relations_with_facts,
)
from lama_core.probes.statements.request import StatementsRequest
from lama_core.probes.statements.spec import StatementSpec
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring.answer_spaces import named_space
from lama_core.scoring.prompt_choice import PromptSet
from lama_core.scoring.queries import check_questions
from lama_core.types import Relation


def plan(request: StatementsRequest, *, load: Load = load_by_name) -> tuple[StatementSpec, ...]:
    """Return one specification for each model; load: loads a model by name."""
    space = named_space(request.answers)
    dataset = load_dataset(request.dataset)
    chosen = relations_with_facts(dataset, request.relations)
    prompts = numbered_template(chosen, request.template)
    names = tuple(
        relation.name for relation in chosen if request.template == 0 or prompts.of(relation.name)
    )
    check_questions(dataset, names, prompts, request.limit)
    models = load_known_models(request, load)
    shared = data_fields(request, dataset, names)
    return tuple(
        StatementSpec(
            **shared,
            **model_fields(model, model.reference),
            takes_start_token=model.takes_start_token,
            prompts=prompts,
            candidates=space,
            context="both",
        )
        for model in models
    )


def most_templates(dataset: Dataset, relations: Sequence[str] = ()) -> int:
    """Return the largest number of templates of any relation (() for all relations), at least 1."""
    numbers = (
        len(relation.templates)
        for relation in dataset.relations
        if not relations or relation.name in relations
    )
    return max(1, max(numbers, default=1))


def numbered_template(relations: Sequence[Relation], number: int) -> PromptSet:
    """Return template `number`, counted from 0, of each relation that has it.

    Raises:
        UserError: If no relation has a template with a number above 0.
    """
    templates = tuple(
        (relation.name, (relation.templates[number],))
        for relation in relations
        if number < len(relation.templates)
    )
    if not templates and number:
        most = max((len(relation.templates) for relation in relations), default=0)
        raise UserError(
            f"No relation has a template {number}: the highest number is {max(most - 1, 0)}, "
            "counted from 0."
        )
    return PromptSet(f"template {number}", "template", templates)


statements = RunFunction(
    StatementsRequest,
    plan,
    unchanged,
    unchanged,
    """Rank each relation's answers by the likelihood of the whole statement, for each model.

    Returns:
        The runs; `.frame` has a row for each model and fact.

    Raises:
        UserError: If the dataset, a relation or a model is unknown, or settings contradict.
    """,
    example="statements --dataset starter --relation P36 --model minilm-mlm --limit 20",
)
