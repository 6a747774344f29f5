"""View: P@k by type of relation (Petroni et al. 2019, section 5)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import pandas as pd

from lama_core.errors import UserError, choose
from lama_core.metrics.headlines import is_level
from lama_core.metrics.intervals import METHOD_OF_MEANS
from lama_core.metrics.score_tables import stacked
from lama_core.requests import option
from lama_core.rounding import counted, percent
from lama_core.runs.info import Run
from lama_core.tables import Column, Line, Table, count, interval, share, table_of_frame, text
from lama_core.types import RELATION_TYPES
from lama_core.views.choice import TopRequest
from lama_core.views.conclusions import as_share
from lama_core.views.figure import (
    LEAST_CHANCE,
    Axis,
    Baseline,
    Figure,
    right_title,
    said,
    said_interval,
)
from lama_core.views.scores import scores_of
from lama_core.views.view import Facts, Shown, View, ViewFunction

COLUMNS = (
    "run",
    "model",
    "dataset",
    "source",
    "type",
    "relation",
    "label",
    "n_relations",
    "n",
    "n_excluded",
    "p_at_k",
    "low",
    "high",
    "chance",
)


@dataclass(frozen=True)
class TypesRequest(TopRequest, command="results types", python="relation_types"):
    """Request for P@k by type of relation: the fields of `results types`."""

    source: Annotated[
        str, option("Source of the relations. Default: the one with the most relations.")
    ] = ""


@dataclass(frozen=True)
class Types:
    """P@k by type of relation.

    table: for each run a row for each type, and for each of its relations with facts that count.
    sources: the sources whose relations have a type.
    """

    table: pd.DataFrame
    sources: tuple[str, ...]


class TypesView(View[TypesRequest, Types]):
    """P@k of relations of each type, and their mean."""

    name = "types"
    title = "Relation types"
    question = "Are relations with one object per subject (1-1, N-1) easier than others (N-M)?"
    example = "results types starter-minilm_mlm-manual"
    keys = ("source", "type", "relation")

    def compute(self, runs: Sequence[Run], request: TypesRequest) -> Types:
        """Return the means of each type of a source's relations, and the relations."""
        found = scores_of(runs, request)
        relations, means = found.by("relation"), found.by("type")
        relations = relations[relations["type"].notna() & (relations["n"] > 0)]
        means = means[means["type"].notna()]
        sources = tuple(dict.fromkeys(means["source"]))
        if not sources:
            raise UserError(
                "These relations have no type (1-1, N-1 or N-M) in the data. Choose others."
            )
        source = request.source
        if not source:
            source = max(sources, key=lambda name: int((relations["source"] == name).sum()))
        else:
            source = choose(source, sources, "source")
        both = stacked(
            table[table["source"] == source]
            .reindex(columns=[*COLUMNS])
            .sort_values("type", key=_places, kind="stable")
            for table in (means, relations)
        )
        numbers = {run.info.id: number for number, run in enumerate(runs)}
        table = both.iloc[both["run"].map(numbers).argsort(kind="stable")].reset_index(drop=True)
        table["relation"] = table["relation"].astype(object).where(table["relation"].notna(), None)
        if not any(run.info.guessable for run in runs):
            table = table.assign(chance=float("nan"))
        return Types(table, sources)

    def columns(self, shown: Shown[TypesRequest, Types]) -> tuple[Column, ...]:
        """Return the columns of the table of means."""
        k = shown.request.k
        return (
            text("source"),
            text("type"),
            text("model", cell=lambda line: shown.names[line["run"]]),
            count("n", shown.counts, of_run=True),
            count("n_relations", "relations", of_run=True),
            share("p_at_k", f"mean P@{k}", "Mean over relations.", of_run=True),
            interval(help_text=f"95 % interval: {METHOD_OF_MEANS}.", of_run=True),
            share("chance", help_text=f"Mean P@{k} of a random order of the answers."),
        )

    def tables(self, shown: Shown[TypesRequest, Types]) -> Iterator[Table | str]:
        """Yield the table of means."""
        frame = shown.frame
        chance = "chance" if shown.guessable else ""
        yield table_of_frame(
            shown.chosen(f"source type model n n_relations p_at_k interval {chance}"),
            frame[frame["relation"].isna()],
            title=f"Means over relations, in percent; intervals: {METHOD_OF_MEANS}",
        )

    def conclusion(self, shown: Shown[TypesRequest, Types]) -> str:
        """Return P@k of each type of relation, averaged over the runs, the highest first."""
        means = shown.frame[shown.frame["relation"].isna() & shown.frame["p_at_k"].notna()]
        by_type = means.groupby("type", sort=False)["p_at_k"].mean()
        if len(by_type) < 2 or is_level(by_type.max() - by_type.min()):
            return ""
        n = means.groupby("type", sort=False)["n_relations"].max()
        each = ", ".join(
            f"{as_share(value)} on {name} ({counted(int(n[str(name)]), 'relation')})"
            for name, value in by_type.sort_values(ascending=False, kind="stable").items()
        )
        average = f"On average over {len(shown.infos)} models, " * (len(shown.infos) > 1)
        return f"{average}P@{shown.request.k} is {each}"

    def basis(self, shown: Shown[TypesRequest, Types]) -> str:
        """Return the numbers of the source's relations with a type, and of their facts."""
        names, source = set(shown.frame["relation"]), shown.frame["source"].iloc[0]
        return f"{source}, {shown.size(lambda one: one.name in names)}"

    def figure(self, shown: Shown[TypesRequest, Types]) -> Figure:
        """Return a column for each run and type, with points for the relations."""
        frame, k = shown.frame, shown.request.k
        order = frame["type"].drop_duplicates().sort_values(key=_places)
        is_mean = frame["relation"].isna()
        source = frame["source"].iloc[0]
        return Figure(
            shape="columns",
            frame=frame.assign(
                said=[_said(line, shown) for line in frame.to_dict("records")], is_relation=~is_mean
            ).assign(chance=frame["chance"].where(is_mean)),
            by=Axis(column="type", title="type of relation", order=tuple(order)),
            value=Axis(column="p_at_k", title=right_title(k), share=True),
            low="low",
            high="high",
            names=shown.names,
            dots="is_relation",
            baselines=(
                Baseline(
                    column="chance", name="chance", mark="diamond", each=True, least=LEAST_CHANCE
                ),
            ),
            title=f"P@{k} by type of relation, {source}",
            caption=shown.asking(relations=tuple(frame["relation"].dropna().unique())).caption,
        )

    def facts(self, shown: Shown[TypesRequest, Types], line: Line, column: str = "") -> Facts:
        """Return the facts of a relation, or of all relations of a type."""
        counting: Any = "excluded" if column == "n_excluded" else "counted"
        if isinstance(line["relation"], str):
            return Facts(line["run"], {"relations": (line["relation"],)}, counting)
        relations = tuple(shown.request.relations)
        fields = {"relations": relations, "sources": (line["source"],), "types": (line["type"],)}
        return Facts(line["run"], fields, counting)


