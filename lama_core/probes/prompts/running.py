"""The one path from what a user asks for to a saved study, for the page and the command line.

Relations are done one after the other and saved as each is whole; within a relation the scored
blocks are kept. So stopping, in whatever way, loses at most one block, and the same request goes on
from there.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lama_core.asking.preparation import NothingCounts
from lama_core.asking.ranking import RANKINGS, Ranking
from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import named_candidates, read_candidate_file
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import installed_dir
from lama_core.datasets.lpaqa import read_pairs
from lama_core.datasets.prompt_sets import PromptPool, load_pool, parse_combination
from lama_core.errors import UserError, did_you_mean
from lama_core.models.base import BlankFiller, Context
from lama_core.paths import cache_dir
from lama_core.probes.prompts.ensemble import RECIPES, RELEASED
from lama_core.probes.prompts.ensemble_runs import save_ensemble_run
from lama_core.probes.prompts.study import OnStage, RelationStudy, StudyOptions, study_relation
from lama_core.probes.prompts.study_files import (
    StudyInfo,
    load_relation,
    save_relation,
    studies_dir,
    write_candidates,
    write_study_info,
)
from lama_core.probes.prompts.training_pairs import Split, check_limit, halve, make_split
from lama_core.types import Relation

HALVES = "half of the facts"
VOCABULARY_FILE = "common_vocab_cased.txt"
# Raised by one whenever the same request would give other numbers.
STUDY_VERSION = 2

LoadModel = Callable[..., BlankFiller]
OnNote = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """What a user asks for.

    dataset: a name or a folder. relations: () is all that have facts and prompts. prompts: a
    folder in LPAQA's layout, None for the dataset's own templates and paraphrases. own: the
    user's prompts (for a single relation). training: a folder of training pairs, None splits the
    facts in two. candidates: None is the dataset's published list where it has one, else `common`.
    limit: test facts of each relation; train_limit: training facts that count for the model; seed:
    draws both (see `training_pairs.draw`). keep: leave the distributions on disk.
    """

    dataset: str
    model: str
    relations: tuple[str, ...] = ()
    prompts: Path | None = None
    own: tuple[str, ...] = ()
    training: Path | None = None
    candidates: str | None = None
    context: Context | None = None
    ranking: Ranking = "raw"
    precision: str = "fp32"
    combinations: tuple[str, ...] = ("manual", "mine", "mine+man", "mine+para", "man+para")
    recipes: tuple[str, ...] = (RELEASED.name,)
    limit: int | None = None
    train_limit: int | None = None
    seed: int | None = None
    drop_overlap: bool = False
    curves: bool = True
    keep: bool = False


@dataclass(frozen=True)
class Planned:
    """A request whose parts exist: what is to be done, and where it is saved."""

    request: StudyRequest
    dataset: Dataset
    relations: tuple[tuple[Relation, PromptPool], ...]
    model: BlankFiller
    options: StudyOptions
    info: StudyInfo
    notes: tuple[str, ...]


def plan_study(
    request: StudyRequest, *, load: LoadModel | None = None, out: Path | None = None
) -> Planned:
    """Check a request, load its data and model, and name its study.

    out: the folder that studies are kept in, by default the user's own.
    Raises UserError for anything in the request that doesn't exist or doesn't fit.
    """
    _check(request)
    dataset = load_dataset(request.dataset)
    relations, notes = _choose_relations(request, dataset)
    model = (load or _load_model)(request.model, precision=request.precision)
    context = _context(request.context, model)
    candidates = _candidates(request, model)
    options = StudyOptions(
        candidates=candidates,
        context=context,
        ranking=request.ranking,
        combinations=request.combinations,
        recipes=request.recipes,
        curves=request.curves,
        train_limit=request.train_limit,
        seed=request.seed,
    )
    training = str(request.training) if request.training else HALVES
    content = [
        STUDY_VERSION,
        dataset.digest,
        model.identity,
        candidates.digest,
        context,
        request.ranking,
        [pool.templates for _, pool in relations],
        training,
        request.combinations,
        request.recipes,
        [request.limit, request.train_limit, request.seed, request.drop_overlap, request.curves],
    ]
    identity = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    names = (dataset.name, model.name)
    slugs = [re.sub(r"[^a-z0-9]+", "_", Path(name).name.lower()).strip("_") for name in names]
    info = StudyInfo(
        identity=identity,
        dataset=dataset.name,
        model=model.name,
        model_kind=model.kind,
        model_identity=model.identity,
        candidates=candidates.name,
        context=context,
        ranking=request.ranking,
        prompts=str(request.prompts) if request.prompts else "the dataset's own",
        training=training,
        combinations=request.combinations,
        recipes=request.recipes,
        limit=request.limit,
        train_limit=request.train_limit,
        seed=request.seed,
        folder=(out or studies_dir()) / "-".join([*slugs, identity[:10]]),
    )
    return Planned(request, dataset, relations, model, options, info, notes)


def execute_study(
    planned: Planned,
    *,
    on_stage: OnStage | None = None,
    on_relation: Callable[[RelationStudy], None] | None = None,
    on_note: OnNote | None = None,
    stopped: Callable[[], bool] | None = None,
) -> tuple[RelationStudy, ...]:
    """The study of every relation: loaded where it is whole, else made and saved.

    A relation that can't be studied (no training pairs, no fact that counts) is named to `on_note`
    and left out; if none is left, UserError is raised.
    """
    tell = on_note or (lambda _: None)
    for note in planned.notes:
        tell(note)
    info = write_study_info(planned.info, planned.info.folder)
    write_candidates(planned.options.candidates, info.folder)
    studies, faults = [], []
    for relation, pool in planned.relations:
        if (info.folder / f"{relation.name}.json").is_file():
            study = load_relation(info, relation.name)
        else:
            split = _split(planned, relation)
            for note in (*split.notes, *pool.notes):
                tell(note)
            try:
                study = study_relation(
                    planned.model,
                    relation,
                    pool,
                    split,
                    planned.options,
                    folder=cache_dir() / "prompt-distributions",
                    known=planned.dataset.facts_of(relation.name),
                    keep=planned.request.keep,
                    on_stage=on_stage,
                    stopped=stopped,
                )
            except NothingCounts as error:
                faults.append(f"{relation.name} is left out: {error}")
                tell(faults[-1])
                continue
            save_relation(study, info.folder)
        studies.append(study)
        if on_relation is not None:
            on_relation(study)
    if not studies:
        raise UserError(faults[-1] if faults else "There is no relation to study.")
    return tuple(studies)


def save_runs(
    planned: Planned, studies: tuple[RelationStudy, ...], methods: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Save ensembles as runs, and return their names.

    methods: such as `optimised`; () is Top-1 and optimised of every combination.
    """
    names = []
    for combination in planned.request.combinations:
        for method in methods or ("top1", "optimised"):
            run = save_ensemble_run(
                planned.info,
                studies,
                combination,
                method,
                planned.dataset,
                planned.model,
                planned.options.candidates,
            )
            if run is not None:
                names.append(run.id)
    return tuple(names)


