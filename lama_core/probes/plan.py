"""The plan of cloze runs: a `ProbeRequest` becomes a `ClozeSpec` for each model.

The parts of it that other kinds of probe share are here, too.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from lama_core.candidates.lists import check_words_known, named_candidates
from lama_core.candidates.spelling import OpenVocabulary, Vocabulary
from lama_core.datasets import Dataset, load_dataset
from lama_core.datasets.library.installed import analogy_names, dataset_names
from lama_core.datasets.passages import load_corpus
from lama_core.errors import UserError
from lama_core.models.cache import Precision
from lama_core.models.cpu import NO_BF16, ROUNDED
from lama_core.models.protocols import KINDS, Context, Kind
from lama_core.models.server.addresses import check_gives_scores
from lama_core.models.sources.checkpoints import check_is_there, name_models
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.cloze.spec import RANGE, ClozeSpec
from lama_core.probes.contrast.spec import ContrastSpec
from lama_core.probes.making_runs import RunFunction, unchanged
from lama_core.requests import CALLBACKS, Request
from lama_core.runs.info import text_digest
from lama_core.runs.spec import Load, load_by_name
from lama_core.scoring import shared_fields
from lama_core.scoring.batches import MAX_ROWS
from lama_core.scoring.earlier_words import may_have_other_tokens
from lama_core.scoring.prompt_choice import PromptKind, PromptSet, make_prompt_set
from lama_core.scoring.queries import check_questions, most_questions
from lama_core.scoring.retrieval import OpenBook, open_index
from lama_core.types import Relation

# Batch size for server models, whose queries take many requests each. If the server stops, a run
# loses at most one part, which is four batches.
SERVER_BATCH_ROWS = 8
# Specifications for these kinds of prompts; all others are plain cloze runs.
SPECS: dict[PromptKind, type[ClozeSpec]] = {
    "negated": ContrastSpec,
    "misprimed": ContrastSpec,
}


def plan(request: ProbeRequest, *, load: Load = load_by_name) -> tuple[ClozeSpec, ...]:
    """Return one specification for each model; load the models to get their vocabularies.

    Raises:
        UserError: If the request is invalid, or its data or models can't be loaded.
    """
    queries = choose_queries(request, request.prompts)
    book = None
    if request.open_book is not None:
        if queries.prompts.kind in SPECS:
            raise UserError(
                f"The prompts {queries.prompts.name!r} can't be combined with open-book context: "
                "remove --open-book, or choose other prompts."
            )
        corpus = load_corpus(request.open_book)
        open_index(corpus, request.on_progress)  # builds it if it doesn't exist
        book = OpenBook(corpus, request.segments)
    models = load_known_models(request, load)
    shared_fields.check_segments(
        request.segments, request.open_book, {model.name: model.kind for model in models}
    )
    n_ranges = 1
    if queries.prompts.kind in ("template", "sentences"):
        n_rows = most_questions(queries.dataset, queries.names, queries.prompts, request.limit)
        n_ranges = max(1, math.ceil(n_rows / RANGE))
    return tuple(
        SPECS.get(queries.prompts.kind, ClozeSpec)(
            **fields,
            context=choose_context(request.context, model.kind),
            open_book=book,
            n_ranges=n_ranges,
        )
        for model, fields in cloze_fields(request, queries, models)
    )


@dataclass(frozen=True, slots=True)
class Queries:
    """The data of a request, its relations and the prompts that ask about their facts."""

    dataset: Dataset
    names: tuple[str, ...]
    prompts: PromptSet


def choose_queries(request: Any, prompts: str) -> Queries:
    """Return the data, relations and prompts of a request, or raise UserError if none can be asked.

    request: Has `dataset`, `relations` and `limit`. prompts: Name of the prompt set.
    """
    dataset = load_dataset(request.dataset)
    chosen = relations_with_facts(dataset, request.relations)
    names = tuple(relation.name for relation in chosen)
    found = Queries(dataset, names, make_prompt_set(prompts, chosen))
    check_questions(dataset, names, found.prompts, request.limit)
    return found


def cloze_fields(
    request: Any, queries: Queries, models: Sequence["KnownModel"]
) -> Iterator[tuple["KnownModel", dict[str, Any]]]:
    """Yield each model with the fields of its `ClozeSpec` that don't depend on its context.

    request: As for `choose_queries`, with `candidates`.
    """
    dataset, names, prompts = queries.dataset, queries.names, queries.prompts
    vocabularies = [model.vocabulary for model in models]
    candidates = named_candidates(request.candidates, vocabularies, of_relations=True)
    candidates = check_words_known(candidates, vocabularies)
    for model in models:
        is_open = isinstance(model.vocabulary, OpenVocabulary)
        yield (
            model,
            {
                **data_fields(request, dataset, names),
                **model_fields(model, model.reference),
                "prompts": prompts,
                "candidates": candidates,
                "batch_rows": SERVER_BATCH_ROWS if is_open else MAX_ROWS,
                "has_other_tokens": may_have_other_tokens(
                    dataset, names, prompts, candidates, model
                ),
            },
        )


def data_fields(request: Any, dataset: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a specification's request and the identity of its data; names: Relation names.

    The request names its data by an absolute path, because workers have other working folders. It
    has no callbacks: they can't be sent to workers.
    """
    callbacks = {name: Request.__dataclass_fields__[name].default for name in CALLBACKS}
    return {
        "request": replace(request, dataset=absolute_reference(request.dataset), **callbacks),
        "dataset_name": dataset.name,
        "data_digest": dataset.digest,
        "relations": names,
    }


