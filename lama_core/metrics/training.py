"""How facts are learned over the checkpoints of a training run; pure functions of a series' runs.

    right at a step       the gold answer is among the k best
    learned at a step     right at this step and at all later ones
    forgotten             right at some step and wrong at the last one
    a relation's step     the first step by which at least half of the facts that are right at the
                          last step are learned

over the facts that count at every step. For the intervals see `intervals`; those of mean ranks and
log-probabilities are cut to the possible range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.grouping import grouped
from lama_core.metrics.intervals import (
    Floats,
    Intervals,
    mean_share_intervals,
    mean_value_intervals,
)
from lama_core.metrics.known_ranks import why_undefined
from lama_core.runs.alignment import number_rows
from lama_core.runs.facts_table import RANKED
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking

Measure = Literal["p_at_k", "mean_rank", "log_prob"]
MEASURES: tuple[Measure, ...] = ("p_at_k", "mean_rank", "log_prob")
POSSIBLE: dict[Measure, tuple[float, float]] = {
    "mean_rank": (1.0, np.inf),
    "log_prob": (-np.inf, 0.0),
}
Grouping = Literal["all", "source", "relation"]
ALL = ""  # the group of all relations
FACT_COLUMNS = ("fact_id", "prompt", "relation", "source", "subject", "object", "query")


@dataclass(frozen=True)
class Training:
    """The facts that count at every step, with the gold answer's ranks and log-probabilities.

    Attributes:
        steps: The training steps.
        facts: One row per fact: fact_id, prompt, relation, source, subject, object, query.
        labels: Relation -> label.
        ranks: Ranks of the gold answers, float64 [fact, step].
        log_probs: Natural log-probabilities of the gold answers, float64 [fact, step].
        n_dropped: Facts that count at some steps only.
        k: The k of P@k.
        ranked: Whether the ranks of all right answers are known; else mean ranks aren't defined.
    """

    steps: tuple[int, ...]
    facts: pd.DataFrame
    labels: dict[str, str]
    ranks: Floats
    log_probs: Floats
    n_dropped: int
    k: int = 1
    ranked: bool = True

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Whether each fact is right at each step, bool [fact, step]."""
        return self.ranks <= self.k

    @cached_property
    def fates(self) -> pd.DataFrame:
        """The facts with the steps at which they are learned and forgotten.

        Further columns: first (first step at which the fact is right), learned (step from which it
        stays right), last (last step at which it is right, if it is forgotten); NaN if there is
        none. forgotten: bool.
        """
        steps = np.array(self.steps, dtype=float)
        right, ever = self.right, self.right.any(axis=1)
        kept = right[:, ::-1].cumprod(axis=1).sum(axis=1)  # number of right steps at the end
        learned = np.where(kept > 0, steps[len(steps) - np.maximum(kept, 1)], np.nan)
        forgotten = ever & ~right[:, -1]
        last = steps[len(steps) - 1 - right[:, ::-1].argmax(axis=1)]
        return self.facts.assign(
            first=np.where(ever, steps[right.argmax(axis=1)], np.nan),
            learned=learned,
            last=np.where(forgotten, last, np.nan),
            forgotten=forgotten,
        )

    @property
    def n_learned(self) -> int:
        """Facts that are right at the last step."""
        return int(self.fates["learned"].notna().sum())

    @property
    def n_forgotten(self) -> int:
        """Facts that are right at some step and wrong at the last one."""
        return int(self.fates["forgotten"].sum())

    def curves(self, by: Grouping = "all") -> pd.DataFrame:
        """Return one row per group and step.

        Args:
            by: A row's group: all relations, a source, or a relation. Values of the first two are
                unweighted means over relations.

        Returns:
            Columns group, label, step, n (facts), n_relations, n_learned (facts that are learned
            at this step), and for each of `MEASURES` its value, NAME_low and NAME_high.
        """
        relation = self.facts["relation"].to_numpy(dtype=object)
        names = list(dict.fromkeys(relation))
        at = pd.Categorical(relation, names).codes.astype(np.int64)
        totals = _sums(at, np.ones_like(self.right), len(names)).astype(np.int64)
        hits = _sums(at, self.right, len(names)).astype(np.int64)
        ranks = self.ranks if self.ranked else self.ranks * np.nan
        tables: dict[Measure, Floats] = {"mean_rank": ranks, "log_prob": self.log_probs}
        moments = {name: _moments(at, table, totals) for name, table in tables.items()}
        sources = dict(zip(relation, self.facts["source"], strict=True))
        groups = {
            "all": dict.fromkeys(names, ALL),
            "source": sources,
            "relation": {name: name for name in names},
        }[by]
        members = grouped((str(groups[name]), number) for number, name in enumerate(names))
        lines = []
        for group, numbers in members.items():
            inside = np.isin(at, numbers)
            learned = self.fates["learned"].to_numpy()[inside]
            n, right = totals[numbers], hits[numbers]
            measures: dict[Measure, tuple[Floats, Intervals]] = {
                "p_at_k": ((right / n).mean(axis=0), mean_share_intervals(right, n))
            }
            for name, (means, variances) in moments.items():
                ends = mean_value_intervals(means[numbers], variances[numbers], n)
                possible = POSSIBLE[name]
                within = Intervals(np.clip(ends.low, *possible), np.clip(ends.high, *possible))
                measures[name] = (means[numbers].mean(axis=0), within)
            for column, step in enumerate(self.steps):
                line: dict[str, object] = {
                    "group": group,
                    "label": self.labels.get(group, ""),
                    "step": step,
                    "n": int(inside.sum()),
                    "n_relations": len(numbers),
                    "n_learned": int((learned == step).sum()),
                }
                for name, (values, ends) in measures.items():
                    line |= {
                        name: float(values[column]),
                        f"{name}_low": ends[column].low,
                        f"{name}_high": ends[column].high,
                    }
                lines.append(line)
        return pd.DataFrame(lines)

    def relations(self) -> pd.DataFrame:
        """Return the relations in the order in which they are learned.

        Columns: relation, label, source, n (facts), learned (the relation's step; NaN if no fact is
        right at the last step), n_learned (right at the last step), n_forgotten, p_at_k (at the
        last step).
        """
        lines = []
        for name, rows in self.fates.groupby("relation", observed=True, sort=False):
            learned = np.sort(rows["learned"].dropna().to_numpy())
            lines.append(
                {
                    "relation": str(name),
                    "label": self.labels.get(str(name), ""),
                    "source": str(rows["source"].iloc[0]),
                    "n": len(rows),
                    "learned": learned[(len(learned) - 1) // 2] if len(learned) else np.nan,
                    "n_learned": len(learned),
                    "n_forgotten": int(rows["forgotten"].sum()),
                    "p_at_k": len(learned) / len(rows),
                }
            )
        table = pd.DataFrame(lines)
        order = table.sort_values(["learned", "p_at_k"], ascending=[True, False], kind="stable")
        return order.reset_index(drop=True)


def training_of(
    runs: Sequence[Run],
    steps: Sequence[int],
    *,
    ranking: Ranking = "filtered",
    relations: Sequence[str] = (),
    k: int = 1,
) -> Training:
    """Return the answers of a series' runs to the facts that count at every step.

    Args:
        runs: The runs, by step.
        steps: The training step of each run.
        ranking: Filtered or raw.
        relations: Names of the relations to include; () is all.
        k: A fact is right if its gold answer is among the k best.

    Raises:
        UserError: If P@k isn't defined at every step.
    """
    tables = []
    ranked = True
    for run, keys in zip(runs, number_rows(runs), strict=True):
        facts, known = run.facts, run.known_to[run.counted].min(initial=RANKED)
        if known < k:
            raise UserError(why_undefined(runs, k))
        ranked = ranked and known == RANKED
        chosen = facts["excluded"].isna().to_numpy()
        if relations:
            chosen = chosen & facts["relation"].isin(list(relations)).to_numpy()
        table = facts.loc[chosen, [*FACT_COLUMNS, f"rank_{ranking}", "log_prob"]]
        tables.append(table.set_index(keys[chosen]))
    common = reduce(lambda left, right: left[left.isin(right)], [one.index for one in tables])
    every = reduce(lambda left, right: left.union(right, sort=False), [one.index for one in tables])
    aligned = [table.loc[common] for table in tables]
    facts = aligned[0][list(FACT_COLUMNS)].reset_index(drop=True)
    columns = {
        name: np.stack([one[name].to_numpy(dtype=np.float64) for one in aligned], axis=1)
        for name in (f"rank_{ranking}", "log_prob")
    }
    return Training(
        tuple(steps),
        facts.astype({"relation": str, "source": str, "subject": str, "object": str}),
        {one.name: one.label for run in runs for one in run.info.relations},
        columns[f"rank_{ranking}"],
        columns["log_prob"],
        len(every) - len(common),
        k,
        ranked=bool(ranked),
    )


def _sums(at: NDArray[np.int64], table: NDArray[np.float64] | NDArray[np.bool_], n: int) -> Floats:
    """Return the sums over each of n relations' facts, float64 [relation, step]."""
    sums = np.zeros((n, table.shape[1]))
    np.add.at(sums, at, table)
    return sums


def _moments(
    at: NDArray[np.int64], table: Floats, totals: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return the mean and the sample variance of each relation's facts, float64 [relation, step].

    The variance of a single fact is 0.
    """
    means = _sums(at, table, len(totals)) / totals
    squares = _sums(at, (table - means[at]) ** 2, len(totals))
    return means, squares / np.maximum(totals - 1, 1)
