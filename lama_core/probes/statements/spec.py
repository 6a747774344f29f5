"""Specification of statement runs: a model ranks all answers of a relation for each fact.

The rows are those of a cloze run, with answers instead of candidates and log-probabilities over the
answers (log-softmax of the scores), and two more columns:

    margin      the gold answer's score minus the best wrong answer's score
    scores      the scores of all answers, in the order of `candidates.parquet`; null if there are
                more than MAX_KEPT answers

Source: Wiland et al. 2024 (BEAR).

Departure: Start token of a statement
Departure: Accuracy over several relations
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lama_core.candidates.columns import NOT_A_CANDIDATE, pad_columns
from lama_core.datasets import Dataset
from lama_core.errors import UserError
from lama_core.grouping import grouped
from lama_core.models.protocols import KINDS, BlankFiller
from lama_core.probes.cloze.spec import ClozeSpec, SegmentWork
from lama_core.probes.statements.request import StatementsRequest
from lama_core.progress import Unit
from lama_core.runs.info import STATEMENTS
from lama_core.runs.statement_rows import MAX_KEPT, rank_statements
from lama_core.scoring.answer_spaces import answer_columns, answers_of
from lama_core.scoring.executors import Tick
from lama_core.scoring.preparation import Prepared, Segment, as_prepared
from lama_core.scoring.queries import NO_FIT, NOTHING_BEFORE, Knowledge, Question, make_questions
from lama_core.scoring.refusals import join_rows, score_accepted
from lama_core.scoring.statement_scores import (
    MAX_STATEMENTS_AT_ONCE,
    Scoring,
    StatementModel,
    score_answers,
)
from lama_core.scoring.top_answers import from_table, to_table
from lama_core.types import Query

NOT_WRITTEN = "the model can't write the object"


@dataclass(frozen=True, kw_only=True)
class StatementSpec(ClozeSpec, kind=STATEMENTS, version=1):
    """A run of statements.

    candidates: The answers, for all relations or for each relation. takes_start_token: Whether the
    numbers depend on the request's `start_token`.
    """

    request: StatementsRequest
    takes_start_token: bool = False

    @property
    def scoring(self) -> Scoring:
        """How a statement is scored."""
        request = self.request
        return Scoring(request.aggregate, request.part, request.hiding, request.start_token)

    def options(self) -> dict[str, Any]:
        """Return the prompts, the answers, and how a statement is scored.

        Without `start token`, these are the options of runs before the option existed.
        """
        return {
            "prompts": [self.prompts.kind, self.prompts.templates],
            "candidates": [self.candidates.per_relation, self.candidates.digest],
            "scoring": [self.scoring.aggregate, self.scoring.part, self._hiding],
            "at once": MAX_STATEMENTS_AT_ONCE,
            **({"start token": "needed"} if self._only_needed else {}),
        }

    def prompt_name(self) -> str:
        """Return `statements` with the prompt set's name and the non-default scoring options."""
        chosen = (self.scoring.aggregate, self.scoring.part, self._hiding)
        defaults = astuple(Scoring())[:3]
        changed = [name for name, usual in zip(chosen, defaults, strict=True) if name != usual]
        changed += ["start token where needed"] if self._only_needed else []
        return ", ".join([f"statements {self.prompts.name}", *filter(None, changed)])

    @property
    def _only_needed(self) -> bool:
        """Whether statements lack the start token that lm-pub-quiz puts before each."""
        return self.takes_start_token and self.scoring.start_token == "needed"

    @property
    def _hiding(self) -> str:
        """Which tokens are hidden together with the scored one; empty for a causal model."""
        return "" if self.model_kind == "causal" else self.scoring.hiding

    def make_work(
        self, dataset: Dataset, knowledge: Knowledge, scorer: Any
    ) -> tuple[Prepared, SegmentWork]:
        """Return the questions, and the work of scoring all answers to the counted questions."""
        questions = make_questions(dataset, self.relations, self.prompts, self.limit)
        by_relation = grouped((one.relation.name, row) for row, one in enumerate(questions))
        segments = []
        for name, rows in by_relation.items():
            answers = answers_of(self.candidates, dataset, name)
            first = scorer.scores_first(self.scoring.start_token)
            segments.append(_make_segment(questions, rows, knowledge, answers, scorer, first))
        prepared = as_prepared(questions, segments, scorer.name)
        return prepared, StatementWork(prepared.segments, self.scoring)

    def more_columns(
        self, work: Any, prepared: Prepared, tables: Sequence[pa.Table]
    ) -> dict[str, pa.Array]:
        """Return the columns `margin` and `scores`."""
        n_rows = len(prepared.questions)
        margins = np.full(n_rows, np.nan, np.float32)
        score_rows = np.full(n_rows, -1, dtype=np.int64)  # row of each question in `scores`
        n_done = 0
        for (segment, _), table in zip(work.part_starts, tables, strict=True):
            if not len(table):
                continue
            rows = prepared.segments[segment].rows[from_table(table)["query"]]
            margins[rows] = table["margin"].to_numpy()
            score_rows[rows] = np.arange(n_done, n_done + len(rows))
            n_done += len(rows)
        scores = pa.chunked_array(
            [table["scores"].combine_chunks() for table in tables if len(table)]
        )
        return {
            "margin": pa.array(margins, mask=np.isnan(margins)),
            "scores": scores.combine_chunks().take(pa.array(score_rows, mask=score_rows < 0)),
        }


