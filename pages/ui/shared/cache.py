"""Results that are cached for all sessions."""

import math
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.candidates.columns import Candidates
from lama_core.datasets import AnalogyDataset, Dataset, QuestionDataset
from lama_core.datasets.library.installed import (
    STARTER,
    STARTER_ANALOGIES,
    Listed,
    datasets_dir,
    installed_dir,
    load_analogies,
    load_dataset,
    load_questions,
    starter_analogies_dir,
    starter_dir,
)
from lama_core.datasets.passages import load_corpus
from lama_core.errors import TimeOverError, Unavailable, UserError
from lama_core.lessons.stored_answers import (
    Stored,
    find_stored,
    missing_models,
    recorded_answer,
    stored_runs,
)
from lama_core.metrics.verdicts import overridden, with_verdicts
from lama_core.models.sources.catalog import find_model, known_models
from lama_core.models.sources.locations import locate
from lama_core.progress import Pace, Progress, brief_time, describe, ignore
from lama_core.queries.kind import NO_CANDIDATES, One, P, QueryKind, R, S
from lama_core.queue import nothing
from lama_core.runs.chosen_facts import facts_of, restrict
from lama_core.runs.info import FACT_KINDS, Run, RunInfo, read_info
from lama_core.scoring.limits import load_page_limits
from lama_core.scoring.queries import unavailable_prompts
from lama_core.scoring.ranking import Ranking
from lama_core.scoring.retrieval import is_indexed
from lama_core.scoring.shared_fields import CandidateSettings, ClozeSettings, ModelSettings
from lama_core.service import queries
from lama_core.service.process import Answer, run_query
from lama_core.views.figure import Figure, relation_label
from lama_core.views.view import Found, Shown, View
from lama_core.views.view import R as V
from pages.ui.shared import visitors
from pages.ui.shared.query_queue import cached_answer, queue_slot
from pages.ui.shared.text import plain

if TYPE_CHECKING:  # the metrics import scipy, which the Ask page doesn't need
    from lama_core.metrics.fact_answers import JoinedAnswers
    from lama_core.probes.prompts.gains import Gain
    from lama_core.probes.tracing.traces import Traces

SHOW_AFTER = 2.0  # seconds until a query shows its progress
_SECONDS: dict[tuple[str, str], float] = {}  # kind of query and model -> the shortest time
STOPPED = "stopped query"  # in the session: the key of the query that the visitor stopped


def _mark(info: RunInfo) -> str:
    """A run's cache key: what identifies it, its chosen facts, and the runs aligned with it."""
    own = (str(info.folder), info.digest, info.made, info.title, info.only)
    return "|beside ".join(("|".join(own), *map(_mark, info.beside)))


_MARKS: dict[int, bytes] = {}  # of frames that exist, by their addresses


def _fields(figure: Figure) -> dict[str, Any]:
    """A figure's cache key: its fields, with its frame's digest, which is computed once."""
    frame = figure.frame
    if id(frame) not in _MARKS:
        rows = pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()
        _MARKS[id(frame)] = blake2b(f"{[*frame]}".encode() + rows).digest()
        weakref.finalize(frame, _MARKS.pop, id(frame))
    return {**vars(figure), "frame": _MARKS[id(frame)]}


def cached(
    max_entries: int, spinner: str | bool = False
) -> Callable[[Callable[P, Answer]], Callable[P, Answer]]:
    """Decorate a function to cache its results for all sessions, without copying them.

    The cache key is the arguments whose names don't begin with an underscore; a run's key is from
    `_mark`.
    """
    marks: dict[str | type[Any], Callable[[Any], Any]] = {
        RunInfo: _mark,
        Figure: _fields,
        CandidateSettings: repr,
        ClozeSettings: repr,
    }
    return st.cache_resource(max_entries=max_entries, show_spinner=spinner, hash_funcs=marks)


def _asker(while_waiting: Callable[[], object] = nothing) -> queries.Visitor:
    """The visitor of this page; those who may download models wait for them without a limit.

    while_waiting: Called regularly while the page waits for an answer.
    """
    loading = math.inf if visitors.may("fetch") else load_page_limits().loading

    def check() -> None:
        visitors.stop_if_left()
        while_waiting()

    return queries.Visitor(visitors.address(), loading, check)


