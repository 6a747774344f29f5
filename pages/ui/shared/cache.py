"""The only place where pages keep results between reruns."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import streamlit as st

from lama_core.asking import questions
from lama_core.asking.blanks import parse_query
from lama_core.asking.limits import limits_of_pages
from lama_core.asking.ranking import Ranking
from lama_core.asking.retrieval import Found, OpenBook, is_indexed, with_passage
from lama_core.asking.settings import ClozeSettings, choose_candidates, load_models
from lama_core.candidates.columns import Candidates, Columns
from lama_core.datasets import AnalogyDataset, Dataset
from lama_core.datasets.corpus import load_corpus
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
from lama_core.errors import Impossible, UserError
from lama_core.lessons.stored import Stored, find_stored
from lama_core.models.catalog import known_models
from lama_core.models.loader import Precision, load_model
from lama_core.models.sources import locate
from lama_core.probes.cloze.ask import ModelAnswer, ask
from lama_core.probes.cloze.ask import whole_words as ask_whole_words
from lama_core.probes.cloze.by_relation import (
    ModelOnRelation,
    RelationQuestion,
    ask_relation,
    make_question,
)
from lama_core.probes.cloze.many import Line, ModelOnMany, ask_lines
from lama_core.progress import OnProgress
from lama_core.runs.info import Run, RunInfo
from lama_core.types import Query
from pages.ui.shared.waiting import answered

if TYPE_CHECKING:  # the metrics bring scipy, which the Cloze page can do without
    import pandas as pd

    from lama_core.metrics import Average, By
    from lama_core.metrics.answers import JoinedAnswers
    from lama_core.metrics.tables import RelationPrecision
    from lama_core.probes.analogy.score import ModelScores, Normalise, Pair
    from lama_core.probes.analogy.solve import Solution
    from lama_core.probes.analogy.templates import Question
    from lama_core.probes.cloze.inside import Inside, InspectRequest
    from lama_core.probes.prompts.gains import Gain
    from lama_core.probes.statements.rank import ModelRanking, RankRequest
    from lama_core.probes.statements.sentences import ModelSentences, SentencesRequest

T = TypeVar("T")


@st.cache_resource(max_entries=16, show_spinner=False)
def candidates_of(settings: ClozeSettings) -> tuple[Candidates, dict[str, Columns]]:
    """The candidates of a choice of models, and where each model has them."""
    models = load_models(settings)
    candidates = choose_candidates(settings, models)
    return candidates, {model.name: candidates.columns(model.vocabulary) for model in models}


def cloze_answer(
    settings: ClozeSettings,
    name: str,
    text: str,
    gold: str,
    top_k: int,
    renormalise: bool,
    passage: Found | None = None,
) -> ModelAnswer:
    """One model's answers to a text; `name` is one of the models that are compared.

    passage: what stands before the text.
    """

    def make() -> ModelAnswer:
        candidates, columns = candidates_of(settings)
        return ask(
            load_model(name, precision=settings.precision),
            with_passage(parse_query(text), passage),
            candidates,
            top_k=top_k,
            gold=gold or None,
            context=settings.context,
            renormalise=renormalise,
            n_rescored=settings.n_rescored,
            columns=columns[name],
            limits=limits_of_pages(),
        )

    return answered(("cloze", settings, name, text, gold, top_k, renormalise, passage), make)


def passage_before(query: Query, book: str) -> Found | None:
    """The passage of a text that stands before a query; None where none shares a word with it.

    Raises UserError for a text that isn't ready to be searched, and for a query of more words than
    a question may have tokens.
    """
    corpus = load_corpus(book)
    if not is_indexed(corpus):
        raise UserError(f"The open book {book!r} is not ready to be searched: open it on Sentence.")
    limits_of_pages().check_tokens(sum(len(part.split()) for part in query.parts), "the open book")

    def make() -> tuple[Found | None]:
        return (OpenBook(corpus).look_up(query),)

    return answered(("passage", query, corpus.digest), make)[0]


def relation_answer(
    settings: ClozeSettings, name: str, question: RelationQuestion, renormalise: bool
) -> ModelOnRelation:
    """One model's answers to a relation's wordings; `name` as in `cloze_answer`."""

    def make() -> ModelOnRelation:
        candidates, columns = candidates_of(settings)
        return ask_relation(
            load_model(name, precision=settings.precision),
            question,
            candidates,
            context=settings.context,
            renormalise=renormalise,
            n_rescored=settings.n_rescored,
            columns=columns[name],
            limits=limits_of_pages(),
        )

    return answered(("relation", settings, name, question, renormalise), make)


def inside(request: "InspectRequest", name: str) -> "Inside":
    """How one model comes to its answer; `name` as in `cloze_answer`."""
    from lama_core.probes.cloze.inside import look_inside

    def make() -> "Inside":
        shown = ClozeSettings(
            models=request.models, precision=request.precision, candidates=request.candidates
        )
        _, columns = candidates_of(shown)
        model = load_model(name, precision=request.precision)
        query = parse_query(request.text)
        return look_inside(model, query, columns[name], request, limits_of_pages())

    return answered(("inside", request, name), make)


def first_answers(
    settings: ClozeSettings,
    name: str,
    lines: tuple[Line, ...],
    renormalise: bool,
    *,
    on_progress: OnProgress,
) -> ModelOnMany:
    """One model's first answers to the first of some lines, as many as the time of a question
    allows; `name` as in `cloze_answer`.
    """

    def make() -> ModelOnMany:
        candidates, columns = candidates_of(settings)
        return ask_lines(
            load_model(name, precision=settings.precision),
            lines,
            candidates,
            context=settings.context,
            renormalise=renormalise,
            n_rescored=settings.n_rescored,
            columns=columns[name],
            limits=limits_of_pages(),
            on_progress=on_progress,
        )

    asked = repr([(line.text, line.gold, line.fault) for line in lines])  # wherever they stand
    digest = blake2b(asked.encode()).digest()  # so many texts aren't held for long
    return answered(("first answers", settings, name, digest, renormalise), make)


def goes_on(info: RunInfo) -> bool:
    """Whether a run's model can be asked how its answers go on: it sees the left, and is here."""
    if info.model_kind != "causal" or info.context != "left":
        return False
    known = {entry.name: entry for entry in known_models()}
    return info.model in known and locate(known[info.model]) is not None


