"""The table of rows of an imported run (see `facts_table`), made column by column."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lama_core.runs.facts_table import SCHEMA, UNRANKED
from lama_core.runs.importers.matching import Matched, keys_of
from lama_core.runs.importers.results import (
    ANSWERS,
    MAX_PREDICTIONS,
    REQUIRED,
    DropList,
    ImportedResults,
)
from lama_core.runs.info import RelationInfo
from lama_core.runs.rows import TOKEN
from lama_core.scoring.queries import SQUAD
from lama_core.scoring.ranking import best_candidates, pad_columns, rank_gold
from lama_core.scoring.statement_scores import log_softmax

MAX_QUERIES = 1000  # of one fact
MAX_KEPT = 1000  # answers; with more, the scores of all of them aren't kept
BLOCK = 1 << 22  # scores at a time
NO_RANK = "the results have no rank for it"

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def usable(results: ImportedResults) -> ImportedResults:
    """Return the results in the columns of `ANSWERS`, without rows that can't be used.

    Numbers that a row can't have, facts without a name and repeated queries are dropped, whatever
    reader they come from.
    """
    rows = results.rows
    columns = {
        one.name: rows[one.name].cast(one.type)
        if one.name in rows.column_names
        else pa.chunked_array([pa.nulls(len(rows), one.type)])
        for one in ANSWERS
    }
    table = pa.table(columns, ANSWERS)
    drops = DropList()
    kept = np.ones(len(table), bool)
    for reason, bad in _faults(table, results.options):
        numbers = np.flatnonzero(kept & bad)
        drops.add_lines("", (numbers + 1).tolist(), reason)
        kept &= ~bad
    if not kept.all():  # a filter copies the table
        table = table.filter(pa.array(kept))
    codes = _codes(table, "relation", "subject", "object", "query")
    seen = codes <= np.maximum.accumulate(np.concatenate([[-1], codes]))[:-1]
    drops.add_lines("", (np.flatnonzero(kept)[seen] + 1).tolist(), "the same fact again")
    if seen.any():
        table = table.filter(pa.array(~seen))
    table = table.combine_chunks()
    return replace(results, rows=table, dropped=(*results.dropped, *drops.records()))


def _faults(table: pa.Table, options: Mapping[str, Sequence[str]]) -> list[tuple[str, Bools]]:
    """Return the reasons to drop rows, and the rows, bool [row] each."""
    names = [pc.utf8_length(pc.utf8_trim_whitespace(table[name])) for name in REQUIRED]
    nameless = np.any([_filled(one, 0) == 0 for one in names], axis=0)
    ranks, log_probs = _filled(table["rank"], 1), _filled(table["log_prob"], 0.0)
    lengths = _filled(pc.list_value_length(table["all_scores"]), -1)
    n_options = {name: len(known) for name, known in options.items()}
    wanted = np.array([n_options.get(name, -2) for name in table["relation"].to_pylist()], int)
    return [
        ("a fact without relation, subject or object", nameless),
        ("the rank isn't a whole number from 1", (ranks < 1) | (ranks >= UNRANKED)),
        ("a log-probability that isn't finite", ~np.isfinite(log_probs)),
        ("a score that isn't a number", _has_bad_score(table["scores"], finite=True)),
        ("a score that isn't a number", _has_bad_score(table["all_scores"], finite=False)),
        ("not as many scores as answers", (lengths >= 0) & (lengths != wanted)),
        ("the object isn't one of the answers", (lengths >= 0) & ~_among(table, options)),
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


def _among(table: pa.Table, options: Mapping[str, Sequence[str]]) -> Bools:
    known = [f"{name}\x1f{one}" for name, words in options.items() for one in words]
    keys = keys_of(table, "relation", "object")
    return pc.is_in(keys, value_set=pa.array(known, pa.string())).to_numpy(zero_copy_only=False)


def _codes(table: pa.Table, *names: str) -> Ints:
    """Return a number for each row, the same for the same texts; in order of appearance."""
    filled = pa.table({name: table[name].fill_null("") for name in names})
    return keys_of(filled, *names).dictionary_encode().indices.to_numpy().astype(np.int64)


def make_rows(matched: Matched) -> pa.Table:
    """Return the rows of the run; those of a fact with several queries are numbered."""
    table = matched.results.rows
    n_rows = len(table)
    found = _answers(table)
    scored = _ranked_by_scores(matched, found)
    excluded = pa.array([NO_RANK]).take(pa.array(np.zeros(n_rows, int), mask=found["counted"]))
    first, relation = found["first"], table["relation"]
    facts = {name: pc.utf8_lower(matched.facts[name]) for name in REQUIRED}
    said = pa.table(
        {
            "relation": pc.utf8_lower(relation),
            "subject": pc.utf8_lower(table["subject"]),
            "object": pc.utf8_lower(first),
        }
    )
    is_object = _is_known(said, facts, "relation", "object")
    is_gold = pc.equal(said["object"], pc.utf8_lower(table["object"])).fill_null(False)
    is_other = pc.invert(pc.or_(is_gold, _of_squad(matched, table))).combine_chunks()
    is_valid = pc.and_(_is_known(said, facts, *REQUIRED), is_other)
    infos = matched.relations
    columns: dict[str, Any] = {
        "fact_id": matched.fact_ids,
        "relation": relation,
        "source": _mapped(relation, {name: one.source for name, one in infos.items()}),
        "type": _mapped(relation, {name: one.type for name, one in infos.items()}),
        "subject": table["subject"],
        "object": table["object"],
        "origin": matched.origins,
        "prompt": pa.array(_number_queries(_codes(table, *REQUIRED))),
        "query": table["query"].fill_null(""),
        "excluded": excluded,
        "rank_raw": found["rank"],
        "rank_filtered": found["rank_filtered"],
        "log_prob": found["log_prob"],
        "first": first,
        "first_log_prob": found["first_log_prob"],
        "first_filtered": found["first_filtered"],
        "first_filtered_log_prob": found["first_filtered_log_prob"],
        "first_is_valid": is_valid,
        "first_is_object": is_object,
        "n_valid": _n_valid(matched),
        "object_count": _n_facts(table, matched.facts, "relation", "object"),
        "subject_tokens": _n_tokens(table["subject"]),
        "subject_pieces": pa.nulls(n_rows, pa.int16()),
        "top_words": found["top_words"],
        "top_log_probs": found["top_log_probs"],
    }
    arrays = [_cast(columns[one.name], one.type) for one in SCHEMA]
    rows = pa.Table.from_arrays(arrays, schema=SCHEMA)
    for name, column in scored.items():
        rows = rows.append_column(name, column)
    return rows


def _cast(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(whole.type):
        whole = whole.cast(pa.string()).dictionary_encode()
    return whole.cast(kind)


def _mapped(column: pa.ChunkedArray, values: Mapping[str, str | None]) -> pa.Array:
    known = pa.array(list(values.values()), pa.string())
    return known.take(pc.index_in(column, value_set=pa.array(list(values), pa.string())))


def _is_known(said: pa.Table, facts: Mapping[str, pa.ChunkedArray], *names: str) -> pa.Array:
    known = keys_of(pa.table(dict(facts)), *names).unique()
    return pc.is_in(keys_of(said, *names), value_set=known)


def _n_facts(table: pa.Table, facts: pa.Table, *names: str) -> pa.Array:
    """Return how many known facts have the same names as each row."""
    counts = pc.value_counts(keys_of(facts, *names))
    at = pc.index_in(keys_of(table, *names), value_set=counts.field("values"))
    return counts.field("counts").take(at)


def _n_valid(matched: Matched) -> pa.Array:
    """Return the number of right answers to each row."""
    table = matched.results.rows
    n_facts = _n_facts(table, matched.facts, "relation", "subject")
    n_facts = pc.if_else(_of_squad(matched, table).combine_chunks(), 1, n_facts)
    return pc.min_element_wise(n_facts, np.iinfo(np.int16).max)


def _n_tokens(subjects: pa.ChunkedArray) -> pa.Array:
    words = subjects.combine_chunks().dictionary_encode()
    counts = [min(len(TOKEN.findall(word)), 32767) for word in words.dictionary.to_pylist()]
    return pa.array(counts, pa.int16()).take(words.indices)


def _number_queries(codes: Ints) -> Ints:
    """Return the number of each row among those of its fact, int64 [row]."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    numbers = np.arange(len(codes)) - np.repeat(starts, np.diff(starts, append=len(codes)))
    found = np.empty(len(codes), np.int64)
    found[order] = numbers
    return np.minimum(found, MAX_QUERIES)


