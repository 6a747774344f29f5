"""Alignment of runs, so that models are compared on the same queries and the same candidates.

Models differ in the facts that they count: an object can be one token for one model and three for
another. Alignment keeps, for runs of the same data and prompts, only the queries that all of them
count, and excludes the others from all runs, with the reason. Runs of statements need only the same
data, because they query each fact once, whatever the template and the score.

If the runs ranked different candidates, alignment ranks the shared candidates again, using the ten
best predictions that a run stores:

    rank among the shared candidates = rank - non-shared candidates ranked above the gold answer

The new rank is exact for a gold answer among the ten best. Otherwise only the ten best words are
known, and the new rank is an upper bound. P@k is exact for every k up to `RunInfo.exact_to`, the
smallest number of shared words among the ten best of such a query.
Departure: Shared facts of runs shown together
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.runs.info import RelationInfo, Run, RunInfo, TopPredictions
from lama_core.scoring.queries import SQUAD
from lama_core.scoring.top_answers import TOP_K

# The columns that are null in an excluded row.
FIRSTS = ["first", "first_log_prob", "first_filtered", "first_filtered_log_prob"]
ANSWERED = ["rank_raw", "rank_filtered", "log_prob", *FIRSTS]

NOT_SHARED = "object is not among the shared candidates"
Bools = NDArray[np.bool_]
Words = Mapping[str, frozenset[str]]
Counted = TypeVar("Counted", RunInfo, RelationInfo)


def group_of(info: RunInfo) -> tuple[str, str, str]:
    """Return the key that runs with the same queries share: kind of probe, data and prompts.

    For runs of statements the prompts don't matter: each fact is one query.
    """
    return (info.kind, info.data_digest, "" if info.ranks_statements else info.prompts)


def align(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs, in their order, each aligned with those of the same data and prompts.

    Runs without such a partner, or without a query in common, are returned unchanged.
    """
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, run in enumerate(runs):
        groups.setdefault(group_of(run.info), []).append(number)
    found = list(runs)
    for members in groups.values():
        if len(members) > 1:
            for number, run in zip(members, _align([runs[n] for n in members]), strict=True):
                found[number] = run
    return tuple(found)


def _align(runs: Sequence[Run]) -> Sequence[Run]:
    """Restrict runs of the same data and prompts to their shared queries and candidates."""
    own = runs
    shared = _shared_words(runs)
    if shared is not None:
        runs = [_rank_among(run, shared) for run in runs]
    keys = [row_keys(run) for run in runs]
    counts = [run.facts["excluded"].isna().to_numpy() for run in runs]
    counted = [key[count] for key, count in zip(keys, counts, strict=True)]
    common = reduce(lambda left, right: left[left.isin(right)], counted)
    if not len(common):
        return own
    infos = tuple(run.info for run in own)
    aligned = []
    for number, (run, key, count) in enumerate(zip(runs, keys, counts, strict=True)):
        others = [info.model for at, info in enumerate(infos) if at != number]
        lost = count & ~key.isin(common)
        facts = run.facts.copy() if run.seen is None else run.seen
        info = _exclude(run.info, facts, lost, f"not counted for {' or '.join(others)}")
        aligned.append(Run(replace(info, beside=infos), facts, run.seen_top, run.seen_words))
    return aligned


def _exclude(info: RunInfo, facts: pd.DataFrame, lost: Bools, reason: str) -> RunInfo:
    """Exclude the rows `lost`, bool [row], from `facts` in place; return the updated counts."""
    facts["excluded"] = facts["excluded"].cat.add_categories([reason])
    facts.loc[lost, "excluded"] = reason
    facts.loc[lost, ANSWERED] = np.nan
    facts.loc[lost, ["first_is_valid", "first_is_object"]] = False
    counts = facts.loc[lost, "relation"].value_counts()
    n_lost = {str(name): int(n) for name, n in counts.items()}
    relations = tuple(_with_fewer(one, n_lost.get(one.name, 0)) for one in info.relations)
    return replace(_with_fewer(info, int(lost.sum())), relations=relations)


def _with_fewer(info: Counted, n_lost: int) -> Counted:
    return replace(info, n=info.n - n_lost, n_excluded=info.n_excluded + n_lost)


def row_keys(run: Run) -> pd.Index:
    """Return a key for each row: the fact, and the prompt if the run has several per fact."""
    facts = run.facts
    prompts = facts["prompt"].to_numpy()
    if len(prompts) and prompts.any():
        return pd.Index(facts["fact_id"].astype(str) + "\t" + prompts.astype(str))
    return pd.Index(facts["fact_id"].astype(str) + "\t0")


def differing_candidates(infos: Sequence[RunInfo]) -> bool:
    """Whether the runs ranked different candidates; ranks improve with fewer candidates."""
    return len({(info.candidates_digest, info.n_candidates) for info in infos}) > 1


def _shared_words(runs: Sequence[Run]) -> Words | None:
    """Return the words that all runs ranked, by relation, or under "" for one common list.

    None if all runs ranked the same words, or if the lists can't be intersected: a run doesn't
    store its words, only some runs fold case (`Paris` and `paris`), or only some rank each
    relation's own objects.
    """
    if not differing_candidates([run.info for run in runs]):
        return None
    known = [run.words for run in runs if run.words is not None]
    layouts = {(run.info.fold_case, "" in (run.words or ())) for run in runs}
    if len(known) < len(runs) or len(layouts) > 1:
        return None
    no_words: frozenset[str] = frozenset()
    return {
        name: reduce(frozenset.intersection, [words.get(name, no_words) for words in known])
        for name in {name for words in known for name in words}
    }


