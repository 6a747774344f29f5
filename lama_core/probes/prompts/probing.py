"""From what a user asks for to the specification of a study: the commands, and the page's form.

StudyRequest --plan--> StudySpec
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from lama_core.asking.ranking import RANKINGS, Ranking
from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import named_candidates, read_candidate_file
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import installed_dir
from lama_core.datasets.prompt_sets import PromptPool, load_pool, parse_combination
from lama_core.errors import UserError, choose
from lama_core.models.base import BlankFiller, Context
from lama_core.models.loader import Precision, chosen_precision
from lama_core.probes.probing import absolute, check_limit, choose_context
from lama_core.probes.prompts.ensemble import RECIPES, RELEASED
from lama_core.probes.prompts.runs import Study, StudySpec, split_of
from lama_core.probes.prompts.study import StudyOptions
from lama_core.probes.prompts.training_pairs import pairs_digest
from lama_core.requests import option
from lama_core.runs.spec import Load, load_by_name
from lama_core.types import Relation

VOCABULARY_FILE = "common_vocab_cased.txt"
COMBINATIONS = ("manual", "mine", "mine+man", "mine+para", "man+para")


@dataclass(frozen=True, kw_only=True)
class SelectRequest:
    """Prompts asked one by one: the choices of `prompts select`.

    dataset: a name or a folder. relations: () is all that have facts and prompts. prompts: a
    folder in LPAQA's layout, None for the dataset's own templates and paraphrases. own: the
    user's prompts (for a single relation). training: a folder of training pairs, None splits the
    facts in two. candidates: None is the dataset's published list where it has one, else `common`.
    limit: test facts of each relation; train_limit: training facts that count for the model; seed:
    draws both (see `training_pairs.draw`).
    """

    command: ClassVar[tuple[str, ...]] = ("prompts", "select")

    dataset: str
    model: str
    relations: tuple[str, ...] = option("--relation", default=())
    prompts: Path | None = None
    own: tuple[str, ...] = option("--template", default=())
    training: Path | None = None
    candidates: str | None = None
    context: Context | None = None
    ranking: Ranking = "raw"
    precision: Precision = "fp32"
    limit: int | None = None
    train_limit: int | None = None
    seed: int | None = None
    drop_overlap: bool = False


@dataclass(frozen=True, kw_only=True)
class StudyRequest(SelectRequest):
    """Prompts chosen and weighted, too: the choices of `prompts fit` and of the page.

    keep: leave the distributions on disk.
    """

    command: ClassVar[tuple[str, ...]] = ("prompts", "fit")

    combinations: tuple[str, ...] = option("--set", default=COMBINATIONS)
    recipes: tuple[str, ...] = option("--recipe", default=(RELEASED.name,))
    curves: bool = True
    keep: bool = False


def as_study(request: SelectRequest) -> StudyRequest:
    """The study in which single prompts are asked; a study as it is."""
    if isinstance(request, StudyRequest):
        return request
    made = {field.name: getattr(request, field.name) for field in fields(request)}
    return StudyRequest(**made, combinations=("all",), recipes=(), curves=False)


def as_select(request: StudyRequest) -> SelectRequest:
    """The single prompts of a study."""
    made = {field.name: getattr(request, field.name) for field in fields(SelectRequest)}
    return SelectRequest(**made)


def request_of(study: Study, relations: tuple[str, ...] = ()) -> StudyRequest:
    """The request that makes a study again, of all or some of its relations."""
    info, made = study.info, study.details
    return StudyRequest(
        dataset=info.dataset,
        model=info.model,
        relations=relations or tuple(relation.name for relation in info.relations),
        prompts=Path(made["prompts"]) if made["prompts"] else None,
        own=tuple(made["own"]),
        training=Path(made["training"]) if made["training"] else None,
        candidates=info.candidates,
        context=info.context,
        ranking=info.ranking,
        precision=info.precision,
        combinations=tuple(made["combinations"]),
        recipes=tuple(made["recipes"]),
        limit=info.limit,
        train_limit=made["train_limit"],
        seed=made["seed"],
        drop_overlap=made["drop_overlap"],
    )


@dataclass(frozen=True, slots=True)
class Planned:
    """The study that a request asks for, and what its user should know before it starts."""

    spec: StudySpec
    notes: tuple[str, ...] = ()


def plan_study(request: SelectRequest, *, load: Load = load_by_name) -> Planned:
    """The specification of a study. Loads the model: its vocabulary decides the candidates.

    load: how to get a model.
    Raises UserError for anything in the request that doesn't exist or doesn't fit.
    """
    request = as_study(request)
    _check(request)
    precision = chosen_precision(request.precision)
    dataset = load_dataset(request.dataset)
    relations, notes = _choose_relations(request, dataset)
    model = load(request.model, precision=precision)
    context = choose_context(request.context, model.kind)
    names = tuple(relation.name for relation, _ in relations)
    # A relation without pairs of its own is named here, before anything is asked.
    splits = [split_of(request.training, dataset, name) for name in names]
    spec = StudySpec(
        dataset=absolute(request.dataset),
        dataset_name=dataset.name,
        data_digest=dataset.digest,
        relations=names,
        model=request.model,
        model_name=model.name,
        model_identity=model.identity,
        model_kind=model.kind,
        precision=precision,
        context=context,
        ranking=request.ranking,
        limit=request.limit,
        pools=tuple(pool for _, pool in relations),
        prompts=request.prompts,
        own=request.own,
        training=request.training,
        training_digest=pairs_digest(splits),
        candidates=_candidates(request, model),
        study_options=StudyOptions(
            context=context,
            ranking=request.ranking,
            combinations=request.combinations,
            recipes=request.recipes,
            curves=request.curves,
            train_limit=request.train_limit,
            seed=request.seed,
        ),
        drop_overlap=request.drop_overlap,
        keep=request.keep,
    )
    return Planned(spec, notes)


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
    for path in (request.prompts, request.training):
        if path is not None and not path.exists():
            raise UserError(f"There is no folder {path}.")


def _choose_relations(
    request: StudyRequest, dataset: Dataset
) -> tuple[tuple[tuple[Relation, PromptPool], ...], tuple[str, ...]]:
    """The relations with their prompts, and notes about those that have none."""
    wanted = [r for r in dataset.choose(request.relations) if r.prompts or request.relations]
    if request.training is not None and not request.relations and request.training.is_dir():
        wanted = [r for r in wanted if (request.training / f"{r.name}.jsonl").is_file()]
    chosen, notes = [], []
    for relation in wanted:
        pool = load_pool(relation, folder=request.prompts, user=request.own)
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


def _candidates(request: StudyRequest, model: BlankFiller) -> Candidates:
    folder = Path(request.dataset).expanduser()
    places = [folder if folder.is_dir() else installed_dir(request.dataset), installed_dir("lama")]
    published = next(
        (place / VOCABULARY_FILE for place in places if (place / VOCABULARY_FILE).is_file()), None
    )
    name = request.candidates or ("lama" if published else "common")
    if name == "lama" and published is not None:
        return Candidates(name, read_candidate_file(published)).fitting([model.vocabulary])
    return named_candidates(name, [model.vocabulary])