def request_json(request: StudyRequest) -> dict[str, object]:
    """The request as plain values, for showing how a result was made."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in asdict(request).items()
    }


def _check(request: StudyRequest) -> None:
    for limit in (request.limit, request.train_limit):
        check_limit(limit)
    for combination in request.combinations:
        parse_combination(combination)
    for recipe in request.recipes:
        if recipe not in RECIPES:
            hint = did_you_mean(recipe, RECIPES)
            raise UserError(f"Unknown recipe {recipe!r}: choose {', '.join(RECIPES)}{hint}.")
    if request.ranking not in RANKINGS:
        hint = did_you_mean(request.ranking, RANKINGS)
        raise UserError(f"Unknown ranking {request.ranking!r}: choose filtered or raw{hint}.")
    if request.own and len(request.relations) != 1:
        raise UserError("Your own prompts belong to one relation: name it with --relation.")
    for path in (request.prompts, request.training):
        if path is not None and not path.exists():
            raise UserError(f"There is no folder {path}.")


def _choose_relations(
    request: StudyRequest, dataset: Dataset
) -> tuple[tuple[tuple[Relation, PromptPool], ...], tuple[str, ...]]:
    """The relations with their prompts, and notes about those that have none."""
    wanted = [dataset.relation(name) for name in dict.fromkeys(request.relations)] or [
        relation for relation in dataset.relations if relation.prompts
    ]
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


def _split(planned: Planned, relation: Relation) -> Split:
    request = planned.request
    facts = planned.dataset.facts_of(relation.name)
    if request.training is None:
        train, test = halve(facts)
        notes: tuple[str, ...] = ()
    else:
        train, report = read_pairs(request.training, relation.name)
        test = facts
        notes = (*(str(dropped) for dropped in report.dropped), *report.notes)
    split = make_split(
        relation.name,
        train,
        test,
        drop_overlap=request.drop_overlap,
        limit=request.limit,
        seed=request.seed,
    )
    return replace(split, notes=notes + split.notes)


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


def _context(wanted: Context | None, model: BlankFiller) -> Context:
    return "both" if model.kind == "masked" else wanted or "left"


def _load_model(reference: str, *, precision: str) -> BlankFiller:
    from lama_core.models.loader import load_model

    return load_model(reference, precision=precision)  # type: ignore[arg-type]
