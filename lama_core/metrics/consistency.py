"""Consistency of a model's answers to paraphrases and to negated or misprimed queries.

Paraphrases (Elazar et al. 2021, ParaRel): of all pairs of paraphrases of a relation, the share that
give the same first prediction for a fact,

    consistency = sum over facts of sum over words of C(m, 2) / sum over facts of C(n, 2)

where n is the number of queried paraphrases and m the number of them with this word as the first
prediction. Consistent accuracy: the share of facts that every paraphrase gets right. The paper's
candidates are the relation's objects.
Departure: Agreement of paraphrases

Negated and misprimed queries (Kassner & Schütze 2020, sections 4 and 5): the share of facts with
the same first prediction for the query and the altered query, and Spearman's correlation of the two
distributions over the candidates. A model that understands negation has a low overlap.

First predictions are before filtering, as in both papers; only P@1 depends on the ranking.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.metrics.score_tables import of_run
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking


def paraphrase_consistency(facts: pd.DataFrame, *, ranking: Ranking = "filtered") -> pd.DataFrame:
    """Return the consistency of each relation with several prompts: a row each, in the rows' order.

    Args:
        facts: Rows of a run with several prompts (`Run.facts`).
        ranking: Filtered or raw.

    Returns:
        Columns: relation, consistency (share of agreeing pairs), accuracy (P@1 over all prompts),
        consistent_accuracy (share of facts that every prompt gets right), n_facts (facts with at
        least two queried prompts), n_prompts (queried prompts of each of them, on average).
    """
    kept = facts[facts["excluded"].isna()]
    frame = pd.DataFrame(
        {
            "relation": kept["relation"].astype(str),
            "fact": kept["fact_id"],
            "first": kept["first"].astype(str),
            "right": kept[f"rank_{ranking}"] == 1,
        }
    )
    by_fact = ["relation", "fact"]
    same = frame.groupby([*by_fact, "first"], sort=False).size()
    agreeing = (same * (same - 1) // 2).groupby(level=by_fact, sort=False).sum()
    facts_ = frame.groupby(by_fact, sort=False).agg(
        n=("right", "size"), right=("right", "sum"), all_right=("right", "all")
    )
    facts_["pairs"] = facts_["n"] * (facts_["n"] - 1) // 2
    facts_["agreeing"] = agreeing
    facts_ = facts_[facts_["n"] > 1]
    groups = facts_.groupby(level="relation", sort=False)
    n_facts, sums = groups.size(), groups.sum()
    columns = {
        "consistency": sums["agreeing"] / sums["pairs"],
        "accuracy": sums["right"] / sums["n"],
        "consistent_accuracy": sums["all_right"] / n_facts,
        "n_facts": n_facts,
        "n_prompts": sums["n"] / n_facts,
    }
    return pd.DataFrame(columns).reset_index()


def contrast(run: Run, *, ranking: Ranking = "filtered") -> pd.DataFrame:
    """Compare the answers to altered and plain queries: one row per relation.

    Args:
        run: A run of kind `contrast`.
        ranking: Filtered or raw.

    Returns:
        Columns: run, model, source, relation, n (facts with both queries), overlap (share with the
        same first prediction), spearman (mean over facts), plain and altered (P@1 on these facts).
    """
    facts = run.facts
    kept = facts[facts["excluded"].isna() & facts["plain"].notna()]
    frame = pd.DataFrame(
        {
            "source": kept["source"].astype(str),
            "relation": kept["relation"].astype(str),
            "overlap": kept["first"].astype(str) == kept["plain_first"].astype(str),
            "spearman": kept["spearman"].astype(float),
            "plain": kept[f"plain_rank_{ranking}"] == 1,
            "altered": kept[f"rank_{ranking}"] == 1,
        }
    )
    groups = frame.groupby(["source", "relation"], sort=False)
    table = groups[["overlap", "spearman", "plain", "altered"]].mean()
    table.insert(0, "n", groups.size())
    return of_run(run, **table.reset_index())


def spearman_rows(
    log_probs: NDArray[np.float32], other: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return Spearman's correlation of two distributions, float64 [query]; NaN if one is constant.

    log_probs, other: float32 [query, candidate]. Ties get their mean rank.
    """
    from scipy.stats import rankdata

    ranks, others = rankdata(log_probs, axis=1), rankdata(other, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    others -= others.mean(axis=1, keepdims=True)
    scale = np.sqrt((ranks**2).sum(axis=1) * (others**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scale > 0, (ranks * others).sum(axis=1) / scale, np.nan)
