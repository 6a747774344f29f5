"""From what a user asks for to the specifications of probe runs: the command, and the page's form.

AnalogyRequest --plan--> AnalogySpec, one a judge, setting and probe
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Literal, get_args

from lama_core.datasets import analogy_names, load_analogies
from lama_core.errors import UserError, choose
from lama_core.models.base import KINDS, Pooling
from lama_core.models.loader import Precision
from lama_core.probes.analogy.judges import JUDGES, Method
from lama_core.probes.analogy.probes import (
    HIDDEN,
    N_SEEDS,
    PROBES,
    SETTINGS,
    Pairing,
    ProbeOptions,
    Reverse,
    Setting,
    Tails,
    words_of,
)
from lama_core.probes.analogy.runs import AnalogySpec, ProbeRun
from lama_core.probes.analogy.score import NORMALISATIONS, Normalise
from lama_core.probes.analogy.templates import DEFAULT_TEMPLATE, template_name
from lama_core.probes.probing import check_limit, from_data
from lama_core.requests import option
from lama_core.runs.spec import Load, load_by_name

Settings = Literal["unsupervised", "supervised", "both"]


@dataclass(frozen=True, slots=True)
class AnalogyRequest:
    """What a user asks for: the choices of `analogy probe` and of the page.

    dataset: a name or a folder. models, vectors, relbert: who is asked. relations: () is all.
    probes: () is all four. The rest: see `probes.ProbeOptions`.
    """

    command: ClassVar[tuple[str, ...]] = ("analogy", "probe")

    dataset: str
    models: tuple[str, ...] = option("--model", default=())
    vectors: tuple[str, ...] = ()
    relbert: tuple[str, ...] = ()
    relations: tuple[str, ...] = option("--relation", default=())
    probes: tuple[str, ...] = option("--probe", default=())
    setting: str = "unsupervised"
    template: str = DEFAULT_TEMPLATE
    normalise: str = "sum"
    seed: int = 0
    limit: int | None = None
    strict: bool = False
    tails: Tails = "several"
    pairing: Pairing = "halves"
    reverse: Reverse = "random"
    layer: int = -1
    pooling: str = "mean"
    hidden: int = HIDDEN
    n_seeds: int = option("--seeds", default=N_SEEDS)
    precision: Precision = "auto"

    @property
    def settings(self) -> tuple[Setting, ...]:
        """One setting, or both. Raises UserError for an unknown one."""
        known: tuple[Settings, ...] = get_args(Settings)
        chosen = choose(self.setting, known, "setting")
        return SETTINGS if chosen == "both" else (chosen,)

    @property
    def options(self) -> ProbeOptions:
        """How probes are made and decided. Raises UserError for what can't be."""
        check_limit(self.limit)
        normalisations: tuple[Normalise, ...] = NORMALISATIONS
        poolings: tuple[Pooling, ...] = get_args(Pooling)
        names = [field.name for field in fields(ProbeOptions)]
        checked = {
            "template": template_name(self.template),
            "normalise": choose(self.normalise, normalisations, "normalisation"),
            "pooling": choose(self.pooling, poolings, "pooling"),
        }
        return ProbeOptions(**{name: getattr(self, name) for name in names} | checked)

    @property
    def judges(self) -> tuple[tuple[Method, str], ...]:
        """Who is asked: (method, name), each once."""
        named = ((method, getattr(self, kind.field)) for method, kind in JUDGES.items())
        return tuple(dict.fromkeys((method, one) for method, names in named for one in names))


def requests_of(runs: Sequence[ProbeRun]) -> tuple[AnalogyRequest, ...]:
    """The requests that make some runs again, one for all that differ in judge or probe alone."""
    found: dict[AnalogyRequest, dict[str, dict[str, None]]] = {}
    for run in runs:
        info, details = run.info, run.details
        common = AnalogyRequest(
            info.dataset,
            relations=_chosen_relations(run),
            setting=details.setting,
            precision=info.precision,
            **asdict(details.options),
        )
        names = found.setdefault(common, {name: {} for name in (*JUDGES, "probe")})
        names[details.method][info.model] = None
        names["probe"][details.probe] = None
    return tuple(
        replace(
            common,
            **dict[str, Any]((kind.field, tuple(names[one])) for one, kind in JUDGES.items()),
            probes=() if set(names["probe"]) == set(PROBES) else tuple(names["probe"]),
        )
        for common, names in found.items()
    )


def _chosen_relations(run: ProbeRun) -> tuple[str, ...]:
    """The relations that were chosen; () for all of the analogies, where these are here."""
    left_out = [one.relation for one in run.details.left_out]
    names = [*(one.name for one in run.details.relations), *left_out]
    if run.info.dataset not in analogy_names():
        return tuple(names)
    known = [relation.name for relation in load_analogies(run.info.dataset).relations]
    return () if set(names) == set(known) else tuple(names)


def plan(request: AnalogyRequest, *, load: Load = load_by_name) -> tuple[AnalogySpec, ...]:
    """Return the specifications of the request's runs, judge by judge. Opens the judges."""
    settings, options = request.settings, request.options
    probes = tuple(choose(name, PROBES, "probe") for name in request.probes or PROBES)
    if not request.judges:
        *some, last = (kind.title for kind in JUDGES.values())
        raise UserError(f"Name at least one {', '.join(some)} or {last} to ask.")
    dataset = load_analogies(request.dataset)
    relations = dataset.choose(request.relations)
    words = words_of(relations, options.tails)
    names = tuple(relation.name for relation in relations)
    models: dict[str, Any] = {}

    def load_one(name: str) -> Any:
        models[name] = load(name, precision=request.precision)
        return models[name]

    specs = []
    for method, reference in request.judges:
        judge = JUDGES[method].open(reference, words, options, load_one)
        model = models.get(reference) if method == "model" else None
        specs += [
            AnalogySpec(
                **from_data(request.dataset, dataset, names, "raw", options.limit),
                model=reference,
                model_name=judge.name,
                model_identity=judge.identity,
                model_kind=model.kind if model else method,
                precision=model.precision if model else "fp32",
                context=KINDS[model.kind].contexts[0] if model else "both",
                setting=setting,
                probe=probe,
                method=method,
                probe_options=options,
            )
            for setting in settings
            for probe in dict.fromkeys(probes)
        ]
    return tuple(specs)
