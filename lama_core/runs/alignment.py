"""Alignment of runs, so that models are compared on the same queries and the same candidates.

Models differ in the facts that they count: an object can be one token for one model and three for
another. Alignment keeps, for runs of the same data and prompts, only the queries that all of them
count, and excludes the others from all runs, with the reason. Runs of statements need only the same
data, because they query each fact once, whatever the template and the score. Unless a run is
chosen by name, it isn't aligned if it would limit the others to less than half of their queries
(`small_runs`).

If the runs ranked different candidates, alignment ranks the shared candidates again, using the ten
best predictions that a run stores:

    rank among the shared candidates = rank - non-shared candidates ranked above the gold answer

The new rank is exact for a gold answer among the ten best. Otherwise only the ten best words are
known, and the new rank is an upper bound. P@k is exact for every k up to `RunInfo.exact_to`: the
smallest number of shared words among the ten best of any query whose gold answer ranks below them.
Departure: Shared facts of runs shown together
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lama_core.grouping import grouped
from lama_core.runs.facts_table import FIRSTS, FLAGS
from lama_core.runs.info import RelationInfo, Run, RunInfo
from lama_core.scoring.queries import SQUAD
from lama_core.scoring.top_answers import TOP_K

NOT_SHARED = "object is not among the shared candidates"
Bools = NDArray[np.bool_]
Words = Mapping[str, pa.Array]
NO_WORDS = pa.array([], pa.string())
# The columns that alignment reads, except the question of SQuAD's facts.
COLUMNS = ("excluded", "relation", "source", "subject", "object", "rank_raw", "rank_filtered")
IDENTITY = ("fact_id", "prompt")  # of a row
LEAST_SHARE = 0.5  # of the queries of the run with most of them, that a run counts to be aligned
Counted = TypeVar("Counted", RunInfo, RelationInfo)


def group_of(info: RunInfo) -> tuple[str, str, str]:
    """Return a run's group: kind of probe, data and prompts; runs of a group have the same queries.

    Imported results belong to the kind of probe whose runs have the same numbers, and to its manual
    prompts. For runs of
    statements the prompts don't matter: each fact is one query.
    """
    prompts = "manual" if info.imported else info.prompts
    return (info.way, info.data_digest, "" if info.ranks_statements else prompts)


def small_runs(infos: Sequence[RunInfo]) -> dict[str, int]:
    """Return run id -> the most queries of a run of its group, for runs that count few of them.

    Aligned with such a run, the others would be scored on less than `LEAST_SHARE` of their queries.
    """
    groups = grouped((group_of(info), info.n) for info in infos)
    most = {group: max(numbers) for group, numbers in groups.items()}
    found = {info.id: most[group_of(info)] for info in infos}
    return {info.id: found[info.id] for info in infos if info.n < LEAST_SHARE * found[info.id]}


def align(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs, in their order, each aligned with the other runs of its group (`group_of`).

    Runs that are alone in their group, or whose group has no shared query, are returned unchanged.
    """
    groups = grouped((group_of(run.info), number) for number, run in enumerate(runs))
    found = list(runs)
    for members in groups.values():
        if len(members) > 1:
            for number, run in zip(members, _align([runs[n] for n in members]), strict=True):
                found[number] = run
    return tuple(found)


def _align(runs: Sequence[Run]) -> Sequence[Run]:
    """Restrict runs of the same data and prompts to their shared queries and candidates."""
    own = runs
    for run in runs:  # each file is opened once
        run.table([*COLUMNS, *IDENTITY])
    shared = _shared_words(runs)
    if shared is not None:
        runs = [_rank_among(run, shared) for run in runs]
    numbers = number_rows(runs)
    counts = [run.counted for run in runs]
    n_runs = np.zeros(max((int(one.max(initial=-1)) for one in numbers), default=-1) + 1, int)
    for number, count in zip(numbers, counts, strict=True):
        n_runs += np.bincount(number[count], minlength=len(n_runs)) > 0
    common = n_runs == len(runs)
    if not common.any():
        return own
    infos = tuple(run.info for run in own)
    aligned = []
    for at, (run, number, count) in enumerate(zip(runs, numbers, counts, strict=True)):
        others = [info.model for other, info in enumerate(infos) if other != at]
        lost = count & ~common[number]
        rest = _exclude(run, lost, f"not counted for {' or '.join(others)}")
        aligned.append(replace(rest, info=replace(rest.info, beside=infos)))
    return aligned


