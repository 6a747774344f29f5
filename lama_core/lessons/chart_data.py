"""The data of a lesson's charts: shares with intervals, from finished runs.

To add a figure, add a row to `FIGURES`. Each figure makes one table, with a line per run and row:

    run     the run's id
    row     the row of the chart, such as a relation
    value   a share, between 0 and 1
    low, high   its 95 % interval; NaN if there is none
    n       number of facts
    freq    P@1 of always answering the relation's most frequent object; NaN if it isn't shown
    note    a note for users; may be empty
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from lama_core import metrics
from lama_core.errors import did_you_mean
from lama_core.lessons.lesson import Figure, ShowRun
from lama_core.metrics.comparison import Difference, MeanDifference
from lama_core.metrics.correlates import Mentions, mentions_of
from lama_core.metrics.fact_answers import join_answers
from lama_core.metrics.intervals import mean_of_sample, share_intervals
from lama_core.metrics.origins import gain_from_training, training_sources
from lama_core.metrics.readings import precision_by_readings, readings_of
from lama_core.metrics.slices import slice_differences, slice_table
from lama_core.metrics.training import Training, training_of
from lama_core.metrics.ways_of_asking import ALL_RELATIONS, compare_ways, runs_by_way
from lama_core.probes.analogy.accuracy_tables import ALL, probe_accuracies
from lama_core.probes.analogy.instances import PROBES
from lama_core.probes.analogy.spec import ProbeRun
from lama_core.rounding import percent
from lama_core.runs.info import Run, RunInfo
from lama_core.runs.series import place_of
from lama_core.scoring.ranking import RANKINGS

COLUMNS = ("run", "row", "value", "low", "high", "n", "freq", "note")
# Maximum number of slices for which notes give the difference between two models.
MOST_NOTES = 4
OVER_FACTS, OVER_RELATIONS = "over facts", "over relations"
KS = (1, 2, 5, 10, 20, 50, 100)
# Number of occurrences of a name in the text: minimum and maximum of each row.
MENTIONS = ((0, 9), (10, 99), (100, 999), (1000, None))


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure.

    Attributes:
        title: The chart's title; may contain a step's {k}, {by}, {of} and {prompts}.
        rows: What each row of the chart is; may contain the same fields.
        make: Makes the table.
        counts: What n counts.
    """

    title: str
    rows: str
    make: Callable[[Sequence[Run], ShowRun], pd.DataFrame]
    counts: str = "facts"

    def title_of(self, step: ShowRun) -> str:
        """Return the chart's title."""
        title = _filled(self.title, step)
        return title[0].upper() + title[1:]

    def rows_of(self, step: ShowRun) -> str:
        """Return what each row of the chart is."""
        return _filled(self.rows, step)


def _filled(text: str, step: ShowRun) -> str:
    return text.format(k=step.k, by=step.by, of=step.of, prompts=step.prompts)


