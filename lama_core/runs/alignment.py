"""Runs beside each other: like compared with like.

Two models don't count the same facts: an object may be one token of the one and three of the other.
Seen beside each other, runs of the same data and prompts keep only the queries that all of them
count; what one of them left out is left out of all, with the reason. A run of statements asks each
fact once, by whichever template and score: of them the data alone must be the same. Where they
ranked other words, they are ranked on the words that all of them ranked, from the ten best that a
run keeps:

    rank on the shared words = rank - the words before the gold that aren't shared

A gold among the ten best has its rank exactly; one behind them has at least all shared words of the
ten before it, and what is shown is the most that its rank can be. P@k is exact as long as k is no
more than the fewest such words (`RunInfo.exact_to`).
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

# What an excluded row doesn't have, as in a run's own rows.
FIRSTS = ["first", "first_log_prob", "first_filtered", "first_filtered_log_prob"]
ANSWERED = ["rank_raw", "rank_filtered", "log_prob", *FIRSTS]

NOT_SHARED = "object is not among the shared candidates"
Bools = NDArray[np.bool_]
Words = Mapping[str, frozenset[str]]
Counted = TypeVar("Counted", RunInfo, RelationInfo)


def group_of(info: RunInfo) -> tuple[str, str, str]:
    """What runs must share to be scored on the same queries: kind of probe, data, prompts.

    Of statements the facts are the queries, whatever the template.
    """
    return (info.kind, info.data_digest, "" if info.ranks_statements else info.prompts)


def align(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs as they are seen beside each other, in their order.

    Runs of other data or prompts stay as they are, and so do runs without a query in common.
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
    """Runs of the same data and prompts on the queries and words that all of them count."""
    own = runs
    shared = _shared_words(runs)
    if shared is not None:
        runs = [_on_words(run, shared) for run in runs]
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
        info = _leave_out(run.info, facts, lost, f"not counted for {' or '.join(others)}")
        aligned.append(Run(replace(info, beside=infos), facts, run.seen_top, run.seen_words))
    return aligned


def _leave_out(info: RunInfo, facts: pd.DataFrame, lost: Bools, reason: str) -> RunInfo:
    """Give rows, bool [row], the reason why they don't count; what the run then says of itself."""
    facts["excluded"] = facts["excluded"].cat.add_categories([reason])
    facts.loc[lost, "excluded"] = reason
    facts.loc[lost, ANSWERED] = np.nan
    facts.loc[lost, ["first_is_valid", "first_is_object"]] = False
    counts = facts.loc[lost, "relation"].value_counts()
    gone = {str(name): int(n) for name, n in counts.items()}
    relations = tuple(_fewer(one, gone.get(one.name, 0)) for one in info.relations)
    return replace(_fewer(info, int(lost.sum())), relations=relations)


def _fewer(one: Counted, n_lost: int) -> Counted:
    return replace(one, n=one.n - n_lost, n_excluded=one.n_excluded + n_lost)


def row_keys(run: Run) -> pd.Index:
    """What makes a row: the fact, and where a fact is asked in several ways, the prompt."""
    facts = run.facts
    prompts = facts["prompt"].to_numpy()
    if len(prompts) and prompts.any():
        return pd.Index(facts["fact_id"].astype(str) + "\t" + prompts.astype(str))
    return pd.Index(facts["fact_id"].astype(str) + "\t0")


def differing_candidates(infos: Sequence[RunInfo]) -> bool:
    """Whether the runs ranked other words: with fewer of them every rank is better."""
    return len({(info.candidates_digest, info.n_candidates) for info in infos}) > 1


def _shared_words(runs: Sequence[Run]) -> Words | None:
    """The words that all runs ranked, of each relation or under ""; None if nothing is to be done.

    Lists can't be made one where a run doesn't say its words, where only some fold case (`Paris` of
    the one is `paris` of the other), and where only some rank each relation's own objects.
    """
    if not differing_candidates([run.info for run in runs]):
        return None
    known = [run.words for run in runs if run.words is not None]
    ways = {(run.info.fold_case, "" in (run.words or ())) for run in runs}
    if len(known) < len(runs) or len(ways) > 1:
        return None
    nothing: frozenset[str] = frozenset()
    return {
        name: reduce(frozenset.intersection, [words.get(name, nothing) for words in known])
        for name in {name for words in known for name in words}
    }


