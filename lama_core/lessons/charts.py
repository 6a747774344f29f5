"""The charts of lessons: views of finished runs, with a name for each row.

A lesson step names a chart: a row of `CHARTS`, or the name of any view with a chart. Predictions
refer to the rows by name. To add a chart whose rows need other names, add a row to `CHARTS`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from lama_core.errors import did_you_mean
from lama_core.lessons.lesson import ShowRun
from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.intervals import mean_share_intervals
from lama_core.metrics.readings import precision_by_readings, readings_of
from lama_core.metrics.slices import slice_differences
from lama_core.metrics.training import training_of
from lama_core.metrics.ways_of_asking import ALL_RELATIONS, runs_by_way
from lama_core.probes.analogy.accuracy_tables import ALL, SHOWN_PROBES
from lama_core.rounding import percent
from lama_core.runs.info import Run, RunInfo
from lama_core.runs.series import place_of
from lama_core.scoring.ranking import RANKINGS
from lama_core.views.analogies import AnalogiesRequest, analogies
from lama_core.views.choice import TopRequest
from lama_core.views.curves import KS, curves
from lama_core.views.figure import Axis, Baseline, Figure, said, said_interval
from lama_core.views.mentions import mentions
from lama_core.views.ranks import ranks
from lama_core.views.scores import scores
from lama_core.views.slices import slice_label, slices
from lama_core.views.table import all_views
from lama_core.views.totals import totals
from lama_core.views.training import training
from lama_core.views.view import Shown, ViewFunction, narrowed, show_runs
from lama_core.views.ways import ways
from lama_core.views.wording import wording

COLUMNS = ("run", "row", "value", "low", "high", "n", "freq", "note")


@dataclass(frozen=True, slots=True)
class LessonChart:
    """A chart of lessons.

    Attributes:
        title: The chart's title; may contain a step's {k}, {by}, {of} and {prompts}.
        rows: What each row of the chart is; may contain the same fields.
        make: Makes the table: a line for each run and row, see `chart_table`.
        counts: What n counts.
        sorts: Whether the rows with the first run's highest values come first.
        intervals: What the 95 % intervals are over, after these words; empty if it depends.
    """

    title: str
    rows: str
    make: Callable[[Sequence[Run], ShowRun], pd.DataFrame]
    counts: str = "facts"
    sorts: bool = False
    intervals: str = " over the facts"

    def title_of(self, step: ShowRun) -> str:
        """Return the chart's title."""
        title = _filled(self.title, step)
        return title[0].upper() + title[1:]

    def rows_of(self, step: ShowRun) -> str:
        """Return what each row of the chart is."""
        return _filled(self.rows, step)


def _filled(text: str, step: ShowRun) -> str:
    return text.format(k=step.k, by=step.by, of=step.of, prompts=step.prompts)


def _show(
    function: ViewFunction[..., Any, Any], runs: Sequence[Run], step: ShowRun, **options: Any
) -> Shown[Any, Any]:
    """Return a view of a step's runs, which are restricted to shared facts already."""
    request = TopRequest(ranking="filtered", relations=step.relations, k=step.k)
    return show_runs(function.view, runs, narrowed(function.request, request, **options))


def figure_rows(figure: Figure) -> pd.DataFrame:
    """Return the marks of a view's chart as lines of a lesson's table."""
    frame = figure.frame
    found = pd.DataFrame({"run": frame[figure.series], "row": frame[figure.by.column].map(str)})
    found["value"] = frame[figure.value.column]
    for end in ("low", "high"):
        found[end] = frame[getattr(figure, end)] if getattr(figure, end) else np.nan
    found["n"] = frame["n"]
    return found


