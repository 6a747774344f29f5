"""View: the ranks of the gold answers as a histogram."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from lama_core.metrics.score_tables import rank_histogram
from lama_core.rounding import percent
from lama_core.runs.info import Run
from lama_core.tables import Column, Line, Table, count, share, table_of_frame, text
from lama_core.views.choice import RunsRequest
from lama_core.views.conclusions import listed
from lama_core.views.figure import Axis, Figure, said
from lama_core.views.view import Facts, Shown, View, ViewFunction

LATE = 100  # the conclusion states how many ranks are larger; the last one of a bin


@dataclass(frozen=True)
class RanksRequest(RunsRequest, command="results ranks", python="ranks"):
    """Request for histograms of ranks: the fields of `results ranks`."""


class RanksView(View[RanksRequest, pd.DataFrame]):
    """Facts by the rank of the gold answer, in ranges that end at powers of ten."""

    name = "ranks"
    title = "Rank distribution"
    question = "At which rank does the right answer come?"
    example = "results ranks starter-minilm_mlm-manual starter-smollm2_135m-manual"
    of_ranks = True
    of_means = True
    keys = ("low", "high")

    def compute(self, runs: Sequence[Run], request: RanksRequest) -> pd.DataFrame:
        """Return `metrics.rank_histogram`."""
        return rank_histogram(
            runs, ranking=request.ranking, bins_per_decade=1, relations=request.relations or None
        )

    def columns(self, shown: Shown[RanksRequest, pd.DataFrame]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("rank", help_text="Ranks of the right answer; 1 is best.", cell=_bin),
            text("model", cell=lambda line: shown.names[line["run"]]),
            count("n", shown.counts, of_run=True),
            share("share", "%", "Percent, mean over relations.", of_run=True),
            share(
                "over_facts",
                f"% over {shown.counts}",
                f"Percent of the run's {shown.counts}.",
                of_run=True,
            ),
        )

    def tables(self, shown: Shown[RanksRequest, pd.DataFrame]) -> Iterator[Table | str]:
        """Yield the table of all bins."""
        yield table_of_frame(
            shown.chosen("rank model share n over_facts"),
            shown.frame,
            title=f"{shown.counts.capitalize()} by the rank of the right answer; %: mean over "
            "relations",
        )

    def conclusion(self, shown: Shown[RanksRequest, pd.DataFrame]) -> str:
        """Return how often the right answer comes first, and how often late."""
        by_run = {str(run): part for run, part in shown.frame.groupby("run", sort=False)}
        first, late = (
            {  # of runs whose ranks are all known
                run: part[part["low"].between(*ends)]["share"].sum()
                for run, part in by_run.items()
                if part["share"].sum() > 1 - 1e-9
            }
            for ends in ((1, 1), (LATE + 1, math.inf))
        )
        said = (
            f"Right answers at rank 1: {listed(shown.names, first)}; after rank {LATE}: "
            f"{listed(shown.names, late)}"
        )
        return said * bool(late)

    def figure(self, shown: Shown[RanksRequest, pd.DataFrame]) -> Figure:
        """Return the histogram."""
        frame = shown.frame
        totals = frame.groupby("run")["n"].transform("sum")
        bins = [_bin(line) for line in frame.to_dict("records")]
        share = frame["share"].max()
        ticks = 20 if share <= 0.3 else 5  # from 0 to 1
        return Figure(
            shape="columns",
            frame=frame.assign(
                rank=bins,
                said=[
                    said(
                        shown.names[line["run"]],
                        f"rank {line['rank']}: {percent(line['share'])} %, mean over relations",
                        f"{line['n']:,} of {line['total']:,} {shown.counts}, "
                        f"{percent(line['over_facts'])} %",
                    )
                    for line in frame.assign(rank=bins, total=totals).to_dict("records")
                ],
            ),
            by=Axis(column="rank", title="rank of the right answer, 1 = best (log scale)"),
            value=Axis(
                column="share",
                title=f"% of {shown.counts}, mean over relations",
                share=True,
                ends=(0, max(1, math.ceil(ticks * share)) / ticks),
            ),
            names=shown.names,
            title=shown.title_of("Rank of the right answer"),
            caption=shown.caption,
        )

    def facts(
        self, shown: Shown[RanksRequest, pd.DataFrame], line: Line, column: str = ""
    ) -> Facts:
        """Return the facts of a bin."""
        ends = {"rank_min": int(line["low"]), "rank_max": int(line["high"])}
        return Facts(line["run"], {"relations": tuple(shown.request.relations), **ends})


def _bin(line: Line) -> str:
    low, high = line["low"], line["high"]
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


ranks = ViewFunction(
    RanksRequest,
    RanksView(),
    """Count the facts of finished runs by the rank of the gold answer.

    Bins end at ranks 1, 10, 100, 1,000, 10,000, and so on.

    Returns:
        A DataFrame with a row for each run and bin: low and high (ranks, both included), n (facts),
        share (mean over relations), and over_facts (share of the run's facts).

    Raises:
        UserError: If there is no finished run with ranks, or a run or relation is unknown.
    """,
)
