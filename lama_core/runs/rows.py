"""Build a run's table of rows from the answers to its queries (see `facts_table`)."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.candidates.columns import NO_COLUMN
from lama_core.candidates.spelling import OpenVocabulary, Vocabulary
from lama_core.runs.facts_table import make_facts_table
from lama_core.scoring.preparation import Prepared, subword_counts
from lama_core.scoring.queries import BLANK, Knowledge
from lama_core.scoring.top_answers import ROW, TOP_K, TopRows
from lama_core.types import Fact, Relation

# Standard tokenisation for Figure 3's ST: words and single punctuation marks.
TOKEN = re.compile(r"\w+|[^\w\s]")
RANKS = ("rank_raw", "rank_filtered", "log_prob")


def fact_columns(facts: Sequence[Fact], relations: Sequence[Relation]) -> dict[str, Any]:
    """Return the columns with what the data say of the facts of rows, and of their relations."""
    return {
        "fact_id": [fact.id for fact in facts],
        "relation": [relation.name for relation in relations],
        "source": [relation.source for relation in relations],
        "type": [relation.type for relation in relations],
        "subject": [fact.subject for fact in facts],
        "object": [fact.object for fact in facts],
        "origin": [fact.origin or None for fact in facts],
    }


def count_columns(facts: Sequence[Fact], knowledge: Knowledge) -> dict[str, Any]:
    """Return the columns that count objects in the data, and the words of the subjects."""
    return {
        "n_valid": [len(knowledge.valid(fact)) for fact in facts],
        "object_count": [knowledge.counts[fact.relation][fact.object] for fact in facts],
        "subject_tokens": [len(TOKEN.findall(fact.subject)) for fact in facts],
    }


def make_rows(
    prepared: Prepared,
    answers: Sequence[tuple[int, TopRows]],
    knowledge: Knowledge,
    vocabulary: Vocabulary,
) -> pa.Table:
    """Return one row per question, in their order.

    Args:
        prepared: The questions and their segments.
        answers: Pairs of a segment number and its `top_answers.ROW` [query], in any order.
        knowledge: The valid objects of each fact in the data, and how often each object occurs.
        vocabulary: The model's vocabulary, to count the subword tokens of the subjects.

    Raises:
        RuntimeError: If a query was scored twice or not at all, which is a bug.
    """
    questions = prepared.questions
    words, scored, done = _gather(prepared, answers)
    facts = [question.fact for question in questions]
    first, first_filtered = scored["top"][:, 0], scored["first_filtered"]
    first_words = [words[column] if column >= 0 else None for column in first]
    known = None if isinstance(vocabulary, OpenVocabulary) else vocabulary
    subjects = [fact.subject for fact in facts]
    top = scored["top"].ravel()
    used, codes = np.unique(top[top >= 0], return_inverse=True)
    unique = pa.array([words[column] for column in used], pa.string()).dictionary_encode()
    flat = np.zeros(len(top), dtype=np.int32)
    flat[top >= 0] = unique.indices.to_numpy()[codes]
    columns: dict[str, Any] = {
        **fact_columns(facts, [question.relation for question in questions]),
        "prompt": [question.prompt for question in questions],
        "query": [question.query.text(BLANK) if question.query else "" for question in questions],
        "excluded": [question.excluded for question in questions],
        **{name: pa.array(scored[name], mask=~done) for name in RANKS},
        "first": first_words,
        "first_log_prob": pa.array(scored["top_log_probs"][:, 0], mask=first < 0),
        "first_filtered": [words[at] if at >= 0 else None for at in first_filtered],
        "first_filtered_log_prob": pa.array(
            scored["first_filtered_log_prob"], mask=first_filtered < 0
        ),
        **_judge_first(prepared, first_words, knowledge),
        **count_columns(facts, knowledge),
        "subject_pieces": subword_counts(subjects, known) if known else [None] * len(subjects),
        "top_words": _fixed(
            pa.DictionaryArray.from_arrays(pa.array(flat, mask=top < 0), unique.dictionary), done
        ),
        "top_log_probs": _fixed(pa.array(scored["top_log_probs"].ravel()), done),
    }
    return make_facts_table(columns, len(facts))


def _judge_first(
    prepared: Prepared, first_words: Sequence[str | None], knowledge: Knowledge
) -> dict[str, list[bool | None]]:
    """Return whether each first answer is another valid object, or an object of the relation.

    None: the question isn't scored, or the model gave no answer. Words are compared as the
    candidates of their relation are spelled.
    """
    questions = prepared.questions
    spell = {
        questions[row].relation.name: segment.columns.candidate
        for segment in prepared.segments
        for row in segment.rows.tolist()
    }
    objects = {name: frozenset(map(key, knowledge.counts[name])) for name, key in spell.items()}
    is_valid: list[bool | None] = []
    is_object: list[bool | None] = []
    for question, word in zip(questions, first_words, strict=True):
        if word is None:
            is_valid.append(None)
            is_object.append(None)
            continue
        relation = question.relation.name
        key = spell[relation]
        valid = set(map(key, knowledge.valid(question.fact)))
        is_valid.append(word != key(question.fact.object) and word in valid)
        is_object.append(word in objects[relation])
    return {"first_is_valid": is_valid, "first_is_object": is_object}


def _gather(
    prepared: Prepared, answers: Sequence[tuple[int, TopRows]]
) -> tuple[list[str], TopRows, NDArray[np.bool_]]:
    """Return all candidates, the scores as `ROW` [question], and which questions are scored.

    The scores' column numbers are indices into the candidates.
    """
    words = [word for segment in prepared.segments for word in segment.columns.words]
    offsets = [0, *accumulate(len(segment.columns.words) for segment in prepared.segments)]
    scored = np.zeros(len(prepared.questions), ROW)
    scored["top"] = scored["first_filtered"] = NO_COLUMN
    scored["top_log_probs"] = -np.inf
    done = np.zeros(len(scored), dtype=bool)
    for number, rows in answers:
        at = prepared.segments[number].rows[rows["query"]]
        done[at] = True
        for name in ROW.names or ():
            scored[name][at] = rows[name]
        for name in ("top", "first_filtered"):
            scored[name][at] += np.where(rows[name] >= 0, offsets[number], 0)
    counts = np.array([question.excluded is None for question in prepared.questions])
    if (done != counts).any():
        raise RuntimeError(f"{(done != counts).sum()} rows were scored twice or not at all")
    return words, scored, done


def _fixed(values: pa.Array, done: NDArray[np.bool_]) -> pa.Array:
    """Return flat values as lists of ten; null where a row was not scored."""
    return pa.FixedSizeListArray.from_arrays(values, TOP_K, mask=pa.array(~done))
