"""One model's answers to the same facts, queried in different ways.

    cloze        a word at a blank: right if the right word is ranked first
    statements   whole answers: right if the statement with the right answer is the likeliest one
    generation   a question: right if whole words of the text are a right answer

Only facts that all compared runs count are compared. "Known in one way only" means that the model
is right in this way and wrong in all others.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np
import pandas as pd

from lama_core.errors import UserError
from lama_core.metrics.intervals import difference_intervals, share_intervals
from lama_core.runs.info import GENERATION, STATEMENTS, Run, RunInfo
from lama_core.scoring.ranking import Ranking

# Kind of probe -> the way of asking.
WAYS = {"cloze": "word at a blank", STATEMENTS: "whole answers", GENERATION: "generated answer"}
ALL_RELATIONS = "all"
KEYS = ["fact_id", "relation", "subject", "object"]


@dataclass(frozen=True)
class WaysOfAsking:
    """The facts that count in every run of a model, with the answers in each way.

    Attributes:
        runs: Way -> its run, in the order of `WAYS`.
        facts: A row for each fact: fact_id, relation, subject, object, and for each way the first
            answer (`WAY answer`) and whether it is right (`WAY right`).
    """

    runs: Mapping[str, RunInfo]
    facts: pd.DataFrame

    @property
    def ways(self) -> list[str]:
        """The compared ways."""
        return list(self.runs)

    @property
    def model(self) -> str:
        """The model's name."""
        return next(iter(self.runs.values())).model

    @property
    def dataset(self) -> str:
        """The dataset's name."""
        return next(iter(self.runs.values())).dataset

    @property
    def right(self) -> pd.DataFrame:
        """Whether the model is right in each way, bool [fact, way]."""
        columns = [f"{way} right" for way in self.runs]
        return self.facts[columns].astype(bool).set_axis(self.ways, axis=1)

    @property
    def n_known(self) -> pd.Series:
        """In how many ways the model knows each fact, int [fact]."""
        return self.right.sum(axis=1)

    def _groups(self) -> list[tuple[str, pd.DataFrame]]:
        """Return whether each way is right: for all facts, then for the facts of each relation."""
        right = self.right
        by_relation = right.groupby(self.facts["relation"].to_numpy(), sort=False)
        return [(ALL_RELATIONS, right), *((str(name), rows) for name, rows in by_relation)]

    def shares(self) -> pd.DataFrame:
        """Return P@1 of each way, over all facts and over those of each relation.

        Columns: dataset, model, relation (`all` in the first rows), way, run, n, p_at_1, low, high
        (Wilson's interval), n_only (facts known in this way only).
        """
        lines = [
            (relation, way, self.runs[way].id, len(rows), rows[way].sum(), only[way].sum())
            for relation, rows in self._groups()
            for only in [rows[rows.sum(axis=1) == 1]]
            for way in self.runs
        ]
        table = pd.DataFrame(lines, columns=["relation", "way", "run", "n", "n_right", "n_only"])
        ends = share_intervals(table["n_right"].to_numpy(np.int64), table["n"].to_numpy(np.int64))
        table = table.assign(
            dataset=self.dataset,
            model=self.model,
            p_at_1=table["n_right"] / table["n"],
            low=ends.low,
            high=ends.high,
        )
        first = ["dataset", "model", "relation", "way", "run", "n", "p_at_1", "low", "high"]
        return table[[*first, "n_only"]]

    def differences(self) -> pd.DataFrame:
        """Return P@1 of way b minus way a for each pair, over all facts and by relation.

        Columns: dataset, model, relation (`all` in the first rows), a, b, n, difference, low, high
        (Tango's interval of paired shares), only_a, only_b (facts that are right in this way only).
        """
        lines = [
            (relation, a, b, len(rows), (rows[a] & ~rows[b]).sum(), (rows[b] & ~rows[a]).sum())
            for relation, rows in self._groups()
            for a, b in combinations(self.runs, 2)
        ]
        table = pd.DataFrame(lines, columns=["relation", "a", "b", "n", "only_a", "only_b"])
        gains, losses, n = (table[name].to_numpy(np.int64) for name in ("only_b", "only_a", "n"))
        ends = difference_intervals(gains, losses, n)
        table = table.assign(
            dataset=self.dataset,
            model=self.model,
            difference=(gains - losses) / n,
            low=ends.low,
            high=ends.high,
        )
        first = ["dataset", "model", "relation", "a", "b", "n", "difference", "low", "high"]
        return table[[*first, "only_a", "only_b"]]

    def known_in_one_way(self) -> pd.DataFrame:
        """Return the facts that the model knows in one way only, with that way in `way`."""
        alone = (self.n_known == 1).to_numpy()
        ways = list(self.right[alone].idxmax(axis=1)) if alone.any() else []
        named = {"dataset": self.dataset, "model": self.model}
        return self.facts[alone].assign(**named, way=ways).reset_index(drop=True)


def runs_by_way(infos: Iterable[RunInfo]) -> dict[tuple[str, str], dict[str, list[RunInfo]]]:
    """Return (dataset, model) -> way -> its runs, for models with runs of at least two ways.

    Cloze runs with the relations' own templates come first, then runs with more facts. Cloze runs
    of negated or misprimed queries are skipped: their right answers mean something else.
    """
    found: dict[tuple[str, str], dict[str, list[RunInfo]]] = {}
    for info in infos:
        if info.kind in WAYS and info.prompt_kind in ("template", "sentences"):
            ways = found.setdefault((info.dataset, info.model), {})
            ways.setdefault(WAYS[info.kind], []).append(info)
    return {
        key: {
            way: sorted(ways[way], key=lambda info: (info.prompts != "manual", -info.n))
            for way in WAYS.values()
            if way in ways
        }
        for key, ways in found.items()
        if len(ways) > 1
    }


def compare_ways(
    runs: Iterable[Run], *, ranking: Ranking = "filtered", relations: tuple[str, ...] = ()
) -> WaysOfAsking:
    """Compare runs of one model that query the same facts in different ways.

    Args:
        runs: Runs of different kinds. Of several prompts for a fact, the first one counts.
        ranking: The ranking of the right answer.
        relations: Only these relations; () means all.

    Raises:
        UserError: If the runs have no counted fact in common.
    """
    first = "first" if ranking == "raw" else "first_filtered"
    by_way = {WAYS[run.info.kind]: run for run in runs}
    by_way = {way: by_way[way] for way in WAYS.values() if way in by_way}
    tables: list[pd.DataFrame] = []
    for way, run in by_way.items():
        facts = run.facts[run.facts["excluded"].isna() & (run.facts["prompt"] == 0)]
        if relations:
            facts = facts[facts["relation"].isin(relations)]
        columns: dict[str, pd.Series] = {name: facts[name].astype(str) for name in KEYS}
        columns[f"{way} answer"] = facts[first].astype(object)
        columns[f"{way} right"] = facts[f"rank_{ranking}"] == 1
        tables.append(pd.DataFrame(columns))
    joined = reduce(lambda left, right: left.merge(right, on=KEYS), tables)
    infos = {way: run.info for way, run in by_way.items()}
    if joined.empty:
        names = ", ".join(info.id for info in infos.values())
        raise UserError(f"These runs have no counted fact in common: {names}.")
    return WaysOfAsking(infos, joined)