def _exclude(run: Run, lost: Bools, reason: str) -> Run:
    """Return the run with the rows `lost`, bool [row], excluded in its columns and counts."""
    names = run.words_of("relation")
    counts = np.bincount(run.codes("relation")[lost], minlength=len(names)).tolist()
    n_lost = dict(zip(names, counts, strict=True))
    relations = tuple(_with_fewer(one, n_lost.get(one.name, 0)) for one in run.info.relations)
    info = replace(_with_fewer(run.info, int(lost.sum())), relations=relations)
    reasons = [*run.words_of("excluded"), reason]
    codes = np.where(lost, len(reasons) - 1, run.codes("excluded"))
    return replace(
        run, info=info, changed={**run.changed, "excluded": column_of_words(codes, reasons)}
    )


def column_of_words(codes: NDArray[np.integer[Any]], words: Sequence[str]) -> pa.ChunkedArray:
    """Return a column of words; the code -1 is a missing word."""
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    found = pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))
    return pa.chunked_array([found])


def _with_fewer(info: Counted, n_lost: int) -> Counted:
    return replace(info, n=info.n - n_lost, n_excluded=info.n_excluded + n_lost)


def number_rows(runs: Sequence[Run]) -> list[NDArray[np.int64]]:
    """Return a number for each row of each run, int64 [row].

    Rows of the same fact and prompt (see `_prompts`) have the same number, if a run has each fact
    and prompt once; numbers begin at 0.
    """
    distinct: list[pa.ChunkedArray] = []
    places = []
    for run in runs:
        ids = run.table(["fact_id"])["fact_id"]
        at = next((at for at, one in enumerate(distinct) if one.equals(ids)), len(distinct))
        distinct += [ids] * (at == len(distinct))
        places.append(at)
    prompts = _prompts(runs)
    if len(distinct) == 1 and all(np.array_equal(one, prompts[0]) for one in prompts):
        return [np.arange(len(prompts[0]))] * len(runs)
    every = pa.chunked_array([chunk for ids in distinct for chunk in ids.chunks], pa.string())
    codes = every.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    parts = np.split(codes, np.cumsum([len(one) for one in distinct])[:-1])
    n_prompts = max(int(one.max(initial=0)) for one in prompts) + 1
    return [parts[at] * n_prompts + prompt for at, prompt in zip(places, prompts, strict=True)]


