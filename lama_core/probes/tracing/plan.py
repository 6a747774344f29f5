"""The plan of runs of causal traces: a `TraceRequest` becomes a `TraceSpec` for each model."""

from lama_core.probes.plan import (
    choose_context,
    choose_queries,
    cloze_fields,
    load_known_models,
)
from lama_core.probes.tracing.request import TraceRequest
from lama_core.probes.tracing.spec import TraceSpec
from lama_core.runs.spec import Load, load_by_name

PROMPTS = "manual"


def plan(request: TraceRequest, *, load: Load = load_by_name) -> tuple[TraceSpec, ...]:
    """Return one specification for each model, with the dataset's templates.

    Raises:
        UserError: If the request is invalid, or its data or models can't be loaded.
    """
    request.check()
    queries = choose_queries(request, PROMPTS)
    models = load_known_models(request, load)
    return tuple(
        TraceSpec(**fields, context=choose_context(None, model.kind))
        for model, fields in cloze_fields(request, queries, models)
    )
