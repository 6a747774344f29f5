"""The plans of runs of systems that find answers in texts.

An `ExtractRequest` becomes an `ExtractorSpec` for each way of linking, and a `ReadRequest` becomes
a `ReaderSpec` for each reader.
"""

from typing import Any

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import check_words_known, named_candidates
from lama_core.candidates.spelling import OpenVocabulary
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.passages import load_corpus
from lama_core.errors import UserError, choose
from lama_core.probes.making_runs import RunFunction, unchanged
from lama_core.probes.plan import data_fields, relations_with_facts
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring.prompt_choice import make_prompt_set
from lama_core.scoring.queries import check_questions
from lama_core.scoring.retrieval import OpenBook, open_index
from lama_extraction.extractor import LINKINGS, NAMES, Extraction, extractable
from lama_extraction.request import ExtractRequest, FindRequest, ReadRequest
from lama_extraction.spec import EXTRACTOR, READER, ExtractorSpec, ReaderSpec

PROMPTS = "manual"


def plan_extract(
    request: ExtractRequest, *, load: Load = load_by_name
) -> tuple[ExtractorSpec, ...]:
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
    corpus = load_corpus(request.corpus)
    extraction = Extraction(dataset, corpus, names, request.limit, request.on_progress)
    return tuple(
        ExtractorSpec(
            **_shared(request, dataset, names),
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


def plan_read(request: ReadRequest, *, load: Load = load_by_name) -> tuple[ReaderSpec, ...]:
    """Return one specification for each reader.

    Raises:
        UserError: If the request is invalid, or its data or readers can't be loaded.
    """
    from lama_extraction.reader import load_reader

    if not request.readers:
        raise UserError("No reader is chosen: add --reader with a folder or a hub name.")
    dataset = load_dataset(request.dataset)
    names = tuple(relation.name for relation in relations_with_facts(dataset, request.relations))
    shared = _shared(request, dataset, names)
    candidates = _candidates(request, load)
    check_questions(dataset, names, shared["prompts"], request.limit)
    corpus = load_corpus(request.corpus)
    open_index(corpus, request.on_progress)  # builds it if it doesn't exist
    book = OpenBook(corpus)
    readers = {
        name: load_reader(name, on_progress=request.on_progress)
        for name in dict.fromkeys(request.readers)
    }
    return tuple(
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


def _candidates(request: FindRequest, load: Load) -> Candidates:
    """Return the candidates. Raises UserError if they need a model, and none is given."""
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


def _shared(request: FindRequest, dataset: Dataset, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a specification that extractors and readers share."""
    prompts = make_prompt_set(PROMPTS, [dataset.relation(name) for name in names])
    return {**data_fields(request, dataset, names), "prompts": prompts, "context": "both"}


extract = RunFunction(
    ExtractRequest,
    plan_extract,
    unchanged,
    unchanged,
    """Extract relations from the sentences that state the facts: LAMA's RE_n and RE_o.

    The extractor is trained on sentences of a corpus with other pairs than the queried one.

    Returns:
        The runs, one for each way of linking entities.

    Raises:
        UserError: If the dataset or corpus is unknown, or settings contradict.
    """,
    example="extract --dataset starter --relation P36 --limit 20",
)
read = RunFunction(
    ReadRequest,
    plan_read,
    unchanged,
    unchanged,
    """Find answers in a corpus with question-answering models, as LAMA does with DrQA.

    Returns:
        The runs, one for each reader.

    Raises:
        UserError: If the dataset, the corpus or a reader is unknown, or settings contradict.
    """,
    example="read --dataset starter --relation P36 --reader FOLDER",
)
