"""The plan of a study of prompts: one `StudySpec`."""

from pathlib import Path

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import (
    COMMON,
    check_words_known,
    named_candidates,
    read_candidate_file,
)
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import installed_dir, pairs_dir, prompts_dir
from lama_core.datasets.prompt_sets import PromptPool, load_pool, parse_combination, relations_in
from lama_core.errors import UserError, choose
from lama_core.models.protocols import BlankFiller
from lama_core.models.server.addresses import check_gives_scores
from lama_core.probes.plan import choose_context, data_fields, model_fields
from lama_core.probes.prompts.ensemble import RECIPES
from lama_core.probes.prompts.request import SelectRequest, StudyRequest
from lama_core.probes.prompts.selection import exclude_subject_blind
from lama_core.probes.prompts.spec import StudySpec, load_split
from lama_core.probes.prompts.training_pairs import pairs_digest
from lama_core.runs.spec import Load, load_by_name
from lama_core.types import Relation

VOCABULARY_FILE = "common_vocab_cased.txt"


def plan(given: SelectRequest, *, load: Load = load_by_name) -> tuple[StudySpec, ...]:
    """Return the specification of a study.

    Loads the model, because the candidates depend on its vocabulary. Raises UserError for an
    invalid request, or if all prompts are excluded from ensembles.
    """
    request = given.study
    check_gives_scores(request.model)
    dataset = load_dataset(request.dataset)
    relations, notes = _choose_relations(request, dataset)
    for note in notes:
        given.on_note(note)
    model = load(request.model, precision=request.precision)
    context = choose_context(request.context, model.kind)
    names = tuple(relation.name for relation, _ in relations)
    pools = tuple(
        pool if request.blind else exclude_subject_blind(pool, context) for _, pool in relations
    )
    if given is request and not any(
        pool.eligible(name) for pool in pools for name in request.combinations
    ):
        raise UserError(
            f"All prompts are subject-blind: their blank comes before the subject, and "
            f"{model.name} sees only the text left of the blank. Give other prompts, or include "
            "these in ensembles with --include-subject-blind."
        )
    # Raises for a relation without training pairs, before any prompt is scored.
    splits = [
        load_split(request.training, dataset, name, share=request.used_share) for name in names
    ]
    spec = StudySpec(
        **data_fields(given, dataset, names),
        **model_fields(model, request.model),
        context=context,
        pools=pools,
        training_digest=pairs_digest(splits),
        candidates=candidates_of(request, model),
    )
    return (spec,)


def prompts_to_study(
    request: SelectRequest, dataset: Dataset
) -> tuple[tuple[Relation, PromptPool], ...]:
    """Return the relations of a study with their prompts, without loading a model.

    Raises:
        UserError: For a mistake in the request.
    """
    return _choose_relations(request.study, dataset)[0]


def _choose_relations(
    request: StudyRequest, dataset: Dataset
) -> tuple[tuple[tuple[Relation, PromptPool], ...], tuple[str, ...]]:
    """Return the relations with their prompts, and notes about relations without any.

    Raises UserError for a mistake in the request.
    """
    for combination in request.combinations:
        parse_combination(combination)
    for recipe in request.recipes:
        choose(recipe, RECIPES, "recipe")
    if request.own and len(request.relations) != 1:
        raise UserError(
            "Your own prompts apply to a single relation. Name one relation with --relation."
        )
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
