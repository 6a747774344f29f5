"""Segments of queries that share a candidate list: a run's questions, prepared for one model.

A run has one segment, or one per relation if the candidates are the objects of each relation. All
queries of a segment are sorted by length before they are divided into batches, so a resumed run has
the same batches.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import NOT_ONE_TOKEN, Candidates, Columns, pad_columns
from lama_core.candidates.spelling import AFTER_SPACE, Place, Vocabulary, places_of
from lama_core.errors import NoStartTokenError, UserError
from lama_core.grouping import grouped
from lama_core.models.protocols import BlankFiller, Context, Encoded
from lama_core.scoring.batches import encode_queries
from lama_core.scoring.queries import NO_FIT, NOTHING_BEFORE, Judge, Knowledge, Question
from lama_core.scoring.ranking import Ints
from lama_core.types import Fact, Query

MAX_REASONS = 4  # a server's reasons can differ from fact to fact


class NoFactCounts(UserError):
    """None of the facts has a query that the model can be scored on."""


@dataclass(frozen=True)
class Segment:
    """Queries that share a candidate list.

    Attributes:
        columns: The candidates.
        queries: The queries.
        encoded: The queries as the model's tokens.
        rows: Index of the question of each query, int64 [query].
        gold: Column of the gold answer, int64 [query].
        removed: Columns of the other valid objects, int64 [query, n], padded with -1.
    """

    columns: Columns
    queries: tuple[Query, ...]
    encoded: tuple[Encoded, ...]
    rows: Ints
    gold: Ints
    removed: Ints


@dataclass(frozen=True)
class Prepared:
    """The queries of one run for one model.

    Attributes:
        questions: All rows of the run; excluded ones have a reason.
        segments: The queries of the rows that count.
    """

    questions: tuple[Question, ...]
    segments: tuple[Segment, ...]


def prepare(
    questions: Sequence[Question],
    knowledge: Knowledge,
    candidates: Candidates,
    model: BlankFiller,
    context: Context,
    kinds: Mapping[str, Collection[Place]] | None = None,
) -> Prepared:
    """Return a run's queries for one model; a question that can't be scored gets the reason.

    Args:
        questions: The questions, in order.
        knowledge: The answers in the data.
        candidates: The words to rank.
        model: The model.
        context: The text that it sees.
        kinds: What `kinds_of_places` returns for all questions, if these are a range of them.

    Raises:
        NoFactCounts: If no question remains, and these are all questions.
    """
    groups = grouped((_segment_name(one, candidates), row) for row, one in enumerate(questions))
    kept = list(questions)
    segments = []
    for name, rows in groups.items():
        asked = {row: place for row in rows if (place := _place(kept[row])) is not None}
        here = {place.kind for place in asked.values()} if kinds is None else kinds.get(name, ())
        columns = _columns(name, knowledge, candidates, model, here)
        if columns is None:  # excludes the facts of this relation only
            for row in rows:
                kept[row] = _excluded(kept[row], NOT_ONE_TOKEN)
        else:
            segments.append(_segment(kept, asked, knowledge, columns, model, context))
    if kinds is not None:
        return Prepared(tuple(kept), tuple(segment for segment in segments if segment.queries))
    return as_prepared(kept, segments, model.name)


def kinds_of_places(questions: Sequence[Question], candidates: Candidates) -> dict[str, set[Place]]:
    """Return the kinds of places at which each segment's words are ranked, by the segment's name.

    They decide which words are one token, so all ranges of a run need those of all its queries.
    """
    found = grouped(
        (_segment_name(question, candidates), place.kind)
        for question in questions
        if (place := _place(question)) is not None
    )
    return {name: set(kinds) for name, kinds in found.items()}


def _place(question: Question) -> Place | None:
    """Return the place of a question's blank; None if it isn't asked."""
    is_asked = question.excluded is None
    return places_of(question.query)[0] if is_asked and question.query is not None else None


def _segment_name(question: Question, candidates: Candidates) -> str:
    """Return the relation's name if each relation has its own candidates, else ""."""
    return question.relation.name * candidates.per_relation


def as_prepared(
    questions: Sequence[Question], segments: Sequence[Segment], model_name: str
) -> Prepared:
    """Return the questions, and the segments that have queries.

    Raises:
        NoFactCounts: If no segment has queries; the message names the reasons.
    """
    full = tuple(segment for segment in segments if segment.queries)
    if not full:
        reasons = named_reasons(question.excluded for question in questions)
        raise NoFactCounts(
            f"None of the {len(questions):,} facts can be scored with {model_name}: {reasons}."
            + (" `statements` ranks answers of any length." if NOT_ONE_TOKEN in reasons else "")
        )
    return Prepared(tuple(questions), full)


def named_reasons(reasons: Iterable[str | None]) -> str:
    """Return the different reasons for exclusions as text, at most `MAX_REASONS` of them."""
    different = sorted({reason for reason in reasons if reason})
    n_more = len(different) - MAX_REASONS
    return "; ".join(different[:MAX_REASONS]) + (f"; and {n_more:,} more" if n_more > 0 else "")


