"""Plan a study: turn the request of a command or of the page's form into a specification.

StudyRequest --plan--> StudySpec
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import (
    COMMON,
    check_words_known,
    named_candidates,
    read_candidate_file,
)
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import STARTER, installed_dir, pairs_dir, prompts_dir
from lama_core.datasets.prompt_sets import PromptPool, load_pool, parse_combination, relations_in
from lama_core.errors import UserError, choose
from lama_core.models.protocols import BlankFiller
from lama_core.models.server.addresses import check_gives_scores
from lama_core.probes.plan import check_limit, choose_context, dataset_fields, model_spec_fields
from lama_core.probes.prompts.ensemble import RECIPES, RELEASED
from lama_core.probes.prompts.selection import exclude_subject_blind
from lama_core.probes.prompts.spec import Study, StudySpec, load_split
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
        "Name of an imported prompt set, or a folder in LPAQA's layout. Default: the dataset's "
        "prompts."
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
            "Name of an imported set with training pairs, or a folder of them (one P*.jsonl per "
            "relation). Default: half of the facts are used for training."
        ),
    ] = None
    training_share: Annotated[
        float | None,
        option(
            "Share of the training pairs on which prompts are selected and weighted; the others "
            "are not used. Default: 0.8 with --training, as in LPAQA's released code; else 1.",
            gt=0,
            le=1,
        ),
    ] = None
    candidates: Annotated[
        str | None,
        option(
            "full, common, lama or file:PATH. Default: the dataset's or LAMA's published list if "
            "installed, else common."
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
        option(
            "Seed for choosing the facts of --limit and --train-limit at random. Default: choose "
            "the first facts."
        ),
    ] = None
    drop_overlap: Annotated[
        bool, option("Exclude training pairs that are test facts, instead of refusing them.")
    ] = False
    blind: Annotated[
        bool,
        option(
            "Include subject-blind prompts in ensembles: their blank comes before the subject, "
            "so a causal model can't see the subject.",
            name="--include-subject-blind",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class StudyRequest(SelectRequest):
    """Prompts to evaluate, select and weight: the fields of `prompts fit`."""

    command: ClassVar[tuple[str, ...]] = ("prompts", "fit")
    python: ClassVar[str] = "study"

    combinations: Annotated[
        Sequence[str],
        option(
            "Combination of prompt sets: manual, mine, mine+man, mine+para, man+para, user or all; "
            "repeat for several. Default: the paper's combinations, and user with --template.",
            name="--set",
        ),
    ] = ()
    recipes: Annotated[
        Sequence[str],
        option(
            "Optimiser recipe; repeat for several. released: as in the released scripts (learning "
            "rate 0.1, batch size 128, at most 500 epochs, stop after 30 epochs without a gain of "
            "1e-3). paper: Adam's defaults, batch size 32; the paper gives no number of epochs and "
            "no patience, so we use at most 500 and stop after 50 without a gain of 1e-4. exact: "
            "the optimum.",
            name="--recipe",
        ),
    ] = (RELEASED.name,)
    curves: Annotated[
        bool, option("Compute the accuracy of Top-K for every K, log-linear and linear.")
    ] = True
    keep: Annotated[
        bool, option("Keep the answer distributions on disk, to fit other weights later.")
    ] = False
    save_runs: Annotated[bool, option("Save Top-1 and the optimised ensembles as runs.")] = True

    def __post_init__(self) -> None:
        """Set the default combinations: the paper's, and `user` if the user has added prompts."""
        super().__post_init__()
        if not self.combinations:
            chosen = (*COMBINATIONS, *(["user"] if self.own else []))
            object.__setattr__(self, "combinations", chosen)


def _as_study(request: SelectRequest) -> StudyRequest:
    """Return a SelectRequest as a StudyRequest without ensembles, and a StudyRequest unchanged."""
    if isinstance(request, StudyRequest):
        return request
    return StudyRequest(**vars(request), combinations=("all",), recipes=(), curves=False)


def as_select_request(request: StudyRequest) -> SelectRequest:
    """Return the request that evaluates a study's prompts one by one."""
    values = {field.name: getattr(request, field.name) for field in fields(SelectRequest)}
    return SelectRequest(**values)


def request_of(study: Study, relations: tuple[str, ...] = ()) -> StudyRequest:
    """Return the request that repeats a study, on some relations or (with ()) on all."""
    info, details = study.info, study.details
    of_run = ("dataset", "model", "candidates", "context", "ranking", "precision", "limit")
    values: dict[str, Any] = {name: getattr(info, name) for name in of_run}
    values |= {name: details[name] for name in ("train_limit", "seed", "drop_overlap")}
    values |= {name: tuple(details[name]) for name in ("own", "combinations", "recipes")}
    for name in ("prompts", "training"):
        values[name] = Path(details[name]) if details[name] else None
    # Older studies, which have no training_share, used all pairs.
    share = details.get("training_share", 1.0)
    if share != _used_share(SelectRequest(training=values["training"])):
        values["training_share"] = share
    return StudyRequest(
        **values,
        relations=relations or tuple(relation.name for relation in info.relations),
        blind=_includes_subject_blind(study),
    )


def _used_share(request: SelectRequest) -> float:
    """Return the share of the training pairs on which prompts are selected and weighted."""
    if request.training_share is not None:
        return request.training_share
    return RELEASED_SHARE if request.training is not None else 1.0


