"""Comparison of two runs on the same facts: differences with intervals and tests, agreement, flips.

Rows are paired by fact and prompt. Rows that only one of the runs counts are excluded; their number
is reported. The difference is computed in two ways, each with its own interval and test:

    over facts       each paired fact has the same weight: (only B - only A) / n. Interval: Tango's
                     for paired shares. Test: McNemar's exact test, two-sided: under the null
                     hypothesis, of the b + c facts that only one run gets right, the number that
                     only A gets right is Binomial(b + c, 1/2).
    over relations   each relation has the same weight, as in LAMA's tables: the mean of the
                     relations' differences. Interval: Tango's with an effective number of facts,
                     for these relations. Interval and test for other relations: Student's, over
                     the relations as a sample.

If a fact has queries in several wordings, "over facts" means over queries. Relations in which P@k
isn't defined for both runs (see `known_ranks`) aren't compared.
Cohen's kappa = (observed - expected agreement) / (1 - expected), where agreement means that both
runs are right or both are wrong. It is undefined if the expected agreement is 1.
Source: McNemar 1947; Cohen 1960. For the intervals see `intervals`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.metrics.fact_answers import same_words
from lama_core.metrics.intervals import (
    Interval,
    difference_intervals,
    mean_difference_intervals,
    mean_of_sample,
)
from lama_core.metrics.known_ranks import defined_rows, hits, why_undefined
from lama_core.requests import Request, argument, option
from lama_core.rounding import plural
from lama_core.runs.alignment import differing_candidates, number_rows
from lama_core.runs.info import Run, RunInfo
from lama_core.scoring import shared_fields
from lama_core.scoring.ranking import Ranking
from lama_core.texts import word_key


@dataclass(frozen=True)
class CompareRequest(Request, command="compare", python="compare"):
    """Request to compare two finished runs on the same facts: the fields of `compare`."""

    run_a: Annotated[str, argument("Run A, the reference.")]
    run_b: Annotated[str, argument("Run B; differences are B minus A.")]
    ranking: shared_fields.Ranking = "filtered"
    k: Annotated[int, option("Count a hit if the gold answer is in the top k.", ge=1)] = 1
    relations: shared_fields.Relations = ()
    facts: shared_fields.Facts = ""
    slices: Annotated[
        bool, option("Show the difference on slices of the facts (see `results slices`) instead.")
    ] = False


@dataclass(frozen=True, slots=True)
class Difference:
    """P@k of B minus P@k of A on the same n facts.

    relation: "" for the facts of all relations together. a, b: P@k of each run. interval: of the
    difference. only_a, only_b: facts that only this run gets right.
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
    """P@k of B minus P@k of A, as the unweighted mean over n relations.

    a, b: mean P@k of each run. interval: for these relations, over their facts. sample_interval, p:
    Student's, with the relations as a sample; NaN if all differences are equal. ahead_a, ahead_b:
    relations in which this run has the higher P@k.
    """

    n: int
    a: float
    b: float
    difference: float
    interval: Interval
    sample_interval: Interval
    p: float
    ahead_a: int
    ahead_b: int

    @property
    def equal(self) -> int:
        """Relations in which both runs have the same P@k."""
        return self.n - self.ahead_a - self.ahead_b


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two runs, as shares of the paired facts, and Cohen's kappa.

    same_first: both runs give the same first answer under the ranking, ignoring case; NaN if this
    isn't known for some facts. same_right: the same first answer, which is right. kappa: agreement
    on which facts are right; NaN if undefined.
    n_unknown: facts for which it isn't known whether the first answers are the same.
    """

    same_first: float
    both_right: float
    both_wrong: float
    only_a: float
    only_b: float
    kappa: float
    same_right: float = float("nan")
    n_unknown: int = 0


@dataclass(frozen=True)
class Comparison:
    """The comparison of two runs.

    Attributes:
        over_facts: Difference over all paired facts.
        over_relations: Mean of the relations' differences.
        relations: Difference of each relation, over its facts.
        unit: What a row of `pairs` is: `query` if facts have queries in several wordings, else
            `fact`.
        mcnemar: Two-sided p-value of McNemar's test over all paired facts.
        agreement: How far the runs agree.
        run_a: Run A.
        pairs: One row per paired fact, with its row in run A, `right_a`, `right_b`, ranks and first
            answers.
        n_unpaired: Number of rows that only one run counts.
        undefined: Relations that aren't compared, because P@k isn't defined for both runs.
    """

    over_facts: Difference
    over_relations: MeanDifference
    relations: tuple[Difference, ...]
    unit: str
    mcnemar: float
    agreement: Agreement
    run_a: Run
    pairs: pd.DataFrame
    n_unpaired: int
    undefined: tuple[str, ...] = ()

    @property
    def units(self) -> str:
        """Plural of `unit`."""
        return plural(self.unit)

    def flips(self, most: int | None = None) -> pd.DataFrame:
        """Return the first `most` facts, or all, that only one run gets right, with their texts."""
        rows = np.flatnonzero((self.pairs["right_a"] != self.pairs["right_b"]).to_numpy())[:most]
        flips = self.pairs.iloc[rows]
        names = ("fact_id", "object", "query")
        return flips.assign(**{name: self.run_a.column(name).array[flips["row"]] for name in names})


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the two-sided p-value of McNemar's exact test; 1 if the runs are right on the same."""
    from scipy.stats import binomtest  # imported here because it takes half a second

    return float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0


