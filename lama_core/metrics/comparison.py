"""Two runs on the same facts: differences with intervals and tests, agreement, flips.

Rows are paired by fact and prompt; rows that only one of the runs counts are left out and counted.
The difference is given twice, each time with the interval and the test of the same unit:

    over facts       every paired fact counts the same: (only B - only A) / n. Interval: Tango's of
                     paired shares. Test: McNemar's, exact: of the b + c facts on which only one run
                     is right, the number that only A gets right is Binomial(b + c, 1/2) if neither
                     is better; p is two-sided.
    over relations   every relation counts the same, as in LAMA's tables: the mean of the relations'
                     differences. Interval and test: Student's, of that sample of relations.

Where a fact is asked in several wordings, the unit of the first is the query.
Cohen's kappa = (observed - expected agreement) / (1 - expected), of being right.
Source: McNemar 1947; Cohen 1960; intervals see `intervals`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.metrics.intervals import LEVEL, Interval, difference_intervals, mean_of_sample
from lama_core.requests import Request, argument, option
from lama_core.runs.alignment import differing_candidates
from lama_core.runs.info import Run, RunInfo
from lama_core.scoring import shared_fields
from lama_core.scoring.ranking import Ranking

Unit = Literal["fact", "query"]


@dataclass(frozen=True)
class CompareRequest(Request):
    """Two finished runs to compare on the same facts: the fields of `compare`."""

    command: ClassVar[tuple[str, ...]] = ("compare",)
    python: ClassVar[str] = "compare"

    run_a: Annotated[str, argument("The run to compare with.")]
    run_b: Annotated[str, argument("The run that is compared.")]
    ranking: shared_fields.Ranking = "filtered"
    k: Annotated[int, option("Count a hit if the gold answer is in the top k.", ge=1)] = 1
    relations: shared_fields.Relations = ()
    slices: Annotated[
        bool, option("Instead: the difference on slices of the facts, as of `results --slices`.")
    ] = False


@dataclass(frozen=True, slots=True)
class McNemar:
    """only_a, only_b: facts that only one run gets right. p: two-sided, 1 where there are none."""

    only_a: int
    only_b: int
    p: float


@dataclass(frozen=True, slots=True)
class Difference:
    """P@k of B minus P@k of A, over the same facts.

    relation: empty for the facts of all relations together. interval: of the difference. only_a,
    only_b: facts that only one run gets right.
    """

    relation: str
    n: int
    a: float
    b: float
    difference: float
    interval: Interval
    only_a: int
    only_b: int


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The unweighted mean over relations of P@k of B minus P@k of A.

    n: relations. interval, p: over relations (Student), NaN where they don't vary. ahead_a,
    ahead_b: relations in which that run is ahead; `equal` is the rest.
    """

    n: int
    a: float
    b: float
    difference: float
    interval: Interval
    p: float
    ahead_a: int
    ahead_b: int

    @property
    def equal(self) -> int:
        """Relations in which neither run is ahead."""
        return self.n - self.ahead_a - self.ahead_b


@dataclass(frozen=True, slots=True)
class Agreement:
    """Shares of the paired facts.

    same_first: both give the same first answer, compared without case. kappa: of being right.
    """

    same_first: float
    both_right: float
    both_wrong: float
    only_a: float
    only_b: float
    kappa: float


@dataclass(frozen=True)
class Comparison:
    """Two runs compared.

    over_facts, mcnemar: of all paired facts. over_relations: of the relations' differences.
    relations: each one's, over its facts. unit: what a row of `pairs` is, `query` where a fact is
    asked in several wordings. pairs: one row a paired fact, with `right_a`, `right_b`, ranks, first
    answers. n_unpaired: rows that only one run counts.
    """

    over_facts: Difference
    over_relations: MeanDifference
    relations: tuple[Difference, ...]
    unit: Unit
    mcnemar: McNemar
    agreement: Agreement
    pairs: pd.DataFrame
    n_unpaired: int

    @property
    def units(self) -> str:
        """What the rows of `pairs` are, in words."""
        return {"fact": "facts", "query": "queries"}[self.unit]

    @property
    def flips(self) -> pd.DataFrame:
        """The paired facts that only one run gets right."""
        return self.pairs[self.pairs["right_a"] != self.pairs["right_b"]]


def mcnemar(right_a: NDArray[np.bool_], right_b: NDArray[np.bool_]) -> McNemar:
    """McNemar's exact test on paired outcomes, bool [fact] each."""
    from scipy.stats import binomtest  # half a second, which a page's first paint can do without

    only_a = int((right_a & ~right_b).sum())
    only_b = int((right_b & ~right_a).sum())
    p = binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    return McNemar(only_a, only_b, float(p))


def agreement(
    right_a: NDArray[np.bool_], right_b: NDArray[np.bool_], same_first: NDArray[np.bool_]
) -> Agreement:
    """How far two runs agree, in shares of the facts; NaN without facts."""
    if not len(right_a):
        return Agreement(*[float("nan")] * 6)
    both, neither = float(np.mean(right_a & right_b)), float(np.mean(~right_a & ~right_b))
    a, b = float(right_a.mean()), float(right_b.mean())
    expected = a * b + (1 - a) * (1 - b)
    kappa = (both + neither - expected) / (1 - expected) if expected < 1 else 1.0
    return Agreement(float(same_first.mean()), both, neither, a - both, b - both, kappa)


