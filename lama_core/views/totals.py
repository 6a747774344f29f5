"""View: P@k over all facts, and over relations; the difference of two runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lama_core.metrics.comparison import Difference, MeanDifference, compare
from lama_core.metrics.intervals import METHOD, mean_of_sample, share_intervals
from lama_core.metrics.origins import gain_from_training, training_sources
from lama_core.metrics.score_tables import score_table
from lama_core.rounding import percent
from lama_core.runs.info import Run
from lama_core.tables import Column, Line, Table, count, interval, share, table_of_frame, text
from lama_core.views.bars import share_bars
from lama_core.views.choice import TopRequest
from lama_core.views.conclusions import listed
from lama_core.views.figure import Axis, Figure
from lama_core.views.view import Facts, Shown, View, ViewFunction

OVER_FACTS, OVER_RELATIONS = "over facts", "over relations"


@dataclass(frozen=True)
class TotalsRequest(TopRequest, command="results totals", python="totals"):
    """Request for P@k over facts and over relations: the fields of `results totals`."""


@dataclass(frozen=True)
class Totals:
    """The totals of several runs.

    table: columns run, mean (`over facts` or `over relations`), n (facts), p_at_k, low, high.
    notes: mean -> the difference of the two runs, if there are two.
    """

    table: pd.DataFrame
    notes: dict[str, str]


class TotalsView(View[TotalsRequest, Totals]):
    """P@k over all facts and as a mean over relations."""

    name = "totals"
    title = "Totals"
    question = "Which model is ahead, over all facts and over relations?"
    example = "results totals starter-minilm_mlm-manual starter-smollm2_135m-manual"
    keys = ("mean",)

    def compute(self, runs: Sequence[Run], request: TotalsRequest) -> Totals:
        """Return the totals of each run, and the difference of two runs."""
        lines: list[tuple[Any, ...]] = []
        for run in runs:
            ranking = request.ranking_of(run.info)
            scores = score_table([run], ranking=ranking, k=request.k, relations=request.relations)
            shares = scores.loc[scores["n"] > 0, ["n", "p_at_k"]]
            n, hits = int(shares["n"].sum()), (shares["n"] * shares["p_at_k"]).sum(skipna=False)
            n_right = np.rint(float(hits))
            ends = share_intervals(np.array(n_right), np.array(n))
            mean = mean_of_sample(shares["p_at_k"].to_numpy())
            over_facts = (n_right / n if n else np.nan, float(ends.low), float(ends.high))
            interval = mean.interval
            lines += [
                (run.info.id, OVER_RELATIONS, n, mean.mean, interval.low, interval.high),
                (run.info.id, OVER_FACTS, n, *over_facts),
            ]
        table = pd.DataFrame(lines, columns=["run", "mean", "n", "p_at_k", "low", "high"])
        two = len(runs) == 2 and table["p_at_k"].notna().all()
        return Totals(table, _differences(runs[0], runs[1], request) if two else {})

    def columns(self, shown: Shown[TotalsRequest, Totals]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("model", cell=lambda line: shown.names[line["run"]]),
            text("mean"),
            count("n", shown.counts, of_run=True),
            share("p_at_k", f"P@{shown.request.k}", of_run=True),
            interval(of_run=True),
        )

    def tables(self, shown: Shown[TotalsRequest, Totals]) -> Iterator[Table | str]:
        """Yield the table, and sentences on the difference of two runs."""
        yield table_of_frame(
            shown.chosen("model mean n p_at_k interval"),
            shown.frame,
            title=f"P@{shown.request.k} in percent; intervals over facts: {METHOD}; over relations "
            "as a sample: Student's t",
        )
        yield from shown.found.notes.values()

    def conclusion(self, shown: Shown[TotalsRequest, Totals]) -> str:
        """Return P@k of each run over facts and as the mean over relations."""
        means = [
            f"{mean}: {listed(shown.names, part.set_index('run')['p_at_k'])}"
            for mean, part in shown.frame.groupby("mean", sort=False)
        ]
        return f"P@{shown.request.k} {'; '.join(means)}"

    def figure(self, shown: Shown[TotalsRequest, Totals]) -> Figure:
        """Return two rows of bars."""
        by = Axis(column="mean", title="mean")
        return share_bars(
            shown, shown.frame, by, title=f"P@{shown.request.k} over facts and over relations"
        )

    def facts(self, shown: Shown[TotalsRequest, Totals], line: Line, column: str = "") -> Facts:
        """Return the facts that count."""
        return Facts(line["run"], {"relations": tuple(shown.request.relations)})


def _differences(a: Run, b: Run, request: TotalsRequest) -> dict[str, str]:
    """Return sentences on the first run minus the second, over facts and over relations."""
    first, second = a.info.model, b.info.model
    # `compare` returns its second run minus its first.
    found = compare(
        b, a, ranking=request.ranking_of(a.info), k=request.k, relations=request.relations or None
    )
    facts, relations = found.over_facts, found.over_relations
    gain, n_trained = gain_from_training(a, b, k=request.k, relations=request.relations)
    source = (
        f" {percent(n_trained / gain)} % of the gain ({n_trained:,} of {gain:,} facts) is "
        f"on facts from sources that {first} was trained on."
        if gain > 0 and training_sources(first)
        else ""
    )
    return {
        OVER_RELATIONS: f"{OVER_RELATIONS}: {_in_points(first, second, relations)}); {first} is "
        f"better in {relations.ahead_b:,} of {relations.n:,} relations, worse in "
        f"{relations.ahead_a:,}, equal in {relations.equal:,}.",
        OVER_FACTS: f"{OVER_FACTS}: {_in_points(first, second, facts)}; {facts.n:,} facts)."
        f"{source}",
    }


def _in_points(first: str, second: str, found: Difference | MeanDifference) -> str:
    between = found.interval if isinstance(found, Difference) else found.sample_interval
    low, high = (percent(end, signed=True) for end in (between.low, between.high))
    known = between.low == between.low
    ends = f" (95 % interval {low} to {high}" if known else " (no interval"
    return f"{first} minus {second} {percent(found.difference, signed=True)} points{ends}"


totals = ViewFunction(
    TotalsRequest,
    TotalsView(),
    """Return P@k of finished runs over all facts, and as the mean over relations.

    Returns:
        A DataFrame with two rows for each run: mean (`over facts` or `over relations`), n (facts),
        p_at_k, low, high. Interval over facts: Wilson's; over relations: Student's t, with the
        relations as a sample.

    Raises:
        UserError: If there is no finished run, or a run or relation is unknown.
    """,
)