def _make_segment(
    questions: list[Question],
    rows: Sequence[int],
    knowledge: Knowledge,
    answers: tuple[str, ...],
    model: StatementModel,
    scores_first: bool,
) -> Segment:
    """Return a relation's segment; in `questions`, give each excluded question its reason."""
    columns = answer_columns(answers)
    longest = max(answers, key=lambda answer: len(model.vocabulary.pieces(answer)))
    kept: list[int] = []
    queries: list[Query] = []
    golds: list[int] = []
    removed: list[list[int]] = []
    for row in rows:
        question = questions[row]
        query = question.query
        if question.excluded is not None or query is None:
            continue
        gold = columns.index.get(question.fact.object)
        if gold is None:
            reason = NOT_A_CANDIDATE
        elif not _fits(model, query, longest):
            reason = NO_FIT
        elif not model.vocabulary.can_write(question.fact.object):
            reason = NOT_WRITTEN
        elif not query.parts[0].strip() and not scores_first:
            reason = NOTHING_BEFORE
        else:
            valid = map(columns.index.get, knowledge.valid(question.fact))
            kept.append(row)
            queries.append(query)
            golds.append(gold)
            removed.append(sorted(at for at in valid if at is not None and at != gold))
            continue
        questions[row] = replace(question, excluded=reason)
    return Segment(
        columns,
        tuple(queries),
        (),
        np.array(kept, dtype=np.int64),
        np.array(golds, dtype=np.int64),
        pad_columns(removed),
    )


def _fits(model: BlankFiller, query: Query, longest: str) -> bool:
    """Return whether a query with the longest answer fits the model's window."""
    left, right = query.parts
    try:
        model.encode(Query((f"{left}{longest}{right} ", "")), KINDS[model.kind].contexts[0])
    except UserError:
        return False
    return True


@dataclass(frozen=True)
class StatementWork(SegmentWork):
    """The facts of a run; a part is one fact or at most `MAX_STATEMENTS_AT_ONCE` statements."""

    scoring: Scoring
    unit: Unit = field(default="statements", init=False)

    def first_steps(self, segment: int) -> range:
        found = self.segments[segment]
        return range(
            0, len(found.queries), max(1, MAX_STATEMENTS_AT_ONCE // len(found.columns.words))
        )

    def size(self, segment: int, first: int) -> int:
        """Return the number of statements of a part."""
        found = self.segments[segment]
        queries = found.queries[first : first + self.first_steps(segment).step]
        return len(queries) * len(found.columns.words)

    def score(self, model: Any, number: int, tick: Tick) -> pa.Table:
        """Return the rows of one part, with margin and scores."""
        index, first = self.part_starts[number]
        segment = self.segments[index]
        chosen = np.arange(len(segment.queries))[first : first + self.first_steps(index).step]

        def score_queries(some: Sequence[int]) -> pa.Table:
            queries = [segment.queries[query] for query in some]
            scores = score_answers(model, queries, segment.columns.words, self.scoring, tick)
            rows, margins = rank_statements(model.name, segment, np.array(some), scores)
            single = scores.astype(np.float32)
            kept = single.tolist() if scores.shape[1] <= MAX_KEPT else [None] * len(rows)
            table = to_table(rows).append_column("margin", pa.array(margins))
            return table.append_column("scores", pa.array(kept, pa.list_(pa.float32())))

        return join_rows(list(score_accepted(score_queries, chosen.tolist())))
