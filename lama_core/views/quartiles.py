"""View: the spread of the ranks of the gold answers as box plots."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from lama_core.metrics.rank_spread import average_ranks
from lama_core.metrics.score_tables import box_of, of_run, rank_quartiles, stacked
from lama_core.requests import option
from lama_core.rounding import fixed
from lama_core.runs.info import Run
from lama_core.tables import Column, Line, Table, count, number, table_of_frame, text
from lama_core.views.choice import RunsRequest
from lama_core.views.conclusions import listed
from lama_core.views.figure import Axis, Figure, said
from lama_core.views.view import Facts, Shown, View, ViewFunction

BOX = (
    "Box: lower to upper quartile (the middle half of the facts); line: median; whiskers: 5th to "
    "95th percentile; diamond: mean."
)


@dataclass(frozen=True)
class QuartilesRequest(RunsRequest, command="results quartiles", python="quartiles"):
    """Request for box plots of ranks: the fields of `results quartiles`."""

    mean_ranks: Annotated[
        bool,
        option(
            "Take each fact's mean rank over its sentences, as in Figure 4 of Petroni et al. 2019 "
            "(prompts ten-sentences). Default: take the rank of each query."
        ),
    ] = False


class QuartilesView(View[QuartilesRequest, pd.DataFrame]):
    """Quartiles, 5th and 95th percentile, and mean of the ranks of the gold answers."""

    name = "quartiles"
    title = "Spread of the ranks"
    question = "How far do the ranks of the right answers spread?"
    example = "results quartiles starter-minilm_mlm-ten_sentences --mean-ranks"
    of_ranks = True

    def compute(self, runs: Sequence[Run], request: QuartilesRequest) -> pd.DataFrame:
        """Return `metrics.rank_quartiles`, or the same of each fact's mean rank."""
        relations = request.relations or None
        if not request.mean_ranks:
            return rank_quartiles(runs, ranking=request.ranking, relations=relations)
        tables = []
        for run in runs:
            means = average_ranks(run, ranking=request.ranking_of(run.info))
            if relations is not None:
                means = means[means["relation"].isin(relations)]
            tables.append(of_run(run, **box_of(means["mean_rank"].to_numpy())))
        return stacked(tables)

    def columns(self, shown: Shown[QuartilesRequest, pd.DataFrame]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("model", cell=lambda line: shown.names[line["run"]]),
            count("n", self._counts(shown)),
            number("low", 1, "5 %", "5th percentile of the ranks."),
            number("q1", 1, "lower quartile"),
            number("median", 1),
            number("q3", 1, "upper quartile"),
            number("high", 1, "95 %", "95th percentile of the ranks."),
            number("mean", 1),
        )

    def tables(self, shown: Shown[QuartilesRequest, pd.DataFrame]) -> Iterator[Table | str]:
        """Yield a row for each run."""
        what = f"{self._what(shown)} of the right answer"
        yield table_of_frame(
            shown.chosen("model n low q1 median q3 high mean"),
            shown.frame,
            title=f"{what[0].upper()}{what[1:]}; 1 is best",
        )

    def notes(self, shown: Shown[QuartilesRequest, pd.DataFrame]) -> Iterator[str]:
        """Yield which runs have no numbers, because some ranks aren't known."""
        frame = shown.frame
        for run in frame["run"][frame["median"].isna() & (frame["n"] > 0)]:
            yield (
                f"{shown.names[run]}: not every right answer has a rank. Choose only relations "
                "whose right answers all have one."
            )

    def conclusion(self, shown: Shown[QuartilesRequest, pd.DataFrame]) -> str:
        """Return the median rank of each run."""
        medians = shown.frame.set_index("run")["median"].dropna()
        if medians.empty:
            return ""
        each = listed(shown.names, medians, lambda rank: fixed(rank, 0))
        return f"Half of the {self._counts(shown)} have a {self._what(shown)} of at most: {each}"

    def basis(self, shown: Shown[QuartilesRequest, pd.DataFrame]) -> str:
        """Return the numbers of relations and of queries or facts; mean ranks are of facts."""
        n_relations = super().basis(shown).partition(", ")[0]
        return f"{n_relations}, {numbers_of_facts(shown)} {self._counts(shown)}"

    def figure(self, shown: Shown[QuartilesRequest, pd.DataFrame]) -> Figure:
        """Return a box for each run with facts."""
        frame = shown.frame[shown.frame["median"].notna()]
        names = frame["run"].map(shown.names)
        axis = f"{self._what(shown)}, 1 = best (log axis)"
        what = "Mean rank over the sentences of a fact" if shown.request.mean_ranks else "Ranks"
        return Figure(
            shape="boxes",
            frame=frame.assign(
                who=names,
                said=[
                    said(
                        shown.names[line["run"]],
                        f"{line['n']:,} {self._counts(shown)}",
                        f"mean {fixed(line['mean'], 1)}, median {fixed(line['median'], 0)}",
                        f"half between {fixed(line['q1'], 0)} and {fixed(line['q3'], 0)}",
                        f"90 % between {fixed(line['low'], 0)} and {fixed(line['high'], 0)}",
                    )
                    for line in frame.to_dict("records")
                ],
            ),
            by=Axis(column="who", title="model"),
            value=Axis(column="mean", title=axis, log=True),
            names=shown.names,
            low="low",
            high="high",
            title=shown.title_of(f"{what} by model"),
            caption=f"{what_is_counted(shown)}. {BOX}",
        )

    def facts(
        self, shown: Shown[QuartilesRequest, pd.DataFrame], line: Line, column: str = ""
    ) -> Facts | None:
        """Return all facts of a run; no rows of n, if it counts facts with several queries."""
        facts = Facts(line["run"], {"relations": tuple(shown.request.relations)})
        return None if column == "n" and shown.request.mean_ranks else facts

    def _what(self, shown: Shown[QuartilesRequest, pd.DataFrame]) -> str:
        return "mean rank" if shown.request.mean_ranks else "rank"

    def _counts(self, shown: Shown[QuartilesRequest, pd.DataFrame]) -> str:
        return "facts" if shown.request.mean_ranks else shown.counts


def what_is_counted(shown: Shown[QuartilesRequest, pd.DataFrame]) -> str:
    """Return the caption, with the number of facts if queries are averaged over them."""
    facts = f"; {numbers_of_facts(shown)} facts with a mean rank" * shown.request.mean_ranks
    return shown.caption + facts


def numbers_of_facts(shown: Shown[QuartilesRequest, pd.DataFrame]) -> str:
    """Return the number of facts, or the least and the largest of several runs, as text."""
    n = sorted({int(shown.frame["n"].min()), int(shown.frame["n"].max())})
    return " to ".join(f"{one:,}" for one in n)


quartiles = ViewFunction(
    QuartilesRequest,
    QuartilesView(),
    """Return quartiles, percentiles and mean of the ranks of the gold answers in finished runs.

    Returns:
        A DataFrame with a row for each run: n (facts), low (5th percentile of the ranks), q1,
        median, q3, high (95th percentile), mean.

    Raises:
        UserError: If there is no finished run with ranks, or a run or relation is unknown.
    """,
)
