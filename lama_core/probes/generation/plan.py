"""The plan of runs of generated answers: one `GenerationSpec` for each model of the request."""

from lama_core.datasets import load_dataset
from lama_core.datasets.dataset import digest_of
from lama_core.models.generators import check_generates, has_chat_template, template_digest
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.generation.spec import GenerationSpec
from lama_core.probes.making_runs import RunFunction, unchanged
from lama_core.probes.plan import (
    data_fields,
    load_each,
    model_fields,
    relations_with_facts,
)
from lama_core.queries.question_prompts import QUESTIONS_FILE
from lama_core.runs.spec import Load, load_by_name


def plan(request: GenerateRequest, *, load: Load = load_by_name) -> tuple[GenerationSpec, ...]:
    """Return one specification for each model. load: Loads a model by name."""
    dataset = load_dataset(request.dataset)
    names = tuple(one.name for one in relations_with_facts(dataset, request.relations))
    shared = data_fields(request, dataset, names)
    aliases = [
        (fact.id, fact.aliases)
        for name in names
        for fact in dataset.facts_of(name)[: request.limit]
        if fact.aliases
    ]
    digest = digest_of([QUESTIONS_FILE.read_text(encoding="utf-8")])

    def make(name: str) -> GenerationSpec:
        model = load(name, precision=request.precision)
        check_generates(model)
        chats = has_chat_template(model) and not request.plain
        return GenerationSpec(
            **shared,
            **model_fields(model, name),
            context="left" if model.kind == "causal" else "both",
            how="chat" if chats else "question and answer",
            questions_digest=digest,
            aliases_digest=digest_of(aliases) if aliases else "",
            template_digest=template_digest(model) if chats else "",
        )

    return tuple(spec for _, spec in load_each(request, make))


generate = RunFunction(
    GenerateRequest,
    plan,
    unchanged,
    unchanged,
    """Ask models questions about a dataset's facts, in free text; make a run for each model.

    A text is right if whole words of it are the right answer or one of its aliases.

    Returns:
        The runs; `.frame` has a row for each model and fact, with the text in `answer`.

    Raises:
        UserError: If a model can't generate text, or a relation has too few facts for the examples.
    """,
    example="generate --dataset starter --relation P36 --model smollm2-135m --limit 20",
)
