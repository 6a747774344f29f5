"""Runs of statements: of each fact, every answer of its relation's answer space, ranked.

The rows are those of a cloze run, with the answers in the place of the candidates and log-
probabilities over the answers (the softmax of the scores), and two columns besides:

    margin      the gold's score less that of the best answer that isn't right
    scores      of all answers, in their order (`candidates.parquet`), as they were scored; null of
                an answer space that is too large to be kept

Source: Wiland et al. 2024 (BEAR).

Departure: Start token of a statement
Departure: Accuracy over several relations
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.candidates.columns import NOT_A_CANDIDATE
from lama_core.datasets import Dataset
from lama_core.errors import UserError
from lama_core.models.protocols import KINDS, BlankFiller
from lama_core.probes.cloze.spec import ClozeSpec, SegmentWork
from lama_core.probes.statements.answer_spaces import answers_of, as_columns
from lama_core.probes.statements.scoring import (
    AT_ONCE,
    Scoring,
    StatementModel,
    log_softmax,
    score_answers,
)
from lama_core.progress import Unit
from lama_core.runs.info import STATEMENTS
from lama_core.scoring.batches import ScoreBlock
from lama_core.scoring.executors import Tick
from lama_core.scoring.preparation import Prepared, Segment, as_prepared
from lama_core.scoring.queries import NO_FIT, NOTHING_BEFORE, Knowledge, Question, make_questions
from lama_core.scoring.ranking import pad_columns
from lama_core.scoring.top_answers import from_table, rank_block, to_table
from lama_core.types import Query

# Raised by one whenever the same specification would give other numbers; never for anything else.
VERSION = 1
NOT_WRITTEN = "the model can't write the object"
# Of larger answer spaces, the ten best and the gold are kept.
MAX_KEPT = 1000


@dataclass(frozen=True, kw_only=True)
class StatementSpec(ClozeSpec):
    """A run of statements. candidates: the answers, or each relation's own."""

    kind: ClassVar[str] = STATEMENTS
    version: ClassVar[int] = VERSION

    scoring: Scoring = field(default_factory=Scoring)

    def options(self) -> dict[str, Any]:
        """Prompts, answers, and how a statement is scored."""
        return {
            "prompts": [self.prompts.kind, self.prompts.templates],
            "candidates": [self.candidates.per_relation, self.candidates.digest],
            "scoring": [self.scoring.aggregate, self.scoring.part, self._hiding],
            "at once": AT_ONCE,
        }

    def prompt_name(self) -> str:
        """The prompt set's name, as statements, and how they are scored where that is unusual."""
        told = (self.scoring.aggregate, self.scoring.part, self._hiding)
        usual = astuple(Scoring())
        unusual = [name for name, other in zip(told, usual, strict=True) if name and name != other]
        return ", ".join([f"statements {self.prompts.name}", *unusual])

    @property
    def _hiding(self) -> str:
        """What is hidden with a token; empty for a model that sees the left side alone."""
        return "" if self.model_kind == "causal" else self.scoring.hiding

    def make_work(
        self, dataset: Dataset, knowledge: Knowledge, scorer: Any
    ) -> tuple[Prepared, SegmentWork]:
        """The facts that count, each with all answers of its relation."""
        questions = make_questions(dataset, self.relations, self.prompts, self.limit)
        segments = []
        for name in dict.fromkeys(one.relation.name for one in questions):
            rows = [row for row, one in enumerate(questions) if one.relation.name == name]
            answers = answers_of(self.candidates, dataset, name)
            segments.append(_segment(questions, rows, knowledge, answers, scorer))
        prepared = as_prepared(questions, segments, scorer.name)
        return prepared, StatementWork(prepared.segments, self.scoring)

    def more_columns(
        self, work: Any, prepared: Prepared, tables: Sequence[pa.Table]
    ) -> dict[str, pa.Array]:
        """Margins and scores."""
        n_rows = len(prepared.questions)
        margins = np.full(n_rows, np.nan, np.float32)
        taken = np.full(n_rows, -1, dtype=np.int64)
        n_taken = 0
        for (segment, _), table in zip(work.places, tables, strict=True):
            at = prepared.segments[segment].rows[from_table(table)["query"]]
            margins[at] = table["margin"].to_numpy()
            taken[at] = np.arange(n_taken, n_taken + len(at))
            n_taken += len(at)
        scores = pa.chunked_array([table["scores"].combine_chunks() for table in tables])
        picks = pa.array(taken, mask=taken < 0)
        return {
            "margin": pa.array(margins, mask=np.isnan(margins)),
            "scores": scores.combine_chunks().take(picks),
        }


