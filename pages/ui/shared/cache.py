"""Results that are cached for all sessions."""

import math
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial, wraps
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import streamlit as st

from lama_core.candidates.columns import Candidates, Columns
from lama_core.datasets import AnalogyDataset, Dataset
from lama_core.datasets.library.installed import (
    STARTER,
    STARTER_ANALOGIES,
    datasets_dir,
    installed_dir,
    load_analogies,
    load_dataset,
    starter_analogies_dir,
    starter_dir,
)
from lama_core.datasets.passages import load_corpus
from lama_core.errors import Unavailable, UserError
from lama_core.lessons.stored_answers import Stored, find_stored
from lama_core.models.cache import CACHE, Precision, load_model
from lama_core.models.sources.catalog import find_model, known_models
from lama_core.models.sources.locations import locate
from lama_core.probes.cloze.batch import BatchLine, BatchModelAnswers
from lama_core.probes.cloze.query import ModelAnswer, OnAnswer, extended_words, query_model
from lama_core.probes.cloze.wordings import (
    RelationModelAnswers,
    RelationQuestion,
    make_relation_question,
    query_wordings,
)
from lama_core.progress import OnProgress
from lama_core.requests import request_fields
from lama_core.runs.info import Run, RunInfo
from lama_core.scoring import queries
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import load_page_limits
from lama_core.scoring.ranking import Ranking
from lama_core.scoring.retrieval import FoundPassage, OpenBook, is_indexed, with_passage
from lama_core.scoring.shared_fields import ClozeSettings, choose_candidates
from lama_core.types import Query
from pages.ui.shared import visitors
from pages.ui.shared.query_queue import LOADS, cached_answer, queue_slot

if TYPE_CHECKING:  # the metrics import scipy, which the Ask page doesn't need
    import pandas as pd

    from lama_core.api.generation import AskRequest, ModelText
    from lama_core.api.queries import Inspection
    from lama_core.api.traces import Traces
    from lama_core.metrics import Average, By
    from lama_core.metrics.fact_answers import JoinedAnswers
    from lama_core.metrics.score_tables import RelationPrecision
    from lama_core.probes.analogy.score import ModelScores, Normalise, Pair
    from lama_core.probes.analogy.solve import Solution
    from lama_core.probes.analogy.templates import AnalogyQuestion
    from lama_core.probes.cloze.inspection import InspectRequest
    from lama_core.probes.prompts.gains import Gain
    from lama_core.probes.statements.sentences import ModelSentences, SentencesRequest
    from lama_core.probes.statements.typed_answers import ModelRanking, RankRequest

T = TypeVar("T")
P = ParamSpec("P")


def _mark(info: RunInfo) -> str:
    """A run's cache key: folder, digest, date, title, and the keys of runs it is aligned with."""
    own = f"{info.folder}|{info.digest}|{info.made}|{info.title}"
    return "|beside ".join((own, *map(_mark, info.beside)))