def _by_relation(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    table = metrics.score_table(runs, k=step.k, relations=step.relations)
    if step.k > 1:
        table = table.assign(freq=np.nan)
    return table.assign(row=_labels(table), value=table["p_at_k"])


def _labels(table: pd.DataFrame) -> pd.Series:
    return (table["relation"] + " " + table["label"].fillna("")).str.strip()


def _curve(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    table = metrics.precision_curves(runs, relations=step.relations or None)
    table = table[table["k"].isin(KS)]
    return table.assign(row="P@" + table["k"].astype(str), value=table["p_at_k"])


def _ranks(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    table = metrics.rank_histogram(runs, relations=step.relations or None)
    rows = [
        f"rank {low:,}" if low == high else f"rank {low:,} to {high:,}"
        for low, high in zip(table["low"], table["high"], strict=True)
    ]
    return table.assign(row=rows, value=table["share"], low=np.nan, high=np.nan)


def _slices(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    joined = join_answers(runs)
    table = slice_table(joined, k=step.k, relations=step.relations)
    table = table[table["by"] == step.by]
    table = table.assign(row=table["slice"], value=table["p_at_k"])
    if len(runs) != 2 or not 0 < table["row"].nunique() <= MOST_NOTES:
        return table
    a, b = (run.info.model for run in runs)
    lines = slice_differences(joined, k=step.k, relations=step.relations)
    lines = lines[lines["by"] == step.by].set_index("slice")
    notes = {
        str(name): f"{name}: {a} minus {b} {_points(-line['difference'])} points (95 % interval "
        f"{_points(-line['high'])} to {_points(-line['low'])}; {line['n']:,} facts)."
        for name, line in lines.iterrows()
    }
    return table.assign(note=[notes.get(name, "") for name in table["row"]])


def _points(difference: float) -> str:
    return percent(difference, signed=True)


def _totals(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return P@k over facts and over relations; of two runs, also notes on their difference."""
    lines = []
    for run in runs:
        table = metrics.score_table([run], k=step.k, relations=step.relations)
        shares = table.loc[table["n"] > 0, ["n", "p_at_k"]]
        n, n_right = int(shares["n"].sum()), round(float((shares["n"] * shares["p_at_k"]).sum()))
        ends = share_intervals(np.array(n_right), np.array(n))
        mean = mean_of_sample(shares["p_at_k"].to_numpy())
        facts = (n_right / n if n else np.nan, float(ends.low), float(ends.high))
        relations = (mean.mean, mean.interval.low, mean.interval.high)
        for row, (value, low, high) in ((OVER_FACTS, facts), (OVER_RELATIONS, relations)):
            line = {"run": run.info.id, "row": row, "value": value, "low": low, "high": high}
            lines.append(line | {"n": n})
    table = pd.DataFrame(lines)
    if len(runs) != 2 or not (table["n"] > 0).all():
        return table
    notes = _notes_on_totals(runs[0], runs[1], step)
    return table.assign(note=[notes[row] for row in table["row"]])


def _notes_on_totals(a: Run, b: Run, step: ShowRun) -> dict[str, str]:
    """Return notes on the difference of two runs over facts and over relations."""
    first, second = a.info.model, b.info.model
    # `compare` returns its second run minus its first.
    comparison = metrics.compare(b, a, k=step.k, relations=step.relations or None)
    facts, relations = comparison.over_facts, comparison.over_relations
    gain = gain_from_training(a, b, k=step.k, relations=step.relations)
    source = (
        f" {percent(gain.share)} % of the gain ({gain.n_from_training:,} of {gain.n:,} facts) is "
        f"on facts from sources that {first} was trained on."
        if gain.n > 0 and training_sources(first)
        else ""
    )
    return {
        OVER_FACTS: f"{OVER_FACTS}: {_in_points(first, second, facts)}; {facts.n:,} facts)."
        f"{source}",
        OVER_RELATIONS: f"{OVER_RELATIONS}: {_in_points(first, second, relations)}); {first} is "
        f"better in {relations.ahead_b:,} of {relations.n:,} relations, worse in "
        f"{relations.ahead_a:,}, equal in {relations.equal:,}.",
    }


def _in_points(first: str, second: str, found: Difference | MeanDifference) -> str:
    interval = found.interval if isinstance(found, Difference) else found.sample_interval
    low, high = interval.low, interval.high
    ends = f" (95 % interval {_points(low)} to {_points(high)}" if low == low else " (no interval"
    return f"{first} minus {second} {_points(found.difference)} points{ends}"


def _mentions(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    tables = [precision_by_mentions(run, mentions_of(run.info.model), step) for run in runs]
    return pd.concat(tables, ignore_index=True)


def precision_by_mentions(run: Run, mentions: Mentions, step: ShowRun) -> pd.DataFrame:
    """Return P@k by the number of mentions of the fact's object (or subject) in a text."""
    facts = run.facts[run.facts["excluded"].isna()]
    if step.relations:
        facts = facts[facts["relation"].isin(step.relations)]
    codes, names = pd.factorize(facts[step.of].astype(str))
    counts = np.asarray(mentions.count(list(names)))[codes]
    right = facts["rank_filtered"].to_numpy() <= step.k
    lines = []
    for low, high in MENTIONS:
        inside = (counts >= low) & (counts < np.inf if high is None else counts < high + 1)
        n, n_right = int(inside.sum()), int(right[inside].sum())
        if n:
            ends = share_intervals(np.array(n_right), np.array(n))
            end = f" to {high:,}" if high else " or more" if high is None else ""
            lines.append(
                {
                    "run": run.info.id,
                    "row": f"{low:,}{end} times",
                    "value": n_right / n,
                    "low": float(ends.low),
                    "high": float(ends.high),
                    "n": n,
                    "note": f"{run.info.model}: {mentions.source}.",
                }
            )
    return pd.DataFrame(lines)


def _rankings(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    tables = []
    for ranking in RANKINGS:
        table = metrics.score_table(runs, ranking=ranking, k=step.k, relations=step.relations)
        row = _labels(table) + f", {ranking}"
        tables.append(table.assign(row=row, value=table["p_at_k"], freq=np.nan))
    both = pd.concat(tables, ignore_index=True)
    return both.sort_values("relation", kind="stable", key=lambda names: pd.factorize(names)[0])


def _means(
    make: Callable[[Run], pd.DataFrame],
    rows: dict[str, str],
    runs: Sequence[Run],
    step: ShowRun,
) -> pd.DataFrame:
    """Return unweighted means over relations of some columns of each run's table.

    make: Returns a run's table by relation. rows: Column of this table -> name of the chart's row.
    """
    lines = []
    for run in runs:
        table = make(run)
        if step.relations:
            table = table[table["relation"].isin(step.relations)]
        n = int(table["n"].sum())
        lines += [
            {"run": run.info.id, "row": _filled(row, step), "value": table[column].mean(), "n": n}
            for column, row in rows.items()
        ]
    return pd.DataFrame(lines)


def _consistency(run: Run) -> pd.DataFrame:
    found = pd.DataFrame(metrics.paraphrase_consistency(run.facts))
    return found.rename(columns={"n_facts": "n"})


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


def _ways(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return P@1 of each way of asking, on the facts that all runs of a model count."""
    by_id = {run.info.id: run for run in runs}
    tables = []
    for (_, model), ways in runs_by_way(run.info for run in runs).items():
        used = [by_id[infos[0].id] for infos in ways.values()]
        found = compare_ways(used, relations=step.relations)
        table = found.shares()
        table = table[table["relation"] == ALL_RELATIONS]
        n_alone = int((found.n_known == 1).sum())
        note = f"{model}: {n_alone:,} of {len(found.facts):,} facts are known in one way only."
        tables.append(table.assign(row=table["way"], value=table["p_at_1"], note=note))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _training(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return P@k at each step of a series, on the facts that count at all steps."""
    table = _trained(runs, step).curves()
    rows = "step " + table["step"].map("{:,}".format)
    ends = {"low": table["p_at_k_low"], "high": table["p_at_k_high"]}
    return table.assign(run=runs[-1].info.id, row=rows, value=table["p_at_k"], **ends)


def _readings(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return P@k by how often the fact's pair has been read, at the last step of a series."""
    place = place_of(runs[-1].info)
    readings = readings_of(place.series) if place is not None else None
    if readings is None:
        return pd.DataFrame()
    table = precision_by_readings(_trained(runs[-1:], step), readings)
    return table.assign(run=runs[-1].info.id, row=table["readings"], value=table["p_at_k"])


def _trained(runs: Sequence[Run], step: ShowRun) -> Training:
    steps = [place.step for run in runs if (place := place_of(run.info)) is not None]
    return training_of(runs, steps, relations=step.relations, k=step.k)


def _analogies(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return the accuracy of each unsupervised probe, as the mean over all relations."""
    return pd.DataFrame(
        [
            {"run": line.run, "row": line.probe, "value": line.accuracy, "n": line.n}
            for line in probe_accuracies(map(ProbeRun, runs), by="kind")
            if line.name == ALL and line.setting == "unsupervised" and line.probe in PROBES
        ]
    )


OF_SERIES = ("training", "readings")  # figures of checkpoints, oldest first

FIGURES: dict[Figure, FigureKind] = {
    "by relation": FigureKind("P@{k} by relation", "relation", _by_relation),
    "curve": FigureKind("Mean P@k by k", "k best answers", _curve),
    "ranks": FigureKind("Facts by rank of the right answer", "rank of the right answer", _ranks),
    "slices": FigureKind("P@{k} by {by}", "{by}", _slices),
    "totals": FigureKind("P@{k} over facts and over relations", "mean", _totals),
    "mentions": FigureKind("P@{k} by mentions of the {of} in a text", "mentions", _mentions),
    "rankings": FigureKind("P@{k}, filtered and raw", "relation, ranking", _rankings),
    "altered": FigureKind(
        "{prompts} queries compared with plain ones",
        "measure",
        partial(_means, metrics.contrast, ALTERED),
    ),
    "wordings": FigureKind(
        "The same facts in several wordings", "measure", partial(_means, _consistency, WORDINGS)
    ),
    "ways": FigureKind("P@1 by way of asking, on the same facts", "way of asking", _ways),
    "training": FigureKind("Mean P@{k} over training", "training step", _training),
    "readings": FigureKind(
        "P@{k} by readings of subject and object together", "readings", _readings
    ),
    "analogies": FigureKind("Accuracy of the analogy probes", "probe", _analogies, "decisions"),
}


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


def figure_table(runs: Sequence[Run], step: ShowRun) -> pd.DataFrame:
    """Return the table of a step's figure with `COLUMNS`; rows without facts are dropped."""
    table = FIGURES[step.figure].make(runs, step) if runs else pd.DataFrame()
    if table.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    table = table[table["value"].notna()].reindex(columns=list(COLUMNS)).reset_index(drop=True)
    return table.assign(note=["" if note != note else str(note) for note in table["note"]])