def make_judge(
    knowledge: Knowledge, candidates: Candidates, model: BlankFiller, context: Context
) -> Judge:
    """Return a function that returns why `prepare` would exclude a fact; None if it wouldn't."""
    columns_of = cache(
        lambda relation, kind: _columns(relation, knowledge, candidates, model, [kind])
    )

    def judge(fact: Fact, query: Query) -> str | None:
        place = places_of(query)[0]
        columns = columns_of(fact.relation, place.kind)
        found = columns.find(fact.object, place) if columns else NOT_ONE_TOKEN
        fault = found if isinstance(found, str) else _encode_one(model, query, context)
        return fault if isinstance(fault, str) else None

    return judge


def _columns(
    relation: str,
    knowledge: Knowledge,
    candidates: Candidates,
    model: BlankFiller,
    places: Iterable[Place],
) -> Columns | None:
    """Return the candidates as columns; None if no object of the relation is one token."""
    if not candidates.per_relation:
        return candidates.columns(model.vocabulary, places)
    try:
        objects = tuple(knowledge.counts[relation])
        return candidates.of_relation(objects).columns(model.vocabulary, places)
    except UserError:
        return None


def _segment(
    questions: list[Question],
    places: dict[int, Place],
    knowledge: Knowledge,
    columns: Columns,
    model: BlankFiller,
    context: Context,
) -> Segment:
    """Return the segment of these rows; in `questions`, give the excluded ones a reason.

    places: Row -> the place of its query's blank, for the rows that have a query.
    """
    found: list[tuple[int, Query, int]] = []
    column_of = _find(
        columns, ((questions[row].fact.object, place) for row, place in places.items())
    )
    for row, place in places.items():
        question = questions[row]
        column = column_of[question.fact.object, place]
        if isinstance(column, str):
            questions[row] = _excluded(question, column)
        elif question.query is not None:
            found.append((row, question.query, column))
    kept, golds, queries, encoded, removed = [], [], [], [], []
    encodings: list[Encoded | str]
    try:
        encodings = [*encode_queries(model, [query for _, query, _ in found], context)]
    except UserError:
        encodings = [_encode_one(model, query, context) for _, query, _ in found]
    valid = {
        row: words for row, *_ in found if len(words := knowledge.valid(questions[row].fact)) > 1
    }
    column_of = _find(columns, ((word, places[row]) for row in valid for word in valid[row]))
    rescores = any(not isinstance(one, str) and one.suffix for one in encodings)
    objects: dict[tuple[str, Place], tuple[int, ...]] = {}
    if rescores:  # the columns of the objects of each relation at each place
        at = dict.fromkeys((questions[row].relation.name, place) for row, place in places.items())
        of_object = _find(
            columns, ((word, place) for name, place in at for word in knowledge.counts[name])
        )
        for name, place in at:
            of_words = [of_object[word, place] for word in knowledge.counts[name]]
            objects[name, place] = tuple(one for one in of_words if isinstance(one, int))
    for (row, query, gold), encoding in zip(found, encodings, strict=True):
        if isinstance(encoding, str):
            questions[row] = _excluded(questions[row], encoding)
            continue
        columns_of_valid = [column_of[word, places[row]] for word in valid.get(row, ())]
        others = sorted({at for at in columns_of_valid if isinstance(at, int) and at != gold})
        kept.append(row)
        golds.append(gold)
        queries.append(query)
        proposed = objects.get((questions[row].relation.name, places[row]), ())
        encoded.append(replace(encoding, gold=gold, proposed=proposed))
        removed.append(others)
    return Segment(
        columns,
        tuple(queries),
        tuple(encoded),
        np.array(kept, dtype=np.int64),
        np.array(golds, dtype=np.int64),
        pad_columns(removed),
    )


def _find(
    columns: Columns, words: Iterable[tuple[str, Place]]
) -> dict[tuple[str, Place], int | str]:
    """Return the column of each word at a place, or the reason why it has none."""
    by_place = grouped((place, word) for word, place in dict.fromkeys(words))
    return {
        (word, place): column
        for place, here in by_place.items()
        for word, column in zip(here, columns.find_all(here, place), strict=True)
    }


def _excluded(question: Question, reason: str) -> Question:
    return question if question.excluded else replace(question, excluded=reason)


def _encode_one(model: BlankFiller, query: Query, context: Context) -> Encoded | str:
    """Return a query as tokens, or why the model can't encode it."""
    try:
        return encode_queries(model, [query], context)[0]
    except NoStartTokenError:
        return NOTHING_BEFORE
    except UserError:
        return NO_FIT


def subword_counts(subjects: Sequence[str], vocabulary: Vocabulary) -> NDArray[np.int16]:
    """Return the number of subword tokens of each subject, int16 [subject]."""
    distinct = list(dict.fromkeys(subjects))
    own = zip(distinct, vocabulary.own_tokens(distinct, AFTER_SPACE), strict=True)
    known = {subject: len(ids or vocabulary.pieces(subject)) for subject, ids in own}
    return np.array([known[subject] for subject in subjects], dtype=np.int16)