def _segment(
    questions: list[Question],
    rows: Sequence[int],
    knowledge: Knowledge,
    answers: tuple[str, ...],
    model: StatementModel,
) -> Segment:
    """The segment of one relation; writes the reasons of rows that fall out into `questions`."""
    columns = as_columns(answers)
    longest = max(answers, key=lambda answer: len(model.vocabulary.pieces(answer)))
    asked: list[tuple[int, Query, int]] = []
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
        elif not query.parts[0].strip() and not model.scores_first:
            reason = NOTHING_BEFORE
        else:
            asked.append((row, query, gold))
            continue
        questions[row] = replace(question, excluded=reason)
    removed = []
    for row, _, gold in asked:
        known = map(columns.index.get, knowledge.valid(questions[row].fact))
        removed.append(sorted(at for at in known if at is not None and at != gold))
    numbers, golds = (np.array([one[at] for one in asked], dtype=np.int64) for at in (0, 2))
    queries = tuple(query for _, query, _ in asked)
    return Segment(columns, queries, (), numbers, golds, pad_columns(removed))


def _fits(model: BlankFiller, query: Query, longest: str) -> bool:
    """Whether a query with its longest answer can be scored."""
    left, right = query.parts
    try:
        model.encode(Query((f"{left}{longest}{right} ", "")), KINDS[model.kind].contexts[0])
    except UserError:
        return False
    return True


@dataclass(frozen=True)
class StatementWork(SegmentWork):
    """The facts of a run in parts of about AT_ONCE statements, or one fact."""

    scoring: Scoring
    unit: Unit = field(default="statements", init=False)

    def steps(self, segment: int) -> range:
        """A few facts are a part."""
        one = self.segments[segment]
        return range(0, len(one.queries), max(1, AT_ONCE // len(one.columns.words)))

    def size(self, segment: int, first: int) -> tuple[int, int]:
        """Statements and their words."""
        one = self.segments[segment]
        queries = one.queries[first : first + self.steps(segment).step]
        words = sum(len(" ".join(query.parts).split()) + 1 for query in queries)
        n_answers = len(one.columns.words)
        return len(queries) * n_answers, words * n_answers

    def score(self, model: Any, number: int, tick: Tick) -> pa.Table:
        """The rows of one part, with margin and scores."""
        at, first = self.places[number]
        segment = self.segments[at]
        chosen = np.arange(len(segment.queries))[first : first + self.steps(at).step]
        queries = [segment.queries[query] for query in chosen]
        scores = score_answers(model, queries, segment.columns.words, self.scoring, tick)
        return rank_statements(model.name, segment, chosen, scores)


def rank_statements(
    name: str, segment: Segment, chosen: NDArray[np.int64], scores: NDArray[np.float64]
) -> pa.Table:
    """The rows of some queries of a segment; scores: float64 [query, answer].

    name: of the model. Answers that it can't write stand behind all others, and have no rank.
    """
    rows = rank_block(name, segment, ScoreBlock(0, chosen, scores.astype(np.float32), None))
    log_probs = log_softmax(scores)
    at = np.arange(len(chosen))
    rows["log_prob"] = log_probs[at, segment.gold[chosen]]
    for columns in ("first_filtered", "top"):
        picked = rows[columns].reshape(len(rows), -1)
        found = np.where(picked >= 0, log_probs[at[:, None], np.maximum(picked, 0)], -np.inf)
        values = "top_log_probs" if columns == "top" else f"{columns}_log_prob"
        rows[values] = found.reshape(rows[values].shape)
    # The gold's score less the best wrong answer's; NaN where none is wrong.
    wrong = scores.copy()
    wrong[at, segment.gold[chosen]] = -np.inf
    for row, others in enumerate(segment.removed[chosen]):
        wrong[row, others[others >= 0]] = -np.inf
    best = wrong.max(axis=1)
    margins = np.where(np.isneginf(best), np.nan, scores[at, segment.gold[chosen]] - best)
    table = to_table(rows).append_column("margin", pa.array(margins.astype(np.float32)))
    kept = scores.astype(np.float32).tolist() if scores.shape[1] <= MAX_KEPT else [None] * len(rows)
    return table.append_column("scores", pa.array(kept, pa.list_(pa.float32())))
