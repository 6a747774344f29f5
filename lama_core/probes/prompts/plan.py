"""From what a user asks for to the specification of a study: the commands, and the page's form.

StudyRequest --plan--> StudySpec
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import COMMON, known_before, named_candidates, read_candidate_file
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import STARTER, installed_dir, pairs_dir, prompts_dir
from lama_core.datasets.prompt_sets import (
    PromptPool,
    load_pool,
    parse_combination,
    relations_in,
)
from lama_core.errors import UserError, choose
from lama_core.models.protocols import BlankFiller
from lama_core.probes.plan import check_limit, choose_context, from_data, of_model
from lama_core.probes.prompts.ensemble import RECIPES, RELEASED
from lama_core.probes.prompts.selection import set_aside
from lama_core.probes.prompts.spec import Study, StudySpec, split_of
from lama_core.probes.prompts.study import StudyOptions
from lama_core.probes.prompts.training_pairs import RELEASED_SHARE, pairs_digest
from lama_core.requests import option
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import shows_subject
from lama_core.scoring.ranking import RANKINGS
from lama_core.types import Relation

VOCABULARY_FILE = "common_vocab_cased.txt"
COMBINATIONS = ("manual", "mine", "mine+man", "mine+para", "man+para")


PromptFolder = Annotated[
    Path | None,
    option(
        "An imported set of prompts by its name, or a folder in LPAQA's layout. Default: the "
        "dataset's own prompts."
    ),
]


@dataclass(frozen=True, kw_only=True)
class SelectRequest(shared_fields.OutSettings):
    """Prompts to evaluate one by one: the fields of `prompts select`."""

    command: ClassVar[tuple[str, ...]] = ("prompts", "select")
    python: ClassVar[str] = "select_prompts"

    dataset: shared_fields.Dataset = STARTER
    model: shared_fields.ModelName = shared_fields.DEFAULT_MODEL
    relations: shared_fields.Relations = ()
    prompts: PromptFolder = None
    own: Annotated[
        Sequence[str],
        option("Your own prompt with [X] and [Y]; repeat for several.", name="--template"),
    ] = ()
    training: Annotated[
        Path | None,
        option(
            "An imported set that has training pairs, or a folder of them (one P*.jsonl a "
            "relation). Default: half of the facts train."
        ),
    ] = None
    training_share: Annotated[
        float | None,
        option(
            "Share of the training pairs that prompts are selected and weighted on; the others are "
            "not used. Default: 0.8 with --training, as in LPAQA's released code; else 1.",
            gt=0,
            le=1,
        ),
    ] = None
    candidates: Annotated[
        str | None,
        option(
            "full, common, lama or file:PATH. Default: the dataset's published list, or common."
        ),
    ] = None
    context: shared_fields.Context = None
    ranking: shared_fields.Ranking = "raw"
    precision: shared_fields.Precision = "auto"
    limit: shared_fields.Limit = None
    train_limit: Annotated[
        int | None, option("Maximum number of training facts of each relation.", ge=1)
    ] = None
    seed: Annotated[
        int | None,
        option("Draw the facts of a limit at random with this seed. Default: the first ones."),
    ] = None
    drop_overlap: Annotated[
        bool, option("Exclude training pairs that are test facts, instead of refusing them.")
    ] = False
    blind: Annotated[
        bool,
        option(
            "Include prompts that show a causal model nothing of the subject (with the blank "
            "before it) in ensembles.",
            name="--include-subject-blind",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class StudyRequest(SelectRequest):
    """Prompts to select and weight, too: the fields of `prompts fit`."""

    command: ClassVar[tuple[str, ...]] = ("prompts", "fit")
    python: ClassVar[str] = "study"

    combinations: Annotated[
        Sequence[str],
        option(
            "manual, mine, mine+man, mine+para, man+para, user or all; repeat for several. "
            "Default: the paper's sets, and user with --template.",
            name="--set",
        ),
    ] = ()
    recipes: Annotated[
        Sequence[str],
        option(
            "Optimiser recipe; repeat for several. released: the released scripts' (rate 0.1, "
            "batches of 128, at most 500 epochs, stop after 30 without a gain of 1e-3). paper: "
            "Adam's defaults, batches of 32; the paper names no last epoch and no patience: 500, "
            "and 50 without a gain of 1e-4, are ours. exact: the optimum.",
            name="--recipe",
        ),
    ] = (RELEASED.name,)
    curves: Annotated[
        bool, option("Compute the accuracy of Top-K for every K, log-linear and linear.")
    ] = True
    keep: Annotated[bool, option("Keep the distributions on disk, for other weights later.")] = (
        False
    )
    save_runs: Annotated[bool, option("Save Top-1 and the optimised ensembles as runs.")] = True

    def __post_init__(self) -> None:
        """Without combinations, take the paper's, and the user's prompts if there are any."""
        super().__post_init__()
        if not self.combinations:
            chosen = (*COMBINATIONS, *(["user"] if self.own else []))
            object.__setattr__(self, "combinations", chosen)


def as_study(request: SelectRequest) -> StudyRequest:
    """The study in which single prompts are asked; a study as it is."""
    if isinstance(request, StudyRequest):
        return request
    return StudyRequest(**vars(request), combinations=("all",), recipes=(), curves=False)


def as_select(request: StudyRequest) -> SelectRequest:
    """The single prompts of a study."""
    made = {field.name: getattr(request, field.name) for field in fields(SelectRequest)}
    return SelectRequest(**made)


def request_of(study: Study, relations: tuple[str, ...] = ()) -> StudyRequest:
    """The request that makes a study again, of all or some of its relations."""
    info, made = study.info, study.details
    of_run = ("dataset", "model", "candidates", "context", "ranking", "precision", "limit")
    known: dict[str, Any] = {name: getattr(info, name) for name in of_run}
    known |= {name: made[name] for name in ("train_limit", "seed", "drop_overlap")}
    known |= {name: tuple(made[name]) for name in ("own", "combinations", "recipes")}
    for name in ("prompts", "training"):
        known[name] = Path(made[name]) if made[name] else None
    # Studies from before the share could be chosen used all pairs.
    share = made.get("training_share", 1.0)
    if share != used_share(SelectRequest(training=known["training"])):
        known["training_share"] = share
    return StudyRequest(
        **known,
        relations=relations or tuple(relation.name for relation in info.relations),
        blind=takes_blind(study),
    )


def used_share(request: SelectRequest) -> float:
    """The share of the training pairs that a request selects and fits on."""
    if request.training_share is not None:
        return request.training_share
    return RELEASED_SHARE if request.training is not None else 1.0


def takes_blind(study: Study) -> bool:
    """Whether ensembles of a study may hold prompts that show the model nothing of the subject."""
    return any(
        number not in one.get("aside", ()) and not shows_subject(template, study.info.context)
        for one in study.details["relations"].values()
        for number, (template, *_) in enumerate(one["prompts"])
    )


@dataclass(frozen=True, slots=True)
class Planned:
    """The study that a request asks for, and what its user should know before it starts."""

    spec: StudySpec
    notes: tuple[str, ...] = ()


def plan_study(request: SelectRequest, *, load: Load = load_by_name) -> Planned:
    """Return the specification of a study. Loads the model: its vocabulary decides candidates."""
    chooses = isinstance(request, StudyRequest)
    request = as_study(request)
    _check(request)
    dataset = load_dataset(request.dataset)
    relations, notes = _choose_relations(request, dataset)
    model = load(request.model, precision=request.precision)
    context = choose_context(request.context, model.kind)
    names = tuple(relation.name for relation, _ in relations)
    pools = tuple(pool if request.blind else set_aside(pool, context) for _, pool in relations)
    if chooses and not any(pool.eligible(one) for pool in pools for one in request.combinations):
        raise UserError(
            f"Every prompt has its blank before the subject, and {model.name} sees what is left of "
            "the blank: there is nothing to choose from. Give other prompts, or take these in with "
            "--include-subject-blind."
        )
    # A relation without pairs of its own is named here, before anything is asked.
    share = used_share(request)
    splits = [split_of(request.training, dataset, name, share=share) for name in names]
    same = ("prompts", "training", "drop_overlap", "keep")
    names_of = ("ranking", "curves", "train_limit", "seed")
    how: dict[str, Any] = {name: getattr(request, name) for name in names_of}
    how |= {"combinations": tuple(request.combinations), "recipes": tuple(request.recipes)}
    spec = StudySpec(
        **from_data(request.dataset, dataset, names, request.ranking, request.limit),
        **of_model(model, request.model),
        **{name: getattr(request, name) for name in same},
        own=tuple(request.own),
        context=context,
        pools=pools,
        training_share=share,
        training_digest=pairs_digest(splits),
        candidates=candidates_of(request, model),
        study_options=StudyOptions(context, **how),
    )
    return Planned(spec, notes)


def check_study(request: SelectRequest, dataset: Dataset) -> None:
    """Raise UserError for what can be known to be wrong of a study before a model is loaded."""
    study = as_study(request)
    _check(study)
    _choose_relations(study, dataset)


def _check(request: StudyRequest) -> None:
    for limit in (request.limit, request.train_limit):
        check_limit(limit)
    for combination in request.combinations:
        parse_combination(combination)
    for recipe in request.recipes:
        choose(recipe, RECIPES, "recipe")
    choose(request.ranking, RANKINGS, "ranking")
    if request.own and len(request.relations) != 1:
        raise UserError("Your own prompts belong to one relation: name it with --relation.")


def _choose_relations(
    request: StudyRequest, dataset: Dataset
) -> tuple[tuple[tuple[Relation, PromptPool], ...], tuple[str, ...]]:
    """The relations with their prompts, and notes about those that have none."""
    wanted = [r for r in dataset.choose(request.relations) if r.prompts or request.relations]
    folder = request.prompts and prompts_dir(request.prompts)
    pairs = request.training and pairs_dir(request.training)
    if folder is not None and not request.relations:
        here = relations_in(folder)
        wanted = [r for r in wanted if r.name in here]
    if pairs is not None and not request.relations and pairs.is_dir():
        wanted = [r for r in wanted if (pairs / f"{r.name}.jsonl").is_file()]
    chosen, notes = [], []
    for relation in wanted:
        pool = load_pool(relation, folder=folder, user=request.own)
        pool = pool.only(request.combinations)
        if set(pool.combinations()) & set(request.combinations):
            chosen.append((relation, pool))
        else:
            notes.append(f"{relation.name} has none of the chosen prompts; it is left out.")
    if not chosen:
        raise UserError(
            f"No relation of {dataset.name} has prompts of {', '.join(request.combinations)}: "
            "give a folder of prompts, or choose other sets."
        )
    return tuple(chosen), tuple(notes)


def candidates_of(request: StudyRequest, model: BlankFiller) -> Candidates:
    """Return the words that a study ranks: by default the published ones, else the model's own."""
    folder = Path(request.dataset).expanduser()
    places = [folder if folder.is_dir() else installed_dir(request.dataset), installed_dir("lama")]
    published = next(
        (place / VOCABULARY_FILE for place in places if (place / VOCABULARY_FILE).is_file()), None
    )
    name = request.candidates or ("lama" if published else COMMON)
    if name == "lama" and published is not None:
        return Candidates(name, read_candidate_file(published)).fitting([model.vocabulary])
    vocabularies = [model.vocabulary]
    return known_before(named_candidates(name, vocabularies), vocabularies)