def cached(
    max_entries: int, spinner: str | bool = False
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function to cache its results for all sessions, without copying them.

    The cache key is the arguments whose names don't begin with an underscore; a run's key is from
    `_mark`.
    """
    marks: dict[str | type[Any], Callable[[Any], str]] = {RunInfo: _mark, ClozeSettings: repr}
    return st.cache_resource(max_entries=max_entries, show_spinner=spinner, hash_funcs=marks)


def queued(
    key: Callable[..., Hashable] | None = None,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function that queries a model: queue its calls, cache answers for all sessions.

    key: Makes the cache key from the arguments; by default the key is all arguments.
    """

    def decorate(ask: Callable[P, T]) -> Callable[P, T]:
        @wraps(ask)
        def find(*args: P.args, **options: P.kwargs) -> T:
            query = key(*args, **options) if key else (args, tuple(options.items()))
            return cached_answer((ask.__name__, query), partial(ask, *args, **options))

        return find

    return decorate


def loaded_model(name: str, precision: Precision, until: float | None = None) -> Any:
    """A model, loaded if necessary.

    A load counts as a query of the visitor. It is in the queue of loads and has a time limit,
    except for visitors who may download models.

    Args:
        name: The model.
        precision: The model's precision.
        until: The deadline, on the clock of `time.monotonic`; by default the time limit from now.

    Raises:
        UserError: If the model can't be loaded, or isn't loaded before the deadline.
    """
    load = partial(load_model, name, precision=precision)
    seconds = load_page_limits().loading
    if visitors.may("fetch") or math.isinf(seconds) or _is_loaded(name, precision):
        return load()
    with queue_slot():
        now = time.monotonic()
        return LOADS.run(
            load,
            partial(_is_loaded, name, precision),
            name=find_model(name).title,
            address=visitors.address(),
            seconds=seconds if until is None else max(0.0, until - now),
        )


def _is_loaded(name: str, precision: Precision) -> bool:
    return CACHE.identity(name, precision) is not None


def candidates_of(settings: ClozeSettings) -> tuple[Candidates, dict[str, Columns]]:
    """The chosen models' candidates, and model -> the candidates' columns in its vocabulary."""
    found = _found_candidates(settings)
    if not found:
        settings.check()
        until = time.monotonic() + load_page_limits().loading
        models = [loaded_model(name, settings.precision, until) for name in settings.models]
        candidates = choose_candidates(settings, models)
        columns = {model.name: candidates.columns(model.vocabulary) for model in models}
        found.append((candidates, columns))
    return found[0]


@cached(16)
def _found_candidates(settings: ClozeSettings) -> list[tuple[Candidates, dict[str, Columns]]]:
    """A cached list that holds the result of `candidates_of`; empty before its first call.

    `candidates_of` loads the models, because loading them here would hold the cache's lock, which
    has no time limit.
    """
    return []


def _options(settings: ClozeSettings, name: str, renormalise: bool) -> dict[str, Any]:
    """The options of a cloze query to one of the compared models."""
    return {
        "context": settings.context,
        "renormalise": renormalise,
        "n_rescored": settings.n_rescored,
        "columns": candidates_of(settings)[1][name],
        "limits": load_page_limits(),
    }


def _cloze_key(*arguments: Hashable, on_first: object = None) -> Hashable:
    """The cache key of a cloze query: all arguments except the function that draws."""
    return arguments


@queued(_cloze_key)
def cloze_answer(
    settings: ClozeSettings,
    name: str,
    text: str,
    gold: str,
    top_k: int,
    renormalise: bool,
    passage: FoundPassage | None = None,
    *,
    on_first: OnAnswer | None = None,
) -> ModelAnswer:
    """One model's answers to a text.

    Args:
        settings: The compared models, which together determine the candidates, and their options.
        name: The model; one of the compared models.
        text: The text with its blanks.
        gold: The right answer, or empty.
        top_k: The number of answers per blank.
        renormalise: Whether probabilities are over the candidates only.
        passage: The open-book passage before the text.
        on_first: Draws a preliminary answer, as for `query_model`; not called for a cached answer.
    """
    query, (candidates, _) = with_passage(parse_query(text), passage), candidates_of(settings)
    options = _options(settings, name, renormalise) | {"top_k": top_k, "gold": gold or None}
    options["on_first"] = on_first
    return query_model(loaded_model(name, settings.precision), query, candidates, **options)


def passage_before(query: Query, book: str) -> FoundPassage | None:
    """The open-book passage for a query; None if no passage shares a word with it.

    Args:
        query: The query.
        book: The name or path of the open-book text.

    Raises:
        UserError: If the text has no search index, or the query has more words than the limit of
            tokens.
    """
    corpus = load_corpus(book)
    if not is_indexed(corpus):
        raise UserError(
            f"The open-book text {book!r} has no search index. Choose it on the tab Sentence."
        )
    load_page_limits().check_tokens(sum(len(part.split()) for part in query.parts), "retrieval")

    def look_up() -> tuple[FoundPassage | None]:
        return (OpenBook(corpus).look_up(query),)

    return cached_answer(("passage", query, corpus.digest), look_up)[0]


@queued()
def relation_answer(
    settings: ClozeSettings, name: str, question: RelationQuestion, renormalise: bool
) -> RelationModelAnswers:
    """One model's answers to a relation's wordings; arguments as for `cloze_answer`."""
    model, (candidates, _) = loaded_model(name, settings.precision), candidates_of(settings)
    return query_wordings(model, question, candidates, **_options(settings, name, renormalise))


@queued()
def inspection(request: "InspectRequest", name: str) -> "Inspection":
    """One model's result of an inspection; `name` as for `cloze_answer`."""
    from lama_core.api.queries import inspect_model

    precision, candidates = request.precision, request.candidates
    shown = ClozeSettings(models=request.models, precision=precision, candidates=candidates)
    _, columns = candidates_of(shown)
    model, query = loaded_model(name, request.precision), parse_query(request.text)
    return inspect_model(model, query, columns[name], request, load_page_limits())


def settings_of(request: ClozeSettings) -> ClozeSettings:
    """The fields of a request that belong to `ClozeSettings`."""
    names = [field.name for field in request_fields(ClozeSettings)]
    return ClozeSettings(**{name: getattr(request, name) for name in names})


def _batch_key(
    settings: ClozeSettings, name: str, lines: tuple[BatchLine, ...], renormalise: bool, **_: Any
) -> Hashable:
    """The cache key of a batch, with a digest of the texts instead of the texts."""
    texts = repr([(line.text, line.gold, line.fault) for line in lines])
    return settings, name, blake2b(texts.encode()).digest(), renormalise


@queued(_batch_key)
def first_answers(
    settings: ClozeSettings,
    name: str,
    lines: tuple[BatchLine, ...],
    renormalise: bool,
    *,
    on_progress: OnProgress,
) -> BatchModelAnswers:
    """One model's first answers to lines of a batch; lines after the time limit have none."""
    model, (candidates, _) = loaded_model(name, settings.precision), candidates_of(settings)
    options = _options(settings, name, renormalise) | {"on_progress": on_progress}
    from lama_core.api.queries import query_lines

    return query_lines(model, lines, candidates, **options)


def can_complete_words(info: RunInfo) -> bool:
    """Whether a run's answers can be completed to whole words.

    Only for words at a blank, ranked by an installed causal model from the left context.
    """
    if not info.ranks_words or info.model_kind != "causal" or info.context != "left":
        return False
    entry = next((entry for entry in known_models() if entry.name == info.model), None)
    return entry is not None and locate(entry) is not None


@queued()
def complete_words(
    model: str, precision: Precision, folded: bool, queries: tuple[str, ...], words: tuple[str, ...]
) -> list[str | None]:
    """Complete the answers of a model that are only the beginning of a word.

    Args:
        model: The model's name.
        precision: The model's precision.
        folded: Whether the words are lower-cased.
        queries: The queries.
        words: The answer to each query.

    Returns:
        The completed word for each query; None if the answer is a complete word.
    """
    loaded, parsed = loaded_model(model, precision), list(map(parse_query, queries))
    return extended_words(loaded, parsed, words, folded=folded, limits=load_page_limits())


@queued()
def solution(
    settings: ClozeSettings,
    name: str,
    question: "AnalogyQuestion",
    gold: str,
    keep_query_words: bool,
    top_k: int,
    renormalise: bool,
) -> "Solution":
    """One model's answers to an analogy; arguments as for `cloze_answer`."""
    from lama_core.probes.analogy.solve import solve

    models, candidates = (
        [loaded_model(name, settings.precision)],
        candidates_of(settings)[0],
    )
    options = _options(settings, name, renormalise) | {"top_k": top_k, "gold": gold or None}
    del options["columns"]
    return solve(models, question, candidates, keep_query_words=keep_query_words, **options)


@queued()
def pair_scores(
    name: str,
    precision: Precision,
    query: "Pair",
    pairs: tuple["Pair", ...],
    template: str,
    normalise: "Normalise",
) -> "ModelScores":
    """One model's (pseudo-)perplexities of candidate pairs."""
    from lama_core.probes.analogy.score import score_pairs

    models, limits = [loaded_model(name, precision)], load_page_limits()
    options: Any = {"template": template, "normalise": normalise, "limits": limits}
    return score_pairs(models, query, pairs, **options).models[0]


def _of_model(request: Any, name: str) -> Hashable:
    """The cache key of a request to one model: the request without its other models."""
    return replace(request, models=(name,))


@queued(_of_model)
def ranked_answers(request: "RankRequest", name: str) -> "ModelRanking":
    """One model's ranking of a user's own answers; `name` is one of the request's models."""
    from lama_core.probes.statements.typed_answers import rank_answers

    return rank_answers(loaded_model(name, request.precision), request, load_page_limits())


@queued(_of_model)
def scored_sentences(request: "SentencesRequest", name: str) -> "ModelSentences":
    """One model's scores of whole sentences; `name` is one of the request's models."""
    from lama_core.probes.statements.sentences import score_sentences

    model = loaded_model(name, request.precision)
    return score_sentences(model, request, load_page_limits())


@queued(_of_model)
def generated_text(request: "AskRequest", name: str) -> "ModelText":
    """One model's generated answer to a question; `name` is one of the request's models."""
    from lama_core.api.generation import ask_model

    return ask_model(loaded_model(name, request.precision), request, load_page_limits())


@cached(24)
def finished_run(info: RunInfo) -> Run:
    """A finished run with its rows in memory; the aligned run if `info` is from `align`."""
    if info.beside:
        return next(run for run in aligned(info.beside) if run.info.id == info.id)
    run = Run(info)
    len(run.column("excluded"))
    return run


@cached(12)
def aligned(infos: tuple[RunInfo, ...]) -> tuple[Run, ...]:
    """Runs restricted to the queries that all of them score."""
    from lama_core.runs.alignment import align

    return align([finished_run(info) for info in infos])


@cached(500)
def stored_answer(query: str, infos: tuple[RunInfo, ...]) -> Stored | None:
    """The stored answer to a query from the first run that has one; None if no run has."""
    return find_stored(query, map(finished_run, infos))


@cached(48)
def _figures(info: RunInfo, ranking: Ranking) -> "pd.DataFrame":
    from lama_core.metrics import relation_figures

    return relation_figures(finished_run(info), ranking)


@cached(120)
def _precision(info: RunInfo, ranking: Ranking, k: int) -> "RelationPrecision":
    from lama_core.metrics import relation_precision

    return relation_precision(finished_run(info), k, ranking)


@cached(600)
def scores(
    info: RunInfo,
    by: "By",
    ranking: Ranking,
    k: int,
    relations: tuple[str, ...],
    conceptnet: "Average" = "relations",
) -> "pd.DataFrame":
    """A run's rows of the score table."""
    from lama_core.metrics import summarise

    figures, precision = _figures(info, ranking), _precision(info, ranking, k)
    return summarise(figures, precision, by=by, relations=relations, conceptnet=conceptnet)


@cached(60)
def table_of_runs(
    what: str,
    infos: tuple[RunInfo, ...],
    ranking: Ranking,
    relations: tuple[str, ...],
    _make: Callable[[list[Run]], T],
    k: int = 1,
) -> T:
    """Return `_make(runs)`, cached by `what` and the other arguments."""
    return _make([finished_run(info) for info in infos])


@cached(30)
def traces_of(info: RunInfo, relation: str) -> "Traces":
    """The causal traces of a run's facts, of one relation or all."""
    from lama_core.api.traces import read_traces

    return read_traces(Run(info), relation)


@cached(6)
def joined_answers(infos: tuple[RunInfo, ...], ranking: Ranking) -> "JoinedAnswers":
    """The answers of several runs in one table."""
    from lama_core.metrics.fact_answers import join_answers

    return join_answers([finished_run(info) for info in infos], ranking=ranking)


@cached(200)
def gain_of(info: RunInfo) -> "Gain | None":
    """The gain of a study's best way of choosing prompts; raises the errors of `largest_gain`."""
    from lama_core.probes.prompts.gains import largest_gain
    from lama_core.probes.prompts.spec import Study

    return largest_gain(Study(Run(info)))


@cached(6, spinner="Reading the data")
def _data(name: str, changed: float, _load: Callable[[str], Any]) -> Any:
    return _load(name)


def _changed(folder: Path) -> float:
    return folder.stat().st_mtime if folder.exists() else 0.0


def dataset_of(name: str) -> Dataset:
    """The facts of a dataset; read again when its folder has changed."""
    folder = starter_dir() if name == STARTER else installed_dir(name)
    return cast(Dataset, _data(name, _changed(folder), load_dataset))


def analogies_of(name: str) -> AnalogyDataset:
    """The analogies of a dataset; read again when its folder has changed."""
    folder = starter_analogies_dir() if name == STARTER_ANALOGIES else installed_dir(name)
    return cast(AnalogyDataset, _data(name, _changed(folder), load_analogies))


@cached(500)
def _question(
    changed: float, data: str, relation: str, subject: str, gold: str, mined: bool
) -> RelationQuestion:
    return make_relation_question(dataset_of(data), relation, subject, gold, mined=mined)


def relation_question(
    data: str, relation: str, subject: str, gold: str, mined: bool
) -> RelationQuestion:
    """A relation's wordings for a subject; made again after datasets are added or removed."""
    return _question(_changed(datasets_dir()), data, relation, subject, gold, mined)


def relations_of(name: str) -> dict[str, str]:
    """Relation -> its name and label, for the relations with facts in a dataset."""
    dataset = dataset_of(name)
    return {
        relation.name: f"{relation.name} {relation.label}".strip()
        for relation in dataset.relations
        if dataset.facts_of(relation.name)
    }


@cached(60, spinner="Checking the prompts for these data")
def _impossible(
    digest: str, changed: float, relations: tuple[str, ...], limit: int | None, _dataset: Dataset
) -> dict[str, Unavailable]:
    return queries.unavailable_prompts(_dataset, relations, limit)


def impossible_prompts(
    name: str, relations: tuple[str, ...], limit: int | None
) -> dict[str, Unavailable]:
    """Prompt set -> why it has no queries for a dataset. relations: () means all."""
    dataset = dataset_of(name)
    chosen = relations or tuple(relations_of(name))
    changed = _changed(installed_dir("lpaqa"))
    return _impossible(dataset.digest, changed, chosen, limit, dataset)
