"""Alignment of runs, so that models are compared on the same queries and the same candidates.

Models differ in the facts that they count: an object can be one token for one model and three for
another. Alignment keeps, for runs of the same data and prompts, only the queries that all of them
count, and excludes the others from all runs, with the reason. Runs of statements need only the same
data, because they query each fact once, whatever the template and the score.

If the runs ranked different candidates, alignment ranks the shared candidates again, using the ten
best predictions that a run stores:

    rank among the shared candidates = rank - non-shared candidates ranked above the gold answer

The new rank is exact for a gold answer among the ten best. Otherwise only the ten best words are
known, and the new rank is an upper bound. P@k is exact for every k up to `RunInfo.exact_to`: the
smallest number of shared words among the ten best of any query whose gold answer ranks below them.
Departure: Shared facts of runs shown together
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from lama_core.runs.info import RelationInfo, Run, RunInfo, TopPredictions
from lama_core.scoring.queries import SQUAD
from lama_core.scoring.top_answers import TOP_K

# The columns that are null in an excluded row.
FIRSTS = ["first", "first_log_prob", "first_filtered", "first_filtered_log_prob"]
ANSWERED = ["rank_raw", "rank_filtered", "log_prob", *FIRSTS]
FLAGS = ["first_is_valid", "first_is_object"]  # False in an excluded row

NOT_SHARED = "object is not among the shared candidates"
Bools = NDArray[np.bool_]
Words = Mapping[str, frozenset[str]]
Counted = TypeVar("Counted", RunInfo, RelationInfo)


def group_of(info: RunInfo) -> tuple[str, str, str]:
    """Return a run's group: kind of probe, data and prompts; runs of a group have the same queries.

    Imported results belong to the kind of probe whose runs have the same numbers, and to its manual
    prompts. For runs of
    statements the prompts don't matter: each fact is one query.
    """
    prompts = "manual" if info.imported else info.prompts
    return (info.way, info.data_digest, "" if info.ranks_statements else prompts)


def align(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs, in their order, each aligned with the other runs of its group (`group_of`).

    Runs that are alone in their group, or whose group has no shared query, are returned unchanged.
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
    numbers = number_rows(runs)
    counts = [run.column("excluded").isna().to_numpy() for run in runs]
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


@dataclass(frozen=True)
class _Excluding:
    """A run with further excluded rows. lost: which rows, bool [row]. reason: why."""

    run: Run
    lost: Bools
    reason: str
    names: ClassVar[frozenset[str]] = frozenset([*ANSWERED, *FLAGS, "excluded"])

    def column(self, name: str) -> "pd.Series[Any]":
        """Return a column of the run's rows with the changes."""
        column = self.run.column(name)
        if name == "excluded":
            column = column.cat.add_categories([self.reason])
        if name not in self.names or not self.lost.any():
            return column
        value: Any = {"excluded": self.reason}.get(name, False if name in FLAGS else np.nan)
        return column.mask(self.lost, value)

    @property
    def top(self) -> TopPredictions:
        """The ten best predictions of the run."""
        return self.run.top


def _exclude(run: Run, lost: Bools, reason: str) -> Run:
    """Return the run with the rows `lost`, bool [row], excluded in its columns and counts."""
    names = run.column("relation").cat.categories
    counts = np.bincount(run.codes("relation")[lost], minlength=len(names)).tolist()
    n_lost = dict(zip(map(str, names), counts, strict=True))
    relations = tuple(_with_fewer(one, n_lost.get(one.name, 0)) for one in run.info.relations)
    info = replace(_with_fewer(run.info, int(lost.sum())), relations=relations)
    return Run(info, changed=_Excluding(run, lost, reason), seen_words=run.seen_words)


def _with_fewer(info: Counted, n_lost: int) -> Counted:
    return replace(info, n=info.n - n_lost, n_excluded=info.n_excluded + n_lost)