def _rank_among(run: Run, shared: Words) -> Run:
    """Rank a run among the shared words; exclude rows whose gold answer is not shared."""
    facts, top = run.facts.copy(), run.top
    counted = facts["excluded"].isna().to_numpy()
    top_shared, gold_shared = _find_shared(run, shared, counted)
    ranks = facts["rank_raw"].to_numpy()
    above_gold = np.arange(TOP_K) < np.nan_to_num(ranks - 1, nan=0)[:, None]
    dropped = above_gold & ~top_shared & top.words.astype(bool)
    changed = np.flatnonzero(dropped.any(axis=1))
    valid = np.zeros(dropped.shape, bool)
    valid[changed] = _other_valid(facts, top.words, changed)
    facts["rank_raw"] -= dropped.sum(axis=1)
    facts["rank_filtered"] -= (dropped & ~valid).sum(axis=1)

    order = np.argsort(~top_shared, axis=1, kind="stable")
    empty = np.where(counted, -np.inf, np.nan)[:, None]
    shared_words = top.words.copy()
    shared_words[~top_shared] = None
    words = np.take_along_axis(shared_words, order, axis=1)
    log_probs = np.take_along_axis(np.where(top_shared, top.log_probs, empty), order, axis=1)
    best = TopPredictions(words, log_probs.astype(np.float32))
    if len(changed):
        _choose_firsts(facts, best, np.take_along_axis(valid, order, axis=1), changed)

    below_top = counted & gold_shared & (ranks > TOP_K)
    exact_to = int(top_shared[below_top].sum(axis=1).min()) if below_top.any() else TOP_K
    info = _exclude(run.info, facts, counted & ~gold_shared, NOT_SHARED)
    n_words = max(map(len, shared.values()))
    return Run(replace(info, n_candidates=n_words, exact_to=exact_to), facts, best, shared)


def _find_shared(run: Run, shared: Words, counted: Bools) -> tuple[Bools, Bools]:
    """Return whether the ten best, bool [row, 10], and gold answers, bool [row], are shared."""
    facts, top, own = run.facts, run.top, run.words or {}
    top_shared, gold_shared = np.zeros(top.words.shape, bool), np.zeros(len(facts), bool)
    for name, words in shared.items():
        rows = np.flatnonzero(counted & ((facts["relation"] == name).to_numpy() | (name == "")))
        known = pd.Index(sorted(words))
        top_shared[rows] = pd.Index(top.words[rows].ravel()).isin(known).reshape(-1, TOP_K)
        golds = facts["object"].iloc[rows].astype(str)
        spelled = golds.where(golds.isin(own.get(name, ())), golds.str.lower())
        gold_shared[rows] = spelled.isin(known)
    return top_shared, gold_shared


def _other_valid(facts: pd.DataFrame, words: NDArray[np.object_], rows: NDArray[np.int64]) -> Bools:
    """Whether each word of some rows is a valid object other than the gold answer, bool [row, 10].

    Each SQuAD question has its own objects, as in `scoring.queries.subject_key`.
    """
    subjects = facts["query"].where(facts["source"].eq(SQUAD), facts["subject"].astype(str))
    objects: dict[tuple[str, str], set[str]] = {}
    keys = list(zip(facts["relation"].astype(str), subjects.astype(str), strict=True))
    golds = facts["object"].astype(str).tolist()
    for key, gold in zip(keys, golds, strict=True):
        objects.setdefault(key, set()).update((gold, gold.lower()))
    found = np.zeros((len(rows), TOP_K), bool)
    for at, row in enumerate(rows.tolist()):
        others = objects[keys[row]] - {golds[row], golds[row].lower()}
        if others:
            found[at] = [word in others for word in words[row]]
    return found


def _choose_firsts(
    facts: pd.DataFrame, best: TopPredictions, valid: Bools, rows: NDArray[np.int64]
) -> None:
    """Set the first answers of rows that lost words; null where no shared word is left."""
    objects = {
        str(name): {spelled for word in known.astype(str) for spelled in (word, word.lower())}
        for name, known in facts.groupby("relation", observed=True)["object"]
    }
    chosen, valid = best.words[rows], valid[rows]
    has_word = chosen.astype(bool)
    for name, eligible in (("first", has_word), ("first_filtered", has_word & ~valid)):
        place, none = eligible.argmax(axis=1), ~eligible.any(axis=1)
        words = facts[name].astype(object).to_numpy(copy=True)
        words[rows] = np.where(none, None, chosen[np.arange(len(rows)), place])
        facts[name] = pd.Categorical(words)
        log_probs = np.where(none, np.nan, best.log_probs[rows, place])
        facts.loc[rows, f"{name}_log_prob"] = log_probs.astype(np.float32)
    facts.loc[rows, "first_is_valid"] = valid[:, 0]
    relations = facts["relation"].iloc[rows].astype(str)
    is_object = [word in objects[name] for word, name in zip(chosen[:, 0], relations, strict=True)]
    facts.loc[rows, "first_is_object"] = is_object