def pair_rows(a: Run, b: Run, *, ranking: Ranking, k: int = 1) -> tuple[pd.DataFrame, int]:
    """The rows that both runs count, side by side, and how many only one of them counts."""
    columns = ["fact_id", "prompt", f"rank_{ranking}", "log_prob", "first"]
    both = ["relation", "source", "type", "subject", "object", "query"]
    left = a.facts.loc[a.facts["excluded"].isna(), [*columns, *both]]
    right = b.facts.loc[b.facts["excluded"].isna(), columns]
    pairs = left.merge(right, on=["fact_id", "prompt"], suffixes=("_a", "_b"), sort=False)
    pairs = pairs.rename(columns={f"rank_{ranking}_{run}": f"rank_{run}" for run in "ab"})
    for run in "ab":
        pairs[f"right_{run}"] = pairs[f"rank_{run}"] <= k
    firsts = (pairs[f"first_{run}"].astype(str).str.lower() for run in "ab")
    pairs["same_first"] = next(firsts) == next(firsts)
    return pairs, len(left) + len(right) - 2 * len(pairs)


def what_differs(a: RunInfo, b: RunInfo) -> str:
    """What two runs ranked otherwise, in words: their difference is of that, too. Else nothing."""
    if a.generates != b.generates:
        return (
            "Not the same is counted: in one run a generated text is right if it contains a right "
            "answer, in the other a right answer is right if it is ranked first."
        )
    if a.ranks_statements != b.ranks_statements:
        statements, words = (a, b) if a.ranks_statements else (b, a)
        return (
            f"Not the same is ranked: one run ranks whole answers ({statements.n_said}) by the "
            f"likelihood of the statement, the other words at the blank ({words.n_said}). With "
            "fewer of them every rank is better."
        )
    if differing_candidates((a, b)):
        return (
            f"Not the same words are ranked: {a.n_said} in A, {b.n_said} in B. With fewer of them "
            "every rank is better."
        )
    exact_to = [one.exact_to for one in (a, b) if one.exact_to is not None]
    if exact_to:
        return (
            f"Both are ranked on the words that both ranked ({a.n_said}), from the ten best that a "
            f"run keeps: P@k is exact up to k = {min(exact_to)}."
        )
    return ""


def compare(
    a: Run,
    b: Run,
    *,
    ranking: Ranking = "filtered",
    k: int = 1,
    relations: Sequence[str] | None = None,
    level: float = LEVEL,
) -> Comparison:
    """Run B against run A, by relation, over all facts, and over relations.

    relations: only these. Raises UserError if the runs have no fact in common.
    """
    pairs, n_unpaired = pair_rows(a, b, ranking=ranking, k=k)
    if relations is not None:
        pairs = pairs[pairs["relation"].isin(relations)]
    if pairs.empty:
        raise UserError(
            f"The runs {a.info.id} and {b.info.id} have no fact in common that both count."
        )
    pairs = pairs.reset_index(drop=True)
    right_a, right_b = pairs["right_a"], pairs["right_b"]
    frame = pd.DataFrame(
        {"a": right_a, "b": right_b, "only_a": right_a & ~right_b, "only_b": right_b & ~right_a}
    )
    by_relation = frame.groupby(pairs["relation"].astype(str), sort=False)
    rows = _differences(by_relation.sum(), by_relation.size(), level)
    differences = np.array([row.b - row.a for row in rows])
    sample = mean_of_sample(differences, level=level)
    over_relations = MeanDifference(
        len(rows),
        float(np.mean([row.a for row in rows])),
        float(np.mean([row.b for row in rows])),
        sample.mean,
        sample.interval,
        sample.p,
        int((differences < 0).sum()),
        int((differences > 0).sum()),
    )
    firsts = right_a.to_numpy(), right_b.to_numpy()
    return Comparison(
        paired_difference(*firsts, level=level),
        over_relations,
        rows,
        "query" if pairs.duplicated(["relation", "fact_id"]).any() else "fact",
        mcnemar(*firsts),
        agreement(*firsts, pairs["same_first"].to_numpy(dtype=bool)),
        pairs,
        n_unpaired,
    )


def paired_difference(
    right_a: NDArray[np.bool_], right_b: NDArray[np.bool_], *, level: float = LEVEL
) -> Difference:
    """The difference over facts that each count the same, bool [fact] each, at least one."""
    n, only_a, only_b = len(right_a), (right_a & ~right_b).sum(), (right_b & ~right_a).sum()
    counts = (np.array([count], dtype=np.int64) for count in (only_b, only_a, n))
    return Difference(
        "",
        n,
        float(right_a.mean()),
        float(right_b.mean()),
        float((only_b - only_a) / n),
        difference_intervals(*counts, level=level)[0],
        int(only_a),
        int(only_b),
    )


def _differences(
    right: pd.DataFrame, totals: "pd.Series[int]", level: float
) -> tuple[Difference, ...]:
    """The difference of each group. right: facts that a, b and only one of them gets right."""
    n = totals.to_numpy().astype(np.int64)
    a, b, only_a, only_b = (right[name].to_numpy() for name in ("a", "b", "only_a", "only_b"))
    ends = difference_intervals(only_b, only_a, n, level=level)
    a, b = a / n, b / n
    return tuple(
        Difference(
            str(name),
            int(n[at]),
            float(a[at]),
            float(b[at]),
            float(b[at] - a[at]),
            ends[at],
            int(only_a[at]),
            int(only_b[at]),
        )
        for at, name in enumerate(right.index)
    )