def number_rows(runs: Sequence[Run]) -> list[NDArray[np.int64]]:
    """Return a number for each row of each run, int64 [row].

    Rows of the same fact and prompt have the same number, if a run has each fact and prompt once;
    numbers begin at 0.
    """
    distinct: list[pa.ChunkedArray] = []
    places = []
    for run in runs:
        ids = pa.table({"id": pa.array(run.column("fact_id"), pa.string())})["id"]
        at = next((at for at, one in enumerate(distinct) if one.equals(ids)), len(distinct))
        distinct += [ids] * (at == len(distinct))
        places.append(at)
    prompts = [run.column("prompt").to_numpy().astype(np.int64) for run in runs]
    if len(distinct) == 1 and all(np.array_equal(one, prompts[0]) for one in prompts):
        return [np.arange(len(prompts[0]))] * len(runs)
    every = pa.chunked_array([chunk for ids in distinct for chunk in ids.chunks], pa.string())
    codes = every.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    parts = np.split(codes, np.cumsum([len(one) for one in distinct])[:-1])
    n_prompts = max(int(one.max(initial=0)) for one in prompts) + 1
    return [parts[at] * n_prompts + prompt for at, prompt in zip(places, prompts, strict=True)]


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
    no_words: frozenset[str] = frozenset()
    return {
        name: reduce(frozenset.intersection, [words.get(name, no_words) for words in known])
        for name in {name for words in known for name in words}
    }


def _rank_among(run: Run, shared: Words) -> Run:
    """Rank a run among the shared words; exclude rows whose gold answer is not shared."""
    counted = run.column("excluded").isna().to_numpy()
    codes, words = run.top_codes
    top_shared, gold_shared = _find_shared(run, shared, counted)
    ranks = run.column("rank_raw").to_numpy()
    above_gold = np.arange(TOP_K) < np.nan_to_num(ranks - 1, nan=0)[:, None]
    dropped = above_gold & ~top_shared & words.astype(bool)[codes]
    rows = np.flatnonzero(dropped.any(axis=1))
    valid = np.zeros(dropped.shape, bool)
    valid[rows] = _other_valid(run, rows)
    below_top = counted & gold_shared & (ranks > TOP_K)
    exact_to = int(top_shared[below_top].sum(axis=1).min()) if below_top.any() else TOP_K
    n_words = max(map(len, shared.values()))
    info = replace(run.info, n_candidates=n_words, exact_to=exact_to)
    changed = _Reranked(run, counted, top_shared, dropped, valid)
    ranked = Run(info, changed=changed, seen_words=shared)
    return _exclude(ranked, counted & ~gold_shared, NOT_SHARED)


@dataclass(frozen=True)
class _Reranked:
    """A run ranked among the words that it shares with others.

    counted: whether the row counts, bool [row]. The others are bool [row, 10], for each of the ten
    best words. top_shared: it is shared. dropped: it isn't shared and ranks above the gold answer.
    valid: it is a valid object other than the gold answer; False in rows without dropped words.
    """

    run: Run
    counted: Bools
    top_shared: Bools
    dropped: Bools
    valid: Bools
    names: ClassVar[frozenset[str]] = frozenset(
        ["rank_raw", "rank_filtered", *FIRSTS, *FLAGS],
    )

    def column(self, name: str) -> "pd.Series[Any]":
        """Return a column of the run's rows with the changes."""
        column = self.run.column(name)
        if name == "rank_raw":
            return column - self.dropped.sum(axis=1)
        if name == "rank_filtered":
            # Valid objects that no fact of the run has are subtracted like wrong words, although
            # the stored filtered rank doesn't count them.
            return (column - (self.dropped & ~self.valid).sum(axis=1)).clip(lower=1)
        return self._firsts[name] if name in self.names and self.dropped.any() else column

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """Indices into the ten best words, those of shared words first, int64 [row, 10]."""
        return np.argsort(~self.top_shared, axis=1, kind="stable")

    @cached_property
    def top(self) -> TopPredictions:
        """The shared words among the ten best."""
        top = self.run.top
        empty = np.where(self.counted, -np.inf, np.nan)[:, None]
        shared_words = top.words.copy()
        shared_words[~self.top_shared] = None
        words = np.take_along_axis(shared_words, self._order, axis=1)
        shared_log_probs = np.where(self.top_shared, top.log_probs, empty)
        log_probs = np.take_along_axis(shared_log_probs, self._order, axis=1)
        return TopPredictions(words, log_probs.astype(np.float32))

    @cached_property
    def _firsts(self) -> pd.DataFrame:
        """The columns of the first answers."""
        names = ["relation", "object", *FIRSTS, *FLAGS]
        facts = pd.DataFrame({name: self.run.column(name) for name in names})
        valid = np.take_along_axis(self.valid, self._order, axis=1)
        _choose_firsts(facts, self.top, valid, np.flatnonzero(self.dropped.any(axis=1)))
        return facts