def _places(types: "pd.Series[str]") -> "pd.Series[int]":
    """Return the place of each type in the order of `RELATION_TYPES`."""
    return types.map({kind: place for place, kind in enumerate(RELATION_TYPES)})


def _said(line: Line, shown: Shown[TypesRequest, Types]) -> str:
    """Return lines about a mark."""
    value = f"{percent(line['p_at_k'])} %"
    ends = said_interval(line["low"], line["high"])
    n = f"{line['n']:,} {shown.counts}"
    if isinstance(line["relation"], str):
        return said(shown.names[line["run"]], f"{shown.labels[line['relation']]}: {value}", ends, n)
    chance = line["chance"]
    guessed = f"chance (random order), mean: {percent(chance)} %" * (chance >= LEAST_CHANCE)
    n = f"{counted(line['n_relations'], 'relation')}, {n}"
    return said(shown.names[line["run"]], f"{line['type']}: mean {value}", ends, n, guessed)


relation_types = ViewFunction(
    TypesRequest,
    TypesView(),
    """Return P@k by type of relation: 1-1, N-1 and N-M (Petroni et al. 2019, section 5).

    Returns:
        A DataFrame with rows for each run: one for each type, with the unweighted mean P@k over its
        relations (p_at_k, from 0 to 1) and its interval (low, high), and one for each relation with
        facts that count. Column relation is None for a type. chance: P@k of a random order of the
        answers; NaN if it isn't shown.

    Raises:
        UserError: If there is no finished run, a run or relation is unknown, or no relation has a
            type.
    """,
)
