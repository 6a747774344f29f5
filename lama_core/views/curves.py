"""View: mean P@k against k (Petroni et al. 2019, Figure 2)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from lama_core.metrics.headlines import is_level
from lama_core.metrics.intervals import METHOD_OF_MEANS
from lama_core.metrics.score_tables import precision_curves, stacked
from lama_core.runs.info import Run
from lama_core.tables import Column, Line, Table, count, interval, share, table_of_frame, text
from lama_core.views.choice import RunsRequest
from lama_core.views.conclusions import as_share
from lama_core.views.figure import LEAST_CHANCE, Axis, Baseline, Figure, said, said_interval
from lama_core.views.view import Facts, Shown, View, ViewFunction

KS = (1, 2, 5, 10, 20, 50, 100)  # of the printed table and of the axis


@dataclass(frozen=True)
class CurvesRequest(RunsRequest, command="results curves", python="curves"):
    """Request for P@k curves: the fields of `results curves`."""


class CurvesView(View[CurvesRequest, pd.DataFrame]):
    """Mean P@k over relations for k from 1 to 100."""

    name = "curves"
    title = "P@k curves"
    question = "How often is the right answer among a model's first 1, 10 or 100 answers?"
    example = "results curves starter-minilm_mlm-manual starter-smollm2_135m-manual"
    of_ranks = True
    of_means = True
    keys = ("k",)

    def compute(self, runs: Sequence[Run], request: CurvesRequest) -> pd.DataFrame:
        """Return `metrics.precision_curves`; chance is NaN unless a run shows it."""
        relations = request.relations or None
        tables = [
            precision_curves([run], ranking=request.ranking_of(run.info), relations=relations)
            for run in runs
        ]
        table = stacked(tables)
        guessable = any(run.info.guessable for run in runs)
        return table if guessable else table.assign(chance=float("nan"))

    def columns(self, shown: Shown[CurvesRequest, pd.DataFrame]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        return (
            text("model", cell=lambda line: shown.names[line["run"]]),
            count("k"),
            share("p_at_k", "mean P@k", "Mean over relations.", of_run=True),
            interval(help_text=f"95 % interval: {METHOD_OF_MEANS}.", of_run=True),
            share("chance", help_text="Mean P@k of a random order of the answers."),
            count("n", shown.counts, of_run=True),
            count("n_relations", "relations", of_run=True),
        )

    def tables(self, shown: Shown[CurvesRequest, pd.DataFrame]) -> Iterator[Table | str]:
        """Yield the table of the values of k that the axis shows."""
        chance = "chance" if shown.guessable else ""
        yield table_of_frame(
            shown.chosen(f"model k p_at_k interval {chance} n n_relations"),
            shown.frame[shown.frame["k"].isin(KS)],
            title=f"Means over relations, in percent; intervals: {METHOD_OF_MEANS}",
        )

    def conclusion(self, shown: Shown[CurvesRequest, pd.DataFrame]) -> str:
        """Return the best run at the smallest and largest k, with its P@k; "" if k is the same."""
        known = shown.frame[shown.frame["p_at_k"].notna()]
        if known.empty:
            return ""
        best = known.loc[known.groupby("k")["p_at_k"].idxmax()].set_index("k", drop=False)
        first, last = (best.loc[k] for k in (best.index.min(), best.index.max()))
        if first["k"] == last["k"]:
            return ""
        leaders = [_leaders(shown, known, line) for line in (first, last)]
        said = [
            f"P@{line['k']}, {as_share(line['p_at_k'])}{_overlapping(shown, known, line)}"
            for line in (first, last)
        ]
        if known["run"].nunique() == 1:
            return f"{leaders[0]}: {said[0].replace(',', '')}, {said[1].replace(',', '')}"
        has = "have" if " and " in leaders[0] else "has"
        other = "" if leaders[0] == leaders[1] else f"{leaders[1]} "
        return f"{leaders[0]} {has} the highest {said[0]}, and {other}the highest {said[1]}"

    def figure(self, shown: Shown[CurvesRequest, pd.DataFrame]) -> Figure:
        """Return the curves, with dotted ones of a random order."""
        return lines_figure(
            shown.frame,
            shown.names,
            counts=shown.counts,
            title=shown.title_of("P@k from 1 to 100, mean over relations"),
            caption=shown.caption,
        )

    def facts(
        self, shown: Shown[CurvesRequest, pd.DataFrame], line: Line, column: str = ""
    ) -> Facts:
        """Return the facts whose right answer is among the first k, or all facts for `n`."""
        fields = {"relations": tuple(shown.request.relations)}
        return Facts(line["run"], fields if column == "n" else fields | {"rank_max": line["k"]})


def _leaders(shown: Shown[CurvesRequest, pd.DataFrame], known: pd.DataFrame, best: Line) -> str:
    """Return the runs that are as good as the best at this k, when rounded."""
    at_k = known[known["k"] == best["k"]]
    same = [is_level(best["p_at_k"] - value) for value in at_k["p_at_k"]]
    return " and ".join(shown.names[run] for run in at_k["run"][same])


def _overlapping(shown: Shown[CurvesRequest, pd.DataFrame], known: pd.DataFrame, best: Line) -> str:
    """Return which other runs' intervals overlap the interval of the best at this k."""
    near = known[(known["k"] == best["k"]) & (known["high"] >= best["low"])]
    names = [shown.names[run] for run in near["run"] if run != best["run"]]
    return f" (interval overlaps that of {' and '.join(names)})" if names else ""


def lines_figure(
    frame: pd.DataFrame, names: Mapping[str, str], *, counts: str, title: str, caption: str
) -> Figure:
    """Return the chart of the curves.

    Args:
        frame: `metrics.precision_curves`, or another table with its columns.
        names: Value of the column `run` -> its name for readers.
        counts: What n counts: `facts` or `queries`.
        title: The chart's title.
        caption: What the numbers count.
    """
    return Figure(
        shape="lines",
        frame=frame.assign(
            said=[
                said(
                    names[line["run"]],
                    f"P@{line['k']}: {as_share(line['p_at_k'])}",
                    said_interval(line["low"], line["high"]),
                    f"mean over {line['n_relations']} relations, {line['n']:,} {counts}",
                )
                for line in frame.to_dict("records")
            ]
        ),
        by=Axis(
            column="k",
            title="k: how many of the best answers are considered (log axis)",
            log=True,
            ticks={k: str(k) for k in KS},
        ),
        value=Axis(
            column="p_at_k",
            title="right answer among the first k, %, mean over relations",
            share=True,
            ends=(0, 1.01),
        ),
        names=names,
        low="low",
        high="high",
        baselines=(
            Baseline(
                column="chance",
                name="chance (random order)",
                mark="dotted",
                each=True,
                least=LEAST_CHANCE,
            ),
        ),
        title=title,
        caption=caption,
    )


curves = ViewFunction(
    CurvesRequest,
    CurvesView(),
    """Return mean P@k over relations for k from 1 to 100 (Petroni et al. 2019, Figure 2).

    Returns:
        A DataFrame with a row for each run and k: p_at_k with its interval (low, high), n (facts),
        n_relations, and chance (P@k of a random order of the answers; NaN if it isn't shown).

    Raises:
        UserError: If there is no finished run with ranks, or a run or relation is unknown.
    """,
)
