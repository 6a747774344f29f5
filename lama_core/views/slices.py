"""View: P@k and kinds of wrong answers on slices of the facts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd

from lama_core.errors import choose
from lama_core.metrics.fact_answers import WRONG_KINDS, join_answers
from lama_core.metrics.headlines import is_level
from lama_core.metrics.score_tables import stacked
from lama_core.metrics.sentence_forms import FORMS_FILE
from lama_core.metrics.slices import (
    NO_TYPE,
    ORIGIN,
    PAIR_SEEN,
    WORDING_SEEN,
    Slicing,
    slice_table,
    slicings,
)
from lama_core.metrics.training_texts import NOT_LOOKED_FOR, unknown_texts
from lama_core.models.sources.catalog import known_models
from lama_core.requests import option
from lama_core.runs.info import Run
from lama_core.tables import Column, Line, Table, count, interval, share, table_of_frame, text
from lama_core.views.bars import share_bars
from lama_core.views.choice import TopRequest
from lama_core.views.conclusions import listed
from lama_core.views.figure import CHANCE, Axis, Figure
from lama_core.views.view import Facts, Shown, View, ViewFunction

CHANCE_HELP = (
    "P@k of a random order: k / number of the relation's answers, averaged over the slice's facts."
)
LEAST_FACTS = 30  # of a slice that a conclusion names
KINDS = {kind.replace(" ", "_"): kind for kind in WRONG_KINDS}  # column -> kind of wrong answer


@dataclass(frozen=True)
class SlicesRequest(TopRequest, command="results slices", python="slices"):
    """Request for scores on slices of the facts: the fields of `results slices`."""

    slice_by: Annotated[
        str | None,
        option("Only this way of slicing, such as `gold in the subject`. Default: every way."),
    ] = None


@dataclass(frozen=True)
class Slices:
    """The scores on slices, and the ways of slicing that the runs and data allow.

    table: as of `slice_table`, run by run.
    """

    table: pd.DataFrame
    slicings: Mapping[str, Slicing]


def by_slice(found: Slices) -> pd.DataFrame:
    """Return the table slice by slice instead of run by run."""
    every = [(by, name) for by, one in found.slicings.items() for name in one.slices]
    keys = zip(found.table["by"], found.table["slice"], strict=True)
    return found.table.iloc[np.argsort([every.index(key) for key in keys], kind="stable")]


def slicing_label(name: str) -> str:
    """Return a way of slicing for readers: files and URLs write `gold` for the right answer."""
    return name.replace("gold", "right answer").replace("pieces", "subword tokens")


def slice_label(by: str, name: str) -> str:
    """Return a slice for readers, with the titles of models and without versions of sources."""
    if by == ORIGIN:
        return re.sub(r" \(.*|, which .*| from nationality| World(?= Factbook)", "", name)
    if name == NO_TYPE:
        return f"no {by.removesuffix(' of relation')}"
    if by in (PAIR_SEEN, WORDING_SEEN):
        titles = {entry.name: entry.title for entry in known_models()}
        for model in sorted(titles, key=len, reverse=True):
            name = name.replace(model, titles[model])
    return name


def best_run(table: pd.DataFrame) -> str:
    """Return the run with the highest P@k on all facts; empty if there is none."""
    every = table[table["by"] == "all"].set_index("run")["p_at_k"].dropna()
    return "" if every.empty else str(every.idxmax())


def _comparable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the slices to compare: of enough facts, and looked for in the training texts."""
    is_known = (table["slice"] != NOT_LOOKED_FOR) & table["p_at_k"].notna()
    return table[(table["n"] >= LEAST_FACTS) & is_known]


def most_different(table: pd.DataFrame, run: str) -> str:
    """Return the way of slicing on which a run's P@k depends most; empty if there is none."""
    ours = _comparable(table[(table["by"] != "all") & (table["run"] == run)])
    if ours.empty:
        return ""
    by_way = ours.groupby("by", sort=False)["p_at_k"]
    return str((by_way.max() - by_way.min()).idxmax())