def candidates_of(settings: CandidateSettings) -> Candidates:
    """The candidates of the chosen models together."""
    found = _found_candidates(settings.ranked)
    if not found:
        with queue_slot():
            found.append(run_query(_asker(), queries.candidates_of, settings.ranked))
    return found[0]


@cached(16)
def _found_candidates(settings: CandidateSettings) -> list[Candidates]:
    """A cached list that holds the result of `candidates_of`; empty before its first call.

    `candidates_of` may wait, and would hold the cache's lock while it waits.
    """
    return []


def complete_words(*about: Any) -> list[str | None]:
    """The answers of `queries.complete_words`, queued and cached."""
    return cached_answer(
        ("complete_words", about), partial(run_query, _asker(), queries.complete_words, *about)
    )


def prepared(kind: QueryKind[R, S, Any], request: R) -> S:
    """What a query's kind prepares from its request; made again after datasets are changed."""
    book = getattr(request, "open_book", None)
    if book is not None and not is_indexed(load_corpus(book)):
        raise UserError(
            f"The open-book text {book!r} has no search index. Choose it on the tab Sentence."
        )
    return _prepared(repr(request), _changed(datasets_dir()), kind, request)


@cached(500)
def _prepared(mark: str, changed: float, _kind: QueryKind[R, S, Any], _request: R) -> S:
    return _kind.prepare(replace(_request, on_note=ignore), load_page_limits())


def candidates_for(request: ModelSettings) -> Candidates:
    """The candidates of a request's models together; none if its kind ranks no words."""
    return candidates_of(request) if isinstance(request, CandidateSettings) else NO_CANDIDATES


def answer(
    kind: QueryKind[R, S, One],
    request: R,
    name: str,
    shared: S | None = None,
    *,
    since: float = 0.0,
    **calls: Any,
) -> One:
    """One model's answer to a query, from the cache or the scoring process.

    A request with candidates is cached with all its models, because they determine the words. An
    answer that takes long has a progress bar with the time left, and a button that stops it.

    Args:
        kind: The kind of the query.
        request: The request, with the models that are installed.
        name: The model.
        shared: What `prepared` returns, by default; a part of it for a part of the answer.
        since: When the visitor wanted a new answer (`time.time`), for requests with a field
            `again`; 0 for a stored answer.
        calls: The callbacks of `queries.answer`; `on_progress` replaces the bar and the button.

    Raises:
        UserError: If the visitor stopped the query; a button resumes it.
    """
    shared = prepared(kind, request) if shared is None else shared
    alone = request if isinstance(request, CandidateSettings) else replace(request, models=(name,))
    if since:
        alone = replace(alone, **cast(Any, {"again": True}))
    digest = blake2b(repr(shared).encode(errors="backslashreplace")).digest()
    key = (kind.name, alone, name, digest, since)

    def ask() -> One:
        if st.session_state.get(STOPPED) == key:
            st.button(
                "Resume",
                key=f"resume {name}",
                icon=":material/play_arrow:",
                on_click=st.session_state.pop,
                args=(STOPPED, None),
            )
            raise UserError("Stopped before the answer.")
        with _progress_shown(kind.name, name, key) as show:
            asker = _asker(nothing if "on_progress" in calls else partial(show, None))
            calls.setdefault("on_progress", show)
            started = time.monotonic()
            try:
                found = run_query(asker, queries.answer, alone, name, shared, **calls)
            except TimeOverError as error:
                st.button("Try again", key=f"again {name} {hash(key)}", icon=":material/refresh:")
                raise UserError(str(error).replace(name, find_model(name).title, 1)) from error
            took = time.monotonic() - started
            _SECONDS[kind.name, name] = min(took, _SECONDS.get((kind.name, name), took))
            return cast(One, found)

    return cached_answer(key, ask)


def usual_seconds(kind: str, names: Iterable[str]) -> float:
    """How long an answer of these models took, model by model: the shortest times so far."""
    return sum(_SECONDS.get((kind, name), 0.0) for name in names)


