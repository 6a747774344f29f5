"""View: score tables, by relation, source or type of relation."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import pandas as pd

from lama_core.metrics.headlines import overall
from lama_core.metrics.intervals import METHOD, METHOD_OF_MEANS
from lama_core.metrics.origins import FactGroup, TrainedOn, outside_training, sentence, trained_on
from lama_core.metrics.relation_figures import (
    METRICS,
    TEXT_METRICS,
    Metric,
    metrics_undefined,
    scored_rows,
)
from lama_core.metrics.score_tables import (
    CONCEPTNET,
    Average,
    By,
    relation_figures,
    relation_precision,
    relations_counted,
    stacked,
    summarise,
)
from lama_core.requests import option
from lama_core.rounding import counted, percent
from lama_core.runs.info import Run
from lama_core.tables import (
    Column,
    Line,
    Table,
    count,
    interval,
    share,
    table_of_frame,
    text,
)
from lama_core.views.choice import TopRequest
from lama_core.views.figure import (
    LEAST_CHANCE,
    Axis,
    Baseline,
    Figure,
    right_title,
    said,
    said_interval,
)
from lama_core.views.view import Facts, Shown, View, ViewFunction

MOST_OPEN = 12  # the chart shows up to this many relations by default
P_AT_K = METRICS["p_at_1"]  # its texts are valid for every k


@dataclass(frozen=True)
class ScoresRequest(TopRequest, command="results scores", python="scores"):
    """Request for a score table of finished runs: the fields of `results scores`."""

    by: Annotated[By, option("One row per relation, source or type of relation.")] = "relation"
    conceptnet: Annotated[
        Average,
        option(
            "ConceptNet's total: the mean over its relations (the paper's text) or over its facts "
            "(the paper's released code)."
        ),
    ] = "relations"
    mrr_depth: Annotated[
        int | None,
        option(
            "Count facts ranked beyond this as 0 in MRR; LAMA's released code uses 10000. "
            "Default: no limit.",
            ge=1,
        ),
    ] = None


@dataclass(frozen=True)
class ResultsRequest(ScoresRequest, command="results", python="results"):
    """The same request without the view's name: the fields of `results`."""


@dataclass(frozen=True)
class RunScores:
    """The scores of several runs by relation, from which all groupings follow.

    Attributes:
        runs: `relation_figures` and `relation_precision` of each run.
        relations: The relations to include; () is all.
        undefined: Which metrics of each run aren't defined, and where, a sentence; "" if all are.
        origins: The facts of each run from its model's training sources; None if unknown.
        outside: Model and run id -> the run's facts that aren't from the model's training sources.
    """

    runs: tuple[tuple[pd.DataFrame, pd.DataFrame], ...]
    relations: tuple[str, ...]
    undefined: tuple[str, ...] = ()
    origins: tuple[TrainedOn | None, ...] = ()
    outside: Mapping[tuple[str, str], FactGroup] = field(default_factory=dict)
    _summed: dict[tuple[By, Average], pd.DataFrame] = field(default_factory=dict)

    @cached_property
    def every(self) -> pd.DataFrame:
        """The mean over all relations for each run, with the columns of a score table."""
        table = self.by("relation")
        return overall(table.assign(name=table["run"])).rename(columns={"name": "run"})

    @cached_property
    def totals(self) -> pd.DataFrame:
        """The rows of all types and sources; the column `by` is `type` or `source`.

        ConceptNet has two rows: the mean over its relations, and over its facts.
        """
        over_facts = self.by("source", "facts")
        return stacked(
            (
                self.by("type").assign(by="type"),
                self.by("source").assign(by="source"),
                over_facts[over_facts["mean_over"] == "facts"].assign(by="source"),
            )
        )

    def by(self, by: By, conceptnet: Average = "relations") -> pd.DataFrame:
        """Return the score table with one of the groupings; see `metrics.score_table`."""
        key = (by, conceptnet)
        if key not in self._summed:
            self._summed[key] = summarise(
                self.runs, by=by, relations=self.relations, conceptnet=conceptnet
            )
        return self._summed[key]


@dataclass(frozen=True)
class ScoreMeasure:
    """The measure of a chart of scores: a metric, its column in the score table, and its label."""

    metric: Metric
    column: str
    label: str

    @property
    def is_p_at_k(self) -> bool:
        """Whether it is P@k, the only measure with intervals and a chance level."""
        return self.column == "p_at_k"


