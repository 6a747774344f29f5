"""View: the margins between right and wrong answers of whole-answer runs as a histogram."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite
from typing import Any

import pandas as pd

from lama_core.errors import UserError
from lama_core.metrics.margins import margin_histogram
from lama_core.rounding import percent
from lama_core.runs.info import Run
from lama_core.tables import Column, Line, Table, count, share, table_of_frame, text
from lama_core.views.choice import RunsRequest
from lama_core.views.conclusions import listed
from lama_core.views.figure import Axis, Figure, said
from lama_core.views.view import Facts, Shown, View, ViewFunction

CLEAR = 1  # the conclusion says how often a margin is larger; the upper end of a bin


@dataclass(frozen=True)
class MarginsRequest(RunsRequest, command="results margins", python="margins"):
    """Request for histograms of margins: the fields of `results margins`."""


class MarginsView(View[MarginsRequest, pd.DataFrame]):
    """Facts by the score of the right answer minus the best score of a wrong answer."""

    name = "margins"
    title = "Margins"
    question = "By how much does the right answer beat the best wrong one?"
    example = "results margins starter-minilm_mlm-statements_template_0"
    of_ranks = True
    keys = ("right", "low", "high")

    def compute(self, runs: Sequence[Run], request: MarginsRequest) -> pd.DataFrame:
        """Return `metrics.margin_histogram`; runs that rank words have no margins."""
        found = margin_histogram(runs, ranking=request.ranking, relations=request.relations or None)
        if len(found):
            return found
        if any(run.info.ranks_statements for run in runs):
            raise UserError("No margins: the relations of these facts have no wrong answers.")
        raise UserError("No margins: these runs rank words. Make runs with `statements`.")

    def columns(self, shown: Shown[MarginsRequest, pd.DataFrame]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("margin", help_text="Nats; the lower end is excluded.", cell=_bin),
            text("first answer", cell=lambda line: "right" if line["right"] else "wrong"),
            text("model", cell=lambda line: shown.names[line["run"]]),
            count("n", shown.counts, of_run=True),
            share("share", "%", f"Share of the run's {shown.counts} with a margin.", of_run=True),
        )

    def tables(self, shown: Shown[MarginsRequest, pd.DataFrame]) -> Iterator[Table | str]:
        """Yield the bins with facts."""
        yield table_of_frame(
            [shown.columns[name] for name in ("margin", "first answer", "model", "n", "share")],
            shown.frame[shown.frame["n"] > 0].sort_values(["low", "run"], kind="stable"),
            title="Margin: score of the right answer minus the best score of a wrong answer, in "
            "nats",
        )

    def notes(self, shown: Shown[MarginsRequest, pd.DataFrame]) -> Iterator[str]:
        """Yield a note on the runs without margins."""
        without = [shown.names[info.id] for info in shown.infos if not info.ranks_statements]
        if without:
            yield f"Runs without margins, because they rank words: {', '.join(without)}."

    def conclusion(self, shown: Shown[MarginsRequest, pd.DataFrame]) -> str:
        """Return how often the right answer beats all wrong ones, and how often clearly."""
        right = shown.frame[shown.frame["right"]]
        sums = [
            right["share"].where(right["low"] >= least, 0).groupby(right["run"], sort=False).sum()
            for least in (-inf, CLEAR)
        ]
        return (
            f"The right answer beats every wrong one for {listed(shown.names, sums[0])} of the "
            f"{shown.counts}; by more than {CLEAR} ({exp(CLEAR):.1f} times as likely) for "
            f"{listed(shown.names, sums[1])}"
        )

    def figure(self, shown: Shown[MarginsRequest, pd.DataFrame]) -> Figure:
        """Return the histogram, with open bars for wrong first answers."""
        frame = shown.frame.assign(
            margin=[_bin(line).replace("-", "−") for line in shown.frame.to_dict("records")],
            wrong=~shown.frame["right"].astype(bool),
        )
        bins = dict.fromkeys(frame["margin"])
        frame = frame[frame["n"] > 0]
        return Figure(
            shape="columns",
            frame=frame.assign(
                said=[
                    said(
                        f"{shown.names[line['run']]}, first answer "
                        + ("right" if line["right"] else "wrong"),
                        f"margin {line['margin']}: {line['n']:,} {shown.counts}",
                        f"{percent(line['share'])} % of its {shown.counts}",
                    )
                    for line in frame.to_dict("records")
                ]
            ),
            by=Axis(
                column="margin",
                title="margin of the right answer (log-probability)",
                order=tuple(bins),
            ),
            value=Axis(
                column="share",
                title=f"share of the {shown.counts}, %",
                share=True,
            ),
            names=shown.names,
            hollow="wrong",
            hollow_name="open: the first answer is wrong",
            title=shown.title_of(f"{shown.counts.capitalize()} by margin of the right answer"),
            caption=shown.caption,
        )

    def facts(
        self, shown: Shown[MarginsRequest, pd.DataFrame], line: Line, column: str = ""
    ) -> Facts:
        """Return the facts of a bin with a right, or a wrong, first answer."""
        fields: dict[str, Any] = {"relations": tuple(shown.request.relations)}
        ends = (("margin_min", line["low"]), ("margin_max", line["high"]))
        fields |= {name: float(end) for name, end in ends if isfinite(end)}
        fields |= {"rank_max": 1} if line["right"] else {"rank_min": 2}
        return Facts(line["run"], fields)


def _bin(line: Line) -> str:
    if line["low"] == -inf:
        return f"≤ {line['high']:.9g}"
    return (
        f"> {line['low']:.9g}"
        if line["high"] == inf
        else f"{line['low']:.9g} to {line['high']:.9g}"
    )


margins = ViewFunction(
    MarginsRequest,
    MarginsView(),
    """Count the facts of finished whole-answer runs by the margin of the right answer.

    The margin is the score of the right answer minus the best score of a wrong answer, in nats.

    Returns:
        A DataFrame with a row for each run, bin, and right or wrong first answers: right (bool),
        low (exclusive) and high (inclusive) margin, n (facts), and share (of the run's facts with a
        margin).

    Raises:
        UserError: If there is no finished run with margins, or a run or relation is unknown.
    """,
)
