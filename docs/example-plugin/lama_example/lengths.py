"""A view with a chart: P@k by the number of words of the subject."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lama_core.metrics.intervals import share_intervals
from lama_core.rounding import percent
from lama_core.runs.info import Run
from lama_core.tables import Column, Line, Table, count, interval, share, table_of_frame, text
from lama_core.views.bars import share_bars
from lama_core.views.choice import TopRequest
from lama_core.views.figure import Axis, Figure
from lama_core.views.view import Facts, Shown, View, ViewFunction

MOST = 4  # words; longer subjects are together


@dataclass(frozen=True)
class LengthsRequest(TopRequest, command="results example-lengths", python="example_lengths"):
    """Request for P@k by length of the subject: the fields of `results example-lengths`."""


class LengthsView(View[LengthsRequest, pd.DataFrame]):
    """P@k by the number of words of the subject."""

    name = "example-lengths"
    title = "Length of the subject"
    question = "Are facts about longer names harder?"
    example = "results example-lengths starter-minilm_mlm-manual"
    keys = ("words",)
    of_ranks = True

    def compute(self, runs: Sequence[Run], request: LengthsRequest) -> pd.DataFrame:
        """Return a row for each run and length: n, p_at_k and the ends of its interval."""
        tables = []
        for run in runs:
            facts = run.facts[run.facts["excluded"].isna()]
            if request.relations:
                facts = facts[facts["relation"].isin(request.relations)]
            right = facts[f"rank_{request.ranking_of(run.info)}"] <= request.k
            words = facts["subject_tokens"].clip(upper=MOST)  # words, and punctuation marks
            table = right.groupby(words).agg(n="size", hits="sum").reset_index(names="words")
            ends = share_intervals(table["hits"].to_numpy(), table["n"].to_numpy())
            table = table.assign(run=run.info.id, p_at_k=table["hits"] / table["n"])
            table = table.assign(low=np.asarray(ends.low), high=np.asarray(ends.high))
            tables.append(
                table.assign(words=table["words"].map(lambda n: f"{n}" + "+" * (n == MOST)))
            )
        return pd.concat(tables)[["run", "words", "n", "p_at_k", "low", "high"]]

    def columns(self, shown: Shown[LengthsRequest, pd.DataFrame]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("model", cell=lambda line: shown.names[line["run"]]),
            text("words"),
            count("n", shown.counts, of_run=True),
            share("p_at_k", f"P@{shown.request.k}", of_run=True),
            interval(of_run=True),
        )

    def tables(self, shown: Shown[LengthsRequest, pd.DataFrame]) -> Iterator[Table | str]:
        """Yield the table."""
        title = f"P@{shown.request.k} in percent, by the number of words of the subject"
        yield table_of_frame(
            shown.chosen("model words n p_at_k interval"), shown.frame, title=title
        )

    def conclusion(self, shown: Shown[LengthsRequest, pd.DataFrame]) -> str:
        """Return P@k of the shortest and the longest subjects for each run."""
        parts = []
        for run, table in shown.frame.groupby("run", sort=False):
            ends = table.iloc[[0, -1]]
            said = zip(ends["p_at_k"].map(percent), ends["words"], strict=True)
            parts.append(f"{shown.names[run]} " + ", ".join(f"{p} % for {n}" for p, n in said))
        return f"P@{shown.request.k} by words of the subject: {'; '.join(parts)}"

    def figure(self, shown: Shown[LengthsRequest, pd.DataFrame]) -> Figure:
        """Return bars for each length."""
        by = Axis(column="words", title="words of the subject")
        return share_bars(shown, shown.frame, by, title=f"P@{shown.request.k} by length")

    def facts(
        self, shown: Shown[LengthsRequest, pd.DataFrame], line: Line, column: str = ""
    ) -> Facts:
        """Return the facts behind a cell: those of the run whose subjects are so long."""
        n = int(line["words"].rstrip("+"))
        of = {"relations": tuple(shown.request.relations), "words_min": n}
        return Facts(line["run"], of if n == MOST else {**of, "words_max": n})


example_lengths = ViewFunction(
    LengthsRequest,
    LengthsView(),
    """Return P@k by the number of words of the subject.

    Returns:
        A DataFrame with a row for each run and length: n (facts), p_at_k, low, high.

    Raises:
        UserError: If there is no finished run, or a run or relation is unknown.
    """,
)
