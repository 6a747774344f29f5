"""Results of finished runs: score tables, effects of wording, slices and paired comparisons.

P@k values are between 0 and 1.
"""

import math
from dataclasses import asdict, dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from lama_core import metrics
from lama_core.errors import UserError, did_you_mean
from lama_core.metrics.comparison import CompareRequest, Comparison, Difference, MeanDifference
from lama_core.metrics.comparison import what_differs as what_differs
from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.intervals import METHOD_OF_DIFFERENCES as METHOD_OF_DIFFERENCES
from lama_core.metrics.intervals import METHOD_OF_MEANS as METHOD_OF_MEANS
from lama_core.metrics.intervals import Interval as Interval
from lama_core.metrics.relation_figures import METRICS as METRICS
from lama_core.metrics.score_tables import CONCEPTNET as CONCEPTNET
from lama_core.metrics.score_tables import relations_counted as relations_counted
from lama_core.metrics.slices import slice_differences
from lama_core.metrics.training import Grouping
from lama_core.probes.kinds import FACT_KINDS
from lama_core.reports.table_files import csv_of as csv_of
from lama_core.reports.table_files import json_of_table as json_of_table
from lama_core.requests import Function, option
from lama_core.runs.alignment import align, differing_candidates
from lama_core.runs.find import RunListing as RunListing
from lama_core.runs.find import list_runs, load_run
from lama_core.runs.info import Run as Run
from lama_core.runs.info import RunInfo as RunInfo
from lama_core.views.choice import model_names as model_names
from lama_core.views.scores import ScoresRequest, scores
from lama_core.views.slices import slices
from lama_core.views.table import VIEWS
from lama_core.views.training import TrainingRequest, training
from lama_core.views.view import Shown, narrowed, show
from lama_core.views.ways import ways
from lama_core.views.wording import wording


@dataclass(frozen=True)
class ResultsRequest(ScoresRequest):
    """Request for scores of finished runs, or another view of them: the fields of `results`."""

    command: ClassVar[tuple[str, ...]] = ("results",)
    python: ClassVar[str] = "results"
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
        hint = did_you_mean(name, [one.view.name for one in VIEWS])
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
class ComparedRuns:
    """Two runs on the same facts; differences are B minus A."""

    request: CompareRequest
    a: Run
    b: Run
    found: Comparison

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each relation."""
        return pd.DataFrame([_difference(line) for line in self.found.relations])

    def flips(self, most: int | None = None) -> list[dict[str, Any]]:
        """Return the facts that only one run gets right; the first `most` of them, or all."""
        found = self.found.flips(most)
        columns = {"right": np.where(found["right_a"], "A", "B").tolist()}
        columns |= {
            name: found[name].tolist() for name in ("fact_id", "relation", "query", "object")
        }
        columns |= {name: found[f"first_{name}"].tolist() for name in ("a", "b")}
        columns |= {name: found[name].astype(int).tolist() for name in ("rank_a", "rank_b")}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_json(self) -> dict[str, Any]:
        """Return what `compare --json` prints."""
        found = self.found
        p_value = {"p": found.mcnemar.p}
        return {
            "a": self.a.info.id,
            "b": self.b.info.id,
            "ranking": self.request.ranking,
            "k": self.request.k,
            "over_facts": {
                "unit": found.unit,
                **_difference(found.over_facts),
                "test": "McNemar, exact",
                **p_value,
            },
            "over_relations": {
                "unit": "relation",
                **_flat(found.over_relations),
                "equal": found.over_relations.equal,
                "test": "Student's t",
            },
            "relations": [_difference(line) for line in found.relations],
            "mcnemar": {"only_a": found.mcnemar.only_a, "only_b": found.mcnemar.only_b, **p_value},
            "agreement": asdict(found.agreement),
            "n_unpaired": found.n_unpaired,
            "flips": self.flips(),
        }


@dataclass(frozen=True)
class ComparedSlices:
    """P@k of B minus P@k of A, on slices of the facts that both runs count."""

    request: CompareRequest
    a: Run
    b: Run
    frame: pd.DataFrame

    def to_json(self) -> dict[str, Any]:
        """Return what `compare --slices --json` prints."""
        slices = self.frame.to_dict("records")
        return {"a": self.a.info.id, "b": self.b.info.id, "k": self.request.k, "slices": slices}


def _compare(request: CompareRequest) -> ComparedRuns | ComparedSlices:
    a, b = (load_run(name, kinds=FACT_KINDS) for name in (request.run_a, request.run_b))
    if differing_candidates((a.info, b.info)):
        a, b = align((a, b))
    ranking, k = request.ranking, request.k
    if request.slices:
        joined = join_answers([a, b], ranking=ranking)
        table = slice_differences(joined, k=k, relations=request.relations)
        return ComparedSlices(request, a, b, table)
    relations = request.relations or None
    found = metrics.compare(a, b, ranking=ranking, k=k, relations=relations)
    return ComparedRuns(request, a, b, found)


compare = Function(
    CompareRequest,
    _compare,
    lambda found: found.frame,
    """Compare two runs on the same facts: differences, significance, facts that one run gets right.

    Differences are B minus A. Averaged over facts: Tango's 95% score interval for paired shares and
    McNemar's exact test. Averaged over relations: Tango's interval with an effective number of
    facts, for these relations; Student's 95% interval and t-test, for relations as a sample.

    Returns:
        A DataFrame with a row for each relation; `compare.answer(request)` has the full result.

    Raises:
        UserError: If a run is unknown, or the runs have no facts in common.
    """,
)


def _difference(line: Difference) -> dict[str, Any]:
    record = _flat(line)
    last = {name: record.pop(name) for name in ("only_a", "only_b")}
    return {**record, "relation": line.relation or None, **last}


def _flat(line: Difference | MeanDifference) -> dict[str, Any]:
    """Return a line as a flat dictionary: `low` and `high` replace its interval.

    `sample_low` and `sample_high` replace the interval of relations as a sample.
    """
    record: dict[str, Any] = {}
    for name, value in asdict(line).items():
        if name in ("interval", "sample_interval"):
            prefix = name.removesuffix("interval")
            record |= {f"{prefix}{end}": number for end, number in value.items()}
        else:
            record[name] = value
    return record


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
    words, log_probs = run.top.words[rows[shown]], run.top.log_probs[rows[shown]]
    return Illustration(
        query=str(facts["query"].iloc[shown]),
        answer=str(facts["object"].iloc[shown]),
        rank=int(facts["rank_raw"].iloc[shown]),
        words=tuple(
            (str(word), math.exp(log_prob))
            for word, log_prob in zip(words[:5], log_probs[:5], strict=True)
        ),
        subjects=tuple(facts["subject"].astype(str)),
        ranks=tuple(int(rank) for rank in facts["rank_filtered"]),
        n_candidates=int(run.info.n_candidates or 0),
    )