def measures(shown: "Shown[ScoresRequest, RunScores]") -> dict[str, ScoreMeasure]:
    """Return name -> measure, first `P@k`.

    Measures that no run has are excluded. Freq is excluded: it is a baseline, not a measure of a
    model.
    """
    table = shown.found.by("relation")
    hidden = {"p_at_1", "freq"}
    hidden |= {str(name) for name in table if len(table) and table[name].isna().all()}
    metrics = (METRICS | TEXT_METRICS).items()
    others = [metric for name, metric in metrics if name in table and name not in hidden]
    first = ScoreMeasure(P_AT_K, "p_at_k", f"P@{shown.request.k}")
    return {"P@k": first} | {one.label: ScoreMeasure(one, one.name, one.label) for one in others}


def best_first(table: pd.DataFrame, group: str, measure: ScoreMeasure) -> pd.DataFrame:
    """Sort rows by group (a column): first the group with the best value of any run."""
    rising = not measure.metric.higher_is_better
    best = table.groupby(group)[measure.column].agg("min" if rising else "max")
    order = best.rank(ascending=rising, method="first")
    return table.sort_values(
        group, key=lambda names: names.map(order), kind="stable", ignore_index=True
    )


def weakest(
    shown: "Shown[ScoresRequest, RunScores]", measure: ScoreMeasure, n: int
) -> dict[str, float]:
    """Return relation -> mean of a measure over the runs, for the n relations with the worst mean.

    More than n if others are shown with the same mean as the last of them. Relations without facts
    that count are excluded.
    """
    table = shown.found.by("relation")
    means = table[table["n"] > 0].groupby("relation", sort=False)[measure.column].mean().dropna()
    sign = 1 if measure.metric.higher_is_better else -1
    worst = (sign * means.sort_values(key=lambda values: sign * values, kind="stable")).round(3)
    return {str(name): float(means[name]) for name in worst.nsmallest(n, keep="all").index}


def scores_of(
    runs: Sequence[Run], request: TopRequest, *, mrr_depth: int | None = None
) -> RunScores:
    """Return the scores of each run by relation, without origins."""
    found = [
        (
            relation_figures(run, request.ranking_of(run.info), mrr_depth=mrr_depth),
            relation_precision(run, request.k, request.ranking_of(run.info)),
        )
        for run in runs
    ]
    names = request.relations or None
    undefined = [metrics_undefined(scored_rows(run, run.info.ranking, names)) for run in runs]
    return RunScores(tuple(found), tuple(request.relations), tuple(undefined))