def _includes_subject_blind(study: Study) -> bool:
    """Return whether the ensembles of a study may include subject-blind prompts."""
    return any(
        number not in details.get("aside", ()) and not shows_subject(template, study.info.context)
        for details in study.details["relations"].values()
        for number, (template, *_) in enumerate(details["prompts"])
    )


@dataclass(frozen=True, slots=True)
class Planned:
    """The specification of a study, and messages to show before it starts."""

    spec: StudySpec
    notes: tuple[str, ...] = ()


def plan_study(request: SelectRequest, *, load: Load = load_by_name) -> Planned:
    """Return the specification of a study.

    Loads the model, because the candidates depend on its vocabulary. Raises UserError for an
    invalid request, or if all prompts are excluded from ensembles.
    """
    needs_ensembles = isinstance(request, StudyRequest)
    request = _as_study(request)
    _check(request)
    check_gives_scores(request.model)
    dataset = load_dataset(request.dataset)
    relations, notes = _choose_relations(request, dataset)
    model = load(request.model, precision=request.precision)
    context = choose_context(request.context, model.kind)
    names = tuple(relation.name for relation, _ in relations)
    pools = tuple(
        pool if request.blind else exclude_subject_blind(pool, context) for _, pool in relations
    )
    if needs_ensembles and not any(
        pool.eligible(name) for pool in pools for name in request.combinations
    ):
        raise UserError(
            f"All prompts are subject-blind: their blank comes before the subject, and "
            f"{model.name} sees only the text left of the blank. Give other prompts, or include "
            "these in ensembles with --include-subject-blind."
        )
    # Raises for a relation without training pairs, before any prompt is scored.
    share = _used_share(request)
    splits = [load_split(request.training, dataset, name, share=share) for name in names]
    copied = ("ranking", "curves", "train_limit", "seed")
    options: dict[str, Any] = {name: getattr(request, name) for name in copied}
    options |= {"combinations": tuple(request.combinations), "recipes": tuple(request.recipes)}
    spec = StudySpec(
        **dataset_fields(request.dataset, dataset, names, request.ranking, request.limit),
        **model_spec_fields(model, request.model),
        prompts=request.prompts,
        training=request.training,
        drop_overlap=request.drop_overlap,
        keep=request.keep,
        own=tuple(request.own),
        context=context,
        pools=pools,
        training_share=share,
        training_digest=pairs_digest(splits),
        candidates=candidates_of(request, model),
        study_options=StudyOptions(context, **options),
    )
    return Planned(spec, notes)


def prompts_to_study(
    request: SelectRequest, dataset: Dataset
) -> tuple[tuple[Relation, PromptPool], ...]:
    """Return the relations of a study with their prompts, without loading a model.

    Raises:
        UserError: For a mistake in the request.
    """
    study = _as_study(request)
    _check(study)
    return _choose_relations(study, dataset)[0]


def _check(request: StudyRequest) -> None:
    for limit in (request.limit, request.train_limit):
        check_limit(limit)
    for combination in request.combinations:
        parse_combination(combination)
    for recipe in request.recipes:
        choose(recipe, RECIPES, "recipe")
    choose(request.ranking, RANKINGS, "ranking")
    if request.own and len(request.relations) != 1:
        raise UserError(
            "Your own prompts apply to a single relation. Name one relation with --relation."
        )


def _choose_relations(
    request: StudyRequest, dataset: Dataset
) -> tuple[tuple[tuple[Relation, PromptPool], ...], tuple[str, ...]]:
    """Return the relations with their prompts, and notes about relations without any."""
    wanted = list(dataset.choose(request.relations))
    folder = request.prompts and prompts_dir(request.prompts)
    pairs = request.training and pairs_dir(request.training)
    if not request.relations:
        wanted = [r for r in wanted if r.prompts]
        if folder is not None:
            with_prompts = relations_in(folder)
            wanted = [r for r in wanted if r.name in with_prompts]
        if pairs is not None and pairs.is_dir():
            wanted = [r for r in wanted if (pairs / f"{r.name}.jsonl").is_file()]
    chosen, notes = [], []
    for relation in wanted:
        pool = load_pool(relation, folder=folder, user=request.own).only(request.combinations)
        if set(pool.combinations()) & set(request.combinations):
            chosen.append((relation, pool))
        else:
            notes.append(f"{relation.name} is excluded: it has no prompts of the chosen sets.")
    if not chosen:
        raise UserError(
            f"No relation of {dataset.name} has prompts of {', '.join(request.combinations)}. "
            "Choose other sets, or name a prompt set or folder with --prompts."
        )
    return tuple(chosen), tuple(notes)


def candidates_of(request: StudyRequest, model: BlankFiller) -> Candidates:
    """Return the words that a study ranks.

    By default this is the dataset's published list or, if that isn't installed, LAMA's. If neither
    is installed, it is `common`: the words that are one token of the model.
    """
    folder = Path(request.dataset).expanduser()
    folders = [folder if folder.is_dir() else installed_dir(request.dataset), installed_dir("lama")]
    lists = (folder / VOCABULARY_FILE for folder in folders)
    published = next((path for path in lists if path.is_file()), None)
    name, vocabularies = request.candidates or ("lama" if published else COMMON), [model.vocabulary]
    if name == "lama" and published is not None:
        return Candidates(name, read_candidate_file(published)).fitting(vocabularies)
    return check_words_known(named_candidates(name, vocabularies), vocabularies)