def whole_words(
    model: str, precision: Precision, folded: bool, queries: tuple[str, ...], words: tuple[str, ...]
) -> list[str | None]:
    """The longer words that a model's answers begin, each behind its query; None: it is whole."""
    return answered(
        ("words", model, precision, folded, queries, words),
        lambda: ask_whole_words(
            load_model(model, precision=precision),
            [parse_query(query) for query in queries],
            words,
            folded=folded,
            limits=limits_of_pages(),
        ),
    )


def _mark(info: RunInfo) -> str:
    """What tells a run from all others: its folder, identity, date, name and neighbours."""
    own = f"{info.folder}|{info.digest}|{info.made}|{info.title}"
    return "|beside ".join((own, *map(_mark, info.beside)))


@st.cache_resource(max_entries=24, show_spinner=False)
def _run(mark: str, _info: RunInfo) -> Run:
    if _info.beside:
        return next(run for run in aligned(_info.beside) if run.info.id == _info.id)
    run = Run(_info)
    len(run.facts)
    return run


def finished_run(info: RunInfo) -> Run:
    """The run with its rows in memory."""
    return _run(_mark(info), info)


@st.cache_resource(max_entries=12, show_spinner=False)
def _aligned(marks: tuple[str, ...], _infos: tuple[RunInfo, ...]) -> tuple[Run, ...]:
    from lama_core.runs.aligned import align

    return align([finished_run(info) for info in _infos])