def agreement(
    right_a: NDArray[np.bool_],
    right_b: NDArray[np.bool_],
    same_first: NDArray[np.float64],
    same_right: float = float("nan"),
) -> Agreement:
    """Return how far two runs agree, as shares of the facts, at least one.

    same_first: 1, 0, or NaN if it isn't known, float64 [fact]. same_right: as of `Agreement`.
    """
    unknown = int(np.isnan(same_first).sum())
    both, neither = float(np.mean(right_a & right_b)), float(np.mean(~right_a & ~right_b))
    a, b = float(right_a.mean()), float(right_b.mean())
    expected = a * b + (1 - a) * (1 - b)
    kappa = (both + neither - expected) / (1 - expected) if expected < 1 else float("nan")
    return Agreement(
        float(same_first.mean()), both, neither, a - both, b - both, kappa, same_right, unknown
    )


def pair_rows(a: Run, b: Run, *, ranking: Ranking, k: int = 1) -> tuple[pd.DataFrame, int]:
    """Return the rows that both runs count, joined, and the number of rows that only one counts.

    The column `row` has the row's position in run A; `right_a`, `right_b` and `same_first` are 1,
    0, or NaN if this isn't known.
    """
    numbers = number_rows((a, b))
    counts = [run.counted for run in (a, b)]
    if np.array_equal(numbers[0], numbers[1]) and np.bincount(numbers[0]).max(initial=0) == 1:
        rows_a = rows_b = np.flatnonzero(counts[0] & counts[1])
    else:
        left, right = (
            pd.DataFrame({"number": number, "row": np.arange(len(number))})[counted]
            for number, counted in zip(numbers, counts, strict=True)
        )
        rows = left.merge(right, on="number", suffixes=("", "_b"), sort=False)
        rows_a, rows_b = rows["row"].to_numpy(), rows["row_b"].to_numpy()
    pairs = pd.DataFrame({"row": rows_a})
    for name in ("relation", "prompt"):
        pairs[name] = a.column(name).array[rows_a]
    first = "first" if ranking == "raw" else "first_filtered"
    unknown = np.zeros(len(pairs), bool)
    for end, run, at in (("a", a, rows_a), ("b", b, rows_b)):
        pairs[f"rank_{end}"] = run.column(f"rank_{ranking}").array[at]
        pairs[f"first_{end}"] = run.column(first).array[at]
        pairs[f"right_{end}"] = hits(pairs[f"rank_{end}"].to_numpy(), run.known_to[at], k)
        unknown |= pairs[f"first_{end}"].isna().to_numpy() & (not run.info.generates)
    # If only one of the first answers is right, they differ, whatever the wrong one is.
    unknown &= ((pairs["rank_a"] == 1) == (pairs["rank_b"] == 1)).to_numpy()
    pairs["same_first"] = np.where(
        unknown, np.nan, same_words(pairs["first_a"], pairs["first_b"], word_key)
    )
    return pairs, int(counts[0].sum() + counts[1].sum()) - 2 * len(pairs)


def what_differs(a: RunInfo, b: RunInfo) -> str:
    """Return a note on differing or aligned candidates, or on different rules for right answers.

    "" if both runs ranked the same candidates.
    """
    if a.has_ranks != b.has_ranks or (a.generates != b.generates):
        return "The runs count differently: " + "; ".join(map(_when_right, (a, b))) + "."
    if a.generates and a.version != b.version:
        old = a if a.version < b.version else b
        part = "part of it, also of a word or of the repeated question"
        if old.version > 1:
            part = "in it, also as part of a number, such as 5 in 1.5"
        return (
            f"The runs count differently: {old.label} was made with scoring version {old.version}, "
            f"in which a text is right if a right answer is {part}. Run it again to compare them."
        )
    if a.ranks_statements != b.ranks_statements:
        statements, words = (a, b) if a.ranks_statements else (b, a)
        return (
            f"The candidates differ: one run ranks whole answers ({statements.n_said}) by the "
            f"likelihood of the statement, the other words at the blank ({words.n_said}). Ranks "
            "improve with fewer candidates."
        )
    unknown = [run.label for run in (a, b) if run.imported and not run.n_candidates]
    if unknown and a.has_ranks:
        return (
            f"The words or answers that were ranked aren't known: {' and '.join(unknown)}. Ranks "
            "improve with fewer candidates."
        )
    exact_to = [run.exact_to for run in (a, b) if run.exact_to is not None]
    if exact_to:
        return (
            f"Both runs are ranked on their shared candidates ({a.n_said}), using the ten best "
            f"predictions that a run stores. P@k is exact up to k = {min(exact_to)}."
        )
    differ = (
        f"The candidates differ: A ranks {a.n_said} words, B {b.n_said}. Ranks improve with fewer "
        "candidates."
    )
    return differ if differing_candidates((a, b)) else ""


