"""The table of rows of an imported run (see `facts_table`), made column by column."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lama_core.candidates.columns import NO_COLUMN, pad_columns
from lama_core.errors import UserError
from lama_core.grouping import grouped
from lama_core.runs.alignment import Bools
from lama_core.runs.facts_table import KNOWN_TO, SCHEMA, UNRANKED, encode_top
from lama_core.runs.importers.results import (
    ANSWERS,
    MAX_PREDICTIONS,
    REQUIRED,
    DropList,
    ImportedResults,
)
from lama_core.runs.info import RelationInfo
from lama_core.runs.rows import TOKEN
from lama_core.runs.statement_rows import MAX_KEPT, rank_statements
from lama_core.scoring.answer_spaces import answer_columns
from lama_core.scoring.preparation import Segment
from lama_core.scoring.queries import SQUAD
from lama_core.scoring.ranking import Ints
from lama_core.scoring.top_answers import ROW, TopRows
from lama_core.texts import word_key
from lama_tool_results.matching import Matched, key_column, keyed, keys_of

MAX_TEMPLATES = 200  # of a relation; more texts are numbered fact by fact
MAX_NUMBER = np.iinfo(np.int16).max  # of words and queries in `SCHEMA`
SILENT = "no rank, no prediction and no verdict"  # of a row whose cells are empty
BLOCK = 1 << 22  # scores at a time

_FROM_SCORES = ("rank_raw", "rank_filtered", "log_prob", "first_filtered_log_prob")

Objects = Callable[[pa.Table], list[set[str]]]  # of rows of one relation


def without_unusable_rows(results: ImportedResults) -> ImportedResults:
    """Return the results in the columns of `ANSWERS`, without rows that can't be used.

    Numbers that a row can't have, facts without a name and repeated queries are dropped, whatever
    reader they come from.
    """
    given = results.rows
    columns = {
        one.name: given[one.name].cast(one.type)
        if one.name in given.column_names
        else pa.chunked_array([pa.nulls(len(given), one.type)])
        for one in ANSWERS
    }
    table = pa.table(columns, ANSWERS)
    drops = DropList()
    kept = np.ones(len(table), bool)
    for reason, of_answer, bad in _faults(table, results.options):
        rows = np.flatnonzero(kept & bad)
        drops.add_lines("", (rows + 1).tolist(), reason, of_answer=of_answer)
        kept &= ~bad
    rows = np.flatnonzero(kept)
    queries = pd.Series(_codes(keyed(table), table["query"])[rows])
    for reason, of_answer, bad in _repeated(queries, table.take(pa.array(rows))):
        drops.add_lines("", (rows[bad] + 1).tolist(), reason, of_answer=of_answer)
        kept[rows[bad]] = False
    if not kept.all():  # a filter copies the table
        table = table.filter(pa.array(kept))
    table = table.combine_chunks()
    found = replace(results, rows=table, dropped=(*results.dropped, *drops.records()))
    return _numbered(found)


def _numbered(results: ImportedResults) -> ImportedResults:
    """Return the results with the number of each query's template, and those templates.

    A template that isn't given is the query without its subject. Neither the order of the rows nor
    that of the queries matters.
    """
    table, templates = results.rows, dict(results.templates)
    numbers = table["template"].fill_null(0).to_numpy().copy()
    frame = pd.DataFrame({"relation": table["relation"].to_pandas(), "fact": _codes(keyed(table))})
    unknown = frame[np.array(table["template"].is_null())]
    for name, rows in unknown.groupby("relation", sort=False):
        asked = table.select(["query", "subject"]).take(pa.array(rows.index))
        if not rows["fact"].duplicated().any():  # each fact is asked once
            templates |= {str(name): one for one in [_common_template(asked)] if one}
            continue
        some = asked.to_pylist()
        texts = [(row["query"] or "").replace(row["subject"], "[X]") for row in some]
        codes, distinct = pd.factorize(np.array(texts, object), sort=True)
        known = tuple(map(str, distinct))
        if len(known) > MAX_TEMPLATES:
            codes = rows.assign(text=codes).groupby("fact")["text"].rank("first").to_numpy() - 1
            known = tuple(f"query {n + 1}" for n in range(int(codes.max()) + 1))
            if len(known) > MAX_NUMBER:
                raise UserError(
                    f"A fact of {name} has {len(known):,} queries, and a run at most "
                    f"{MAX_NUMBER:,}: split the file."
                )
        numbers[rows.index], templates[str(name)] = codes, known
    at = table.column_names.index("template")
    rows = table.set_column(at, "template", pa.array(numbers, pa.int16()))
    return replace(results, rows=rows, templates=templates)


def _common_template(asked: pa.Table) -> tuple[str, ...]:
    """Return the template that all queries have; () if there is none. asked: query and subject."""
    first = asked.slice(0, 1).to_pylist()[0]
    template = (first["query"] or "").replace(first["subject"], "[X]")
    start, *others = template.split("[X]")
    parts = [start, *(part for other in others for part in (asked["subject"], other))]
    same = pc.equal(asked["query"], pc.binary_join_element_wise(*parts, ""))
    return (template,) if template and pc.all(same.fill_null(False)).as_py() else ()


def _repeated(queries: "pd.Series[int]", table: pa.Table) -> list[tuple[str, bool, Bools]]:
    """Return as `_faults` the rows whose query, a number, an earlier row has.

    Which of two different answers counts isn't known, so that it is a reason of the answer.
    """
    again = queries.duplicated().to_numpy()
    twins = np.flatnonzero(queries.duplicated(keep=False))
    rows = table.select(["rank", "correct", "predictions"]).take(pa.array(twins)).to_pylist()
    firsts: list[Any] = [
        word_key(row.pop("predictions")[0]) if row["predictions"] else None for row in rows
    ]
    frame = pd.DataFrame(rows).assign(first=firsts).groupby(queries[twins].to_numpy())
    other = np.zeros(len(again), bool)
    other[twins] = frame.transform("nunique").gt(1).any(axis=1)
    return [
        ("the same fact again, with another answer", True, again & other),
        ("the same fact again", False, again & ~other),
    ]


def _faults(table: pa.Table, options: Mapping[str, Sequence[str]]) -> list[tuple[str, bool, Bools]]:
    """Return the reasons to drop rows, whether they are of the answer, and the rows, bool [row]."""
    names = [pc.utf8_length(pc.utf8_trim_whitespace(table[name])) for name in REQUIRED]
    nameless = np.any([_filled(one, 0) == 0 for one in names], axis=0)
    ranks, log_probs = _filled(table["rank"], 1), _filled(table["log_prob"], 0.0)
    lengths = _filled(pc.list_value_length(table["all_scores"]), -1)
    n_options = {name: len(known) for name, known in options.items()}
    wanted = np.array([n_options.get(name, -2) for name in table["relation"].to_pylist()], int)
    bad_score = _has_bad_score(table["scores"], finite=True)
    bad_score |= _has_bad_score(table["all_scores"], finite=False)
    pairs = [(name, one) for name, words in options.items() for one in words]
    known = pa.array([name for name, _ in pairs], pa.string())
    words = pa.array([one for _, one in pairs], pa.string())
    keys, value_set = (
        keys_of(keyed(one), "relation", "object")
        for one in (table, pa.table({"relation": known, "object": words}))
    )
    return [
        ("a fact without relation, subject or object", False, nameless),
        ("the rank isn't a whole number from 1", True, (ranks < 1) | (ranks >= UNRANKED)),
        ("a log-probability that isn't finite", True, ~np.isfinite(log_probs)),
        ("a score that isn't a number", True, bad_score),
        ("not as many scores as answers", True, (lengths >= 0) & (lengths != wanted)),
        (
            "the object isn't one of the answers",
            False,
            (lengths >= 0) & ~pc.is_in(keys, value_set=value_set).to_numpy(zero_copy_only=False),
        ),
        (SILENT, True, _is_silent(table)),
    ]


def _filled(column: pa.ChunkedArray, value: Any) -> NDArray[Any]:
    return column.fill_null(value).to_numpy()


def _has_bad_score(column: pa.ChunkedArray, *, finite: bool) -> Bools:
    """Whether a list of scores has NaN, plus infinity, or (finite) minus infinity, bool [row]."""
    found = np.zeros(len(column), bool)
    flat = pc.list_flatten(column).fill_null(np.nan).to_numpy()
    bad = ~np.isfinite(flat) if finite else np.isnan(flat) | np.isposinf(flat)
    if bad.any():
        found[pc.list_parent_indices(column).to_numpy()[bad]] = True
    return found


def _is_silent(table: pa.Table) -> Bools:
    """Whether a row has no answer at all, bool [row]; an answer may be a finite score."""
    if (scores := table["all_scores"]).null_count < len(scores):
        has_answer = np.zeros(len(table), bool)
        finite = np.isfinite(pc.list_flatten(scores).fill_null(np.nan).to_numpy())
        has_answer[pc.list_parent_indices(scores).to_numpy()[finite]] = True
        return ~has_answer
    has_words = _filled(pc.list_value_length(table["predictions"]), 0) > 0
    return ~has_words & np.array(table["rank"].is_null()) & np.array(table["correct"].is_null())


def _codes(facts: pa.Table, queries: pa.ChunkedArray | None = None) -> Ints:
    """Return a number for each fact or query, the same for equal ones; in order of appearance."""
    keys = keys_of(facts)
    if queries is not None:
        queries = queries.fill_null("").combine_chunks()
        keys = keys_of(pa.table({"fact": keys, "query": queries}), "fact", "query")
    return keys.dictionary_encode().indices.to_numpy().astype(np.int64)


def make_rows(matched: Matched) -> pa.Table:
    """Return the rows of the run; those of a fact with several queries are numbered."""
    table = matched.results.rows
    n_rows = len(table)
    found = _answers(table)
    scored = _ranked_by_scores(matched, found)
    relation = table["relation"]
    own, facts, words = keyed(table), keyed(matched.facts, word_key), keyed(table, word_key)
    said = words.set_column(2, "object", key_column(found["first"], word_key))
    is_object = _is_known(said, facts, "relation", "object")
    is_gold = pc.equal(said["object"], words["object"]).fill_null(False)
    of_squad = _of_squad(matched, table).combine_chunks()
    is_other = pc.invert(pc.or_(is_gold, of_squad))
    is_valid = pc.and_(_is_known(said, facts, *REQUIRED), is_other)
    n_valid = pc.if_else(of_squad, 1, _n_facts(own, matched.facts, "relation", "subject"))
    names = table["subject"].combine_chunks().dictionary_encode()
    lengths = [min(len(TOKEN.findall(name)), MAX_NUMBER) for name in names.dictionary.to_pylist()]
    infos = matched.relations
    columns: dict[str, Any] = {
        "fact_id": matched.fact_ids,
        "relation": relation,
        "source": _mapped(relation, {name: one.source for name, one in infos.items()}),
        "type": _mapped(relation, {name: one.type for name, one in infos.items()}),
        "subject": table["subject"],
        "object": table["object"],
        "origin": matched.origins,
        "prompt": table["template"],
        "query": table["query"].fill_null(""),
        "excluded": pa.nulls(n_rows, pa.string()),
        **found,
        "first_is_valid": is_valid,
        "first_is_object": is_object,
        "n_valid": pc.min_element_wise(n_valid, MAX_NUMBER),
        "object_count": _n_facts(own, matched.facts, "relation", "object"),
        "subject_tokens": pa.array(lengths, pa.int16()).take(names.indices),
        "subject_pieces": pa.nulls(n_rows, pa.int16()),
    }
    arrays = [_cast(columns[one.name], one.type) for one in SCHEMA]
    rows = pa.Table.from_arrays(arrays, names=SCHEMA.names)
    for name, column in (scored or {KNOWN_TO: found[KNOWN_TO]}).items():
        rows = rows.append_column(name, column)
    return rows


def _cast(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(whole.type):
        whole = whole.cast(pa.string()).dictionary_encode()
        if len(whole.dictionary) > MAX_NUMBER:  # a file of many relations
            kind = pa.dictionary(pa.int32(), pa.string())
    return whole.cast(kind)


def _mapped(column: pa.ChunkedArray, values: Mapping[str, str | None]) -> pa.Array:
    known = pa.array(list(values.values()), pa.string())
    return known.take(pc.index_in(column, value_set=pa.array(list(values), pa.string())))


def _is_known(said: pa.Table, facts: pa.Table, *names: str) -> pa.Array:
    return pc.is_in(keys_of(said, *names), value_set=keys_of(facts, *names).unique())


def _n_facts(table: pa.Table, facts: pa.Table, *names: str) -> pa.Array:
    """Return how many known facts have the same names as each row."""
    counts = pc.value_counts(keys_of(facts, *names))
    at = pc.index_in(keys_of(table, *names), value_set=counts.field("values"))
    return counts.field("counts").take(at)


def _answers(table: pa.Table) -> dict[str, Any]:
    """Return the columns of ranks and answers that the results give."""
    found = []
    for name, kind in (("predictions", pa.string()), ("scores", pa.float32())):
        column = table[name].combine_chunks()
        flat = column.flatten()
        if kind == pa.string():
            flat = flat.dictionary_encode()
        sizes = column.value_lengths().fill_null(0).to_numpy()
        places = (np.cumsum(sizes) - sizes)[:, None] + np.arange(MAX_PREDICTIONS)
        missing = np.arange(MAX_PREDICTIONS) >= sizes[:, None]
        values = flat.take(pa.array(places.ravel(), mask=missing.ravel()))
        if kind == pa.float32():
            values = values.fill_null(-np.inf)
        lists = pa.FixedSizeListArray.from_arrays(
            values, MAX_PREDICTIONS, mask=pa.array(sizes == 0)
        )
        found.append(lists)
    words, log_probs = found
    rank, known_to = _ranks(table, words)
    first = pc.list_element(words.fill_null([None] * MAX_PREDICTIONS), 0)
    is_first = pc.fill_null(pc.equal(rank, 1), False)
    gold = table["object"].combine_chunks()
    first = pc.coalesce(first.cast(pa.string()), pc.if_else(is_first, gold, None))
    log_prob = table["log_prob"].combine_chunks()
    first_log_prob = pc.list_element(log_probs.fill_null([None] * MAX_PREDICTIONS), 0)
    first_log_prob = pc.coalesce(first_log_prob, pc.if_else(is_first, log_prob, None))
    return {
        KNOWN_TO: known_to,
        "rank_raw": rank,
        "rank_filtered": rank,
        "log_prob": log_prob,
        "first": first,
        "first_log_prob": first_log_prob,
        "first_filtered": first,
        "first_filtered_log_prob": first_log_prob,
        "top_words": words,
        "top_log_probs": log_probs,
    }


def _ranks(table: pa.Table, words: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the ranks, and in rows without a rank the largest k for which P@k is known.

    A row without a rank has a verdict, the place of the object among the predictions, or both; then
    the verdict decides whether the first answer is right.

    words: lists of ten predictions, null without any.
    """
    codes, known = encode_top([words])
    spelled = key_column(known.cast(pa.string()), word_key).dictionary_encode()
    golds = pc.index_in(key_column(table["object"], word_key), value_set=spelled.dictionary)
    spellings = np.append(spelled.indices.to_numpy(), -1)  # the last one is for the code -1
    is_gold = spellings[codes] == golds.fill_null(-2).to_numpy()[:, None]
    place = np.where(is_gold.any(axis=1), is_gold.argmax(axis=1) + 1, UNRANKED)
    n_words = (codes >= 0).sum(axis=1)
    correct = table["correct"].fill_null(False).to_numpy()
    has_verdict = table["correct"].is_valid().to_numpy()
    is_denied = has_verdict & ~correct & (place == 1)  # other places may be denied, too
    found = np.where(correct, 1, np.where(is_denied, UNRANKED, place))
    depth = np.where(is_denied, 1, np.maximum(n_words, has_verdict))
    has_rank = table["rank"].is_valid().to_numpy()
    found_ranks = pa.array(found, pa.int32(), mask=depth == 0)
    ranks = pc.coalesce(table["rank"].combine_chunks(), found_ranks)
    return ranks, pa.array(depth, pa.int32(), mask=has_rank)


