"""From what a user asks for to the specifications of runs: the `probe` command, and its form.

ProbeRequest --plan--> RunSpec, one a model
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from lama_core.candidates.lists import COMMON, known_before, named_candidates
from lama_core.candidates.spelling import OpenVocabulary, Vocabulary
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import analogy_names, dataset_names
from lama_core.datasets.passages import load_corpus
from lama_core.errors import UserError, choose
from lama_core.models.cache import Precision
from lama_core.models.protocols import KINDS, Context, Kind
from lama_core.probes.cloze.spec import ClozeSpec
from lama_core.probes.contrast.spec import ContrastSpec
from lama_core.requests import option
from lama_core.runs.spec import Load, RunSpec, load_by_name
from lama_core.scoring import shared_fields
from lama_core.scoring.batches import MAX_ROWS
from lama_core.scoring.prompt_choice import (
    LPAQA_SETS,
    PROMPT_SETS,
    PromptKind,
    PromptSet,
    make_prompt_set,
)
from lama_core.scoring.queries import check_questions
from lama_core.scoring.ranking import RANKINGS, Ranking
from lama_core.scoring.retrieval import OpenBook
from lama_core.types import Relation

# Queries of a batch where each takes many requests: four batches are lost where a server stops.
FROM_SERVERS = 8
# What asks prompts of this kind; all others are plain cloze runs.
SPECS: dict[PromptKind, type[ClozeSpec]] = {
    "negated": ContrastSpec,
    "misprimed": ContrastSpec,
}


@dataclass(frozen=True)
class ProbeRequest(shared_fields.RunSettings):
    """A dataset to probe models with: the fields of `probe`.

    relations: () is all with facts. context: None is the paper's choice, the first that a model
    has: `left` for causal models and `both` for all others.
    """

    command: ClassVar[tuple[str, ...]] = ("probe",)
    python: ClassVar[str] = "probe"

    dataset: shared_fields.Dataset
    models: shared_fields.Models
    relations: shared_fields.Relations = ()
    prompts: Annotated[
        str,
        option(
            f"{', '.join(PROMPT_SETS)}; or LPAQA's {', '.join(LPAQA_SETS)} once its prompts are "
            "here; or a folder of such prompts."
        ),
    ] = "manual"
    candidates: shared_fields.AnyCandidates = COMMON
    ranking: shared_fields.Ranking = "filtered"
    context: shared_fields.Context = None
    precision: shared_fields.Precision = "auto"
    limit: shared_fields.Limit = None
    open_book: shared_fields.OpenBook = None
    segments: shared_fields.Segments = False


Spec = TypeVar("Spec", bound=RunSpec)


@dataclass(frozen=True)
class Planned(Generic[Spec]):
    """The runs that a request asks for, and what its user should know before they start."""

    specs: tuple[Spec, ...]
    notes: tuple[str, ...] = ()


def plan(request: ProbeRequest, *, load: Load = load_by_name) -> Planned[ClozeSpec]:
    """Return one specification a model. Loads them: their words decide the candidates."""
    check_asked(request.models, request.limit, request.ranking)
    dataset = load_dataset(request.dataset)
    chosen = choose_with_facts(dataset, request.relations)
    prompts = make_prompt_set(request.prompts, chosen)
    names = tuple(relation.name for relation in chosen)
    check_questions(dataset, names, prompts, request.limit)
    book = _open_book(request, prompts)
    models = [ask_of(name, load, request.precision) for name in dict.fromkeys(request.models)]
    kinds = {model.name: model.kind for model in models}
    shared_fields.check_segments(request.segments, request.open_book, kinds)
    vocabularies = [model.vocabulary for model in models]
    candidates = named_candidates(request.candidates, vocabularies, of_relations=True)
    candidates = known_before(candidates, vocabularies)
    shared = from_data(request.dataset, dataset, names, request.ranking, request.limit)
    specs = [
        SPECS.get(prompts.kind, ClozeSpec)(
            **shared,
            **of_model(model, model.reference),
            prompts=prompts,
            candidates=candidates,
            context=choose_context(request.context, model.kind),
            batch_rows=FROM_SERVERS if isinstance(model.vocabulary, OpenVocabulary) else MAX_ROWS,
            open_book=book,
        )
        for model in models
    ]
    return Planned(tuple(specs), tuple(dataset.report.notes))


def from_data(
    reference: str, dataset: Any, names: tuple[str, ...], ranking: Ranking, limit: int | None
) -> dict[str, Any]:
    """The fields of a specification that the data decide. names: of relations."""
    return {
        "dataset": absolute(reference),
        "dataset_name": dataset.name,
        "data_digest": dataset.digest,
        "relations": names,
        "ranking": ranking,
        "limit": limit,
    }


def of_model(model: Any, reference: str) -> dict[str, Any]:
    """The fields of a specification that a model decides. reference: by which it is loaded."""
    return {
        "model": reference,
        "model_name": model.name,
        "model_identity": model.identity,
        "model_kind": model.kind,
        "precision": model.precision,
    }


def _open_book(request: ProbeRequest, prompts: PromptSet) -> OpenBook | None:
    if request.open_book is None:
        return None
    if prompts.kind in SPECS:
        raise UserError(
            f"The open book doesn't go with the prompts {prompts.name!r}, which are compared with "
            "plain ones: leave out --open-book, or choose other prompts."
        )
    return OpenBook(load_corpus(request.open_book), request.segments)


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What a plan keeps of a model: all but its weights, so that many need no room at once."""

    reference: str
    name: str
    identity: str
    kind: Kind
    precision: Precision
    vocabulary: Vocabulary


def ask_of(reference: str, load: Load, precision: Precision) -> KnownModel:
    """What a plan keeps of a model, which is loaded for it."""
    model = load(reference, precision=precision)
    return KnownModel(
        reference, model.name, model.identity, model.kind, model.precision, model.vocabulary
    )


def check_asked(models: Sequence[str], limit: int | None, ranking: Ranking) -> None:
    """Raise UserError for no model, a limit that leaves nothing, and an unknown ranking."""
    if not models:
        raise UserError("Name at least one model: `models list` shows what there is.")
    check_limit(limit)
    choose(ranking, RANKINGS, "ranking")


def choose_with_facts(dataset: Dataset, names: Sequence[str]) -> tuple[Relation, ...]:
    """Return the relations of these names that have facts, in the data's order; () is all."""
    chosen = dataset.choose(names)
    empty = [relation.name for relation in chosen if not dataset.facts_of(relation.name)]
    if empty and names:
        raise UserError(f"{dataset.name} has no facts of {', '.join(empty)}: leave it out.")
    return tuple(relation for relation in chosen if relation.name not in empty)


def check_limit(limit: int | None) -> None:
    """Raise UserError for a limit that leaves nothing."""
    if limit is not None and limit < 1:
        raise UserError(f"The limit is {limit}: give at least 1, or none at all.")


def choose_context(wanted: Context | None, kind: Kind) -> Context:
    """The wanted context where the kind of model has it, else the papers' choice."""
    contexts = KINDS[kind].contexts
    return wanted if wanted is not None and wanted in contexts else contexts[0]


def absolute(reference: str) -> str:
    """A dataset's name as it is, a path in full."""
    if reference in (*dataset_names(), *analogy_names()):
        return reference
    return str(Path(reference).expanduser().resolve())