@contextmanager
def _progress_shown(
    kind: str, name: str, key: Hashable
) -> Iterator[Callable[[Progress | None], object]]:
    """Yield a callback that draws a bar and a button to stop, after `SHOW_AFTER` seconds.

    Its argument is the latest step; None if there was no further step. Without steps the bar says
    how long such an answer took before.
    """
    started, pace, usual = time.monotonic(), Pace(), usual_seconds(kind, [name])
    drawn: list[DeltaGenerator] = []
    steps = [Progress(f"Querying {find_model(name).title}")]

    def show(step: Progress | None) -> None:
        if step is not None:
            steps[:] = [step]
            pace.see(step)
        if time.monotonic() - started < SHOW_AFTER:
            return
        if not drawn:
            with box.container():
                drawn.append(st.progress(0.0))
                st.button(
                    "Stop",
                    # A lesson's step asks one model several queries: each has its own button.
                    key=f"stop {name} {hash(key)}",
                    icon=":material/stop:",
                    on_click=st.session_state.update,
                    args=({STOPPED: key},),
                )
        (last,) = steps
        share, text = last.done / last.total if last.total else 0.0, describe(last, pace)
        if not last.total and usual > 1:
            share = (time.monotonic() - started) / usual
            text += f", about {brief_time(usual)}"
        drawn[0].progress(min(1.0, share), plain(text))

    box = st.empty()
    try:
        yield show
    except Exception:  # not a click, after which the visitor still sees the bar
        box.empty()
        raise
    box.empty()


def uncached(query: Callable[P, Answer], *arguments: P.args, **options: P.kwargs) -> Answer:
    """Return `query(*arguments, **options)`, one of `queries`, without caching its result."""
    with queue_slot():
        return run_query(_asker(), query, *arguments, **options)


def about_models(query: Callable[P, Answer], *arguments: P.args, **options: P.kwargs) -> Answer:
    """Return the result of one of `queries` that needs no forward pass; it isn't queued."""
    return run_query(queries.Visitor(), query, *arguments, **options)


def can_complete_words(info: RunInfo) -> bool:
    """Whether a run's answers can be completed to whole words.

    Only for words at a blank, ranked by an installed causal model from the left context.
    """
    ranks_after = info.ranks_words and info.model_kind == "causal" and info.context == "left"
    return ranks_after and any(
        entry.name == info.model and locate(entry) is not None for entry in known_models()
    )


@cached(24)
def finished_run(info: RunInfo) -> Run:
    """A finished run with its rows in memory; aligned or restricted as `info` is."""
    if info.beside:
        return next(run for run in aligned(info.beside) if run.info.id == info.id)
    if info.only:
        return restrict(finished_run(read_info(info.folder)), info.only, facts_of(info.only))
    run = Run(info)
    run.table(["excluded"])
    return run


@cached(400)
def restricted(info: RunInfo, only: str) -> RunInfo:
    """The description of a run restricted to chosen facts; see `chosen_facts.text_of`."""
    return restrict(Run(info), only, facts_of(only)).info


@cached(12)
def aligned(infos: tuple[RunInfo, ...]) -> tuple[Run, ...]:
    """Runs restricted to the queries that all of them score."""
    from lama_core.runs.alignment import align

    return align([finished_run(info) for info in infos])


def stored_answers(
    settings: ClozeSettings, queries: Collection[str]
) -> dict[str, dict[str, Stored]]:
    """Model that isn't installed -> query -> recorded answer, or that of a finished run.

    Empty for a model whose runs have none of the queries.
    """
    runs = stored_runs(settings)
    found = {
        name: {
            query: one
            for query in queries
            if (one := recorded_answer(query, name, settings))
            or (one := stored_answer(query, runs.get(name, ())))
        }
        for name in missing_models(settings.models)
    }
    return {name: answers for name, answers in found.items() if answers or name in runs}


@cached(500)
def stored_answer(query: str, infos: tuple[RunInfo, ...]) -> Stored | None:
    """The stored answer to a query from the first run that has one; None if no run has."""
    return find_stored(query, map(finished_run, infos))


@cached(60)
def table_of_runs(
    what: str, infos: tuple[RunInfo, ...], _make: Callable[[list[Run]], Answer]
) -> Answer:
    """Return `_make(runs)`, cached by `what` and the runs."""
    return _make([finished_run(info) for info in infos])


