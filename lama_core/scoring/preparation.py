"""From questions to what a model scores: segments of queries that share a candidate list.

A run has one segment, or one for each relation when the candidates are the relation's own objects.
Within a segment the batches are planned over all its queries by length, so that a run that was
stopped plans the same batches again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import NOT_ONE_TOKEN, Candidates, Columns
from lama_core.candidates.spelling import Vocabulary, place_of
from lama_core.errors import UserError
from lama_core.models.protocols import BlankFiller, Context, Encoded
from lama_core.scoring.batches import encode_queries
from lama_core.scoring.queries import NO_FIT, Judge, Knowledge, Question
from lama_core.scoring.ranking import Ints, pad_columns
from lama_core.types import Fact, Query


class NothingCounts(UserError):
    """Not one fact can be asked of a model."""


@dataclass(frozen=True)
class Segment:
    """Queries that share a candidate list.

    encoded: the queries as the model's tokens. rows: int64 [query], the question of each query.
    gold: int64 [query], its column.
    removed: int64 [query, n], columns of the other valid objects, -1 for none.
    """

    columns: Columns
    queries: tuple[Query, ...]
    encoded: tuple[Encoded, ...]
    rows: Ints
    gold: Ints
    removed: Ints


@dataclass(frozen=True)
class Prepared:
    """What one run asks of one model.

    questions: every row, with the reason of those that don't count. segments: the rest.
    """

    questions: tuple[Question, ...]
    segments: tuple[Segment, ...]

    @property
    def n_queries(self) -> int:
        """How many queries the model has to answer."""
        return sum(len(segment.queries) for segment in self.segments)


def prepare(
    questions: Sequence[Question],
    knowledge: Knowledge,
    candidates: Candidates,
    model: BlankFiller,
    context: Context,
) -> Prepared:
    """The questions as segments for one model; those that it can't be asked get their reason.

    candidates: per relation, for each relation's own objects.
    Raises NothingCounts when no fact at all is left.
    """
    groups: dict[str, list[int]] = {}
    for row, question in enumerate(questions):
        name = question.relation.name if candidates.per_relation else ""
        groups.setdefault(name, []).append(row)
    kept = list(questions)
    segments = []
    for name, rows in groups.items():
        columns = _columns(name, knowledge, candidates, model)
        if columns is None:  # the facts of this relation are out, the other relations stay
            for row in rows:
                kept[row] = _excluded(kept[row], NOT_ONE_TOKEN)
        else:
            segments.append(_segment(kept, rows, knowledge, columns, model, context))
    return as_prepared(kept, segments, model.name)


def as_prepared(
    questions: Sequence[Question], segments: Sequence[Segment], model_name: str
) -> Prepared:
    """The questions, with the segments that hold any.

    Raises NothingCounts, with every reason why, where none does.
    """
    full = tuple(segment for segment in segments if segment.queries)
    if not full:
        reasons = sorted({question.excluded for question in questions if question.excluded})
        raise NothingCounts(
            f"None of the {len(questions):,} facts can be asked of {model_name}: "
            f"{'; '.join(reasons)}."
        )
    return Prepared(tuple(questions), full)


def make_judge(
    knowledge: Knowledge, candidates: Candidates, model: BlankFiller, context: Context
) -> Judge:
    """Says why `prepare` would leave out a fact asked in a query, None where it wouldn't."""
    columns_of = cache(lambda relation: _columns(relation, knowledge, candidates, model))

    def judge(fact: Fact, query: Query) -> str | None:
        columns = columns_of(fact.relation)
        if columns is None:
            return NOT_ONE_TOKEN
        column = columns.find(fact.object, place_of(query.parts[0]))
        if isinstance(column, str):
            return column
        return NO_FIT if _encode_one(model, query, context) is None else None

    return judge


def _columns(
    relation: str, knowledge: Knowledge, candidates: Candidates, model: BlankFiller
) -> Columns | None:
    """The candidates as columns; None where no object of the relation is one token."""
    if not candidates.per_relation:
        return candidates.columns(model.vocabulary)
    try:
        words = candidates.of_relation(tuple(knowledge.counts[relation]))
        return words.columns(model.vocabulary)
    except UserError:
        return None


def _segment(
    questions: list[Question],
    rows: Iterable[int],
    knowledge: Knowledge,
    columns: Columns,
    model: BlankFiller,
    context: Context,
) -> Segment:
    """The segment of some rows; writes the reasons of rows that fall out into `questions`."""
    asked: list[tuple[int, Query, int]] = []
    for row in rows:
        question = questions[row]
        if question.excluded is not None or question.query is None:
            continue
        column = columns.find(question.fact.object, place_of(question.query.parts[0]))
        if isinstance(column, str):
            questions[row] = _excluded(question, column)
        else:
            asked.append((row, question.query, column))
    kept, golds, queries, encoded, removed = [], [], [], [], []
    tokens = _encode(model, [query for _, query, _ in asked], context)
    for (row, query, gold), found in zip(asked, tokens, strict=True):
        if found is None:
            questions[row] = _excluded(questions[row], NO_FIT)
            continue
        valid = knowledge.valid(questions[row].fact)
        place = place_of(query.parts[0])
        columns_of_valid = [columns.find(word, place) for word in valid] if len(valid) > 1 else []
        others = sorted({at for at in columns_of_valid if isinstance(at, int) and at != gold})
        kept.append(row)
        golds.append(gold)
        queries.append(query)
        # Any valid object must be rescored, or the gold's rank is by what its left side says.
        encoded.append(replace(found, rescored=(gold, *others)))
        removed.append(others)
    return Segment(
        columns,
        tuple(queries),
        tuple(encoded),
        np.array(kept, dtype=np.int64),
        np.array(golds, dtype=np.int64),
        pad_columns(removed),
    )


def _excluded(question: Question, reason: str) -> Question:
    return question if question.excluded else replace(question, excluded=reason)


def _encode(model: BlankFiller, queries: Sequence[Query], context: Context) -> list[Encoded | None]:
    """Each query as tokens, None where the model can't take it."""
    try:
        return list(encode_queries(model, queries, context))
    except UserError:
        return [_encode_one(model, query, context) for query in queries]


def _encode_one(model: BlankFiller, query: Query, context: Context) -> Encoded | None:
    try:
        return encode_queries(model, [query], context)[0]
    except UserError:
        return None


def count_pieces(subjects: Sequence[str], vocabulary: Vocabulary) -> NDArray[np.int16]:
    """How many pieces the model's tokenizer makes of each subject, int16 [subject]."""
    known = {subject: len(vocabulary.pieces(subject)) for subject in dict.fromkeys(subjects)}
    return np.array([known[subject] for subject in subjects], dtype=np.int16)