def _when_right(run: RunInfo) -> str:
    """Return when an answer of a run counts as right, as a clause."""
    if run.generates:
        when = "whole words of the generated text are a right answer"
    else:
        when = (
            "a right answer is ranked first" if run.has_ranks else "the tool that made it says so"
        )
    return f"in {run.label}, if {when}"


def compare(
    a: Run,
    b: Run,
    *,
    ranking: Ranking = "filtered",
    k: int = 1,
    relations: Sequence[str] | None = None,
) -> Comparison:
    """Compare run B with run A: by relation, over all facts, and over relations.

    Args:
        a: Run A.
        b: Run B.
        ranking: Filtered or raw.
        k: A fact is right if its rank is at most k.
        relations: Names of the relations to include; None is all.

    Raises:
        UserError: If no fact counts in both runs, or P@k isn't defined for both in any relation.
    """
    pairs, n_unpaired = pair_rows(a, b, ranking=ranking, k=k)
    if relations is not None:
        pairs = pairs[pairs["relation"].isin(relations)]
    if pairs.empty:
        raise UserError(
            f"No fact counts in both {a.info.id} and {b.info.id}. Choose runs of the same data."
        )
    in_relation = pairs["relation"].astype("str").to_numpy()
    defined = defined_rows(in_relation, [pairs["right_a"].to_numpy(), pairs["right_b"].to_numpy()])
    if not defined.any():
        raise UserError(why_undefined((a, b), k))
    undefined = tuple(dict.fromkeys(in_relation[~defined].tolist()))
    pairs = pairs[defined].reset_index(drop=True).astype({"right_a": bool, "right_b": bool})
    right_a, right_b = pairs["right_a"], pairs["right_b"]
    frame = pd.DataFrame(
        {"a": right_a, "b": right_b, "only_a": right_a & ~right_b, "only_b": right_b & ~right_a}
    )
    by_relation = frame.groupby(pairs["relation"], sort=False, observed=True)
    rows = _differences(by_relation.sum(), by_relation.size())
    differences = np.array([row.b - row.a for row in rows])
    sample = mean_of_sample(differences)
    ends = mean_difference_intervals(
        *(np.array([getattr(row, name) for row in rows]) for name in ("only_b", "only_a", "n"))
    )
    over_relations = MeanDifference(
        len(rows),
        float(np.mean([row.a for row in rows])),
        float(np.mean([row.b for row in rows])),
        sample.mean,
        Interval(float(ends.low), float(ends.high)),
        sample.interval,
        sample.p,
        int((differences < 0).sum()),
        int((differences > 0).sum()),
    )
    facts = pairs[["relation"]].assign(fact=a.column("fact_id").array[pairs["row"]])
    repeated = pairs["prompt"].nunique() > 1 and facts.duplicated().any()
    firsts = right_a.to_numpy(), right_b.to_numpy()
    whole = paired_difference(*firsts)
    # Not `right_a`, which for k > 1 doesn't mean that the first answer is right.
    is_first = (pairs["rank_a"] == 1) & (pairs["rank_b"] == 1)
    return Comparison(
        whole,
        over_relations,
        rows,
        "chosen " * bool(a.info.only) + ("query" if repeated else "fact"),
        mcnemar(whole.only_a, whole.only_b),
        agreement(
            *firsts,
            pairs["same_first"].to_numpy(),
            float((pairs["same_first"] * is_first).mean(skipna=False)),
        ),
        a,
        pairs,
        n_unpaired,
        undefined,
    )


def paired_difference(right_a: NDArray[np.bool_], right_b: NDArray[np.bool_]) -> Difference:
    """Return the difference over facts; right_a, right_b: bool [fact], for at least one fact."""
    frame = pd.DataFrame({"a": right_a, "b": right_b})
    frame = frame.assign(only_a=right_a & ~right_b, only_b=right_b & ~right_a)
    whole = pd.DataFrame([frame.sum()], index=[""])
    return _differences(whole, pd.Series([len(frame)]))[0]


def _differences(right: pd.DataFrame, totals: "pd.Series[int]") -> tuple[Difference, ...]:
    """Return the difference of each group.

    right: for each group, the numbers of facts that A, B, only A and only B get right. totals:
    numbers of facts.
    """
    n = totals.to_numpy().astype(np.int64)
    a, b, only_a, only_b = (right[name].to_numpy() for name in ("a", "b", "only_a", "only_b"))
    ends = difference_intervals(only_b, only_a, n)
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
