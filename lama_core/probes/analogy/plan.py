"""The plan of analogy probes: one `AnalogySpec` for each scorer, setting and probe."""

from typing import Any

from lama_core.datasets import load_analogies
from lama_core.errors import UserError, choose
from lama_core.models.cache import Precision
from lama_core.models.protocols import KINDS, Kind
from lama_core.probes.analogy.instances import PROBES, words_of
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.analogy.scorers import PAIR_SCORERS
from lama_core.probes.analogy.spec import AnalogySpec
from lama_core.probes.plan import data_fields
from lama_core.runs.spec import Load, load_by_name


def plan(request: AnalogyRequest, *, load: Load = load_by_name) -> tuple[AnalogySpec, ...]:
    """Return the specifications of a request's runs, scorer by scorer.

    Loads the scorers, because a run's identity depends on the identity of its scorer. Raises
    UserError for an invalid request.
    """
    settings, options = request.settings, request.options
    probes = tuple(choose(name, PROBES, "probe") for name in request.probes or PROBES)
    if not request.scorers:
        *titles, last = (kind.title for kind in PAIR_SCORERS.values())
        raise UserError(f"Choose at least one {', '.join(titles)} or {last} to probe.")
    dataset = load_analogies(request.dataset)
    relations = dataset.choose(request.relations)
    words = words_of(relations, options.tails)
    names = tuple(relation.name for relation in relations)
    # Keeps each model's kind and precision, not the model, to save memory.
    kinds: dict[str, tuple[Kind, Precision]] = {}

    def load_model(name: str) -> Any:
        model = load(name, precision=request.precision)
        kinds[name] = model.kind, model.precision
        return model

    specs = []
    for method, reference in request.scorers:
        scorer = PAIR_SCORERS[method].open(reference, words, options, load_model)
        unknown: tuple[None, Precision] = (None, "fp32")
        kind, precision = kinds[reference] if method == "model" else unknown
        specs += [
            AnalogySpec(
                **data_fields(request, dataset, names),
                model=reference,
                model_name=scorer.name,
                model_identity=scorer.identity,
                model_kind=kind or method,
                precision=precision,
                context=KINDS[kind].contexts[0] if kind else "both",
                setting=setting,
                probe=probe,
                method=method,
            )
            for setting in settings
            for probe in dict.fromkeys(probes)
        ]
    return tuple(specs)
