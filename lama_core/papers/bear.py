"""Runs of whole answers on BEAR next to its authors' leaderboard (Wiland et al. 2024)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lama_core.papers.differences import differing, joined

PAPER, BOARD = "wiland2024", "leaderboard"
BEAR = "bear"  # name of the data for `data get`
N_RELATIONS, N_FACTS, N_TEMPLATES = 60, 7731, 3


@dataclass(frozen=True, slots=True)
class OverFacts:
    """The scores of a run of statements over its facts, with equal weights.

    n: facts that count. n_relations: relations with such facts. accuracy: P@1. chance: mean over
    facts of 1 / number of answers. Both are between 0 and 1, and NaN if no fact counts.
    """

    n: int
    n_relations: int
    accuracy: float
    chance: float


def over_facts(lines: pd.DataFrame) -> OverFacts:
    """Compute a run's scores over facts from its `metrics.score_table` by relation."""
    n = lines["n"].to_numpy(dtype=np.int64)
    if not n.sum():
        return OverFacts(0, 0, float("nan"), float("nan"))
    counted = lines[n > 0]
    means = [
        float(np.average(values, weights=n[n > 0]))
        for values in (counted["p_at_1"], 1 / counted["n_answers"])
    ]
    return OverFacts(int(n.sum()), len(counted), *means)


def differs_from_leaderboard(
    *,
    data: str = "",
    n_relations: int,
    n_facts: int,
    n_templates: int,
    limit: int | None = None,
    asked: str = "",
) -> str:
    """Describe the differences from the leaderboard; "" if there are none.

    Args:
        data: Description of other data; see `differences.differing`.
        n_relations: Number of relations.
        n_facts: Number of facts.
        n_templates: Number of templates that the mean is over.
        limit: Maximum number of facts per relation.
        asked: How the query differs from the leaderboard's; "" if it doesn't.
    """
    relations, facts = (n_relations, N_RELATIONS), (n_facts, N_FACTS)
    fewer = f"{n_templates} of {N_TEMPLATES} templates" if n_templates != N_TEMPLATES else ""
    return joined(differing(data=data, relations=relations, facts=facts, limit=limit), fewer, asked)