def _on_words(run: Run, shared: Words) -> Run:
    """The run ranked on fewer words. Golds that aren't among them are left out with the reason."""
    facts, top = run.facts.copy(), run.top
    counted = facts["excluded"].isna().to_numpy()
    here, kept = _among(run, shared, counted)
    ranks = facts["rank_raw"].to_numpy()
    before = np.arange(TOP_K) < np.nan_to_num(ranks - 1, nan=0)[:, None]
    gone = before & ~here & top.words.astype(bool)
    changed = np.flatnonzero(gone.any(axis=1))
    valid = np.zeros(gone.shape, bool)
    valid[changed] = _valid(facts, top.words, changed)
    facts["rank_raw"] -= gone.sum(axis=1)
    facts["rank_filtered"] -= (gone & ~valid).sum(axis=1)

    order = np.argsort(~here, axis=1, kind="stable")
    empty = np.where(counted, -np.inf, np.nan)[:, None]
    shared_words = top.words.copy()
    shared_words[~here] = None
    words = np.take_along_axis(shared_words, order, axis=1)
    log_probs = np.take_along_axis(np.where(here, top.log_probs, empty), order, axis=1)
    best = TopPredictions(words, log_probs.astype(np.float32))
    if len(changed):
        _choose_firsts(facts, best, np.take_along_axis(valid, order, axis=1), changed)

    behind = counted & kept & (ranks > TOP_K)
    exact_to = int(here[behind].sum(axis=1).min()) if behind.any() else TOP_K
    info = _leave_out(run.info, facts, counted & ~kept, NOT_SHARED)
    n_words = max(len(one) for one in shared.values())
    return Run(replace(info, n_candidates=n_words, exact_to=exact_to), facts, best, shared)


def _among(run: Run, shared: Words, counted: Bools) -> tuple[Bools, Bools]:
    """Which of the ten best are shared words, bool [row, 10], and which golds, bool [row]."""
    facts, top, own = run.facts, run.top, run.words or {}
    here, kept = np.zeros(top.words.shape, bool), np.zeros(len(facts), bool)
    for name, words in shared.items():
        rows = np.flatnonzero(counted & ((facts["relation"] == name).to_numpy() | (name == "")))
        known = pd.Index(sorted(words))
        here[rows] = pd.Index(top.words[rows].ravel()).isin(known).reshape(-1, TOP_K)
        golds = facts["object"].iloc[rows].astype(str)
        spelled = golds.where(golds.isin(own.get(name, ())), golds.str.lower())
        kept[rows] = spelled.isin(known)
    return here, kept


def _valid(facts: pd.DataFrame, words: NDArray[np.object_], rows: NDArray[np.int64]) -> Bools:
    """Which of some rows' words are other valid objects than the gold, bool [row, 10]."""
    # Of SQuAD's questions each has its own objects, as in `scoring.queries.subject_key`.
    asked = facts["query"].where(facts["source"].eq(SQUAD), facts["subject"].astype(str))
    objects: dict[tuple[str, str], set[str]] = {}
    keys = list(zip(facts["relation"].astype(str), asked.astype(str), strict=True))
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
    """Write the first answers of rows whose words became fewer; none where no word is known."""
    objects = {
        str(name): {spelled for word in known.astype(str) for spelled in (word, word.lower())}
        for name, known in facts.groupby("relation", observed=True)["object"]
    }
    chosen, valid = best.words[rows], valid[rows]
    there = chosen.astype(bool)
    for name, taken in (("first", there), ("first_filtered", there & ~valid)):
        place, none = taken.argmax(axis=1), ~taken.any(axis=1)
        words = facts[name].astype(object).to_numpy(copy=True)
        words[rows] = np.where(none, None, chosen[np.arange(len(rows)), place])
        facts[name] = pd.Categorical(words)
        log_probs = np.where(none, np.nan, best.log_probs[rows, place])
        facts.loc[rows, f"{name}_log_prob"] = log_probs.astype(np.float32)
    facts.loc[rows, "first_is_valid"] = valid[:, 0]
    relations = facts["relation"].iloc[rows].astype(str)
    is_object = [word in objects[name] for word, name in zip(chosen[:, 0], relations, strict=True)]
    facts.loc[rows, "first_is_object"] = is_object
