"""Facts of a bundled run that illustrate rank and P@1."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from lama_core.runs.find import list_runs, load_run


@dataclass(frozen=True)
class Illustration:
    """Facts of a bundled run that illustrate rank and P@1.

    Attributes:
        query: The query of one fact, with [MASK].
        answer: Its gold answer.
        rank: The gold answer's raw rank.
        words: The first predictions for the query, with their probabilities.
        subjects: The subjects of all facts.
        ranks: The filtered ranks of all facts.
        n_candidates: Number of candidates.
    """

    query: str
    answer: str
    rank: int
    words: tuple[tuple[str, float], ...]
    subjects: tuple[str, ...]
    ranks: tuple[int, ...]
    n_candidates: int


@cache
def illustration(model: str) -> Illustration | None:
    """Return ten capitals that count in a model's bundled run; None without the run.

    The query is that of the first fact whose gold answer has a rank from 2 to 5; if there is none,
    that of the first fact.
    """
    infos = [
        info
        for info in list_runs(kinds=("cloze",)).intact()
        if info.bundled and (info.model, info.prompts) == (model, "manual")
    ]
    if not infos:
        return None
    run = load_run(infos[0].id)
    chosen = (run.facts["relation"] == "P36") & run.facts["excluded"].isna()
    rows = np.flatnonzero(chosen.to_numpy())[:10]
    facts = run.facts.iloc[rows]
    shown = int(facts["rank_raw"].between(2, 5).to_numpy().argmax())
    return Illustration(
        query=str(facts["query"].iloc[shown]),
        answer=str(facts["object"].iloc[shown]),
        rank=int(facts["rank_raw"].iloc[shown]),
        words=tuple((word, math.exp(log_prob)) for word, log_prob in run.top.of(rows[shown])[:5]),
        subjects=tuple(facts["subject"].astype(str)),
        ranks=tuple(int(rank) for rank in facts["rank_filtered"]),
        n_candidates=int(run.info.n_candidates or 0),
    )