def model_fields(model: Any, reference: str) -> dict[str, Any]:
    """Return the fields of a specification that depend on a model; reference: Its name to load."""
    return {
        "model": reference,
        "model_name": model.name,
        "model_identity": model.identity,
        "model_kind": model.kind,
        "precision": model.precision,
    }


@dataclass(frozen=True, slots=True)
class KnownModel:
    """The description and vocabulary of a model, without its weights, to save memory.

    takes_start_token: see `StatementModel`; False if the model scores no statements.
    """

    reference: str
    name: str
    identity: str
    kind: Kind
    precision: Precision
    vocabulary: Vocabulary
    takes_start_token: bool


Loaded = TypeVar("Loaded")


def load_known_models(request: Any, load: Load) -> list[KnownModel]:
    """Load the models of a request, and return their descriptions.

    request: Has `models`, `revisions`, `precision` and `on_note`.

    A checkpoint of a series is excluded with a note if it can't be loaded, or if its vocabulary
    isn't that of most of the series' checkpoints.

    Raises:
        UserError: If a model outside a series, or all checkpoints of a series, can't be loaded.
    """

    def load_known(reference: str) -> KnownModel:
        check_gives_scores(reference)
        model = load(reference, precision=request.precision)
        return KnownModel(
            reference,
            model.name,
            model.identity,
            model.kind,
            model.precision,
            model.vocabulary,
            getattr(model, "takes_start_token", False),
        )

    found = load_each(request, load_known)
    if request.precision == "bf16" and any(model.precision == ROUNDED for _, model in found):
        request.on_note(NO_BF16)
    words = [_vocabulary_key(model.vocabulary) if series else "" for series, model in found]
    usual = {
        series: Counter(
            key for key, (other, _) in zip(words, found, strict=True) if other == series
        ).most_common(1)[0][0]
        for series, _ in found
    }
    kept = []
    for key, (series, model) in zip(words, found, strict=True):
        if key == usual[series]:
            kept.append(model)
        else:
            request.on_note(
                f"{model.name} is excluded: its vocabulary differs from that of the other "
                f"checkpoints of {series}."
            )
    return kept


def load_each(request: Any, load: Callable[[str], Loaded]) -> list[tuple[str, Loaded]]:
    """Return (name of its series, loaded model) for each model; the name is "" without a series.

    request: As for `load_known_models`.
    A checkpoint of a series that can't be loaded is excluded with a note.

    Raises:
        UserError: If no model is given, or a model that can't be loaded is in no series, or all
            checkpoints of a series can't be loaded.
    """
    if not request.models:
        raise UserError("No model is chosen: choose at least one; `models list` lists them.")
    found: list[tuple[str, Loaded]] = []
    failed: dict[str, UserError] = {}
    for model in name_models(request.models, request.revisions):
        try:
            check_is_there(model)
            found.append((model.series, load(model.reference)))
        except UserError as error:
            if not model.series:
                raise
            failed.setdefault(model.series, error)
            request.on_note(f"{model.reference} is excluded: {error}")
    for series, first in failed.items():
        if all(series != other for other, _ in found):
            raise UserError(f"No checkpoint of {series} can be used. The first: {first}") from first
    return found


def _vocabulary_key(vocabulary: Vocabulary) -> str:
    """Return a digest of a vocabulary's tokens."""
    return text_digest(
        repr((vocabulary.size, vocabulary.cased, sorted(vocabulary.tokens().items())))
    )


def relations_with_facts(dataset: Dataset, names: Sequence[str]) -> tuple[Relation, ...]:
    """Return the named relations in the dataset's order; with names (), all that have facts.

    Raises:
        UserError: If a named relation is unknown or has no facts.
    """
    chosen = dataset.choose(names)
    empty = [relation.name for relation in chosen if not dataset.facts_of(relation.name)]
    if empty and names:
        raise UserError(f"{dataset.name} has no facts of {', '.join(empty)}: choose others.")
    return tuple(relation for relation in chosen if relation.name not in empty)


def choose_context(wanted: Context | None, kind: Kind) -> Context:
    """Return `wanted` if this kind of model supports it, else the papers' context for the kind."""
    contexts = KINDS[kind].contexts
    return wanted if wanted in contexts else contexts[0]


def absolute_reference(reference: str) -> str:
    """Return a dataset's name unchanged, and any other reference as an absolute path."""
    if reference in (*dataset_names(), *analogy_names()):
        return reference
    return str(Path(reference).expanduser().resolve())


probe = RunFunction(
    ProbeRequest,
    plan,
    unchanged,
    unchanged,
    """Probe models with a dataset's cloze queries; make a run for each model.

    Returns:
        The runs; `.frame` has a row for each model and fact, excluded facts with their reason.

    Raises:
        UserError: If the dataset, a relation or a model is unknown, or settings contradict.

    >>> import lama_core as lama
    >>> runs = lama.probe("starter", models=["minilm-mlm"], relations=["P36"], limit=3)
    >>> runs.frame[["subject", "object", "rank_filtered"]].astype({"rank_filtered": int})
          subject object  rank_filtered
    0       Egypt  Cairo              1
    1      Norway   Oslo              1
    2  Bangladesh  Dhaka              1
    """,
    example="probe --dataset starter --relation P36 --model minilm-mlm",
)
