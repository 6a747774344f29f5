"""The answers to a run's questions as its table of rows (see `table`)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.asking.answers import TOP_K, Rows
from lama_core.asking.preparation import Prepared, count_pieces
from lama_core.asking.questions import BLANK, Knowledge
from lama_core.asking.ranking import NO_COLUMN
from lama_core.candidates.spelling import OpenVocabulary, Vocabulary
from lama_core.runs.table import SCHEMA, make_column

# A standard tokenisation, for Figure 3's ST: words and single punctuation signs.
TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass
class _Scored:
    """The scored values by row of the run; `done` says which rows have any."""

    done: NDArray[np.bool_]
    rank_raw: NDArray[np.int32]
    rank_filtered: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    first_filtered_log_prob: NDArray[np.float32]
    top_log_probs: NDArray[np.float32]
    first_filtered: NDArray[np.int32]
    top: NDArray[np.int32]


def make_rows(
    prepared: Prepared,
    answers: Sequence[tuple[int, Rows]],
    knowledge: Knowledge,
    vocabulary: Vocabulary,
) -> pa.Table:
    """One row a question, in their order.

    answers: (which segment, `answers.ROW` [query]), in any order.
    Raises RuntimeError if a query was never scored: a fault of ours, not to be saved.
    """
    questions = prepared.questions
    words, scored = _gather(prepared, answers)
    facts = [question.fact for question in questions]
    subjects = [fact.subject for fact in facts]
    first = scored.top[:, 0]
    first_words = [words[column] if column >= 0 else None for column in first]
    keys = {
        questions[row].relation.name: segment.columns.spelling.key
        for segment in prepared.segments
        for row in segment.rows.tolist()
    }
    objects = _relation_objects(knowledge, keys)
    is_valid: list[bool | None] = []
    is_object: list[bool | None] = []
    for number, (question, word) in enumerate(zip(questions, first_words, strict=True)):
        if not scored.done[number] or word is None:
            is_valid.append(None)
            is_object.append(None)
            continue
        relation = question.relation.name
        gold = keys[relation](question.fact.object)
        valid = set(map(keys[relation], knowledge.valid(question.fact)))
        is_valid.append(word != gold and word in valid)
        is_object.append(word in objects[relation])
    columns: dict[str, Any] = {
        "fact_id": [fact.id for fact in facts],
        "relation": [question.relation.name for question in questions],
        "source": [question.relation.source for question in questions],
        "type": [question.relation.type for question in questions],
        "subject": subjects,
        "object": [fact.object for fact in facts],
        "origin": [fact.origin or None for fact in facts],
        "prompt": [question.prompt for question in questions],
        "query": [question.query.text(BLANK) if question.query else "" for question in questions],
        "excluded": [question.excluded for question in questions],
        "rank_raw": _masked(scored.rank_raw, scored.done),
        "rank_filtered": _masked(scored.rank_filtered, scored.done),
        "log_prob": _masked(scored.log_prob, scored.done),
        "first": first_words,
        "first_log_prob": _masked(scored.top_log_probs[:, 0], first >= 0),
        "first_filtered": [
            words[column] if column >= 0 else None for column in scored.first_filtered
        ],
        "first_filtered_log_prob": _masked(
            scored.first_filtered_log_prob, scored.first_filtered >= 0
        ),
        "first_is_valid": is_valid,
        "first_is_object": is_object,
        "n_valid": [len(knowledge.valid(fact)) for fact in facts],
        "object_count": [knowledge.counts[fact.relation][fact.object] for fact in facts],
        "subject_tokens": [len(TOKEN.findall(subject)) for subject in subjects],
        "subject_pieces": (
            [None] * len(subjects)
            if isinstance(vocabulary, OpenVocabulary)
            else count_pieces(subjects, vocabulary)
        ),
        "top_words": _top_words(words, scored),
        "top_log_probs": _fixed(pa.array(scored.top_log_probs.ravel()), scored.done),
    }
    arrays = []
    for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True):
        column = columns[name]
        known = isinstance(column, pa.Array)
        arrays.append(column.cast(kind) if known else make_column(column, len(facts), kind))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _gather(prepared: Prepared, answers: Sequence[tuple[int, Rows]]) -> tuple[list[str], _Scored]:
    """All candidate words, and the scored values with columns of that list."""
    n_rows = len(prepared.questions)
    words: list[str] = []
    offsets = []
    for segment in prepared.segments:
        offsets.append(len(words))
        words += segment.columns.words
    scored = _Scored(
        np.zeros(n_rows, dtype=bool),
        np.zeros(n_rows, dtype=np.int32),
        np.zeros(n_rows, dtype=np.int32),
        np.zeros(n_rows, dtype=np.float32),
        np.zeros(n_rows, dtype=np.float32),
        np.full((n_rows, TOP_K), -np.inf, dtype=np.float32),
        np.full(n_rows, NO_COLUMN, dtype=np.int32),
        np.full((n_rows, TOP_K), NO_COLUMN, dtype=np.int32),
    )
    for number, rows in answers:
        at = prepared.segments[number].rows[rows["query"]]
        offset = offsets[number]
        scored.done[at] = True
        for name in ("rank_raw", "rank_filtered", "log_prob", "first_filtered_log_prob"):
            getattr(scored, name)[at] = rows[name]
        scored.top_log_probs[at] = rows["top_log_probs"]
        for name in ("top", "first_filtered"):
            columns = rows[name]
            getattr(scored, name)[at] = np.where(columns >= 0, columns + offset, NO_COLUMN)
    counts = np.array([question.excluded is None for question in prepared.questions])
    if (scored.done != counts).any():
        raise RuntimeError(f"{(scored.done != counts).sum()} rows were scored twice or not at all")
    return words, scored


def _relation_objects(
    knowledge: Knowledge, keys: Mapping[str, Callable[[str], str]]
) -> dict[str, frozenset[str]]:
    """Relation -> its objects as the candidates write them."""
    return {name: frozenset(map(key, knowledge.counts[name])) for name, key in keys.items()}


def _masked(values: NDArray[np.generic], done: NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=~done)


def _top_words(words: Sequence[str], scored: _Scored) -> pa.Array:
    used, codes = np.unique(scored.top[scored.top >= 0], return_inverse=True)
    flat = np.full(scored.top.size, -1, dtype=np.int32)
    flat[scored.top.ravel() >= 0] = codes
    dictionary = pa.array([words[column] for column in used], pa.string())
    # The same word may stand in several segments: the dictionary must hold it once.
    unique = dictionary.dictionary_encode()
    indices = unique.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    flat = np.where(flat >= 0, indices[flat], 0) if len(indices) else np.zeros_like(flat)
    values = pa.DictionaryArray.from_arrays(
        pa.array(flat, mask=scored.top.ravel() < 0), unique.dictionary
    )
    return _fixed(values, scored.done)


def _fixed(values: pa.Array, done: NDArray[np.bool_]) -> pa.Array:
    """Flat values as lists of ten, null where a row was not scored."""
    return pa.FixedSizeListArray.from_arrays(values, TOP_K, mask=pa.array(~done))
