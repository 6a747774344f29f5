"""View: what the checkpoints of training runs know, step by step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import isnan, log10
from typing import Annotated, Any

import pandas as pd

from lama_core.errors import UserError
from lama_core.metrics.intervals import METHOD_OF_MEANS
from lama_core.metrics.readings import precision_by_readings, readings_of
from lama_core.metrics.score_tables import stacked
from lama_core.metrics.training import ALL, Grouping, Measure, Training, training_of
from lama_core.requests import option
from lama_core.rounding import counted, fixed, percent
from lama_core.runs.info import Run
from lama_core.runs.series import CheckpointSeries, find_series
from lama_core.tables import (
    Column,
    Line,
    Table,
    count,
    interval,
    number,
    share,
    table_of,
    table_of_frame,
    text,
)
from lama_core.views.choice import TopRequest
from lama_core.views.colours import GREY, PALETTE
from lama_core.views.figure import Axis, Figure, relation_label, right_title, said, said_interval
from lama_core.views.view import Facts, Shown, View, ViewFunction

LEAST_FACTS = 10  # minimum number of facts behind a point of the chart of readings
# Grey is for the other lines; the first colours of the palette are those of the embedded models.
COLOURS = [colour for colour in (*PALETTE[3:], *PALETTE[:3]) if colour != GREY]
MOST_COLOURED = len(COLOURS) - 1
MOST_TICKS = 9  # maximum number of labels of training steps, which fit on a phone
REPEATED = ["series", "dataset", "prompts", "group", "label"]
FORMATS: dict[Measure, Callable[[float], str]] = {
    "p_at_k": lambda value: f"{percent(value)} %",
    "mean_rank": partial(fixed, digits=1),
    "log_prob": partial(fixed, digits=2),
}


@dataclass(frozen=True)
class TrainingRequest(TopRequest, command="results training", python="training"):
    """Request for the checkpoints of training runs: the fields of `results training`."""

    by: Annotated[
        Grouping, option("A row at each step for all relations, each source or each relation.")
    ] = "all"
    measure: Annotated[
        Measure, option("What the chart shows: p_at_k, mean_rank or log_prob of right answers.")
    ] = "p_at_k"


@dataclass(frozen=True)
class TrainedSeries:
    """A series of checkpoints and the answers of its runs to the same facts."""

    series: CheckpointSeries
    training: Training

    @cached_property
    def by_readings(self) -> pd.DataFrame:
        """`metrics.readings.precision_by_readings`; empty if the readings aren't known."""
        readings = readings_of(self.series.name)
        return precision_by_readings(self.training, readings) if readings else pd.DataFrame()

    def curves(self, by: Grouping = "all") -> pd.DataFrame:
        """Return `Training.curves` with the columns series, dataset, prompts, run and model."""
        table = self.training.curves(by)
        info = self.series.last
        runs = dict(zip(self.series.steps, self.series.runs, strict=True))
        about = {
            "series": self.series.name,
            "dataset": info.dataset,
            "prompts": info.prompts,
            "run": [runs[step].id for step in table["step"]],
            "model": [runs[step].model for step in table["step"]],
        }
        return pd.DataFrame({**about, **table})


Found = tuple[TrainedSeries, ...]