def _answers(table: pa.Table) -> dict[str, Any]:
    """Return the columns of ranks and answers that the results give.

    counted: bool [row], the rows with a rank or a verdict.
    """
    verdicts = pc.if_else(table["correct"].combine_chunks(), 1, UNRANKED).cast(pa.int32())
    rank = pc.coalesce(table["rank"].combine_chunks(), verdicts)
    words, log_probs = _ten_best(table)
    first = pc.list_element(words.fill_null([None] * MAX_PREDICTIONS), 0)
    is_first = pc.fill_null(pc.equal(rank, 1), False)
    gold = table["object"].combine_chunks()
    first = pc.coalesce(first.cast(pa.string()), pc.if_else(is_first, gold, None))
    log_prob = table["log_prob"].combine_chunks()
    first_log_prob = pc.list_element(log_probs.fill_null([None] * MAX_PREDICTIONS), 0)
    first_log_prob = pc.coalesce(first_log_prob, pc.if_else(is_first, log_prob, None))
    counted = rank.is_valid().to_numpy(zero_copy_only=False)
    return {
        "counted": counted,
        "rank": rank,
        "rank_filtered": rank,
        "log_prob": log_prob,
        "first": first,
        "first_log_prob": first_log_prob,
        "first_filtered": first,
        "first_filtered_log_prob": first_log_prob,
        "top_words": words,
        "top_log_probs": log_probs,
    }


