"""Figure 4: how much a fact's rank depends on the sentence used as the query.

The run is made with the prompts `ten-sentences`: it samples at most 100 facts per relation from
those that count and have at least ten sentences, and ten sentences of each. The figure shows the
distribution over facts of the mean rank over the ten sentences.
Source: Petroni et al. 2019, section 5 and Figure 4.
"""

import pandas as pd

from lama_core.runs.facts_table import RANKED
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking


def average_ranks(run: Run, *, ranking: Ranking = "filtered") -> pd.DataFrame:
    """One row per fact: relation, fact_id, subject, object, mean_rank, sd (NaN if n is 1), n.

    The mean rank is NaN if the rank of a sentence isn't known.
    """
    ranks = run.column(f"rank_{ranking}").to_numpy()
    facts = run.facts.assign(rank=ranks, is_exact=run.known_to == RANKED)
    kept = facts[facts["excluded"].isna()].astype({"relation": str, "object": str})
    groups = kept.groupby(["relation", "fact_id", "subject", "object"], sort=False)
    table = groups["rank"].agg(["mean", "std", "size"])
    table["mean"] = table["mean"].where(groups["is_exact"].all())
    return table.reset_index().rename(columns={"mean": "mean_rank", "std": "sd", "size": "n"})
