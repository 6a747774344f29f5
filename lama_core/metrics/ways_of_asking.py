"""One model's answers to the same facts, asked in different ways.

    cloze        a word at a blank: right if it is ranked first
    statements   whole answers: right if the statement with the right one is the likeliest
    generation   a question: right if the generated text contains a right answer

Only the facts that all the runs count are compared. A fact is known in one way only if the model is
right in that way and wrong in all others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pandas as pd

from lama_core.errors import UserError
from lama_core.metrics.intervals import difference_intervals, share_intervals
from lama_core.runs.info import GENERATION, STATEMENTS, Run
from lama_core.scoring.ranking import Ranking

# Kind of run -> the way of asking.
WAYS = {"cloze": "word at a blank", STATEMENTS: "whole answers", GENERATION: "generated answer"}
FACT = ["fact_id", "relation", "subject", "object"]


@dataclass(frozen=True)
class WaysOfAsking:
    """The facts that all the runs count, with the answers of each way.

    Attributes:
        ways: The ways, in the order of the runs.
        facts: A row for each fact: fact_id, relation, subject, object, and for each way its first
            answer (`WAY answer`) and whether it is right (`WAY right`).
    """

    ways: tuple[str, ...]
    facts: pd.DataFrame

    def right(self) -> pd.DataFrame:
        """Return whether each way is right, bool [fact, way]."""
        found = self.facts[[f"{way} right" for way in self.ways]].astype(bool)
        return found.set_axis(list(self.ways), axis=1)

    def by_relation(self) -> pd.DataFrame:
        """Return P@1 of each way by relation, with the interval of the share.

        Columns: relation, way, n, value, low, high; values between 0 and 1.
        """
        groups = self.right().groupby(self.facts["relation"].astype(str), sort=False)
        sizes, tables = groups.size(), []
        for way, n_right in groups.sum().items():
            counts, n = np.asarray(n_right, np.int64), np.asarray(sizes, np.int64)
            ends = share_intervals(counts, n)
            columns = {"way": way, "n": n, "value": counts / n, "low": ends.low, "high": ends.high}
            tables.append(pd.DataFrame({"relation": sizes.index, **columns}))
        return pd.concat(tables, ignore_index=True)

    def totals(self) -> pd.DataFrame:
        """Return each way's share of right answers over all facts, and what only it knows.

        Columns: way, n, n_right, value, low, high, only (facts known in this way only), minus_first
        (the value minus that of the first way), minus_low, minus_high (Tango's paired interval).
        """
        right, n = self.right(), len(self.facts)
        first, rows = right[self.ways[0]], []
        for way in self.ways:
            mine = right[way]
            ends = share_intervals(np.array([mine.sum()]), np.array([n]))
            gains, losses = int((mine & ~first).sum()), int((first & ~mine).sum())
            paired = difference_intervals(np.array([gains]), np.array([losses]), np.array([n]))
            row = {
                "way": way,
                "n": n,
                "n_right": int(mine.sum()),
                "value": mine.sum() / n,
                "low": ends[0].low,
                "high": ends[0].high,
                "only": int((mine & (right.sum(axis=1) == 1)).sum()),
                "minus_first": (gains - losses) / n,
                "minus_low": paired[0].low,
                "minus_high": paired[0].high,
            }
            rows.append(row)
        return pd.DataFrame(rows)

    def known_in_one_way(self) -> pd.DataFrame:
        """Return the facts that the model knows in one way only, with that way in `way`."""
        right = self.right()
        alone = (right.sum(axis=1) == 1).to_numpy()
        ways = list(right[alone].idxmax(axis=1)) if alone.any() else []
        return self.facts[alone].assign(way=ways).reset_index(drop=True)


def compare_ways(
    runs: Mapping[str, Run], *, ranking: Ranking = "filtered", relations: tuple[str, ...] = ()
) -> WaysOfAsking:
    """Compare runs of one model that ask the same facts in different ways.

    Args:
        runs: Way -> its run. A run with several prompts for a fact counts its first one.
        ranking: The ranking of the right answer.
        relations: Only these; () means all.

    Raises:
        UserError: If the runs have no fact in common that all of them count.
    """
    tables: list[pd.DataFrame] = []
    for way, run in runs.items():
        facts = run.facts[run.facts["excluded"].isna() & (run.facts["prompt"] == 0)]
        if relations:
            facts = facts[facts["relation"].isin(relations)]
        first = "first" if ranking == "raw" else "first_filtered"
        own = pd.DataFrame(
            {
                "fact_id": facts["fact_id"].astype(str),
                f"{way} answer": facts[first].astype(object),
                f"{way} right": facts[f"rank_{ranking}"] == 1,
            }
        )
        tables.append(own if tables else facts[FACT].astype(str).merge(own, on="fact_id"))
    joined = reduce(lambda left, right: left.merge(right, on="fact_id"), tables)
    if joined.empty:
        ids = ", ".join(run.info.id for run in runs.values())
        raise UserError(f"The runs have no fact in common that all of them count: {ids}.")
    return WaysOfAsking(tuple(runs), joined)