class ScoresView(View[ScoresRequest, RunScores]):
    """P@k and other metrics of each run, by relation, source or type of relation."""

    name = "scores"
    title = "Scores"
    question = "How often is the right answer first, in each relation and source?"
    example = "results scores --by source"

    def compute(self, runs: Sequence[Run], request: ScoresRequest) -> RunScores:
        """Return the scores of each run by relation."""
        origins, outside = [], {}
        for run in runs:
            how: dict[str, Any] = {"ranking": request.ranking_of(run.info), "k": request.k}
            how["relations"] = request.relations
            origins.append(trained_on(run, **how))
            for model in {one.info.model for one in runs} - {run.info.model}:
                outside[model, run.info.id] = outside_training(run, model, **how)
        found = scores_of(runs, request, mrr_depth=request.mrr_depth)
        return replace(found, origins=tuple(origins), outside=outside)

    def frame(self, shown: Shown[ScoresRequest, RunScores]) -> pd.DataFrame:
        """Return a row for each run and relation, source or type; see `metrics.score_table`."""
        return shown.found.by(shown.request.by, shown.request.conceptnet)

    def keys_of(self, shown: Shown[ScoresRequest, RunScores]) -> tuple[str, ...]:
        """Return the columns that, with the run, identify a row."""
        groups: dict[By, tuple[str, ...]] = {"relation": ("relation",), "source": ("source",)}
        return groups.get(shown.request.by, ("source", "type"))

    def metrics(self, shown: Shown[ScoresRequest, RunScores]) -> list[Metric]:
        """Return the metrics of the table: of ranks, and of texts if answers are generated."""
        return [metric for name, metric in (METRICS | TEXT_METRICS).items() if name in shown.frame]

    def columns(self, shown: Shown[ScoresRequest, RunScores]) -> tuple[Column, ...]:
        """Return the columns of all groupings."""
        request, by_relation = shown.request, shown.request.by == "relation"
        group, counts = "relation" if by_relation else "source", shown.counts
        method = METHOD if by_relation else METHOD_OF_MEANS
        return (
            text(
                group,
                cell=lambda line: f"{line[group]} {line['label']}".strip() + _mean_over(line),
            ),
            text("type"),
            text("model", cell=lambda line: shown.names[line["run"]]),
            count("n", help_text=f"{counts.capitalize()} that are scored.", of_run=True),
            count("n_excluded", "excluded", of_run=True),
            share("p_at_k", f"P@{request.k}", of_run=True),
            interval(help_text=f"95 % interval of P@{request.k}: {method}.", of_run=True),
            count("n_answers", "answers"),
            share("chance", help_text=f"P@{request.k} of a random order of the answers."),
            *(
                Column(
                    metric.meaning,
                    metric.label,
                    metric.shown,
                    name=metric.name,
                    kind="share" if metric.is_share else "number",
                    digits=3 if metric.name == "mrr" else 1,
                    of_run=metric.name != "freq",  # the same for all runs of the same facts
                )
                for metric in self.metrics(shown)
            ),
        )

    def tables(self, shown: Shown[ScoresRequest, RunScores]) -> Iterator[Table | str]:
        """Yield the score table; by relation, also the means by source."""
        request, frame = shown.request, shown.frame
        metrics = [one.name for one in self.metrics(shown) if frame[one.name].notna().any()]
        metrics = [name for name in metrics if name != "p_at_1"]  # P@k takes its place
        chance = self.chance_columns(shown)
        names = " ".join(["type model n n_excluded p_at_k interval", *chance, *metrics])
        ranking = f"{request.ranking} ranking" if request.ranking else "each run's ranking"
        by_relation = request.by == "relation"
        yield table_of_frame(
            shown.chosen(("relation " if by_relation else "source ") + names),
            frame,
            title=f"By {request.by}, {ranking}; P@ and Freq in percent; "
            + (f"chance: P@{request.k} of a random order; " if chance else "")
            + "intervals: "
            + (METHOD if by_relation else METHOD_OF_MEANS),
        )
        if by_relation and not request.relations and request.k == 1:
            yield from map(_mean, shown.found.by("source", request.conceptnet).to_dict("records"))

    def notes(self, shown: Shown[ScoresRequest, RunScores]) -> Iterator[str]:
        """Yield which metrics of a run aren't defined, and its facts from training sources."""
        yield from undefined_metrics(shown)
        yield from origins_notes(shown)

    def chance_columns(self, shown: Shown[ScoresRequest, RunScores]) -> list[str]:
        """Return the names of the columns of the chance level; [] if no run shows one."""
        n_answers = ["n_answers"] if shown.request.by == "relation" else []
        return [*n_answers, "chance"] if shown.guessable else []

    def json(self, shown: Shown[ScoresRequest, RunScores]) -> list[dict[Any, Any]]:
        """Return what `results --json` prints."""
        by_relation = shown.request.by == "relation"
        group = "relation" if by_relation else "source"
        over = [] if by_relation else ["n_relations", "of_relations", "mean_over"]
        scores = [metric.name for metric in self.metrics(shown) if metric.in_json]
        at_k = ["p_at_k", "low", "high"] if shown.request.k > 1 else []
        head = ["run", "model", "dataset", group, "type", *over, "n", "n_excluded"]
        lines = shown.frame[[*head, *scores, *at_k, *self.chance_columns(shown)]].to_dict("records")
        for line in lines:
            if not math.isnan(line.get("n_answers", math.nan)):
                line["n_answers"] = int(line["n_answers"])
        return lines

    def figure(self, shown: Shown[ScoresRequest, RunScores]) -> Figure:
        """Return P@k of all relations, of each source, and of each relation if there are few."""
        return bars(shown)

    def facts(self, shown: Shown[ScoresRequest, RunScores], line: Line, column: str = "") -> Facts:
        """Return the facts of a group: those that count, or the excluded ones."""
        fields: dict[str, Any] = {"relations": tuple(shown.request.relations)}
        if isinstance(line.get("relation"), str):
            fields["relations"] = (line["relation"],)
        elif isinstance(line.get("source"), str):
            fields["sources"] = (line["source"],)
            if shown.request.by == "type" or isinstance(line.get("type"), str):
                kind = line.get("type")
                fields["types"] = (kind if isinstance(kind, str) else "",)
        return Facts(line["run"], fields, "excluded" if column == "n_excluded" else "counted")