def _by_relation(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    table = _show(scores, runs, step).frame
    if step.k > 1:
        table = table.assign(freq=np.nan)
    return table.assign(row=_labels(table), value=table["p_at_k"])


def _labels(table: pd.DataFrame) -> "pd.Series[str]":
    return (table["relation"] + " " + table["label"].fillna("")).str.strip()


def _curve(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    table = _show(curves, runs, step).frame
    table = table[table["k"].isin(KS)]
    return table.assign(row="P@" + table["k"].astype(str), value=table["p_at_k"])


def _ranks(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    table = figure_rows(_show(ranks, runs, step).figure)
    return table.assign(row="rank " + table["row"].str.replace("–", " to "))


def _slices(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return P@k on each slice of one way; of two runs, also their difference on few slices."""
    table = figure_rows(_show(slices, runs, step, slice_by=step.by).figure)
    if len(runs) != 2 or not 0 < table["row"].nunique() <= 4:
        return table
    a, b = (run.info.model for run in runs)
    lines = slice_differences(join_answers(runs), k=step.k, relations=step.relations)
    lines = lines[lines["by"] == step.by].set_index("slice")
    notes = {
        (
            label := slice_label(step.by, str(name))
        ): f"{label}: {a} minus {b} {percent(-line['difference'], signed=True)} points (95 % "
        f"interval {percent(-line['high'], signed=True)} to {percent(-line['low'], signed=True)}; "
        f"{line['n']:,} facts)."
        for name, line in lines.iterrows()
    }
    return table.assign(note=[notes.get(name, "") for name in table["row"]])


def _totals(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    shown = _show(totals, runs, step)
    table = figure_rows(shown.figure)
    return table.assign(note=[shown.found.notes.get(name, "") for name in table["row"]])


def _mentions(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    shown = _show(mentions, runs, step, of=step.of)
    models = {run.info.id: run.info.model for run in runs}
    notes = shown.frame["run"].map(models) + ": " + shown.frame["text"] + "."
    return shown.frame.assign(row=shown.frame["mentions"], value=shown.frame["p_at_k"], note=notes)


def _rankings(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    tables = []
    for ranking in RANKINGS:
        table = _show(scores, runs, step, ranking=ranking).frame
        tables.append(
            table.assign(row=_labels(table) + f", {ranking}", value=table["p_at_k"], freq=np.nan)
        )
    both = pd.concat(tables, ignore_index=True)
    return both.sort_values("relation", kind="stable", key=lambda names: pd.factorize(names)[0])


# Lessons refer to these rows by name.
ALTERED = {
    "overlap": "the same first answer",
    "plain": "P@1, asked plainly",
    "altered": "P@1, {prompts}",
}
WORDINGS = {
    "consistency": "pairs of wordings that agree",
    "accuracy": "P@1 over all wordings",
    "consistent_accuracy": "every wording gets it right",
}


def _means(table: pd.DataFrame, n: str, rows: dict[str, str], step: ShowRun) -> pd.DataFrame:
    """Return each run's means over relations of some columns; rows: column -> the row's name.

    The intervals are those of means of shares of facts. If a fact has several wordings or pairs of
    them, its share varies less than 0 or 1 would, and the interval is wider than necessary.
    """
    found = []
    for run, part in table.groupby("run", sort=False):
        counts = part[n].to_numpy()
        for column, row in rows.items():
            shares = part[column].to_numpy()
            ends = mean_share_intervals(shares * counts, counts)
            line = {"run": run, "row": _filled(row, step), "value": shares.mean()}
            line |= {"low": float(ends.low), "high": float(ends.high), "n": int(counts.sum())}
            found.append(line)
    return pd.DataFrame(found)


def _ways(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return P@1 of each way of asking, on the facts that all runs of a model count."""
    if not runs_by_way(run.info for run in runs):
        return pd.DataFrame()
    shown = _show(ways, runs, step)
    notes = {}
    for found in shown.found:
        notes[found.model] = (
            f"{found.model}: {(found.n_known == 1).sum():,} of {len(found.facts):,} facts are "
            "known in one way only."
        )
    table = shown.frame[shown.frame["relation"] == ALL_RELATIONS]
    return table.assign(row=table["way"], value=table["p_at_1"], note=table["model"].map(notes))


def _training(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return P@k at each step of a series, on the facts that count at all steps."""
    table = _show(training, runs, step).found[0].curves()
    rows = "step " + table["step"].map("{:,}".format)
    ends = {"low": table["p_at_k_low"], "high": table["p_at_k_high"]}
    return table.assign(run=runs[-1].info.id, row=rows, value=table["p_at_k"], **ends)


def _readings(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return P@k by how often the fact's pair has been read, at the last step of a series."""
    place = place_of(runs[-1].info)
    readings = readings_of(place.series) if place is not None else None
    if place is None or readings is None:
        return pd.DataFrame()
    table = precision_by_readings(
        training_of(runs[-1:], [place.step], relations=step.relations, k=step.k), readings
    )
    return table.assign(run=runs[-1].info.id, row=table["readings"], value=table["p_at_k"])


def _analogies(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return the accuracy of each unsupervised probe, as the mean over all relations."""
    return pd.DataFrame(
        [
            {"run": line.run, "row": line.probe, "value": line.accuracy, "n": line.n}
            for line in show_runs(analogies.view, runs, AnalogiesRequest()).found
            if line.name == ALL and line.setting == "unsupervised" and line.probe in SHOWN_PROBES
        ]
    )


OF_SERIES = ("training", "readings")  # figures of checkpoints, oldest first

CHARTS: dict[str, LessonChart] = {
    "by relation": LessonChart("P@{k} by relation", "relation", _by_relation, sorts=True),
    "curve": LessonChart("Mean P@k by k", "k best answers", _curve),
    "ranks": LessonChart("Facts by rank of the right answer", "rank of the right answer", _ranks),
    "slices": LessonChart("P@{k} by {by}", "{by}", _slices),
    "totals": LessonChart(
        "P@{k} over facts and over relations",
        "mean",
        _totals,
        intervals=", over the facts and over the relations",
    ),
    "mentions": LessonChart("P@{k} by mentions of the {of} in a text", "mentions", _mentions),
    "rankings": LessonChart("P@{k}, filtered and raw", "relation, ranking", _rankings),
    "altered": LessonChart(
        "{prompts} queries compared with plain ones",
        "measure",
        lambda runs, step: _means(_show(wording, runs, step).found.altered, "n", ALTERED, step),
    ),
    "wordings": LessonChart(
        "The same facts in several wordings",
        "measure",
        lambda runs, step: _means(
            _show(wording, runs, step).found.agreement, "n_facts", WORDINGS, step
        ),
    ),
    "ways": LessonChart("P@1 by way of asking, on the same facts", "way of asking", _ways),
    "training": LessonChart("Mean P@{k} over training", "training step", _training),
    "readings": LessonChart(
        "P@{k} by readings of subject and object together", "readings", _readings
    ),
    "analogies": LessonChart("Accuracy of the analogy probes", "probe", _analogies, "decisions"),
}


def chart_of(step: ShowRun) -> LessonChart:
    """Return the chart that a step names: a row of `CHARTS`, or any view."""
    if step.figure in CHARTS:
        return CHARTS[step.figure]
    function = next(one for one in all_views() if one.view.name == step.figure)
    keys = function.view.keys
    return LessonChart(
        function.view.title,
        keys[0] if len(keys) == 1 else "row",
        partial(_view, function),
        counts=function.view.counted,
        intervals="",
    )


def _view(
    function: ViewFunction[..., Any, Any], runs: Sequence[Run], step: ShowRun
) -> pd.DataFrame:
    return figure_rows(_show(function, runs, step, **step.options).figure)


def chart_figure(step: ShowRun, table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Return the chart of a step's table, with a row of bars for each row.

    Args:
        step: The step.
        table: As of `chart_table`, with the column `model`.
        names: Model -> its name for readers, in the order of drawing; of a view whose bars aren't
            of models, the counted unit.
    """
    kind = chart_of(step)
    if kind.sorts:
        firsts = table.groupby("row")["value"].first()
        table = table.sort_values("row", key=lambda rows: -rows.map(firsts), kind="stable")
    title = f"{kind.title_of(step)}, {step.data}"
    if len(names) == 1 and all(names):  # a chart of one model has no legend
        title += f", {next(iter(names.values()))}"
    lines = [
        said(
            f"{names.get(line['model'], '')}, {line['row']}".removeprefix(", "),
            f"{percent(line['value'])} %",
            said_interval(line["low"], line["high"]),
            f"{line['n']:,} {kind.counts}",
            f"Freq baseline: {percent(line['freq'])} %" if line["freq"] == line["freq"] else "",
        )
        for line in table.to_dict("records")
    ]
    prompts = f", prompts {step.prompts}" * (step.figure != "ways")  # each way has its own
    known = f"{step.data}{prompts}, filtered ranking; "
    least, most = table["n"].min(), table["n"].max()
    counted = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    counted += f" {kind.counts}" + (" per bar" if least != most else "")
    return Figure(
        shape="bars",
        frame=table.assign(said=lines, shown=table["value"].map(percent)).reset_index(drop=True),
        by=Axis(column="row", title="" if kind.rows in ("measure", "row") else kind.rows_of(step)),
        value=Axis(column="value", title="share, %", share=True),
        series="model",
        names=names,
        low="low",
        high="high",
        text="shown",
        baselines=(Baseline(column="freq", name="Freq baseline", mark="tick"),),
        title=title,
        caption=("" if step.figure == "analogies" else known) + counted,
    )


def missing_relations_note(infos: Sequence[RunInfo], step: ShowRun) -> str:
    """Return a note on a step's relations that are in none of the runs; empty if there are none."""
    if step.figure == "analogies":
        return ""  # it shows all relations
    known = {relation.name for info in infos for relation in info.relations}
    missing = [
        f"{name!r}{did_you_mean(name, sorted(known))}"
        for name in step.relations
        if name not in known
    ]
    return f"These runs have no relation {' or '.join(missing)}." if missing else ""


def chart_table(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return the lines of a step's chart; rows without facts are dropped.

    Columns:
        run: The run's id.
        row: The row of the chart, such as a relation.
        value: A share, between 0 and 1.
        low, high: Its 95 % interval; NaN if there is none.
        n: Number of facts.
        freq: P@1 of the Freq baseline (`metrics.baselines`); NaN if it isn't shown.
        note: A note for users; may be empty.
    """
    table = chart_of(step).make(runs, step) if runs else pd.DataFrame()
    if table.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    table = table[table["value"].notna()].reindex(columns=list(COLUMNS)).reset_index(drop=True)
    return table.assign(note=["" if note != note else str(note) for note in table["note"]])
