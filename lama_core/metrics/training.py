"""How facts are learned over the checkpoints of a training run; pure functions of a series' runs.

    right at a step       the gold answer is among the k best
    learned at a step     right at this step and at all later ones
    forgotten             right at some step and wrong at the last one
    a relation's step     the first step by which at least half of the facts that are right at the
                          last step are learned

over the facts that count at every step. The intervals are Wilson's for P@k, Student's for means
over facts, and those of Zou, Huang and Zhang for means over relations (see `intervals`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.metrics.intervals import LEVEL, Intervals, mean_interval, share_intervals
from lama_core.runs.alignment import number_rows
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking

Floats = NDArray[np.float64]
Measure = Literal["p_at_k", "mean_rank", "log_prob"]
MEASURES: tuple[Measure, ...] = ("p_at_k", "mean_rank", "log_prob")
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
        ranked: Whether answers are ranked; generated answers have no mean rank.
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
        values, ends = self._of_relations(at, len(names))
        sources = dict(zip(relation, self.facts["source"], strict=True))
        members: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            group = {"all": ALL, "source": sources[name], "relation": name}[by]
            members.setdefault(str(group), []).append(number)
        lines = []
        for group, numbers in members.items():
            inside = np.isin(at, numbers)
            learned = self.fates["learned"].to_numpy()[inside]
            for column, step in enumerate(self.steps):
                line: dict[str, object] = {
                    "group": group,
                    "label": self.labels.get(group, ""),
                    "step": step,
                    "n": int(inside.sum()),
                    "n_relations": len(numbers),
                    "n_learned": int((learned == step).sum()),
                }
                for name in MEASURES:
                    of_group = values[name][numbers, column]
                    low, high = (end[numbers, column] for end in ends[name])
                    if by == "relation":
                        interval = float(low[0]), float(high[0])
                    else:
                        mean = mean_interval(of_group, Intervals(low, high))
                        interval = float(mean.low), float(mean.high)
                    line |= {
                        name: float(of_group.mean()),
                        f"{name}_low": interval[0],
                        f"{name}_high": interval[1],
                    }
                lines.append(line)
        return pd.DataFrame(lines)

    def _of_relations(
        self, at: NDArray[np.int64], n: int
    ) -> tuple[dict[Measure, Floats], dict[Measure, tuple[Floats, Floats]]]:
        """Return each measure, float64 [relation, step], and the ends of its intervals."""
        shape = (n, len(self.steps))
        counts = np.bincount(at, minlength=n)[:, None]
        hits = np.zeros(shape, dtype=np.int64)
        np.add.at(hits, at, self.right)
        of_shares = share_intervals(hits, counts + np.zeros(shape, dtype=np.int64))
        values: dict[Measure, Floats] = {"p_at_k": hits / counts}
        ends: dict[Measure, tuple[Floats, Floats]] = {"p_at_k": (of_shares.low, of_shares.high)}
        tables: tuple[tuple[Measure, Floats, tuple[float, float]], ...] = (
            ("mean_rank", self.ranks if self.ranked else self.ranks * np.nan, (1.0, np.inf)),
            ("log_prob", self.log_probs, (-np.inf, 0.0)),
        )
        for name, table, best in tables:
            means = np.zeros(shape)
            np.add.at(means, at, table)
            means /= counts
            squares = np.zeros(shape)
            np.add.at(squares, at, (table - means[at]) ** 2)
            half = _student(counts) * np.sqrt(squares / np.maximum(counts - 1, 1) / counts)
            values[name] = means
            ends[name] = (np.maximum(means - half, best[0]), np.minimum(means + half, best[1]))
        return values, ends

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
    """
    tables = []
    for run, keys in zip(runs, number_rows(runs), strict=True):
        facts = run.facts
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
        ranked=not any(run.info.generates for run in runs),
    )


def _student(counts: NDArray[np.int64]) -> Floats:
    """Return Student's quantile for each number of facts; NaN for fewer than two."""
    from scipy.special import stdtrit  # `scipy.stats.t` takes half a second to import

    free = np.where(counts > 1, counts - 1, np.nan)
    return np.asarray(stdtrit(free, (1 + LEVEL) / 2), dtype=np.float64)