def aligned(infos: tuple[RunInfo, ...]) -> tuple[Run, ...]:
    """Some runs as they are seen beside each other: on the queries that all of them count."""
    return _aligned(tuple(map(_mark, infos)), infos)


@st.cache_resource(max_entries=500, show_spinner=False)
def _stored(query: str, marks: tuple[str, ...], _infos: tuple[RunInfo, ...]) -> Stored | None:
    return find_stored(query, map(finished_run, _infos))


def stored_answer(query: str, infos: tuple[RunInfo, ...]) -> Stored | None:
    """What the first of some runs that asked a query has of it; None if none did."""
    return _stored(query, tuple(map(_mark, infos)), infos)


@st.cache_resource(max_entries=48, show_spinner=False)
def _figures(mark: str, ranking: Ranking, _info: RunInfo) -> "pd.DataFrame":
    from lama_core.metrics import relation_figures

    return relation_figures(finished_run(_info), ranking)


@st.cache_resource(max_entries=120, show_spinner=False)
def _precision(mark: str, ranking: Ranking, k: int, _info: RunInfo) -> "RelationPrecision":
    from lama_core.metrics import relation_precision

    return relation_precision(finished_run(_info), k, ranking)


def scores(
    info: RunInfo,
    by: "By",
    ranking: Ranking,
    k: int,
    relations: tuple[str, ...],
    conceptnet: "Average" = "relations",
) -> "pd.DataFrame":
    """A run's part of the score table."""
    from lama_core.metrics import summarise

    mark = _mark(info)
    figures = _figures(mark, ranking, info)
    precision = _precision(mark, ranking, k, info)
    return summarise(figures, precision, by=by, relations=relations, conceptnet=conceptnet)


@st.cache_resource(max_entries=60, show_spinner=False)
def _drawn(
    what: str, marks: tuple[str, ...], ranking: Ranking, relations: tuple[str, ...], k: int,
    _make: Callable[[list[Run]], Any], _infos: tuple[RunInfo, ...],
) -> Any:  # fmt: skip
    return _make([finished_run(info) for info in _infos])


def of_runs(
    what: str,
    infos: tuple[RunInfo, ...],
    ranking: Ranking,
    relations: tuple[str, ...],
    make: Callable[[list[Run]], T],
    k: int = 1,
) -> T:
    """What `make` makes of some runs, kept under `what` and everything it depends on."""
    marks = tuple(map(_mark, infos))
    return cast(T, _drawn(what, marks, ranking, relations, k, make, infos))


@st.cache_resource(max_entries=6, show_spinner=False)
def _joined(
    marks: tuple[str, ...], ranking: Ranking, _infos: tuple[RunInfo, ...]
) -> "JoinedAnswers":
    from lama_core.metrics.answers import join_answers

    return join_answers([finished_run(info) for info in _infos], ranking=ranking)


def joined_answers(infos: tuple[RunInfo, ...], ranking: Ranking) -> "JoinedAnswers":
    """Some runs' answers side by side."""
    return _joined(tuple(map(_mark, infos)), ranking, infos)


@st.cache_resource(max_entries=6, show_spinner="Reading the data")
def _data(name: str, changed: float, _load: Callable[[str], Any]) -> Any:
    return _load(name)


def dataset_of(name: str) -> Dataset:
    """The facts of that name, read again when their folder has changed."""
    folder = starter_dir() if name == STARTER else installed_dir(name)
    return cast(Dataset, _data(name, _changed(folder), load_dataset))


@st.cache_data(max_entries=500, show_spinner=False)
def _question(
    data: str, changed: float, relation: str, subject: str, gold: str, mined: bool
) -> RelationQuestion:
    return make_question(dataset_of(data), relation, subject, gold, mined=mined)


def relation_question(
    data: str, relation: str, subject: str, gold: str, mined: bool
) -> RelationQuestion:
    """What a relation asks, made again when a set of data or prompts has come or gone."""
    return _question(data, _changed(datasets_dir()), relation, subject, gold, mined)