def _find_shared(run: Run, shared: Words, counted: Bools) -> tuple[Bools, Bools]:
    """Return whether the ten best, bool [row, 10], and gold answers, bool [row], are shared."""
    (top, top_words), own = run.top_codes, run.words or {}
    golds, relation = run.codes("object"), run.codes("relation")
    gold_words = run.column("object").cat.categories.astype(str).tolist()
    numbers = {str(name): at for at, name in enumerate(run.column("relation").cat.categories)}
    top_shared, gold_shared = np.zeros(top.shape, bool), np.zeros(len(golds), bool)
    for name, words in shared.items():
        in_relation = relation == numbers.get(name, len(numbers)) if name else True
        rows = np.flatnonzero(counted & in_relation)
        spelled = partial(_as_ranked, own.get(name, frozenset()))
        top_shared[rows] = _looked_up(top[rows], top_words, words, str)
        gold_shared[rows] = _looked_up(golds[rows], gold_words, words, spelled)
    return top_shared, gold_shared


def _as_ranked(ranked: frozenset[str], word: str) -> str:
    """Return a word as a run ranked it: unchanged, or in lower case."""
    return word if word in ranked else word.lower()


def _looked_up(
    codes: NDArray[np.integer[Any]],
    words: Sequence[str] | NDArray[np.object_],
    known: frozenset[str],
    spell: Callable[[str], str],
) -> Bools:
    """Return whether the word of each code is known; looks up each word once. -1 is no word."""
    used = np.bincount(codes.ravel() + 1, minlength=1).nonzero()[0] - 1
    found = np.zeros(len(words) + 1, bool)
    found[used + 1] = [code >= 0 and spell(words[code]) in known for code in used.tolist()]
    return found[codes + 1]


def _other_valid(run: Run, rows: NDArray[np.int64]) -> Bools:
    """Whether each of the ten best of some rows is a valid object other than the gold answer.

    bool [row, 10]. Each SQuAD question has its own objects, as in `scoring.queries.subject_key`.
    """
    found = np.zeros((len(rows), TOP_K), bool)
    subjects = run.codes("subject")
    from_squad = run.column("source").eq(SQUAD).to_numpy()
    if from_squad.any():
        queries = pd.factorize(run.column("query")[from_squad])[0]
        subjects[from_squad] = subjects.max() + 1 + queries
    keys = run.codes("relation") * (subjects.max(initial=0) + 2) + subjects + 1
    _, keys, n_facts = np.unique(keys, return_inverse=True, return_counts=True)
    several = np.flatnonzero(n_facts[keys[rows]] > 1)
    if not len(several):
        return found
    golds, words = run.column("object").cat.categories.astype(str), run.top_codes[1]
    codes, top = run.codes("object"), run.top_codes[0]
    objects: dict[int, set[str]] = {}
    for row in np.flatnonzero(np.isin(keys, keys[rows[several]])).tolist():
        gold = golds[codes[row]]
        objects.setdefault(keys[row], set()).update((gold, gold.lower()))
    for at in several.tolist():
        row, gold = rows[at], golds[codes[rows[at]]]
        if others := objects[keys[row]] - {gold, gold.lower()}:
            found[at] = [word in others for word in words[top[row]]]
    return found


def _choose_firsts(
    facts: pd.DataFrame, best: TopPredictions, valid: Bools, rows: NDArray[np.int64]
) -> None:
    """Set the first answers of `rows`, which have dropped words; null if no shared word is left."""
    objects: dict[str, set[str]] = {}
    known = facts[["relation", "object"]].drop_duplicates().astype(str)
    for name, word in zip(known["relation"].tolist(), known["object"].tolist(), strict=True):
        objects.setdefault(name, set()).update((word, word.lower()))
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
    relations = facts["relation"].iloc[rows].astype(str).tolist()
    is_object = [word in objects[name] for word, name in zip(chosen[:, 0], relations, strict=True)]
    facts.loc[rows, "first_is_object"] = is_object
