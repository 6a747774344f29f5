"""The plans of runs of systems that find answers in texts.

An `ExtractRequest` becomes an `ExtractorSpec` for each way of linking, and a `ReadRequest` becomes
a `ReaderSpec` for each reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import check_words_known, list_names, named_candidates
from lama_core.candidates.spelling import OpenVocabulary
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.passages import STARTER, load_corpus
from lama_core.errors import UserError, choose
from lama_core.probes.extraction.extractor import LINKINGS, NAMES, Extraction, Linking, extractable
from lama_core.probes.extraction.spec import EXTRACTOR, READER, ExtractorSpec, ReaderSpec
from lama_core.probes.plan import Planned, check_limit, dataset_fields, relations_with_facts
from lama_core.progress import OnProgress, ignore
from lama_core.requests import option
from lama_core.runs.info import OWN_WORDS
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring import shared_fields
from lama_core.scoring.prompt_choice import make_prompt_set
from lama_core.scoring.queries import check_questions
from lama_core.scoring.ranking import RANKINGS, Ranking
from lama_core.scoring.retrieval import OpenBook

PROMPTS = "manual"


@dataclass(frozen=True, kw_only=True)
class FindRequest(shared_fields.OutSettings):
    """The fields that `extract` and `read` share."""

    dataset: shared_fields.Dataset
    relations: shared_fields.Relations = ()
    corpus: Annotated[str, option(f"The text to read: {shared_fields.CORPUS}.")] = STARTER
    candidates: Annotated[
        str,
        option(
            f"The words that are ranked: {', '.join(list_names(of_relations=True))} or file:PATH. "
            "common and full are the words of the models given with --model."
        ),
    ] = OWN_WORDS
    models: Annotated[
        Sequence[str],
        option(
            "A model whose words are ranked with common or full; repeat for several.",
            name="--model",
        ),
    ] = ()
    ranking: shared_fields.Ranking = "filtered"
    limit: shared_fields.Limit = None


@dataclass(frozen=True, kw_only=True)
class ExtractRequest(FindRequest):
    """The fields of `extract`: a dataset, a text to read, and ways of linking names."""

    command: ClassVar[tuple[str, ...]] = ("extract",)
    python: ClassVar[str] = "extract"

    linking: Annotated[
        Sequence[str],
        option(
            "How names are linked: naive (by exact string, RE_n) or oracle (with the right answer, "
            "RE_o). Default: both."
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class ReadRequest(FindRequest):
    """The fields of `read`: question-answering models, a dataset, and a text to read."""

    command: ClassVar[tuple[str, ...]] = ("read",)
    python: ClassVar[str] = "read"

    readers: Annotated[
        Sequence[str],
        option(
            "A question-answering model's folder or hub name; repeat for several.", name="--reader"
        ),
    ]


def plan_extract(
    request: ExtractRequest, *, load: Load = load_by_name, on_progress: OnProgress = ignore
) -> Planned[Any]:
    """Return one specification for each way of linking entities; all share one extraction.

    Raises:
        UserError: If the request is invalid, or a chosen relation can't be extracted.
    """
    dataset = load_dataset(request.dataset)
    candidates = _candidates(request, load)
    possible = extractable(dataset)
    chosen = tuple(relation.name for relation in dataset.choose(request.relations))
    names = tuple(name for name in chosen if name in possible)
    others = [name for name in chosen if name not in possible]
    if not names or (others and request.relations):
        raise UserError(
            f"{dataset.name}: {', '.join(others[:5])} can't be extracted. A relation needs facts "
            "and a template, and can't be from ConceptNet or SQuAD: choose other relations."
        )
    linkings = tuple(choose(name, LINKINGS, "linking") for name in request.linking) or LINKINGS
    return extractor_specs(
        dataset,
        names,
        candidates,
        corpus=request.corpus,
        linkings=linkings,
        ranking=request.ranking,
        limit=request.limit,
        reference=request.dataset,
        on_progress=on_progress,
    )


def extractor_specs(
    dataset: Dataset,
    relations: tuple[str, ...],
    candidates: Candidates,
    *,
    corpus: str,
    reference: str,
    linkings: tuple[Linking, ...] = LINKINGS,
    ranking: Ranking = "filtered",
    limit: int | None = None,
    on_progress: OnProgress = ignore,
) -> Planned[Any]:
    """Return one specification for each linking; reference: The dataset's name or path."""
    extraction = Extraction(dataset, load_corpus(corpus), relations, limit, on_progress)
    specs = tuple(
        ExtractorSpec(
            **_shared(reference, dataset, relations, ranking, limit),
            candidates=candidates,
            model=NAMES[linking],
            model_name=NAMES[linking],
            model_identity=EXTRACTOR,
            model_kind=EXTRACTOR,
            linking=linking,
            extraction=extraction,
        )
        for linking in linkings
    )
    return Planned(specs, tuple(dataset.report.notes))


def plan_read(
    request: ReadRequest, *, load: Load = load_by_name, on_progress: OnProgress = ignore
) -> Planned[Any]:
    """Return one specification for each reader.

    Raises:
        UserError: If the request is invalid, or its data or readers can't be loaded.
    """
    from lama_core.models.auxiliary.reader import load_reader

    if not request.readers:
        raise UserError("No reader is chosen: add --reader with a folder or a hub name.")
    dataset = load_dataset(request.dataset)
    names = tuple(relation.name for relation in relations_with_facts(dataset, request.relations))
    shared = _shared(request.dataset, dataset, names, request.ranking, request.limit)
    candidates = _candidates(request, load)
    check_questions(dataset, names, shared["prompts"], request.limit)
    book = OpenBook(load_corpus(request.corpus))
    readers = {
        name: load_reader(name, on_progress=on_progress) for name in dict.fromkeys(request.readers)
    }
    specs = tuple(
        ReaderSpec(
            **shared,
            candidates=candidates,
            model=name,
            model_name=reader.name,
            model_identity=reader.identity,
            model_kind=READER,
            open_book=book,
        )
        for name, reader in readers.items()
    )
    return Planned(specs, tuple(dataset.report.notes))


def _candidates(request: FindRequest, load: Load) -> Candidates:
    """Return the candidates. Raises UserError if they need a model, and none is given."""
    check_limit(request.limit)
    choose(request.ranking, RANKINGS, "ranking")
    vocabularies = [load(name, precision="auto").vocabulary for name in request.models]
    found = named_candidates(
        request.candidates, vocabularies or [OpenVocabulary()], of_relations=True
    )
    if found.words is None and not vocabularies:
        raise UserError(
            f"Candidates {request.candidates!r} are words of models: add --model, or choose "
            "relation, lama or file:PATH."
        )
    return check_words_known(found, [OpenVocabulary()])


def _shared(reference: str, dataset: Dataset, names: tuple[str, ...], *more: Any) -> dict[str, Any]:
    """Return the fields of a specification that extractors and readers share."""
    prompts = make_prompt_set(PROMPTS, [dataset.relation(name) for name in names])
    return {
        **dataset_fields(reference, dataset, names, *more),
        "prompts": prompts,
        "context": "both",
    }