def undefined_metrics(shown: Shown[ScoresRequest, RunScores]) -> Iterator[str]:
    """Yield which runs lack the ranks of some right answers, and their metrics without a value."""
    for info, undefined in zip(shown.infos, shown.found.undefined, strict=True):
        if undefined:
            yield f"{shown.names[info.id]}: {undefined}."


def origins_notes(shown: Shown[ScoresRequest, RunScores]) -> Iterator[str]:
    """Yield each run's number of facts from training sources, and P@k on these and other facts."""
    for info, origins in zip(shown.infos, shown.found.origins, strict=True):
        if origins is not None:
            name, is_manual = shown.names[info.id], info.prompts == "manual"
            subject = name if is_manual else info.model
            text = sentence(origins, subject, k=shown.request.k, counts=info.counts)
            yield text if is_manual else f"{name}: {text}"


def said_of_best(shown: Shown[ScoresRequest, RunScores], run: str, measure: ScoreMeasure) -> str:
    """Return in how many relations the best run isn't the best, and P@k by what it was trained on.

    A sentence to follow a headline; "" if neither applies.
    """
    table, said = shown.found.by("relation"), []
    table = table[(table["n"] > 0) & table[measure.column].notna()]
    sign = 1 if measure.metric.higher_is_better else -1
    best = (sign * table[measure.column]).groupby(table["relation"]).max()
    own = sign * table[table["run"] == run].set_index("relation")[measure.column]
    if beaten := int((own < best.reindex(own.index)).sum()):
        said.append(f"It isn't the best in {beaten} of {len(own)} relations")
    number = [info.id for info in shown.infos].index(run)
    origins = shown.found.origins[number]
    if measure.is_p_at_k and origins is not None and origins.inside.n:
        inside, outside, counts = origins.inside, origins.outside, shown.infos[number].counts
        text = f"{'over' if said else 'Over'} {counts}, P@{shown.request.k} is "
        text += (
            f"{percent(inside.p_at_k)} % on the {inside.n:,} from sources that it was trained on"
        )
        text += f" and {percent(outside.p_at_k)} % on the other {outside.n:,}" * bool(outside.n)
        rivals = {
            other: one.p_at_k
            for (model, other), one in shown.found.outside.items()
            if model == shown.infos[number].model and one.n == outside.n > 0
        }
        if rivals:
            rival = max(rivals, key=rivals.__getitem__)
            text += f", where {shown.names[rival]} has {percent(rivals[rival])} %"
        said.append(text)
    return "; ".join(said) + "." * bool(said)


def chart_sources(shown: Shown[ScoresRequest, RunScores]) -> tuple[list[str], bool]:
    """Return the sources, and whether the chart shows all their relations by default."""
    table = shown.found.by("relation")
    known = set(table["source"])
    every = dict.fromkeys(one.source for info in shown.infos for one in info.relations)
    names = [name for name in every if name in known]
    return names, table["relation"].nunique() <= MOST_OPEN or len(names) == 1