class SlicesView(View[SlicesRequest, Slices]):
    """P@k and kinds of wrong answers, by frequency of the answer, length of the subject, ..."""

    name = "slices"
    title = "Slices"
    question = (
        "On which facts is a model better: frequent answers, subjects that contain the answer?"
    )
    example = "results slices starter-minilm_mlm-manual"
    keys = ("by", "slice")

    def compute(self, runs: Sequence[Run], request: SlicesRequest) -> Slices:
        """Return the scores on slices; each run's rows come together."""
        readers = [run.info.model for run in runs]
        tables: list[pd.DataFrame] = []
        known: dict[str, Slicing] = {}
        for run in runs:
            joined = join_answers([run], ranking=request.ranking_of(run.info), readers=readers)
            tables.append(slice_table(joined, k=request.k, relations=request.relations))
            for name, slicing in slicings(joined).items():
                before = known.get(name, slicing)
                known[name] = Slicing(name, slicing.help, {**before.slices, **slicing.slices})
        table = stacked(tables).drop(columns="number", errors="ignore")
        if request.slice_by is not None:
            by = choose(request.slice_by, known, "way of slicing")
            known = {name: known[name] for name in ("all", by)}
            table = table[table["by"].isin(known)].reset_index(drop=True)
        return Slices(table, known)

    def columns(self, shown: Shown[SlicesRequest, Slices]) -> tuple[Column, ...]:
        """Return the columns of the table."""
        k = shown.request.k
        ways = "\n\n".join(f"**{one.name}**: {one.help}" for one in shown.found.slicings.values())
        return (
            text("by", "slice by", ways),
            text("slice", cell=lambda line: slice_label(line["by"], line["slice"])),
            text("model", cell=lambda line: shown.names[line["run"]]),
            count("n", "facts", "Facts of the slice that are scored.", of_run=True),
            share(
                "p_at_k",
                f"P@{k} over facts",
                f"Percent of the slice's facts whose right answer is among the first {k}.",
                of_run=True,
            ),
            interval(help_text="95 % interval of P@k, over the slice's facts.", of_run=True),
            share("chance", help_text=CHANCE_HELP, of_run=True),
            share(
                "macro_p_at_1",
                "macro P@1",
                "P@1 averaged over the slice's right answers instead of its facts, so all answers "
                "have the same weight.",
                of_run=True,
            ),
            count("n_wrong", "wrong", "Facts with a wrong first answer.", of_run=True),
            *(
                share(name, kind, "Percent of the wrong first answers.", of_run=True)
                for name, kind in KINDS.items()
            ),
        )

    def tables(self, shown: Shown[SlicesRequest, Slices]) -> Iterator[Table | str]:
        """Yield the table of all slices."""
        chance = "chance" if shown.guessable else ""
        kinds = " ".join(KINDS)
        yield table_of_frame(
            shown.chosen(f"by slice model n p_at_k interval {chance} macro_p_at_1 n_wrong {kinds}"),
            shown.frame,
            title="Averages over facts, in percent. Columns right type, another valid, neither: "
            "shares of the wrong first answers",
        )

    def notes(self, shown: Shown[SlicesRequest, Slices]) -> Iterator[str]:
        """Yield a note on the models whose training text is unknown."""
        if note := unknown_texts([info.model for info in shown.infos], FORMS_FILE):
            yield note

    def conclusion(self, shown: Shown[SlicesRequest, Slices]) -> str:
        """Return the slices with the highest and the lowest P@k, averaged over the runs.

        They are of the chosen way of slicing, or of that on which the best run depends most.
        """
        table = shown.frame
        way = most_different(table, best_run(table))
        way = shown.request.slice_by or way
        ours = _comparable(table[table["by"] == way])
        by_slice = ours.pivot(index="slice", columns="run", values="p_at_k").dropna()
        means = by_slice.mean(axis=1)
        if len(means) < 2 or is_level(means.max() - means.min()):
            return ""
        ends = [means.idxmax(), means.idxmin()]
        high, low = (slice_label(way, str(name)) for name in ends)
        values = by_slice.loc[ends]
        each = listed(shown.names, values.iloc[0], others=values.iloc[1])
        differs = "" if shown.request.slice_by else "differs most "
        return (
            f"P@{shown.request.k} over facts {differs}by {slicing_label(way)}: highest for "
            f"“{high}”, lowest for “{low}”, {each}"
        )

    def figure(self, shown: Shown[SlicesRequest, Slices]) -> Figure:
        """Return bars for each slice of the chosen way, or of the one with the largest effect."""
        table = by_slice(shown.found)
        way = shown.request.slice_by or most_different(table, best_run(table))
        way = way or next(name for name in shown.found.slicings if name != "all")
        table = table[(table["by"] == way) & (table["n"] > 0)]
        return share_bars(
            shown,
            table.assign(row=[slice_label(way, name) for name in table["slice"]]),
            Axis(column="row", title=slicing_label(way)),
            title=f"P@{shown.request.k} over facts by {slicing_label(way)}",
            baselines=(CHANCE,) if shown.guessable else (),
        )

    def facts(self, shown: Shown[SlicesRequest, Slices], line: Line, column: str = "") -> Facts:
        """Return the facts of a slice; in a column of wrong answers, those of this kind."""
        fields: dict[str, Any] = {"relations": tuple(shown.request.relations)}
        fields |= shown.found.slicings[line["by"]].slices[line["slice"]]
        if column in KINDS:
            fields["wrong_kind"] = KINDS[column]
        return Facts(line["run"], fields)


slices = ViewFunction(
    SlicesRequest,
    SlicesView(),
    """Score finished runs on slices of their facts, with the kinds of wrong answers.

    Slices: by frequency of the gold answer, length of the subject, gold answer in the subject, type
    of relation, and origin of the fact.

    Returns:
        A DataFrame with a row for each run and slice.

    Raises:
        UserError: If there is no finished run, or a run or relation is unknown.
    """,
)