def _prompts(runs: Sequence[Run]) -> list[NDArray[np.int64]]:
    """Return the number of each row's prompt, int64 [row]; equal prompts of a relation have one.

    Prompts are equal if their templates have the same text, whatever their numbers in each run. If
    every run has a single prompt for a relation, those are equal, too, whatever their texts.
    """
    found = [run.column("prompt").to_numpy().astype(np.int64) for run in runs]
    infos = [{one.name: one for one in run.info.relations} for run in runs]
    described = {(one.name, one.templates, one.used) for known in infos for one in known.values()}
    n_descriptions = Counter(name for name, *_ in described)
    if n_descriptions.total() == len(n_descriptions):  # such as the runs of an installed dataset
        return found
    used, places = [], []
    for run, prompts in zip(runs, found, strict=True):
        names, most = run.words_of("relation"), int(prompts.max(initial=0)) + 1
        pairs, which = np.unique(run.codes("relation") * most + prompts, return_inverse=True)
        used.append([(names[pair // most], pair % most) for pair in pairs.tolist()])
        places.append(which)
    several = {
        name for pairs in used for name, n in Counter(name for name, _ in pairs).items() if n > 1
    }
    numbers: dict[str, dict[str, int]] = {}

    def number(info: RelationInfo | None, prompt: int) -> int:
        if info is None or n_descriptions[info.name] < 2:  # None: a run of chosen facts only
            return prompt
        known = numbers.setdefault(info.name, {})
        text = info.template_key(prompt) if info.name in several else ""
        return known.setdefault(text, len(known))

    return [
        np.array([number(known.get(name), prompt) for name, prompt in pairs], np.int64)[which]
        for known, pairs, which in zip(infos, used, places, strict=True)
    ]


def differing_candidates(infos: Sequence[RunInfo]) -> bool:
    """Whether the runs ranked different candidates; ranks improve with fewer candidates."""
    return len({(info.candidates_digest, info.n_candidates) for info in infos}) > 1


def _shared_words(runs: Sequence[Run]) -> Words | None:
    """Return the words that all runs ranked, by relation, or under "" for one common list.

    None if all runs ranked the same words. Also None if the lists aren't comparable: a run doesn't
    store its list, some runs lower-case the words and others don't, or some have a list for each
    relation and others a common one.
    """
    if not differing_candidates([run.info for run in runs]):
        return None
    known = [run.words for run in runs if run.words is not None]
    layouts = {(run.info.fold_case, "" in (run.words or ())) for run in runs}
    if len(known) < len(runs) or len(layouts) > 1:
        return None
    return {
        name: reduce(
            lambda words, others: words.filter(pc.is_in(words, value_set=others)),
            [words.get(name, NO_WORDS) for words in known],
        )
        for name in {name for words in known for name in words}
    }


def _rank_among(run: Run, shared: Words) -> Run:
    """Rank a run among the shared words; exclude rows whose gold answer is not shared."""
    counted = run.counted
    codes, _ = run.stored_top_words
    top_shared, gold_shared = _find_shared(run, shared, counted)
    ranks = run.column("rank_raw").to_numpy()
    above_gold = np.arange(TOP_K) < np.nan_to_num(ranks - 1, nan=0)[:, None]
    dropped = above_gold & ~top_shared & (codes >= 0)
    rows = np.flatnonzero(dropped.any(axis=1))
    valid = np.zeros(dropped.shape, bool)
    valid[rows] = _other_valid(run, rows)
    below_top = counted & gold_shared & (ranks > TOP_K)
    exact_to = int(top_shared[below_top].sum(axis=1).min()) if below_top.any() else TOP_K
    info = replace(run.info, n_candidates=max(map(len, shared.values())), exact_to=exact_to)
    # Valid objects that no fact of the run has are subtracted like wrong words, although the stored
    # filtered rank doesn't count them.
    filtered = run.column("rank_filtered").to_numpy() - (dropped & ~valid).sum(axis=1)
    ranked = replace(
        run,
        info=info,
        changed={
            **run.changed,
            "rank_raw": _numbers(ranks - dropped.sum(axis=1)),
            "rank_filtered": _numbers(np.maximum(filtered, 1)),
        },
        choose_firsts=partial(_choose_firsts, run, top_shared[rows], valid[rows], rows),
        top_kept=top_shared,
        changed_words=shared,
    )
    return _exclude(ranked, counted & ~gold_shared, NOT_SHARED)


def _numbers(values: NDArray[Any]) -> pa.ChunkedArray:
    """Return a column of numbers; NaN is null."""
    return pa.chunked_array([pa.array(values, from_pandas=True)])


def _find_shared(run: Run, shared: Words, counted: Bools) -> tuple[Bools, Bools]:
    """Return whether the ten best, bool [row, 10], and gold answers, bool [row], are shared."""
    (top, top_words), own = run.stored_top_words, run.words or {}
    golds, relation = run.codes("object"), run.codes("relation")
    gold_words, lower = _objects(run)
    numbers = {name: at for at, name in enumerate(run.words_of("relation"))}
    top_shared, gold_shared = np.zeros(top.shape, bool), np.zeros(len(golds), bool)
    for name, words in shared.items():
        in_relation = relation == numbers.get(name, len(numbers)) if name else True
        rows = np.flatnonzero(counted & in_relation)
        # A run ranked a gold answer unchanged, or in lower case.
        unchanged = pc.is_in(gold_words, value_set=own.get(name, NO_WORDS))
        top_shared[rows] = _looked_up(top[rows], top_words, words)
        spelled = pc.if_else(unchanged, gold_words, lower)
        gold_shared[rows] = _looked_up(golds[rows], spelled, words)
    return top_shared, gold_shared


def _objects(run: Run) -> tuple[pa.Array, pa.Array]:
    """Return the distinct gold answers of a run, by their codes, and the same in lower case."""
    words = run.words_of("object")
    return pa.array(words, pa.string()), pa.array([word.lower() for word in words], pa.string())


def _looked_up(codes: NDArray[np.integer[Any]], words: pa.Array, known: pa.Array) -> Bools:
    """Return whether the word of each code is known; looks up each once. -1: without a word."""
    used = np.bincount(codes.ravel() + 1, minlength=1).nonzero()[0] - 1
    used = used[used >= 0]
    found = np.zeros(len(words) + 1, bool)  # the last one is for the code -1
    found[used] = pc.is_in(words.take(pa.array(used)), value_set=known)
    return found[codes]


def _other_valid(run: Run, rows: NDArray[np.int64]) -> Bools:
    """Whether each of the ten best of some rows is a valid object other than the gold answer.

    bool [row, 10]. Each SQuAD question has its own objects, as in `scoring.queries.subject_key`.
    """
    found = np.zeros((len(rows), TOP_K), bool)
    subjects = run.codes("subject")
    if SQUAD in run.words_of("source"):
        from_squad = run.column("source").eq(SQUAD).to_numpy()
        queries = pd.factorize(run.column("query")[from_squad])[0]
        subjects[from_squad] = subjects.max() + 1 + queries
    keys = run.codes("relation") * (subjects.max(initial=0) + 2) + subjects + 1
    _, keys, n_facts = np.unique(keys, return_inverse=True, return_counts=True)
    several = np.flatnonzero(n_facts[keys[rows]] > 1)
    if not len(several):
        return found
    codes, top_words = run.stored_top_words
    # The gold answers as codes of the ten best words, as in the data and in lower case; -1: no
    # such word.
    places = [pc.index_in(some, value_set=top_words).fill_null(-1) for some in _objects(run)]
    golds = np.stack(places)[:, run.codes("object")].astype(np.int64)
    pairs = keys * len(top_words) + golds
    top, own = codes[rows[several]], golds[:, rows[several], None]
    here = keys[rows[several], None] * len(top_words) + top
    found[several] = (
        (top >= 0) & (top != own[0]) & (top != own[1]) & np.isin(here, pairs[golds >= 0])
    )
    return found


def _choose_firsts(
    run: Run, shared: Bools, valid: Bools, rows: NDArray[np.int64]
) -> dict[str, pa.ChunkedArray]:
    """Return the columns of the first answers, which change in `rows`: they have dropped words.

    The first answer is null if no shared word is left. shared, valid: for each of the ten best
    words of these rows.
    """
    stored = run.table([*FIRSTS, *FLAGS])
    columns = dict(zip(stored.column_names, stored.columns, strict=True))
    chosen = run.top.codes[rows]
    shared = shared & (chosen >= 0)
    for name, eligible in (("first", shared), ("first_filtered", shared & ~valid)):
        place, none = eligible.argmax(axis=1)[:, None], ~eligible.any(axis=1)
        picked = np.where(none, -1, np.take_along_axis(chosen, place, axis=1)[:, 0])
        used, which = np.unique(picked, return_inverse=True)
        numbers = {word: code for code, word in enumerate(run.words_of(name))}
        of_used = [
            -1 if code < 0 else numbers.setdefault(run.top.known[code], len(numbers))
            for code in used.tolist()
        ]
        codes = run.codes(name)
        codes[rows] = np.array(of_used, codes.dtype)[which]
        columns[name] = column_of_words(codes, list(numbers))
        log_probs = run.column(f"{name}_log_prob").to_numpy(copy=True)
        found = np.take_along_axis(run.top.log_probs[rows], place, axis=1)[:, 0]
        log_probs[rows] = np.where(none, np.nan, found)
        columns[f"{name}_log_prob"] = _numbers(log_probs)
        if name == "first":
            of_valid = np.take_along_axis(valid, place, axis=1)[:, 0] & ~none
            for flag, values in zip(FLAGS, (of_valid, _is_object(run, picked, rows)), strict=True):
                flags = run.column(flag).to_numpy(copy=True)
                flags[rows] = values
                columns[flag] = pa.chunked_array([pa.array(flags)])
    return columns


def _is_object(run: Run, words: NDArray[np.int64], rows: NDArray[np.int64]) -> Bools:
    """Return whether each of some rows has an object of its relation as its word.

    words: codes of the rows' words among the ten best; -1: without a word.
    """
    golds, relation, known = run.words_of("object"), run.codes("relation"), run.top.known
    objects: dict[int, set[str]] = {}
    for pair in np.unique(relation * len(golds) + run.codes("object")).tolist():
        of, gold = pair // len(golds), golds[pair % len(golds)]
        objects.setdefault(of, set()).update((gold, gold.lower()))
    n_words = len(known) + 1
    pairs, which = np.unique(relation[rows] * n_words + words + 1, return_inverse=True)
    found = [
        pair % n_words > 0 and known[pair % n_words - 1] in objects[pair // n_words]
        for pair in pairs.tolist()
    ]
    return np.array(found, bool)[which]