def _ranked_by_scores(matched: Matched, found: dict[str, Any]) -> dict[str, pa.Array]:
    """Replace the columns of `_answers` by those that follow from the scores of all answers.

    Return the columns `margin` and `scores` of runs of statements; {} without such scores.
    """
    table, options = matched.results.rows, matched.results.options
    lists = table["all_scores"].combine_chunks()
    if lists.null_count == len(lists):
        return {}
    scored = np.zeros(len(lists), ROW)
    scored["top"], scored["first_filtered"], scored["top_log_probs"] = NO_COLUMN, NO_COLUMN, -np.inf
    margins = np.full(len(lists), np.nan, np.float32)
    objects = _other_objects(matched)
    relations = table["relation"].combine_chunks()
    n_words = 0
    for name, words in options.items():
        rows = np.flatnonzero(pc.equal(relations, name).to_numpy(zero_copy_only=False))
        size = max(1, BLOCK // max(1, len(words)))
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            flat = lists.take(pa.array(some)).flatten().to_numpy(zero_copy_only=False)
            scores = flat.reshape(len(some), len(words)).astype(np.float64)
            segment = _segment(words, table.take(pa.array(some)), objects)
            found_rows, margin = rank_statements("", segment, np.arange(len(some)), scores)
            for column in ("top", "first_filtered"):
                found_rows[column] += np.where(found_rows[column] >= 0, n_words, 0)
            scored[some], margins[some] = found_rows, margin
        n_words += len(words)
    found |= _columns_of(scored, [word for words in options.values() for word in words])
    short = all(len(words) <= MAX_KEPT for words in options.values())
    kept = lists if short else pa.nulls(len(lists), lists.type)
    return {"margin": pa.array(margins, mask=np.isnan(margins)), "scores": kept}


def _segment(words: Sequence[str], given: pa.Table, objects: Objects) -> Segment:
    """Return rows of one relation as a segment of queries. words: the relation's answers."""
    columns = answer_columns(tuple(words))
    keys = key_column(pa.array(words, pa.string()))
    index = {key: at for at, key in reversed(list(enumerate(keys.to_pylist())))}
    gold = pc.index_in(key_column(given["object"]), value_set=keys).to_numpy()
    removed = [
        sorted(index[one] for one in others if one in index) for others in objects(keyed(given))
    ]
    return Segment(columns, (), (), np.arange(len(given)), gold.astype(int), pad_columns(removed))


def _columns_of(scored: TopRows, words: Sequence[str]) -> dict[str, Any]:
    """Return the columns of `_answers` for `top_answers.ROW` [row]."""
    known = pa.array(words, pa.string())

    def named(columns: NDArray[np.int32]) -> pa.Array:
        return known.take(pa.array(columns, mask=columns < 0))

    lists = {
        "top_words": named(scored["top"].ravel()).dictionary_encode(),
        "top_log_probs": pa.array(scored["top_log_probs"].ravel()),
    }
    return {
        **{name: pa.array(scored[name]) for name in _FROM_SCORES},
        "first": named(scored["top"][:, 0]),
        "first_log_prob": pa.array(scored["top_log_probs"][:, 0]),
        "first_filtered": named(scored["first_filtered"]),
        **{
            name: pa.FixedSizeListArray.from_arrays(values, MAX_PREDICTIONS)
            for name, values in lists.items()
        },
    }


def _of_squad(matched: Matched, table: pa.Table) -> pa.ChunkedArray:
    """Whether each row is of SQuAD, where each question has its own objects."""
    names = [name for name, one in matched.relations.items() if one.source == SQUAD]
    return pc.is_in(table["relation"], value_set=pa.array(names, pa.string()))


def _other_objects(matched: Matched) -> Objects:
    """Return a function that gives each row's other right answers, for the keys of its fact."""
    facts = matched.facts.filter(pc.invert(_of_squad(matched, matched.facts)))
    several = facts.filter(pc.greater(_n_facts(facts, facts, "relation", "subject"), 1))
    rows = several.to_pylist()
    found = grouped(((row["relation"], row["subject"]), row["object"]) for row in rows)
    objects = {key: {*names} for key, names in found.items()}
    nothing: set[str] = set()

    def of(given: pa.Table) -> list[set[str]]:
        names = zip(*(given[name].to_pylist() for name in REQUIRED), strict=True)
        return [objects.get((name, subject), nothing) - {gold} for name, subject, gold in names]

    return of


def describe_relations(matched: Matched, rows: pa.Table) -> tuple[RelationInfo, ...]:
    """Return the relations of the run, with their counts and templates."""
    names = rows["relation"].cast(pa.string())
    frame = pd.DataFrame({"relation": names.to_pandas(), "prompt": rows["prompt"].to_numpy()})
    found = []
    for key, prompts in frame.groupby("relation", sort=False)["prompt"]:
        name = str(key)
        templates = tuple(matched.results.templates.get(name, ()))
        used = tuple(map(int, np.unique(prompts)))
        info = RelationInfo.of(matched.relations[name], templates, len(prompts), 0)
        found.append(replace(info, used=() if used == tuple(range(len(templates) or 1)) else used))
    return tuple(found)