class TrainingView(View[TrainingRequest, Found]):
    """P@k, mean rank and log-probability by training step; facts learned and forgotten."""

    name = "training"
    title = "Training"
    question = "At which training step does a model learn a fact, and which facts does it forget?"
    example = "results training --by source"
    aligned = False
    checkpoints = True
    says_size = True
    keys = ("group",)

    def compute(self, runs: Sequence[Run], request: TrainingRequest) -> Found:
        """Return the series of checkpoints among the runs; a note reports each unusable series.

        Raises:
            UserError: If no series is found, or none with a fact that counts at every step.
        """
        by_id = {run.info.id: run for run in runs}
        found, problems = [], []
        for series in find_series(run.info for run in runs):
            training = training_of(
                [by_id[info.id] for info in series.runs],
                series.steps,
                ranking=request.ranking_of(series.last),
                relations=request.relations,
                k=request.k,
            )
            if len(training.facts):
                found.append(TrainedSeries(series, training))
            else:
                problems.append(
                    f"No fact of {series.last.dataset} counts at every step of {series.name}. "
                    "Choose other runs or relations."
                )
        if not found:
            raise UserError(
                problems[0]
                if problems
                else "These runs have no series: it needs runs of at least two checkpoints of one "
                "model. Make them with `probe --model OWNER/NAME --revisions step1000,step4000`, "
                "or with the folder of the checkpoints as the model."
            )
        for problem in problems:
            request.on_note(problem)
        return tuple(found)

    def frame(self, shown: Shown[TrainingRequest, Found]) -> pd.DataFrame:
        """Return a row for each series, group and step."""
        return stacked(one.curves(shown.request.by) for one in shown.found)

    def columns(self, shown: Shown[TrainingRequest, Found]) -> tuple[Column, ...]:
        """Return the columns of the tables of steps, of relations and of facts."""
        k = shown.request.k
        steps = "Training steps."
        return (
            count("step"),
            share("p_at_k", f"P@{k}", f"Percent of facts with the right answer in the top {k}."),
            interval(ends=("p_at_k_low", "p_at_k_high")),
            number("mean_rank", 1, "mean rank"),
            number("log_prob", 2, "log-prob of the answer"),
            count("n_learned", "stay right from here"),
            text("run"),
            text(
                "relation",
                cell=lambda line: relation_label(
                    line["relation"], shown.found[0].training.labels.get(line["relation"], "")
                ),
            ),
            count("n", "facts"),
            count(
                "learned",
                "learned at step",
                "The first step at which half of the facts that are right at the last step are "
                "right and stay right.",
            ),
            count("right", "right at the end", cell=lambda line: line["n_learned"]),
            count("n_forgotten", "forgotten", "Right at some step, and wrong at the last."),
            text("subject"),
            text("object", "right answer"),
            count("first", "first right at", steps),
            count("last", "last right at", steps),
            count("stays", "stays right from", steps, cell=lambda line: line["learned"]),
        )

    def tables(self, shown: Shown[TrainingRequest, Found]) -> Iterator[Table | str]:
        """Yield for each series its steps, P@k of each group, and P@k by readings if known."""
        for at, found in enumerate(shown.found):
            if at:
                yield ""
            series, training = found.series, found.training
            yield (
                f"{series.name} on {series.last.dataset}, prompts {series.last.prompts}: "
                f"{len(training.facts):,} facts that count at all {len(series.steps)} steps; "
                f"{training.n_learned:,} are right at the last step, {training.n_forgotten:,} are "
                "forgotten"
            )
            yield table_of_frame(
                shown.chosen("step p_at_k interval mean_rank log_prob n_learned run"),
                found.curves(),
                title=f"Means over relations; P@{training.k} in percent; {METHOD_OF_MEANS}",
            )
            yield _sources(found) if shown.request.by == "source" else _relations(found)
            if len(found.by_readings):
                yield _readings(found)

    def json(self, shown: Shown[TrainingRequest, Found]) -> list[dict[str, Any]]:
        """Return each series with its steps, groups, relations, facts and readings."""
        by: Grouping = "source" if shown.request.by == "source" else "relation"
        return [
            {
                "series": one.series.name,
                "dataset": one.series.last.dataset,
                "prompts": one.series.last.prompts,
                "k": shown.request.k,
                "n": len(one.training.facts),
                "n_dropped": one.training.n_dropped,
                "steps": _plain(one.curves()),
                "groups": _plain(one.curves(by)),
                "relations": _plain(one.training.relations()),
                "facts": _plain(one.training.fates),
                "readings": one.by_readings.to_dict("records"),
            }
            for one in shown.found
        ]

    def conclusion(self, shown: Shown[TrainingRequest, Found]) -> str:
        """Return how many facts each series has learned at its last step, and when."""
        return "; ".join(_conclusion(one) for one in shown.found)

    def figure(self, shown: Shown[TrainingRequest, Found]) -> Figure:
        """Return the measure against training steps, with a line for each group."""
        measure, k = shown.request.measure, shown.request.k
        names = _line_names(shown.frame, several=len(shown.found) > 1)
        table = shown.frame.assign(line=names)
        steps = sorted(set(table["step"]))
        first = next((step for step in steps if step > 0), 1)
        places = {step: step if step > 0 else first / 2 for step in steps}
        # Whiskers of several lines would hide each other; those of the last step are enough.
        whiskers = table.where((table["step"] == steps[-1]) | (table["line"].nunique() == 1))
        n = sum(len(one.training.facts) for one in shown.found)
        data = ", ".join(dict.fromkeys(info.dataset for info in shown.infos))
        ranking = shown.request.ranking_of(shown.infos[-1])
        of_measure = {"p_at_k": f"P@{k}", "mean_rank": "Mean rank", "log_prob": "Log-probability"}
        return Figure(
            shape="lines",
            frame=table.assign(
                low=whiskers[f"{measure}_low"],
                high=whiskers[f"{measure}_high"],
                place=table["step"].map(places),
                said=[
                    said(
                        line["line"],
                        f"step {line['step']:,}: {FORMATS[measure](line[measure])}",
                        _said_ends(measure, line),
                        f"{line['n']:,} facts",
                    )
                    for line in table.to_dict("records")
                ],
            ),
            by=_axis_of_steps(steps, places),
            value=_axis_of_values(measure, k, table["mean_rank"]),
            series="line",
            names={name: name for name in _best_first(table, measure)},
            low="low",
            high="high",
            title=f"{of_measure[measure]} over training, "
            + ", ".join(series_title(one.series.name) for one in shown.found),
            caption=f"{data}; {n:,} facts that count at all steps; {ranking} ranking",
        )

    def inks(
        self, shown: Shown[TrainingRequest, Found], of_runs: Mapping[str, str]
    ) -> dict[str, str]:
        """Return colours of all lines; of many lines, only of the best at the last step."""
        names = list(shown.figure.names)
        if len(names) <= MOST_COLOURED:  # the same with every measure
            return dict(zip(sorted(names), COLOURS, strict=False))
        return dict(zip(names[:MOST_COLOURED], COLOURS, strict=False))

    def facts(
        self, shown: Shown[TrainingRequest, Found], line: Line, column: str = ""
    ) -> Facts | None:
        """Return a group's facts at a step.

        None for `n`: a filter can't choose the facts that count at all steps.
        """
        if column == "n":
            return None
        fields: dict[str, Any] = {"relations": tuple(shown.request.relations)}
        if shown.request.by == "relation":
            fields["relations"] = (line["group"],)
        elif shown.request.by == "source":
            fields["sources"] = (line["group"],)
        return Facts(line["run"], fields)


