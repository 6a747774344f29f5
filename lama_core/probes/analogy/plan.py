"""The plan of analogy probes: one `AnalogySpec` for each scorer, setting and probe."""

from dataclasses import replace
from typing import Any

from lama_core.datasets import load_analogies
from lama_core.errors import choose
from lama_core.models.cache import Precision
from lama_core.models.protocols import KINDS, Kind
from lama_core.probes.analogy.instances import PROBES, words_of
from lama_core.probes.analogy.request import AnalogyRequest
from lama_core.probes.analogy.scorers import PAIR_SCORERS
from lama_core.probes.analogy.spec import AnalogySpec, ProbeRun
from lama_core.probes.making_runs import RunFunction, Runs, unchanged
from lama_core.probes.plan import data_fields
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring.shared_fields import DEFAULT_MODEL


def plan(request: AnalogyRequest, *, load: Load = load_by_name) -> tuple[AnalogySpec, ...]:
    """Return the specifications of a request's runs, scorer by scorer.

    Loads the scorers, because a run's identity depends on the identity of its scorer; a request
    without a scorer has the embedded model. Raises UserError for an invalid request.
    """
    if not request.scorers:
        request = replace(request, models=(DEFAULT_MODEL,))
    options = request.options
    probes = dict.fromkeys(choose(name, PROBES, "probe") for name in request.probes or PROBES)
    dataset = load_analogies(request.dataset)
    relations = dataset.choose(request.relations)
    words = words_of(relations)
    names = tuple(relation.name for relation in relations)
    # Keeps each model's kind and precision, not the model, to save memory.
    known: dict[str, tuple[Kind, Precision]] = {}

    def load_model(name: str) -> Any:
        model = load(name, precision=request.precision)
        known[name] = model.kind, model.precision
        return model

    specs = []
    for method, reference in request.scorers:
        scorer = PAIR_SCORERS[method](reference, words, options, load_model)
        unknown: tuple[None, Precision] = (None, "fp32")
        kind, precision = known[reference] if method == "model" else unknown
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
            for setting in request.settings
            for probe in probes
        ]
    return tuple(specs)


def _note_exclusions(runs: Runs) -> Runs:
    """Add a note for each reason why instances are excluded."""
    reasons: set[str] = set()
    for run in map(ProbeRun, runs):
        reasons |= {excluded.reason for excluded in run.details.left_out}
        if missing := run.details.missing:
            rest = f" and {len(missing) - 20} more" if len(missing) > 20 else ""
            reasons.add(
                f"{run.info.model} has no vector for {', '.join(missing[:20])}{rest}: instances "
                "with these words are excluded from this baseline."
            )
    for reason in sorted(reasons):
        runs.request.on_note(reason)
    return runs


analogy_probe = RunFunction(
    AnalogyRequest,
    plan,
    _note_exclusions,
    unchanged,
    """Probe models and word vectors with analogies; make a run for each model, setting and probe.

    Returns:
        The runs; `.frame` has a row for each model, probe and instance.

    Raises:
        UserError: If the dataset, a relation or a model is unknown, or settings contradict.
    """,
    example="analogy probe --dataset starter-analogies --model minilm-mlm --limit 50",
)
