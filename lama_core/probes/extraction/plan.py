"""From what a user asks for to the specifications of runs: the `extract` and `read` commands.

ExtractRequest --plan_extract--> ExtractorSpec, one a way of linking
ReadRequest    --plan_read-----> ReaderSpec, one a reader
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import known_before, list_names, named_candidates
from lama_core.candidates.spelling import OpenVocabulary
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.passages import STARTER, load_corpus
from lama_core.errors import UserError, choose
from lama_core.probes.extraction.extractor import LINKINGS, NAMES, Extraction, Linking, extractable
from lama_core.probes.extraction.spec import EXTRACTOR, READER, ExtractorSpec, ReaderSpec
from lama_core.probes.plan import Planned, check_limit, choose_with_facts, from_data
from lama_core.progress import OnProgress, silent
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
            f"The words that are ranked: {', '.join(list_names(of_relations=True))} or file:PATH; "
            "common and full are the words of --model."
        ),
    ] = OWN_WORDS
    models: Annotated[
        Sequence[str],
        option("With common: a model whose words are ranked; repeat for several.", name="--model"),
    ] = ()
    ranking: shared_fields.Ranking = "filtered"
    limit: shared_fields.Limit = None


@dataclass(frozen=True, kw_only=True)
class ExtractRequest(FindRequest):
    """A relation extractor's fields, those of `extract`."""

    command: ClassVar[tuple[str, ...]] = ("extract",)
    python: ClassVar[str] = "extract"

    linking: Annotated[
        Sequence[str],
        option(
            "How names are linked: naive (by exact string, RE_n) or oracle (RE_o). Default: both."
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class ReadRequest(FindRequest):
    """Question-answering models and what they read: the fields of `read`."""

    command: ClassVar[tuple[str, ...]] = ("read",)
    python: ClassVar[str] = "read"

    readers: Annotated[
        Sequence[str],
        option(
            "A question-answering model's folder or hub name; repeat for several.", name="--reader"
        ),
    ]


def plan_extract(
    request: ExtractRequest, *, load: Load = load_by_name, on_progress: OnProgress = silent
) -> Planned[Any]:
    """Return one specification for each way of linking entities. They share what they read."""
    dataset = load_dataset(request.dataset)
    candidates = _candidates(request, load)
    known = extractable(dataset)
    chosen = tuple(one.name for one in dataset.choose(request.relations))
    names = tuple(name for name in chosen if name in known)
    left = [name for name in chosen if name not in known]
    if not names or (left and request.relations):
        raise UserError(
            f"{dataset.name}: {', '.join(left[:5])} can't be extracted, for want of facts or of a "
            "template: leave it out."
        )
    linkings = tuple(choose(one, LINKINGS, "linking") for one in request.linking) or LINKINGS
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
    on_progress: OnProgress = silent,
) -> Planned[Any]:
    """The runs of the extractor on some relations. reference: of the dataset."""
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
    request: ReadRequest, *, load: Load = load_by_name, on_progress: OnProgress = silent
) -> Planned[Any]:
    """One specification for each reader. Raises UserError for what doesn't exist."""
    from lama_core.models.auxiliary.reader import load_reader

    if not request.readers:
        raise UserError("Name at least one --reader: a question-answering model's folder or name.")
    dataset = load_dataset(request.dataset)
    names = tuple(one.name for one in choose_with_facts(dataset, request.relations))
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
    """The words that are ranked. Raises UserError for a list that nobody can say."""
    check_limit(request.limit)
    choose(request.ranking, RANKINGS, "ranking")
    vocabularies = [load(name, precision="auto").vocabulary for name in request.models]
    found = named_candidates(
        request.candidates, vocabularies or [OpenVocabulary()], of_relations=True
    )
    if found.words is None and not vocabularies:
        raise UserError(
            f"Candidates {request.candidates!r} are words of models: name them with --model, or "
            "choose relation, lama or file:PATH."
        )
    return known_before(found, [OpenVocabulary()])


def _shared(reference: str, dataset: Dataset, names: tuple[str, ...], *more: Any) -> dict[str, Any]:
    """What the specifications of all such systems have in common."""
    prompts = make_prompt_set(PROMPTS, [dataset.relation(name) for name in names])
    about = from_data(reference, dataset, names, *more)
    return {**about, "prompts": prompts, "context": "both"}
