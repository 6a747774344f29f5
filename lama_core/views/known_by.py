"""View: the facts that all, some or none of two to four models know.

A model knows a fact if its right answer has rank at most k. Only facts that count in every run are
compared. A group is the facts that exactly some of the models know.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from lama_core.errors import UserError
from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.intervals import METHOD, share_intervals
from lama_core.metrics.known_ranks import defined_rows, why_undefined
from lama_core.requests import option
from lama_core.rounding import percent
from lama_core.runs.info import Run
from lama_core.tables import Column, Line, Table, count, interval, share, table_of_frame, text
from lama_core.views.choice import TopRequest, model_names
from lama_core.views.conclusions import as_share
from lama_core.views.figure import Axis, Figure, labels_of, said, said_interval
from lama_core.views.view import Facts, Shown, View, ViewFunction

Group = Literal["all", "source", "relation"]
ALL = "all facts"


@dataclass(frozen=True)
class KnownByRequest(TopRequest, command="results known-by", python="known_by"):
    """Request for the facts that several models know: the fields of `results known-by`."""

    by: Annotated[Group, option("All facts together, or the facts of each source or relation.")] = (
        "all"
    )


class KnownByView(View[KnownByRequest, pd.DataFrame]):
    """How many facts all of the models, some of them, or none of them know."""

    name = "known-by"
    title = "Known by"
    question = "Which facts do all models know, which only one of them, and which none?"
    example = "results known-by starter-minilm_mlm-manual starter-smollm2_135m-manual"
    least_runs = 2
    most_runs = 4
    keys = ("by", "right")

    def compute(self, runs: Sequence[Run], request: KnownByRequest) -> pd.DataFrame:
        """Return a row for each set of models, and each source or relation.

        Columns: by (the source, relation or `all facts`), right and wrong (ids of the runs that
        know the facts and of the others, separated by spaces), n_right (how many know them), n, of
        (facts of this source or relation that count in every run), share with low and high.
        Sources and relations in which P@k isn't defined for every run have no rows.

        Raises:
            UserError: If no fact counts in every run, or P@k isn't defined for every run.
        """
        ids = [run.info.id for run in runs]
        if len(set(ids)) < len(ids):
            raise UserError(f"{self.title}: the same run was given twice.")
        joined = join_answers(runs, ranking=request.ranking_of(runs[0].info))
        keep = ~np.isnan(np.array([run.rank for run in joined.runs])).any(axis=0)
        if request.relations:
            keep &= joined.facts["relation"].isin(request.relations).to_numpy()
        if not keep.any():
            raise UserError(f"No fact counts in all of these runs: {', '.join(ids)}.")
        places = np.full(int(keep.sum()), ALL, dtype=object)
        if request.by != "all":
            places = joined.facts.loc[keep, request.by].astype(str).to_numpy()
        hits = [run.hits(request.k)[keep] for run in joined.runs]
        defined = defined_rows(places, hits)
        if not defined.any():
            raise UserError(why_undefined(runs, request.k))
        right, places = np.array(hits)[:, defined] == 1, places[defined]
        sets = sorted(product((True, False), repeat=len(ids)), key=lambda one: -sum(one))
        lines = []
        for place in dict.fromkeys(places):
            inside = places == place
            for known in sets:
                here = inside & (right == np.array(known)[:, None]).all(axis=0)
                names = [[one for one, is_right in zip(ids, known, strict=True) if is_right == side]
                         for side in (True, False)]  # fmt: skip
                lines.append((place, *map(" ".join, names), sum(known), here.sum(), inside.sum()))
        return _with_shares(
            pd.DataFrame(lines, columns=["by", "right", "wrong", "n_right", "n", "of"])
        )

    def frame(self, shown: Shown[KnownByRequest, pd.DataFrame]) -> pd.DataFrame:
        """Return the table with the names of the models that know the facts."""
        names = model_names(shown.infos)  # the same on the page as in files
        return shown.found.assign(
            known_by=[_named(names, line) for line in shown.found.to_dict("records")]
        )

    def columns(self, shown: Shown[KnownByRequest, pd.DataFrame]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        labels, counts = labels_of(shown.infos), shown.counts
        return (
            text("by", shown.request.by, cell=lambda line: labels.get(line["by"], line["by"])),
            text(
                "known_by",
                "known by",
                "The models that know these facts; no other does.",
                cell=lambda line: _named(shown.names, line),
            ),
            count("n", counts, of_run=True),
            share("share", "%", f"Percent of the {counts} that count in every run.", of_run=True),
            interval(help_text=f"95 % interval of the percentage: {METHOD}.", of_run=True),
            count("of", f"of {counts}", f"{counts.capitalize()} that count in every run."),
        )

    def tables(self, shown: Shown[KnownByRequest, pd.DataFrame]) -> Iterator[Table | str]:
        """Yield the table of all groups."""
        by = "" if shown.request.by == "all" else "by"
        yield table_of_frame(
            shown.chosen(f"{by} known_by n share interval of"),
            shown.frame,
            title=f"Facts whose right answer is among the first {shown.request.k} of exactly these "
            f"models; intervals: {METHOD}",
        )

    def json(self, shown: Shown[KnownByRequest, pd.DataFrame]) -> list[dict[Any, Any]]:
        """Return a row for each group; `right` and `wrong` are lists of ids of runs."""
        lines = shown.frame.to_dict("records")
        return [line | {end: line[end].split() for end in ("right", "wrong")} for line in lines]

    def conclusion(self, shown: Shown[KnownByRequest, pd.DataFrame]) -> str:
        """Return the shares of facts that all models, only one, and no model know."""
        ids = [info.id for info in shown.infos]
        n = shown.frame.groupby("right")["n"].sum() / shown.frame["n"].sum()
        one = n[[name for name in ids if name in n]].sum()
        every = "both" if len(ids) == 2 else f"all {len(ids)}"
        return (
            f"{as_share(n[' '.join(ids)])} of the {shown.counts} are known to {every} models, "
            f"{as_share(one)} to only one, {as_share(n[''])} to none"
        )

    def basis(self, shown: Shown[KnownByRequest, pd.DataFrame]) -> str:
        """Return the numbers of relations and of the facts that count in every run."""
        n = int(shown.frame["n"].sum())
        return f"{super().basis(shown).partition(', ')[0]}, {n:,} {shown.counts}"

    def figure(self, shown: Shown[KnownByRequest, pd.DataFrame]) -> Figure:
        """Return a bar for each group of all facts, in the order of the table."""
        sums = shown.frame.groupby(["right", "wrong", "n_right", "known_by"], sort=False)
        table = _with_shares(sums[["n", "of"]].sum().reset_index())
        k, counts = shown.request.k, shown.counts
        by = [_named(shown.names, line) for line in table.to_dict("records")]
        return Figure(
            shape="bars",
            frame=table.assign(
                said=[
                    said(
                        f"known by {name}",
                        f"{line['n']:,} of {line['of']:,} {counts}, {percent(line['share'])} %",
                        said_interval(line["low"], line["high"]),
                    )
                    for name, line in zip(by, table.to_dict("records"), strict=True)
                ],
                known_by=by,
                text=[f"{percent(value)} %" for value in table["share"]],
                series="",
                by=ALL,
            ),
            by=Axis(column="known_by", title="known by exactly"),
            value=Axis(
                column="share",
                title=f"% of the {counts}",
                share=True,
            ),
            series="series",
            names={"": counts},
            low="low",
            high="high",
            text="text",
            title=shown.title_of(f"{counts.capitalize()} by who knows them (P@{k})"),
            caption=shown.caption,
        )

    def facts(
        self, shown: Shown[KnownByRequest, pd.DataFrame], line: Line, column: str = ""
    ) -> Facts:
        """Return the facts that these models know and the others don't."""
        fields: dict[str, Any] = {"relations": tuple(shown.request.relations)}
        if line["by"] != ALL:
            fields[f"{shown.request.by}s"] = (line["by"],)
        right, wrong = (tuple(line[end].split()) for end in ("right", "wrong"))
        return Facts(shown.infos[0].id, fields, right=right, wrong=wrong)


def _with_shares(table: pd.DataFrame) -> pd.DataFrame:
    n, of = (table[name].to_numpy(np.int64) for name in ("n", "of"))
    ends = share_intervals(n, of)
    return table.assign(share=n / of, low=ends.low, high=ends.high)


def _named(names: Mapping[str, str], line: Line) -> str:
    """Return the models that know a group's facts: `A only`, `A and B`, `all 3` or `none`."""
    known = [names[one] for one in line["right"].split()]
    if not known:
        return "none"
    if not line["wrong"]:
        return "both" if len(known) == 2 else f"all {len(known)}"
    return f"{known[0]} only" if len(known) == 1 else " and ".join(known)


known_by = ViewFunction(
    KnownByRequest,
    KnownByView(),
    """Count the facts that all of two to four models, some of them, or none of them know.

    A model knows a fact if its right answer is among its first k. Only facts that count in every
    run are compared.

    Returns:
        A DataFrame with a row for each set of models: right and wrong (ids of the runs, separated
        by spaces), n_right, n, of, share, low, high (Wilson's interval), known_by (names).

    Raises:
        UserError: If fewer than two or more than four runs are given, a run is unknown, or no fact
            counts in every run.
    """,
)