def bars(
    shown: Shown[ScoresRequest, RunScores],
    measure: ScoreMeasure | None = None,
    opened: Sequence[str] | None = None,
    *,
    is_best_first: bool = False,
) -> Figure:
    """Return a row for all relations, each source, and each relation of opened sources.

    Args:
        shown: The view.
        measure: What the chart shows; by default P@k.
        opened: The sources with rows for their relations; by default all or none.
        is_best_first: Whether sources and relations are sorted by the measure.
    """
    measure = measure or measures(shown)["P@k"]
    relations, sources = shown.found.by("relation"), shown.found.by("source")
    if opened is None:
        names, few = chart_sources(shown)
        opened = names if few else ()
    if is_best_first:
        relations = best_first(relations, "relation", measure)
        sources = best_first(sources, "source", measure)
    parts: list[pd.DataFrame] = []

    def add_mean(name: str, part: pd.DataFrame) -> None:
        n = int(part["n_relations"].max())
        n_all = int(part["of_relations"].max()) if "of_relations" in part else n
        said_n = relations_counted(n, n_all) or counted(n, "relation")
        parts.append(part.assign(row=f"{name}, {said_n}", relation=None))

    names = list(dict.fromkeys(sources["source"]))
    if len(names) > 1:
        add_mean("all", shown.found.every.assign(source=None))
    for name in names:
        within = relations[relations["source"] == name]
        if name not in opened or len(set(within["relation"])) > 1:
            add_mean(name, sources[sources["source"] == name])
        if name in opened:
            parts.append(within.assign(row=within["relation"].map(shown.labels)))
    frame = stacked(parts)
    unknown = {} if measure.is_p_at_k else dict.fromkeys(("low", "high", "chance"), math.nan)
    if not shown.guessable:
        unknown["chance"] = math.nan
    if not measure.metric.is_share or shown.request.k != 1:
        unknown["freq"] = math.nan
    frame = frame.assign(**unknown)
    return Figure(
        shape="bars",
        frame=frame.assign(said=[_said(line, measure, shown) for line in frame.to_dict("records")]),
        by=Axis(column="row", title="source or kind of fact"),
        value=Axis(
            column=measure.column,
            title=right_title(shown.request.k)
            if measure.is_p_at_k
            else f"{measure.label}, {measure.metric.unit}",
            share=measure.metric.is_share,
            from_zero=True,
        ),
        low="low",
        high="high",
        names=shown.names,
        bold=frozenset(frame["row"][frame["relation"].isna()]),
        baselines=(
            Baseline(column="freq", name="Freq baseline", mark="tick"),
            Baseline(column="chance", name="chance", mark="diamond", least=LEAST_CHANCE),
        ),
        title=shown.title_of(f"{measure.label} by source and relation, mean over relations"),
        caption=shown.caption,
    )


def _said(line: Line, measure: ScoreMeasure, shown: Shown[ScoresRequest, RunScores]) -> str:
    """Return lines about a mark: the row, the run and its score, the facts, and the baselines."""
    value = measure.metric.shown(line[measure.column])
    value = value + " %" * measure.metric.is_share if value else "undefined"
    freq, chance = line["freq"], line["chance"]
    return said(
        line["row"],
        f"{shown.names[line['run']]}: {value}",
        said_interval(line["low"], line["high"]),
        f"{line['n']:,} {shown.counts}",
        "" if math.isnan(freq) else f"Freq baseline (objects by frequency): {percent(freq)} %",
        f"chance (random order of the answers): {percent(chance)} %"
        if chance >= LEAST_CHANCE
        else "",
    )


def _mean(line: Line) -> str:
    """Return a sentence on the mean of a run's source."""
    if not line["n"]:
        return f"{line['model']}, {line['source']}: no mean, because all facts are excluded"
    over = _counted(line) or counted(line["n_relations"], "relation")
    if line["mean_over"] == "facts":
        over = f"{counted(line['n'], 'fact')} of {over}"
    ends = f"{percent(line['low'])} to {percent(line['high'])}"
    at_10 = "" if math.isnan(line["p_at_10"]) else f", P@10 {percent(line['p_at_10'])}"
    return (
        f"{line['model']}, {line['source']}: mean P@1 over {over} "
        f"{percent(line['p_at_1'])} ({ends}){at_10}"
    )


def _mean_over(line: Line) -> str:
    """Return what a row averages over, in brackets; empty for all relations of a source.

    For ConceptNet, it is never empty: the mean is over relations or over facts.
    """
    if "mean_over" not in line:
        return ""
    which = f"mean over {line['mean_over']}" if line["source"] == CONCEPTNET else ""
    words = "; ".join(filter(None, (which, _counted(line))))
    return f" ({words})" if words else ""


def _counted(line: Line) -> str:
    """Return `2 of 3 relations` if a relation has no fact that counts; else empty."""
    return relations_counted(line["n_relations"], line["of_relations"])


_DOC = """Score finished runs: P@1, P@10, MRR, macro P@1 and mean rank.

    Returns:
        A DataFrame with a row for each run and relation (or source, or type).

    Raises:
        UserError: If there is no finished run, or a run or relation is unknown.

    >>> import lama_core as lama
    >>> scores = lama.scores(["starter-minilm_mlm-manual"], by="source")
    >>> scores[["source", "n"]]
           source     n
    0   Google_RE   387
    1        TREx  9365
    2  ConceptNet  2016
    3       Squad   124
    """
scores = ViewFunction(ScoresRequest, ScoresView(), _DOC)
results = ViewFunction(ResultsRequest, ScoresView(), _DOC.replace("lama.scores", "lama.results"))
