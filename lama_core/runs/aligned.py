"""Runs beside each other: like compared with like.

Two models don't count the same facts: an object may be one token of the one and three of the other.
Seen beside each other, runs of the same data and prompts keep only the queries that all of them
count; what one of them left out is left out of all, with the reason. Candidates can't be made the
same afterwards: `differing_candidates` says where they aren't.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.runs.info import RelationInfo, Run, RunInfo

# What an excluded row doesn't have, as in a run's own rows.
ANSWERED = ["rank_raw", "rank_filtered", "log_prob", "first", "first_log_prob", "first_filtered",
            "first_filtered_log_prob"]  # fmt: skip

Counted = TypeVar("Counted", RunInfo, RelationInfo)


def group_of(info: RunInfo) -> tuple[str, str, str]:
    """What runs must share to be scored on the same queries: kind of probe, data, prompts."""
    return (info.kind, info.data_digest, info.prompts)


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
    """Runs of the same data and prompts on the queries that all of them count."""
    keys = [row_keys(run) for run in runs]
    counts = [run.facts["excluded"].isna().to_numpy() for run in runs]
    counted = [key[count] for key, count in zip(keys, counts, strict=True)]
    common = reduce(lambda left, right: left[left.isin(right)], counted)
    if not len(common):
        return runs
    infos = tuple(run.info for run in runs)
    aligned = []
    for run, key, count in zip(runs, keys, counts, strict=True):
        others = [info.model for info in infos if info is not run.info]
        aligned.append(_without(run, count & ~key.isin(common), others, infos))
    return aligned


def _without(
    run: Run, lost: NDArray[np.bool_], others: Sequence[str], beside: tuple[RunInfo, ...]
) -> Run:
    """The run without these rows, bool [row]; their reason names the other models."""
    facts = run.facts.copy()
    reason = f"not counted for {' or '.join(others)}"
    facts["excluded"] = facts["excluded"].cat.add_categories([reason])
    facts.loc[lost, "excluded"] = reason
    facts.loc[lost, ANSWERED] = np.nan
    facts.loc[lost, ["first_is_valid", "first_is_object"]] = False
    counts = facts.loc[lost, "relation"].value_counts()
    gone = {str(name): int(n) for name, n in counts.items()}
    relations = tuple(_fewer(one, gone.get(one.name, 0)) for one in run.info.relations)
    info = replace(_fewer(run.info, int(lost.sum())), relations=relations, beside=beside)
    return Run(info, facts)


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
    return len({info.candidates_digest for info in infos}) > 1