def analogies_of(name: str) -> AnalogyDataset:
    """The analogies of that name, read again when their folder has changed."""
    folder = starter_analogies_dir() if name == STARTER_ANALOGIES else installed_dir(name)
    return cast(AnalogyDataset, _data(name, _changed(folder), load_analogies))


@st.cache_resource(max_entries=200, show_spinner=False)
def _gain(mark: str, _info: RunInfo) -> "Gain | None":
    from lama_core.probes.prompts.gains import find_gain
    from lama_core.probes.prompts.runs import Study

    return find_gain(Study(Run(_info)))


def gain_of(info: RunInfo) -> "Gain | None":
    """What the best way of choosing prompts gains in a study. Raises as `find_gain`."""
    return _gain(_mark(info), info)


def _changed(folder: Path) -> float:
    return folder.stat().st_mtime if folder.exists() else 0.0


def relations_of(name: str) -> dict[str, str]:
    """Relation -> its name and label, of those with facts in the dataset of that name."""
    dataset = dataset_of(name)
    return {
        relation.name: f"{relation.name} {relation.label}".strip()
        for relation in dataset.relations
        if dataset.facts_of(relation.name)
    }


@st.cache_data(max_entries=60, show_spinner="Looking which prompts these data have")
def _impossible_prompts(
    digest: str, changed: float, relations: tuple[str, ...], limit: int | None, _dataset: Dataset
) -> dict[str, Impossible]:
    return questions.impossible_prompts(_dataset, relations, limit)


def impossible_prompts(
    name: str, relations: tuple[str, ...], limit: int | None
) -> dict[str, Impossible]:
    """The prompt sets that give nothing to ask of these data, and why. relations: () is all."""
    dataset = dataset_of(name)
    chosen = relations or tuple(relations_of(name))
    changed = _changed(installed_dir("lpaqa"))
    return _impossible_prompts(dataset.digest, changed, chosen, limit, dataset)


def solution(
    settings: ClozeSettings,
    name: str,
    question: "Question",
    gold: str,
    keep_query_words: bool,
    top_k: int,
    renormalise: bool,
) -> "Solution":
    """One model's answers to an analogy; `name` is one of the models that are compared."""
    from lama_core.probes.analogy.solve import solve

    def make() -> "Solution":
        candidates, _ = candidates_of(settings)
        return solve(
            [load_model(name, precision=settings.precision)],
            question,
            candidates,
            keep_query_words=keep_query_words,
            top_k=top_k,
            gold=gold or None,
            context=settings.context,
            n_rescored=settings.n_rescored,
            renormalise=renormalise,
            limits=limits_of_pages(),
        )

    key = ("analogy", settings, name, question, gold, keep_query_words, top_k, renormalise)
    return answered(key, make)


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

    def make() -> "ModelScores":
        model = load_model(name, precision=precision)
        return score_pairs(
            [model], query, pairs, template=template, normalise=normalise, limits=limits_of_pages()
        ).models[0]

    return answered(("pairs", name, precision, query, pairs, template, normalise), make)


def ranked_answers(request: "RankRequest", name: str) -> "ModelRanking":
    """One model's ranking of a user's own answers; `name` as in `cloze_answer`."""
    from lama_core.probes.statements.rank import rank_answers

    def make() -> "ModelRanking":
        model = load_model(name, precision=request.precision)
        return rank_answers(model, request, limits_of_pages())

    return answered(("ranked", replace(request, models=(name,))), make)


def scored_sentences(request: "SentencesRequest", name: str) -> "ModelSentences":
    """One model's scores of whole sentences; `name` as in `cloze_answer`."""
    from lama_core.probes.statements.sentences import score_sentences

    def make() -> "ModelSentences":
        model = load_model(name, precision=request.precision)
        return score_sentences(model, request, limits_of_pages())

    return answered(("sentences", replace(request, models=(name,))), make)
