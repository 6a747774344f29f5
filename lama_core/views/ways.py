"""View: one model's answers to the same facts, queried in different ways."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lama_core.errors import UserError
from lama_core.metrics.intervals import METHOD
from lama_core.metrics.score_tables import stacked
from lama_core.metrics.ways_of_asking import (
    ALL_RELATIONS,
    WAYS,
    WaysOfAsking,
    compare_ways,
    runs_by_way,
)
from lama_core.rounding import counted, percent
from lama_core.runs.info import Run, RunInfo
from lama_core.scoring.ranking import Ranking
from lama_core.tables import (
    Column,
    Line,
    Table,
    count,
    interval,
    points,
    share,
    table_of_frame,
    text,
)
from lama_core.views.choice import RunsRequest
from lama_core.views.colours import model_colours
from lama_core.views.conclusions import listed
from lama_core.views.figure import (
    RELATION,
    Axis,
    Figure,
    labels_of,
    right_title,
    said,
    said_interval,
)
from lama_core.views.view import MOST_LISTED, Facts, Shown, View, ViewFunction

Found = tuple[WaysOfAsking, ...]  # of each model


@dataclass(frozen=True)
class WaysRequest(RunsRequest, command="results ways", python="ways"):
    """Request for answers in different ways: the fields of `results ways`."""

    def ranking_of(self, info: RunInfo) -> Ranking:
        """Return the ranking that applies to all runs: filtered by default."""
        return self.ranking or "filtered"


class WaysView(View[WaysRequest, Found]):
    """P@1 of each way of asking, paired differences, and facts known in one way only."""

    name = "ways"
    title = "Ways of asking"
    question = (
        "Does the way of asking decide what a model knows: blank, whole answers, or question?"
    )
    example = "results ways"
    aligned = False
    says_size = True
    keys = ("relation",)

    def compute(self, runs: Sequence[Run], request: WaysRequest) -> Found:
        """Return the compared answers of each model.

        Raises:
            UserError: If no model has runs of two kinds with facts that all of them count.
        """
        by_id = {run.info.id: run for run in runs}
        found, problems = [], []
        for ways in runs_by_way(run.info for run in runs).values():
            used = [by_id[infos[0].id] for infos in ways.values()]
            if request.runs:
                for info in (info for infos in ways.values() for info in infos[1:]):
                    request.on_note(f"Not compared: {info.id}. Name one run of each kind.")
            try:
                ranking = request.ranking or "filtered"
                found.append(
                    compare_ways(used, ranking=ranking, relations=tuple(request.relations))
                )
            except UserError as error:
                problems.append(str(error))
        if not found:
            raise UserError(
                " ".join(problems)
                or "A comparison needs runs of one model on the same data, made by at least two of "
                "`probe`, `statements` and `generate`."
            )
        for problem in problems:
            request.on_note(problem)
        return tuple(found)

    def frame(self, shown: Shown[WaysRequest, Found]) -> pd.DataFrame:
        """Return P@1 of each way: over all facts of a model, and by relation."""
        return stacked(one.shares() for one in shown.found)

    def columns(self, shown: Shown[WaysRequest, Found]) -> tuple[Column, ...]:
        """Return the columns of all tables."""
        return (
            text("relation", cell=_relation),
            count("n", "facts", "Facts that all runs of the model count."),
            text("way"),
            share("p_at_1", "P@1", f"Percent of the facts. Interval: {METHOD}."),
            interval(help_text=f"{METHOD}."),
            count(
                "n_only",
                "known in this way only",
                "Facts that are right in this way and wrong in the other ways.",
            ),
            text("a", "A"),
            text("b", "B"),
            points("difference", "B - A"),
            interval(
                name="ends", help_text="Tango's score interval of paired shares.", signed=True
            ),
            count("only_a", "only A"),
            count("only_b", "only B"),
            text("known_as", "known as", cell=lambda line: line["way"]),
            text("subject"),
            text("object", "right answer"),
            *(text(f"{way} answer", way) for way in WAYS.values()),
        )

    def tables(self, shown: Shown[WaysRequest, Found]) -> Iterator[Table | str]:
        """Yield three tables for each model: P@1, differences, and facts known in one way only."""
        for number, found in enumerate(shown.found):
            if number:
                yield ""
            runs = ", ".join(f"{way} {info.id} ({info.n:,})" for way, info in found.runs.items())
            yield (
                f"{found.model} on {found.dataset}: the {len(found.facts):,} facts that all of "
                f"these runs count: {runs}"
            )
            yield table_of_frame(
                shown.chosen("relation n way p_at_1 interval n_only"),
                found.shares(),
                title=f"\nP@1 in percent; {METHOD}",
            )
            yield table_of_frame(
                shown.chosen("relation n a b difference ends only_a only_b"),
                found.differences(),
                title="\nDifferences in percentage points; Tango's score intervals for paired "
                "shares",
            )
            facts = found.known_in_one_way()
            listed = min(MOST_LISTED, len(facts))
            yield table_of_frame(
                [
                    *shown.chosen("known_as relation subject object"),
                    *(shown.columns[f"{way} answer"] for way in found.ways),
                ],
                facts.head(MOST_LISTED),
                title=f"\nFacts known in one way only ({listed} of {len(facts):,})",
            )

    def json(self, shown: Shown[WaysRequest, Found]) -> dict[str, list[dict[Any, Any]]]:
        """Return P@1 of each way, the differences, and the facts known in one way only."""
        facts = [one.known_in_one_way() for one in shown.found]
        return {
            "ways": shown.frame.to_dict("records"),
            "differences": stacked(one.differences() for one in shown.found).to_dict("records"),
            "known_in_one_way": [line for table in facts for line in table.to_dict("records")],
        }

    def conclusion(self, shown: Shown[WaysRequest, Found]) -> str:
        """Return how many facts each model gets right in each way."""
        return "; ".join(map(_right, shown.found))

    def notes(self, shown: Shown[WaysRequest, Found]) -> Iterator[str]:
        """Yield how many facts each model knows in all, some, or no ways."""
        yield from (f"{_known(one)}." for one in shown.found)

    def figure(self, shown: Shown[WaysRequest, Found]) -> Figure:
        """Return P@1 by relation with a bar for each way; the largest differences come first."""
        labels, several = labels_of(shown.infos), len(shown.found) > 1
        table = shown.frame[shown.frame["relation"] != ALL_RELATIONS]
        rows = [
            f"{line['model']}: " * several + labels[line["relation"]]
            for line in table.to_dict("records")
        ]
        table = table.assign(row=rows)
        by_row = table.groupby("row", sort=False)["p_at_1"]
        spread = (by_row.max() - by_row.min()).sort_values(ascending=False, kind="stable")
        table = table.set_index("row").loc[spread.index].reset_index()
        models = ", ".join(one.model for one in shown.found)
        data = ", ".join(dict.fromkeys(one.dataset for one in shown.found))
        n = sum(len(one.facts) for one in shown.found)
        ranking = shown.request.ranking or "filtered"
        return Figure(
            shape="bars",
            frame=table.assign(
                said=[
                    said(
                        f"{line['row']}, {line['way']}",
                        f"P@1: {percent(line['p_at_1'])} %",
                        said_interval(line["low"], line["high"]),
                        f"{line['n']:,} facts",
                    )
                    for line in table.to_dict("records")
                ]
            ),
            by=Axis(column="row", title=RELATION),
            value=Axis(column="p_at_1", title=right_title(1), share=True),
            series="way",
            names={way: way for one in shown.found for way in one.ways},
            low="low",
            high="high",
            title=f"P@1 by way of asking, {models}",
            caption=f"{data}; the {n:,} facts that all runs of a model count; {ranking} ranking",
        )

    def inks(self, shown: Shown[WaysRequest, Found], of_runs: Mapping[str, str]) -> dict[str, str]:
        """Return a colour for each way of asking."""
        return model_colours([way for one in shown.found for way in one.ways])

    def facts(self, shown: Shown[WaysRequest, Found], line: Line, column: str = "") -> Facts | None:
        """Return a run's facts of a relation; for `n_only`, those known in this way only.

        None for `n`: a filter can't choose the facts that all runs count.
        """
        if column == "n":
            return None
        fields: dict[str, Any] = {"relations": tuple(shown.request.relations)}
        if line["relation"] != ALL_RELATIONS:
            fields["relations"] = (line["relation"],)
        if column != "n_only":
            return Facts(line["run"], fields)
        (runs,) = (
            one.runs.values()
            for one in shown.found
            if line["run"] in {info.id for info in one.runs.values()}
        )
        others = tuple(info.id for info in runs if info.id != line["run"])
        return Facts(line["run"], fields, right=(line["run"],), wrong=others)


def _right(found: WaysOfAsking) -> str:
    """Return the share of facts that are right in each way."""
    shares = found.shares()
    of_all = shares[shares["relation"] == ALL_RELATIONS].set_index("way")["p_at_1"]
    each = listed({way: way for way in found.ways}, of_all)
    n_relations = counted(found.facts["relation"].nunique(), "relation")
    facts = f"the same {counted(len(found.facts), 'fact')} of {n_relations}"
    return f"{found.model} is right on {each} of {facts}"


def _known(found: WaysOfAsking) -> str:
    n, n_ways, n_known = len(found.facts), len(found.ways), found.n_known
    every = "all" if n_ways > 2 else "both"
    known = [f"{(n_known == n_ways).sum():,} of {counted(n, 'fact')} in {every} ways"]
    known += [f"{(n_known == 2).sum():,} in two"] * (n_ways > 2)
    known += [f"{(n_known == 1).sum():,} in one way only", f"{(n_known == 0).sum():,} in no way"]
    return f"{found.model} knows {', '.join(known)}"


def _relation(line: Line) -> str:
    name = str(line["relation"])
    return "all relations" if name == ALL_RELATIONS else name


ways = ViewFunction(
    WaysRequest,
    WaysView(),
    """Compare each model's cloze, whole-answer and generated answers to the same facts.

    Also lists the facts that a model knows in one way only: it is right in this way and wrong in
    all others.

    Returns:
        A DataFrame with a row for each model, relation (`all` in a model's first rows) and way:
        dataset, model, relation, way, run, n (facts that all runs of the model count), p_at_1, low,
        high (Wilson's interval), n_only (facts known in this way only).

    Raises:
        UserError: If a run or relation is unknown, no model has runs of at least two kinds on the
            same data, or no fact counts in all of them.
    """,
)
