"""Results of finished runs: the options of `results`, and facts that illustrate rank and P@1.

P@k values are between 0 and 1.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

import numpy as np

from lama_core.errors import UserError, did_you_mean
from lama_core.metrics.training import Grouping
from lama_core.requests import Function, option
from lama_core.runs.find import list_runs, load_run
from lama_core.runs.info import FACT_KINDS
from lama_core.views.choice import model_names as model_names
from lama_core.views.scores import ScoresRequest, scores
from lama_core.views.slices import slices
from lama_core.views.table import VIEWS
from lama_core.views.training import TrainingRequest, training
from lama_core.views.view import Shown, narrowed, show
from lama_core.views.ways import ways
from lama_core.views.wording import wording


@dataclass(frozen=True)
class ResultsRequest(ScoresRequest, command="results", python="results"):
    """Request for scores of finished runs, or another view of them: the fields of `results`."""

    exclusive: ClassVar[tuple[str, ...]] = ("wording", "slices", "ways", "series", "published")

    wording: Annotated[
        bool,
        option(
            "Show the effect of the wording instead: consistency of paraphrases, and negated and "
            "misprimed queries compared with plain ones."
        ),
    ] = False
    slices: Annotated[
        bool,
        option(
            "Show P@k and kinds of wrong answers on slices of the facts instead: by frequency of "
            "the gold answer, length of the subject, gold answer in the subject, type of relation, "
            "and origin of the fact."
        ),
    ] = False
    ways: Annotated[
        bool,
        option(
            "Compare each model's cloze, whole-answer and generated answers to the same facts "
            "instead, with the facts that it knows in one way only."
        ),
    ] = False
    series: Annotated[
        bool,
        option(
            "Show the checkpoints of each training run instead, by step: P@k, mean rank, facts "
            "learned and forgotten, and the order in which relations are learned."
        ),
    ] = False


def _results(request: ResultsRequest) -> Shown[Any, Any]:
    if request.runs and len(request.runs) == 1:
        _check_name(request.runs[0])
    if request.series:
        by: Grouping = "source" if request.by == "source" else "all"
        return show(training.view, narrowed(TrainingRequest, request, by=by))
    for chosen, function in (
        (request.slices, slices),
        (request.wording, wording),
        (request.ways, ways),
    ):
        if chosen:
            return show(function.view, narrowed(function.request, request))
    return show(scores.view, request)


def _check_name(name: str) -> None:
    """Raise UserError for a word that is nearly a view's name and no run's."""
    try:
        load_run(name, kinds=FACT_KINDS)
    except UserError as error:
        hint = did_you_mean(
            name, [one.view.name for one in VIEWS if one.request.command[0] == "results"]
        )
        raise UserError(f"{error}{hint}") from error


results = Function(
    ResultsRequest,
    _results,
    lambda found: found.frame,
    """Score finished runs: P@1, P@10, MRR, macro P@1 and mean rank.

    Returns:
        A DataFrame with a row for each run and relation (or source, or type).

    Raises:
        UserError: If there is no finished run, or a run or relation is unknown.

    >>> import lama_core as lama
    >>> scores = lama.results(["starter-minilm_mlm-manual"], by="source")
    >>> scores[["source", "n"]]
           source     n
    0   Google_RE   387
    1        TREx  9365
    2  ConceptNet  2016
    3       Squad   124
    """,
)


@dataclass(frozen=True)
class Illustration:
    """Facts of a bundled run that illustrate rank and P@1.

    Attributes:
        query: The query of one fact, with [MASK].
        answer: Its gold answer.
        rank: The gold answer's raw rank.
        words: The first predictions for the query, with their probabilities.
        subjects: The subjects of all facts.
        ranks: The filtered ranks of all facts.
        n_candidates: Number of candidates.
    """

    query: str
    answer: str
    rank: int
    words: tuple[tuple[str, float], ...]
    subjects: tuple[str, ...]
    ranks: tuple[int, ...]
    n_candidates: int


@cache
def illustration(model: str) -> Illustration | None:
    """Return ten capitals that count in a model's bundled run; None without the run.

    The query is that of the first fact whose gold answer has a rank from 2 to 5; if there is none,
    that of the first fact.
    """
    infos = [
        info
        for info in list_runs(kinds=("cloze",)).intact()
        if info.bundled and (info.model, info.prompts) == (model, "manual")
    ]
    if not infos:
        return None
    run = load_run(infos[0].id)
    chosen = (run.facts["relation"] == "P36") & run.facts["excluded"].isna()
    rows = np.flatnonzero(chosen.to_numpy())[:10]
    facts = run.facts.iloc[rows]
    shown = int(facts["rank_raw"].between(2, 5).to_numpy().argmax())
    return Illustration(
        query=str(facts["query"].iloc[shown]),
        answer=str(facts["object"].iloc[shown]),
        rank=int(facts["rank_raw"].iloc[shown]),
        words=tuple((word, math.exp(log_prob)) for word, log_prob in run.top.of(rows[shown])[:5]),
        subjects=tuple(facts["subject"].astype(str)),
        ranks=tuple(int(rank) for rank in facts["rank_filtered"]),
        n_candidates=int(run.info.n_candidates or 0),
    )