def _ten_best(table: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return the predictions and their log-probabilities as lists of ten; null without any."""
    found = []
    for name, kind in (("predictions", pa.string()), ("scores", pa.float32())):
        column = table[name].combine_chunks()
        flat = column.flatten()
        if kind == pa.string():
            flat = flat.dictionary_encode()
        sizes = column.value_lengths().fill_null(0).to_numpy()
        starts = np.cumsum(sizes) - sizes
        places = starts[:, None] + np.arange(MAX_PREDICTIONS)
        missing = np.arange(MAX_PREDICTIONS) >= sizes[:, None]
        values = flat.take(pa.array(places.ravel(), mask=missing.ravel()))
        if kind == pa.float32():
            values = values.fill_null(-np.inf)
        lists = pa.FixedSizeListArray.from_arrays(
            values, MAX_PREDICTIONS, mask=pa.array(sizes == 0)
        )
        found.append(lists)
    return found[0], found[1]


def _ranked_by_scores(matched: Matched, found: dict[str, Any]) -> dict[str, pa.Array]:
    """Replace the columns of `_answers` by those that follow from the scores of all answers.

    Return the columns `margin` and `scores` of runs of statements; {} without such scores.
    """
    table, options = matched.results.rows, matched.results.options
    lists = table["all_scores"].combine_chunks()
    if lists.null_count == len(lists):
        return {}
    scored = _Scores(matched)
    relations = table["relation"].combine_chunks().dictionary_encode()
    codes = relations.indices.to_numpy()
    has_scores = lists.is_valid().to_numpy(zero_copy_only=False)
    for code, name in enumerate(relations.dictionary.to_pylist()):
        rows = np.flatnonzero((codes == code) & has_scores)
        size = max(1, BLOCK // max(1, len(options.get(name, ()))))
        for start in range(0, len(rows), size):
            scored.add(name, rows[start : start + size])
    found |= scored.columns()
    found["counted"] = scored.done
    short = all(len(words) <= MAX_KEPT for words in options.values())
    kept = lists if short else pa.nulls(len(lists), lists.type)
    return {"margin": pa.array(scored.margin, mask=np.isnan(scored.margin)), "scores": kept}


class _Scores:
    """The ranks and best answers that follow from the scores of all answers; arrays are [row]."""

    def __init__(self, matched: Matched) -> None:
        self.table = matched.results.rows
        self.options = matched.results.options
        self.scores = self.table["all_scores"].combine_chunks()
        self.offset: dict[str, int] = {}
        n_words = 0
        for name, words in self.options.items():
            self.offset[name] = n_words
            n_words += len(words)
        n = len(self.table)
        self.done = np.zeros(n, bool)
        self.raw, self.filtered = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.log_prob, self.margin = (np.full(n, np.nan, np.float32) for _ in range(2))
        self.top = np.full((n, MAX_PREDICTIONS), -1, np.int64)
        self.top_log_probs = np.full((n, MAX_PREDICTIONS), -np.inf, np.float32)
        self.first, self.first_log_prob = np.full(n, -1, np.int64), np.full(n, np.nan, np.float32)
        self.objects = _other_objects(matched)

    def add(self, name: str, rows: Ints) -> None:
        """Rank the answers of some rows of a relation."""
        words = pa.array(self.options[name], pa.string())
        flat = self.scores.take(pa.array(rows)).flatten().to_numpy(zero_copy_only=False)
        scores = flat.reshape(len(rows), len(words)).astype(np.float64)
        some = np.isfinite(scores).any(axis=1)
        rows, scores = rows[some], scores[some]
        if not len(rows):
            return
        given = self.table.take(pa.array(rows))
        gold = pc.index_in(given["object"], value_set=words).to_numpy().astype(np.int64)
        index = {word: at for at, word in enumerate(self.options[name])}
        removed = pad_columns([
            sorted(index[one] for one in others if one in index)
            for others in self.objects(name, given)
        ])  # fmt: skip
        single = scores.astype(np.float32)
        ranks = rank_gold(single, gold, removed=removed)
        best = best_candidates(single, MAX_PREDICTIONS)
        first = best_candidates(single, 1, removed=removed).columns[:, 0]
        log_probs, at = log_softmax(scores), np.arange(len(rows))
        self.done[rows] = True
        self.raw[rows], self.filtered[rows] = ranks.raw, ranks.filtered
        self.log_prob[rows] = log_probs[at, gold]
        chosen = np.maximum(best.columns, 0)
        self.top[rows] = np.where(best.columns >= 0, best.columns + self.offset[name], -1)
        self.top_log_probs[rows] = np.where(
            best.columns >= 0, log_probs[at[:, None], chosen], -np.inf
        )
        self.first[rows] = first + self.offset[name]
        self.first_log_prob[rows] = log_probs[at, first]
        wrong = scores.copy()
        wrong[at, gold] = -np.inf
        query, place = np.nonzero(removed >= 0)
        wrong[query, removed[query, place]] = -np.inf
        best_wrong = wrong.max(axis=1)
        known = np.isfinite(best_wrong) & np.isfinite(scores[at, gold])
        with np.errstate(invalid="ignore"):
            self.margin[rows] = np.where(known, scores[at, gold] - best_wrong, np.nan)

    def columns(self) -> dict[str, Any]:
        """Return the columns as `_answers` does."""
        words = pa.array([word for known in self.options.values() for word in known], pa.string())
        left_out = ~self.done
        named = words.take(pa.array(self.top.ravel(), mask=self.top.ravel() < 0))
        mask = pa.array(left_out)
        lists = [named.dictionary_encode(), pa.array(self.top_log_probs.ravel())]
        top, log_probs = (
            pa.FixedSizeListArray.from_arrays(one, MAX_PREDICTIONS, mask=mask) for one in lists
        )
        first = words.take(pa.array(self.top[:, 0], mask=self.top[:, 0] < 0))
        first_filtered = words.take(pa.array(self.first, mask=self.first < 0))
        return {
            "rank": pa.array(self.raw, mask=left_out),
            "rank_filtered": pa.array(self.filtered, mask=left_out),
            "log_prob": pa.array(self.log_prob, mask=left_out),
            "first": first,
            "first_log_prob": pa.array(self.top_log_probs[:, 0], mask=left_out),
            "first_filtered": first_filtered,
            "first_filtered_log_prob": pa.array(self.first_log_prob, mask=left_out),
            "top_words": top,
            "top_log_probs": log_probs,
        }


def _of_squad(matched: Matched, table: pa.Table) -> pa.ChunkedArray:
    """Whether each row is of SQuAD, where each question has its own objects."""
    names = [name for name, one in matched.relations.items() if one.source == SQUAD]
    return pc.is_in(table["relation"], value_set=pa.array(names, pa.string()))


def _other_objects(matched: Matched) -> Callable[[str, pa.Table], list[set[str]]]:
    """Return a function that gives each row's other right answers."""
    facts = matched.facts.filter(pc.invert(_of_squad(matched, matched.facts)))
    several = facts.filter(pc.greater(_n_facts(facts, facts, "relation", "subject"), 1))
    objects: dict[tuple[str, str], set[str]] = {}
    for row in several.to_pylist():
        objects.setdefault((row["relation"], row["subject"]), set()).add(row["object"])
    nothing: set[str] = set()

    def of(relation: str, given: pa.Table) -> list[set[str]]:
        pairs = zip(given["subject"].to_pylist(), given["object"].to_pylist(), strict=True)
        return [objects.get((relation, subject), nothing) - {gold} for subject, gold in pairs]

    return of


def describe_relations(matched: Matched, rows: pa.Table) -> tuple[RelationInfo, ...]:
    """Return the relations of the run, with their counts and templates."""
    counted = pc.is_null(rows["excluded"])
    counts = pa.table({"relation": rows["relation"].cast(pa.string()), "counted": counted})
    sums = counts.group_by("relation").aggregate([("counted", "sum"), ("counted", "count")])
    prompts = rows.select(["relation", "prompt"])
    prompts = prompts.set_column(0, "relation", prompts["relation"].cast(pa.string()))
    most = prompts.group_by("relation").aggregate([("prompt", "max")])
    n_queries = dict(zip(most["relation"].to_pylist(), most["prompt_max"].to_pylist(), strict=True))
    found = []
    for row in sums.to_pylist():
        name, n = row["relation"], int(row["counted_sum"])
        templates = tuple(matched.results.templates.get(name, ()))
        if len(templates) <= n_queries[name]:
            templates = tuple(f"query {n + 1}" for n in range(n_queries[name] + 1))
            templates = templates if len(templates) > 1 else ()
        relation = matched.relations[name]
        found.append(RelationInfo.of(relation, templates, n, int(row["counted_count"]) - n))
    return tuple(found)
