"""From what a user asks for to the specifications of probe runs: the command, and the page's form.

AnalogyRequest --plan--> AnalogySpec, one a judge, setting and probe
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal, get_args

from lama_core.datasets import analogy_names, load_analogies
from lama_core.datasets.library.installed import STARTER_ANALOGIES
from lama_core.errors import UserError, choose
from lama_core.models.cache import Precision
from lama_core.models.protocols import KINDS, Kind, Pooling
from lama_core.probes.analogy.instances import (
    HIDDEN,
    MOST_PAIRS,
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
from lama_core.probes.analogy.score import NORMALISATIONS, Normalise, NormaliseChoice
from lama_core.probes.analogy.scorers import JUDGES, Method
from lama_core.probes.analogy.spec import AnalogySpec, ProbeRun
from lama_core.probes.analogy.templates import DEFAULT_TEMPLATE, TemplateChoice, template_name
from lama_core.probes.plan import check_limit, from_data
from lama_core.requests import option
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring import shared_fields

Settings = Literal["unsupervised", "supervised", "both"]


@dataclass(frozen=True)
class AnalogyRequest(shared_fields.OutSettings):
    """Analogies to probe models and vectors with: the fields of `analogy probe`.

    models, vectors, relbert: what is probed. The rest: see `probes.ProbeOptions`.
    """

    command: ClassVar[tuple[str, ...]] = ("analogy", "probe")
    python: ClassVar[str] = "analogy_probe"

    dataset: Annotated[str, option("An analogy set's name, or a folder in BATS's layout.")] = (
        STARTER_ANALOGIES
    )
    models: shared_fields.Models = ()
    vectors: Annotated[
        Sequence[str],
        option(
            "Static word vectors as a baseline: a word2vec, fastText or GloVe text file, "
            "archive!file, or package:name/file."
        ),
    ] = ()
    relbert: Annotated[
        Sequence[str], option("A RelBERT model (hub name or folder) as a baseline.")
    ] = ()
    relations: shared_fields.Relations = ()
    probes: Annotated[
        Sequence[str], option(f"{', '.join(PROBES)}. Default: all.", name="--probe")
    ] = ()
    setting: Annotated[Settings, option("unsupervised, supervised, or both.")] = "unsupervised"
    template: TemplateChoice = DEFAULT_TEMPLATE
    normalise: NormaliseChoice = "sum"
    seed: Annotated[int, option("Seed of the negatives, the limit and the split.")] = 0
    limit: Annotated[
        int | None, option("Instances of each relation, drawn at random. Default: all.", ge=1)
    ] = None
    strict: Annotated[bool, option("Never draw a negative that happens to be true.")] = False
    tails: Annotated[
        Tails,
        option(
            "several: a head makes a pair with each of its tails, first tails first, up to "
            f"{MOST_PAIRS} pairs a relation; first: with its first tail alone."
        ),
    ] = "several"
    pairing: Annotated[
        Pairing,
        option(
            "Unsupervised: halves (the paper's: a query and its candidates are of one half of the "
            "pairs, as in the supervised setting) or all (of all pairs)."
        ),
    ] = "halves"
    reverse: Annotated[
        Reverse, option("The reverse probe reverses a random pair, or the positive one.")
    ] = "random"
    layer: Annotated[int, option("Supervised: 0 is the input embeddings, -1 the last layer.")] = -1
    pooling: Annotated[
        Pooling, option("Supervised: mean, first or last of a word's subword tokens.")
    ] = "mean"
    hidden: Annotated[int, option("Supervised: hidden units.", ge=1)] = HIDDEN
    n_seeds: Annotated[
        int, option("Supervised: number of classifiers to train.", name="--seeds", ge=1)
    ] = N_SEEDS
    precision: shared_fields.Precision = "auto"
    by: Annotated[
        Literal["relation", "kind"], option("Show a row for each relation, or each kind of them.")
    ] = "kind"

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
    kinds: dict[str, tuple[Kind, Precision]] = {}  # and not the models: many need no room at once

    def load_one(name: str) -> Any:
        model = load(name, precision=request.precision)
        kinds[name] = model.kind, model.precision
        return model

    specs = []
    for method, reference in request.judges:
        judge = JUDGES[method].open(reference, words, options, load_one)
        unknown: tuple[None, Precision] = (None, "fp32")
        kind, precision = kinds[reference] if method == "model" else unknown
        specs += [
            AnalogySpec(
                **from_data(request.dataset, dataset, names, "raw", options.limit),
                model=reference,
                model_name=judge.name,
                model_identity=judge.identity,
                model_kind=kind or method,
                precision=precision,
                context=KINDS[kind].contexts[0] if kind else "both",
                setting=setting,
                probe=probe,
                method=method,
                probe_options=options,
            )
            for setting in settings
            for probe in dict.fromkeys(probes)
        ]
    return tuple(specs)