def _best_first(table: pd.DataFrame, measure: Measure) -> list[str]:
    """Return the lines of a chart, those with the best value at their last step first."""
    last = table.drop_duplicates("line", keep="last")
    best = last.sort_values(measure, ascending=measure == "mean_rank", kind="stable")
    return list(best["line"])


def _conclusion(found: TrainedSeries) -> str:
    """Return how many facts a series has learned, and when, and how many it has forgotten."""
    training = found.training
    steps = training.fates["learned"].dropna().sort_values()
    half = int(steps.iloc[(len(steps) - 1) // 2]) if len(steps) else 0
    since = f"; half of these stay right from step {half:,} on, or from earlier" * (len(steps) > 0)
    n_relations = counted(training.facts["relation"].nunique(), "relation")
    return (
        f"{series_title(found.series.name)}: {training.n_learned:,} of "
        f"{counted(len(training.facts), 'fact')} of {n_relations} are right at the last step{since}"
        f"; {training.n_forgotten:,} are forgotten: right at an earlier step only"
    )


def series_title(name: str) -> str:
    """Return a series' name; a folder's path is cut to its last two parts."""
    return "/".join(name.split("/")[-2:]) if name.startswith("/") else name


def readings_figure(shown: Shown[TrainingRequest, Found], steps: Sequence[int]) -> Figure:
    """Return P@k against the number of passages read with subject and object.

    Args:
        shown: The view of one series, whose readings are known.
        steps: The steps to draw, at least one; the last one has intervals.
    """
    (found,) = shown.found
    table = found.by_readings
    table = table[table["step"].isin(steps) & (table["n"] >= LEAST_FACTS)]
    table = table.sort_values(["step", "group"])
    names = {step: f"step {step:,}" for step in steps}
    lines = [
        said(
            names[line["step"]],
            f"read {line['readings']}: {percent(line['p_at_k'])} %",
            said_interval(line["low"], line["high"]),
            f"{line['n']:,} facts",
        )
        for line in table.to_dict("records")
    ]
    ends = {end: table[end].where(table["step"] == steps[-1]) for end in ("low", "high")}
    groups = list(table.sort_values("group")["readings"].unique())
    data, ranking = shown.infos[-1].dataset, shown.request.ranking_of(shown.infos[-1])
    return Figure(
        shape="lines",
        frame=table.assign(said=lines, line=table["step"].map(names), **ends),
        by=Axis(
            column="readings",
            title="passages read with subject and object",
            order=tuple(groups),
            ticks={group: _short_count(group) for group in groups},
        ),
        value=Axis(column="p_at_k", title=right_title(shown.request.k), share=True),
        series="line",
        names={name: name for name in names.values()},
        low="low",
        high="high",
        title=f"P@{shown.request.k} by readings of the pair, {series_title(found.series.name)}",
        caption=f"{data}; {len(found.training.facts):,} facts; {ranking} ranking",
    )


def readings_conclusion(shown: Shown[TrainingRequest, Found]) -> str:
    """Return P@k at the last step of the least and the most often read facts of one series."""
    (found,) = shown.found
    table = found.by_readings
    table = table[(table["step"] == table["step"].max()) & (table["n"] >= LEAST_FACTS)]
    ends = table.sort_values("group").iloc[[0, -1]].to_dict("records")
    least, most = ((f"{percent(line['p_at_k'])} %", line["readings"]) for line in ends)
    rarely = "never read" if least[1] == "never" else f"read {least[1]}"
    n = int(found.by_readings.loc[found.by_readings["step"] == table["step"].max(), "n"].sum())
    return (
        f"Of facts {rarely}, {least[0]} are right at the last step; "
        f"of those read {most[1]}, {most[0]}; {counted(n, 'fact')}"
    )


def _short_count(readings: str) -> str:
    """Return the name of a group of readings in figures: `0`, `1`, `2-3`, `64+`."""
    number = {"never": "0", "once": "1"}.get(readings, readings)
    return number.replace(" times or more", "+").removesuffix(" times").replace(" to ", "-")


def _line_names(table: pd.DataFrame, *, several: bool) -> list[str]:
    """Return the name of each row's line: its series if there are several, and its group."""
    return [
        ", ".join(
            filter(
                None,
                (
                    series_title(line["series"]) * (several or line["group"] == ALL),
                    line["group"] and relation_label(line["group"], line["label"]),
                ),
            )
        )
        for line in table.to_dict("records")
    ]


def _axis_of_values(measure: Measure, k: int, mean_ranks: "pd.Series[float]") -> Axis:
    """Return the axis of a measure."""
    if measure == "p_at_k":
        return Axis(column="p_at_k", title=right_title(k), share=True)
    if measure == "log_prob":
        return Axis(column="log_prob", title="mean log-probability of the right answer")
    powers = [10**power for power in range(7)]
    ticks = {
        power: f"{power:,}" for power in powers if mean_ranks.min() <= power <= mean_ranks.max()
    }
    return Axis(
        column="mean_rank",
        title="mean rank (log axis, 1 at the top)",
        log=True,
        reversed=True,
        ticks=ticks if len(ticks) > 1 else {},
    )


def _axis_of_steps(steps: Sequence[int], places: dict[int, float]) -> Axis:
    """Return the log axis of training steps, with a little room at both ends."""
    low, high = log10(places[steps[0]]), log10(places[steps[-1]])
    room = 0.04 * (high - low or 1)
    return Axis(
        column="place",
        title="training steps (log axis)",
        log=True,
        ticks={places[step]: f"{step:,}" for step in _spaced(steps, places)},
        ends=(10 ** (low - room), 10 ** (high + room)),
    )


def _spaced(steps: Sequence[int], places: dict[int, float]) -> list[int]:
    """Return the ends and the steps whose labels fit between them, about `MOST_TICKS`."""
    at = {step: log10(places[step]) for step in steps}
    apart = (at[steps[-1]] - at[steps[0]]) / MOST_TICKS
    shown = [steps[-1]]
    for step in reversed(steps[1:-1]):
        if min(at[shown[-1]] - at[step], at[step] - at[steps[0]]) >= apart:
            shown.append(step)
    return [*shown, steps[0]]


def _said_ends(measure: Measure, line: Line) -> str:
    low, high = (line[f"{measure}_{end}"] for end in ("low", "high"))
    if measure == "p_at_k":
        return said_interval(low, high)
    write = FORMATS[measure]
    return "" if low != low else f"95 % interval: {write(low)} to {write(high)}"


def _plain(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows as dictionaries; steps are int, or NaN if unknown."""
    single = "group" in table and table["group"].eq(ALL).all()
    lines = table.drop(columns=REPEATED[: 5 if single else 3], errors="ignore").to_dict("records")
    for line in lines:
        for name in ("first", "learned", "last"):
            if name in line and line[name] == line[name]:
                line[name] = int(line[name])
    return lines


def _p_at_k(found: TrainedSeries, by: Grouping) -> dict[str, list[str]]:
    """Return group -> P@k at each step in percent."""
    return {
        str(group): [percent(value) for value in lines["p_at_k"]]
        for group, lines in found.curves(by).groupby("group", sort=False)
    }


def _sources(found: TrainedSeries) -> Table:
    """Return P@k of each source at each step."""
    steps = [f"{step:,}" for step in found.series.steps]
    rows = [(group, *values) for group, values in _p_at_k(found, "source").items()]
    return table_of(("source", *steps), rows, title=f"\nP@{found.training.k} at each step")


def _relations(found: TrainedSeries) -> Table:
    """Return the relations in the order in which they are learned, with P@k at each step."""
    steps = [f"{step:,}" for step in found.series.steps]
    p_at_k = _p_at_k(found, "relation")
    rows = [
        (
            f"{line['relation']} {line['label']}".strip(),
            f"{line['n']:,}",
            "never" if isnan(line["learned"]) else f"{int(line['learned']):,}",
            f"{line['n_forgotten']:,}",
            *p_at_k[line["relation"]],
        )
        for line in found.training.relations().to_dict("records")
    ]
    return table_of(
        ("relation", "facts", "learned at", "forgotten", *steps),
        rows,
        title=f"\nRelations in the order in which they are learned, with P@{found.training.k} at "
        "each step. Learned at: half of the facts that are right at the end stay right from this "
        "step",
    )


def _readings(found: TrainedSeries) -> Table:
    """Return P@k at each step by how often the facts' pairs were read."""
    table = found.by_readings
    steps = sorted(set(table["step"]))
    lines = {(line["readings"], line["step"]): line for line in table.to_dict("records")}
    rows = []
    for group in table.sort_values("group")["readings"].unique():
        of_group = [lines.get((group, step)) for step in steps]
        shares = [percent(line["p_at_k"]) if line else "" for line in of_group]
        rows.append((group, f"{of_group[-1]['n']:,}" if of_group[-1] else "0", *shares))
    return table_of(
        ("read", "facts at the end", *(f"{step:,}" for step in steps)),
        rows,
        title=f"\nP@{found.training.k} by how often the model had read subject and object in one "
        "passage before each step",
    )


training = ViewFunction(
    TrainingRequest,
    TrainingView(),
    """Show the checkpoints of each training run by step: scores, facts learned and forgotten.

    A series is the runs of at least two checkpoints of one model on the same data. Its runs are
    compared on the facts that count at all steps.

    Returns:
        A DataFrame with a row for each series, step and group (all relations, a source or a
        relation): series, dataset, prompts, run, model, group, label, step, n (facts), n_relations,
        n_learned (facts that are right from this step on), and p_at_k, mean_rank and log_prob of
        the right answers (natural logarithm), each with its interval (NAME_low, NAME_high).

    Raises:
        UserError: If a run or relation is unknown, there is no series, or no fact counts at every
            step.
    """,
)
