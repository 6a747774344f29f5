"""The plan of runs of generated answers: one `GenerationSpec` for each model of the request."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from lama_core.datasets import load_dataset
from lama_core.datasets.dataset import digest_of
from lama_core.models.generators import check_generates, has_chat_template, template_digest
from lama_core.probes.generation.spec import GenerationSpec
from lama_core.probes.plan import (
    Planned,
    check_models_and_limit,
    dataset_fields,
    load_each,
    model_spec_fields,
    relations_with_facts,
)
from lama_core.queries.question_prompts import QUESTIONS_FILE
from lama_core.requests import option
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring import shared_fields

MAX_SHOTS = 10


@dataclass(frozen=True)
class GenerateRequest(shared_fields.RunSettings):
    """Questions to ask about a dataset's facts: the fields of `generate`."""

    command: ClassVar[tuple[str, ...]] = ("generate",)
    python: ClassVar[str] = "generate"

    dataset: shared_fields.Dataset
    models: shared_fields.Models
    relations: shared_fields.Relations = ()
    shots: Annotated[
        int,
        option("Examples from the same relation before each question.", ge=0, le=MAX_SHOTS),
    ] = 0
    seed: Annotated[int, option("Seed for drawing the examples.", ge=0)] = 0
    plain: Annotated[
        bool, option("Don't use the chat template: ask with `Question:` and `Answer:`.")
    ] = False
    precision: shared_fields.Precision = "auto"
    limit: shared_fields.Limit = None
    max_requests: Annotated[
        int, option("Maximum requests to a chat server; a run that needs more is refused.", ge=1)
    ] = 10_000
    price_in: Annotated[
        float | None, option("Price of a million input tokens of a chat server.", ge=0)
    ] = None
    price_out: Annotated[
        float | None, option("Price of a million output tokens of a chat server.", ge=0)
    ] = None
    revisions: shared_fields.Revisions = ()


def plan(request: GenerateRequest, *, load: Load = load_by_name) -> Planned[GenerationSpec]:
    """Return one specification for each model. load: Loads a model by name."""
    check_models_and_limit(request.models, request.limit, "filtered")
    dataset = load_dataset(request.dataset)
    names = tuple(one.name for one in relations_with_facts(dataset, request.relations))
    shared = dataset_fields(request.dataset, dataset, names, "filtered", request.limit)
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
            **model_spec_fields(model, name),
            context="left" if model.kind == "causal" else "both",
            shots=request.shots,
            seed=request.seed,
            how="chat" if chats else "question and answer",
            questions_digest=digest,
            aliases_digest=digest_of(aliases) if aliases else "",
            template_digest=template_digest(model) if chats else "",
            max_requests=request.max_requests,
            prices=(request.price_in, request.price_out),
        )

    specs = tuple(spec for _, spec in load_each(request, make))
    return Planned(specs, tuple(dataset.report.notes))