def shown(
    view: View[V, Found], request: V, infos: tuple[RunInfo, ...], names: Mapping[str, str]
) -> Shown[V, Found]:
    """A view of these runs with its tables and figure; names: run id -> the run's title.

    Raises:
        UserError: If these runs can't be shown together.
    """
    view.check(infos)
    verdicts = []
    if getattr(request, "verdicts", False):  # which can change after a run is finished
        verdicts = [{**overridden(finished_run(info))} for info in infos]
    return _shown(f"{view.name} {request!r} {verdicts}", infos, {**names}, view, request)


@cached(200)
def _shown(
    what: str,
    infos: tuple[RunInfo, ...],
    names: dict[str, str],
    _view: View[V, Found],
    _request: V,
) -> Shown[V, Found]:
    runs = [finished_run(info) if info.kind in FACT_KINDS else Run(info) for info in infos]
    if getattr(_request, "verdicts", False):
        runs = [with_verdicts(run) for run in runs]
    return Shown(_view, _request, infos, _view.compute(runs, _request), names)


@cached(30)
def traces_of(info: RunInfo, relation: str) -> "Traces":
    """The causal traces of a run's facts, of one relation or all."""
    from lama_core.probes.tracing.traces import read_traces

    return read_traces(Run(info), relation)


@cached(6)
def joined_answers(infos: tuple[RunInfo, ...], ranking: Ranking) -> "JoinedAnswers":
    """The answers of several runs in one table."""
    from lama_core.metrics.fact_answers import join_answers

    return join_answers([finished_run(info) for info in infos], ranking=ranking)


@cached(200)
def precision_of(info: RunInfo) -> tuple[float, float]:
    """P@1 of a run over its facts, and its mean over relations; NaN without scored facts."""
    from lama_core.metrics.score_tables import relation_precision

    n_facts = np.array([one.n for one in info.relations])
    if not n_facts.any():
        return math.nan, math.nan
    shares = relation_precision(Run(info), 1, info.ranking).p_at_k[n_facts > 0]
    return float(np.average(shares, weights=n_facts[n_facts > 0])), float(np.mean(shares))


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


def _read(name: str, load: Callable[[str], Any]) -> Any:
    """The content of a dataset; read again when its folder has changed."""
    bundled = {STARTER: starter_dir(), STARTER_ANALOGIES: starter_analogies_dir()}
    return _data(name, _changed(bundled.get(name) or installed_dir(name)), load)


def dataset_of(name: str) -> Dataset:
    """The facts of a dataset."""
    return cast(Dataset, _read(name, load_dataset))


def analogies_of(name: str) -> AnalogyDataset:
    """The analogies of a dataset."""
    return cast(AnalogyDataset, _read(name, load_analogies))


def content_of(listed: Listed) -> Dataset | AnalogyDataset | QuestionDataset:
    """The data of an installed dataset, of any kind."""
    loads: Mapping[str, Any] = {"questions": load_questions, "analogies": load_analogies}
    return cast(
        "Dataset | AnalogyDataset | QuestionDataset",
        _read(listed.name, loads.get(listed.kind, load_dataset)),
    )


def relations_of(name: str) -> dict[str, str]:
    """Relation -> its label, for the relations with facts in a dataset."""
    dataset = dataset_of(name)
    return {
        relation.name: relation_label(relation.name, relation.label)
        for relation in dataset.relations
        if dataset.facts_of(relation.name)
    }


@cached(60, spinner="Checking the prompts for these data")
def _impossible(
    digest: str, changed: float, relations: tuple[str, ...], limit: int | None, _dataset: Dataset
) -> dict[str, Unavailable]:
    return unavailable_prompts(_dataset, relations, limit)


def impossible_prompts(
    name: str, relations: tuple[str, ...], limit: int | None
) -> dict[str, Unavailable]:
    """Prompt set -> why it has no queries for a dataset. relations: () means all."""
    dataset = dataset_of(name)
    return _impossible(
        dataset.digest,
        _changed(installed_dir("lpaqa")),
        relations or tuple(relations_of(name)),
        limit,
        dataset,
    )
