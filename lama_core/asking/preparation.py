"""From questions to what a model scores: segments of queries that share a candidate list.

A run has one segment, or one for each relation when the candidates are the relation's own objects.
Within a segment the batches are planned over all its queries by length, so that a run that was
stopped plans the same batches again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lama_core.asking.questions import (
    NO_FIT,
    NOT_A_CANDIDATE,
    NOT_ONE_TOKEN,
    Knowledge,
    Question,
)
from lama_core.asking.ranking import Ints, pad_columns
from lama_core.asking.scoring import encode_queries
from lama_core.candidates.lists import Candidates, Columns, Place, Vocabulary
from lama_core.errors import UserError
from lama_core.models.base import BlankFiller, Context, Encoded
from lama_core.types import Query


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


class GoldFinder:
    """Finds an object's column among a model's candidates, or says why it has none."""

    def __init__(self, candidates: Candidates, columns: Columns, vocabulary: Vocabulary) -> None:
        self._lower = candidates.fold_case or not vocabulary.cased
        self._forms = {
            place: self._keyed(vocabulary.forms(place)) for place in ("after space", "open")
        }
        self._full = candidates.words is None
        self._columns = columns.index()
        ids = columns.token_ids["after space"][:, 0]
        self._by_token = {int(token): column for column, token in enumerate(ids)}

    def _keyed(self, forms: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        return {word.lower(): ids for word, ids in forms.items()} if self._lower else forms

    def column(self, word: str, place: Place = "after space") -> int | str:
        """The word's column, or the reason why it can't be ranked."""
        key = word.lower() if self._lower else word
        ids = self._forms[place].get(key) or self._forms["after space"].get(key)
        if not ids:
            return NOT_ONE_TOKEN
        column = self._by_token.get(ids[0]) if self._full else self._columns.get(key)
        return NOT_A_CANDIDATE if column is None else column


def prepare(
    questions: Sequence[Question],
    knowledge: Knowledge,
    candidates: Candidates,
    model: BlankFiller,
    context: Context,
) -> Prepared:
    """The questions as segments for one model; those that it can't be asked get their reason.

    candidates: named `relation` and without words, for each relation's own objects.
    Raises UserError when no fact at all is left.
    """
    by_relation = candidates.name == "relation"
    groups: dict[str, list[int]] = {}
    for row, question in enumerate(questions):
        groups.setdefault(question.relation.name if by_relation else "", []).append(row)
    kept = list(questions)
    segments = []
    for name, rows in groups.items():
        words = candidates
        if by_relation:
            words = Candidates("relation", tuple(knowledge.counts[name]))
            words = words.folded() if candidates.fold_case else words
        segments.append(_segment(kept, rows, knowledge, words, model, context))
    full = tuple(segment for segment in segments if segment is not None and segment.queries)
    if not full:
        reasons = sorted({question.excluded or "" for question in kept})
        raise UserError(
            f"None of the {len(questions):,} facts can be asked of {model.name}: "
            f"{'; '.join(reason for reason in reasons if reason)}."
        )
    return Prepared(tuple(kept), full)


def _segment(
    questions: list[Question],
    rows: Iterable[int],
    knowledge: Knowledge,
    candidates: Candidates,
    model: BlankFiller,
    context: Context,
) -> Segment | None:
    """The segment of some rows; writes the reasons of rows that fall out into `questions`."""
    try:
        columns = candidates.columns(model.vocabulary)
    except UserError:
        if candidates.name != "relation":
            raise
        # No object of this relation is one token: its facts are out, the other relations stay.
        for row in rows:
            questions[row] = _excluded(questions[row], NOT_ONE_TOKEN)
        return None
    finder = GoldFinder(candidates, columns, model.vocabulary)
    asked: list[tuple[int, Query, int]] = []
    for row in rows:
        question = questions[row]
        query = question.query
        if question.excluded is not None or query is None:
            continue
        column = finder.column(question.fact.object, _place(query))
        if isinstance(column, str):
            questions[row] = _excluded(question, column)
        else:
            asked.append((row, query, column))
    kept: list[tuple[int, Query, int, Encoded]] = []
    tokens = _encode(model, [query for _, query, _ in asked], context)
    for (row, query, column), encoded in zip(asked, tokens, strict=True):
        if encoded is None:
            questions[row] = _excluded(questions[row], NO_FIT)
        else:
            kept.append((row, query, column, encoded))
    removed = []
    for row, query, gold, _ in kept:
        words = knowledge.valid(questions[row].fact)
        others = [finder.column(word, _place(query)) for word in words] if len(words) > 1 else []
        removed.append(sorted({o for o in others if isinstance(o, int) and o != gold}))
    return Segment(
        columns,
        tuple(query for _, query, _, _ in kept),
        tuple(encoded for _, _, _, encoded in kept),
        np.array([row for row, _, _, _ in kept], dtype=np.int64),
        np.array([gold for _, _, gold, _ in kept], dtype=np.int64),
        pad_columns(removed),
    )


def _place(query: Query) -> Place:
    return "after space" if query.parts[0][-1:] == " " else "open"


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
