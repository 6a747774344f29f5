"""The chart Training: what the checkpoints of a training run know, step by step."""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from lama_core.api.results import METRICS, ResultsRequest, Run, RunInfo, RunListing
from lama_core.api.series import (
    Measure,
    Series,
    TrainedSeries,
    find_series,
    train_series,
)
from lama_core.errors import UserError
from lama_core.rounding import fixed, percent, percentage
from pages.ui.results.draw_view import open_facts
from pages.ui.shared import cache, charts
from pages.ui.shared.colours import GREY, PALETTE
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, draw_headline, plain, show_note
from pages.ui.shared.run_choice import MAX_RUNS, RunChoice, relation_label
from pages.ui.shared.tables import draw_table
from pages.ui.shared.url_state import choose, pick, title_of

LEAST_FACTS = 10  # minimum number of facts behind a point of the chart of readings
MOST_STEPS = 7  # maximum number of lines in the chart of readings
MOST_FACTS = 500  # rows of the table on screen; the export has all
COLOURS = [colour for colour in PALETTE if colour != GREY]  # grey is for the other lines
MOST_COLOURED = len(COLOURS) - 1
SOURCE, RELATION = LINES = ("source", "relation")
MEASURES: dict[str, Measure] = {
    "P@k": "p_at_k",
    "mean rank": "mean_rank",
    "log-probability": "log_prob",
}
Item = TypeVar("Item")
FORGOTTEN, LEARNED = FATES = ("forgotten", "learned")


def training_needs(choice: RunChoice, listing: RunListing) -> str:
    """Return what is missing for the chart, in words; empty if nothing is missing."""
    found = _series(choice, listing)
    return "" if found else "runs of at least two checkpoints of one model on this data"


def _series(choice: RunChoice, listing: RunListing) -> dict[str, Series]:
    """Name -> series on the chosen data; series of the chosen prompts come first."""
    found = find_series(run for run in listing if run.dataset == choice.data)
    found = tuple(sorted(found, key=lambda one: one.last.prompts != choice.prompts))
    names: dict[str, Series] = {}
    for one in found:
        last = one.last
        more = [last.prompts] if last.prompts != "manual" else []
        more += [f"first {last.limit} a relation"] if last.limit else []
        name = ", ".join([_title(one.name), *more])
        names[name if name not in names else f"{name}, {last.digest[:6]}"] = one
    return names


def _title(name: str) -> str:
    """Return a series' name for display; a folder's path is cut to its last two parts."""
    return "/".join(name.split("/")[-2:]) if name.startswith("/") else title_of(name)


def draw_training(choice: RunChoice, listing: RunListing) -> Sequence[RunInfo]:
    """Draw the scores over training by step, relation and fact; return the series' runs."""
    named = _series(choice, listing)
    boxes = st.columns([2.4, 3.4, 1.8], vertical_alignment="bottom")
    name = choose("Series", list(named), key="series", place=boxes[0])
    series = named[name]
    request = ResultsRequest(
        tuple(run.id for run in series.runs),
        ranking=choice.ranking,
        k=choice.k,
        relations=choice.relations,
        series=True,
    )
    try:
        found = cache.table_of_runs(
            "training",
            series.runs,
            choice.ranking,
            choice.relations,
            partial(_train, series, request),
            choice.k,
        )
    except UserError as error:
        show_note(plain(str(error)))
        return series.runs
    offered = list(MEASURES)[: 1 if series.last.generates else None]
    measure = pick("Right answer's", offered, key="training_measure", place=boxes[1])
    shown = f"P@{choice.k}" if measure == "P@k" else measure
    by = pick("A line for each", LINES, key="lines", place=boxes[2])
    _draw_headline(name, found)
    _draw_curves(choice, found, MEASURES[measure], shown, by, request)
    _draw_readings(choice, found, request)
    _draw_relations(choice, found, request)
    _draw_facts(choice, found, request)
    return series.runs


def _train(series: Series, request: ResultsRequest, runs: list[Run]) -> TrainedSeries:
    return train_series(series, runs, request)


def _draw_headline(name: str, found: TrainedSeries) -> None:
    training, steps = found.training, found.series.steps
    draw_headline(
        f"{name}: {training.n_learned:,} of {counted(len(training.facts), 'fact')} are right at "
        f"the last step, {training.n_forgotten:,} are forgotten"
    )
    dropped = f" {counted(training.n_dropped, 'fact')} count only at some steps and are excluded."
    st.caption(
        f"{len(steps)} checkpoints from step {steps[0]:,} to step {steps[-1]:,}, compared on the "
        "facts that count at all of them. Forgotten: right at some step, and wrong at the last."
        + dropped
        * (training.n_dropped > 0)
    )


def _draw_curves(
    choice: RunChoice,
    found: TrainedSeries,
    measure: Measure,
    label: str,
    by: Any,
    request: ResultsRequest,
) -> None:
    curves = found.curves(by)
    if by == RELATION:
        pairs = zip(curves["group"], curves["label"], strict=True)
        curves["name"] = [relation_label(group, text) for group, text in pairs]
    else:
        curves["name"] = curves["group"]
    groups = dict(zip(curves["name"], curves["group"], strict=True))
    scale = 100 if measure == "p_at_k" else 1
    curves["value"], curves["low"], curves["high"] = (
        scale * curves[f"{measure}{end}"] for end in ("", "_low", "_high")
    )
    curves["shown"] = [_with_interval(measure, row) for row in curves.to_dict("records")]
    last = curves[curves["step"] == found.series.steps[-1]]
    best = last.sort_values("value", ascending=measure == "mean_rank", kind="stable")["name"]
    coloured = list(groups) if len(groups) <= MOST_COLOURED else list(best[:MOST_COLOURED])
    axis = {
        "p_at_k": f"{label}, % of facts",
        "mean_rank": "mean rank (log axis, 1 at the top)",
        "log_prob": "mean log-probability of the right answer",
    }[measure]
    figure = charts.training(
        curves,
        dict(zip(coloured, COLOURS, strict=False)),
        what=axis,
        values="log" if measure == "mean_rank" else "linear",
        ascending=measure != "mean_rank",
    )
    points = charts.draw_chart(
        figure,
        "training chart",
        title=f"{label[0].upper()}{label[1:]} over training, {_title(found.series.name)}",
        footnote=f"{choice.data}, {choice.ranking} ranking",
        picture=choice.picture,
    )
    several = len(groups) > MOST_COLOURED
    st.caption(
        ("A source's value is the mean over its relations. " if by == SOURCE else "")
        + f"In colour: the {MOST_COLOURED} best at the last step; choose relations above to see "
        "others. "
        * several
        + (
            "Whiskers: 95 % intervals. "
            if len(coloured) <= charts.MOST_WHISKERS
            else "Hover for the 95 % interval. "
        )
        + "Click a point to see the facts at this step."
    )
    for point in points:
        name, step = point["customdata"][:2]
        run = found.series.runs[found.series.steps.index(int(step))]
        if by == RELATION:
            open_facts(choice.with_runs([run]), relations=[choice.labels.get(groups[name], name)])
        else:
            open_facts(choice.with_runs([run]), sources=[groups[name]])
    draw_export("training", lambda: found.curves(by), _made(found, choice), request)


def _draw_readings(choice: RunChoice, found: TrainedSeries, request: ResultsRequest) -> None:
    """Draw P@k by the number of training passages read with subject and object, if known."""
    every = found.by_readings
    if every.empty:
        return
    table = every[every["n"] >= LEAST_FACTS]
    drawn = table.groupby("step").size()
    steps = _spread([int(step) for step in drawn[drawn > 1].index], MOST_STEPS)
    if not steps:
        return
    st.markdown("### How often must a model read a fact?")
    figure = charts.by_readings(table, steps, what=f"P@{choice.k}, % of facts")
    charts.draw_chart(
        figure,
        "readings chart",
        title=f"P@{choice.k} by readings of the pair, {_title(found.series.name)}",
        footnote=f"{choice.data}, {choice.ranking} ranking",
        picture=choice.picture,
    )
    n = int(every.loc[every["step"] == every["step"].max(), "n"].sum())
    st.caption(
        f"Each line is a training step. A point is the share of right answers among the facts "
        "whose subject and object the model had read together that often: in that many passages "
        f"of its training text before this step. {counted(n, 'fact')}; points of fewer than "
        f"{LEAST_FACTS} facts aren't drawn. Whiskers: 95 % intervals of the last step. Facts that "
        "are read often differ in other ways, too: their answers are more frequent words."
    )
    with st.expander("As a table", icon=":material/table:"):
        shares = every["p_at_k"].map(percent) + " % of " + every["n"].map("{:,}".format)
        shown = every.assign(shown=shares).pivot(index="group", columns="step", values="shown")
        names = every.drop_duplicates("group").set_index("group")["readings"]
        shown.insert(0, "readings", names.reindex(shown.index))
        shown.columns = [str(name) for name in shown.columns]
        draw_table(shown, placeholder="")
    draw_export("readings", lambda: every, _made(found, choice), request)


def _with_interval(measure: Measure, row: Any) -> str:
    """Return a value of a measure with its interval, for hover texts."""
    write = (
        percent if measure == "p_at_k" else partial(fixed, digits=1 if measure != "log_prob" else 2)
    )
    value, low, high = (row[f"{measure}{end}"] for end in ("", "_low", "_high"))
    unit = " %" * (measure == "p_at_k")
    ends = f"<br>{charts.INTERVAL}: {write(low)} to {write(high)}" if low == low else ""
    return f"{write(value)}{unit}{ends}"


def _draw_relations(choice: RunChoice, found: TrainedSeries, request: ResultsRequest) -> None:
    """Draw the relations in the order in which they are learned; a row opens its facts."""
    table = found.training.relations()
    learned = table["learned"].notna()
    st.markdown(f"### The order in which {counted(int(learned.sum()), 'relation')} are learned")
    pairs = zip(table["relation"], table["label"], strict=True)
    labels = [relation_label(name, label) for name, label in pairs]
    picked = draw_table(
        pd.DataFrame(
            {
                "relation": labels,
                "learned": table["learned"].astype("Int64"),
                "p_at_k": table["p_at_k"].map(percentage),
                "n": table["n"],
                "right": table["n_learned"],
                "forgotten": table["n_forgotten"],
            }
        ),
        key="training relations",
        picks="single-row",
        placeholder="never",
        height=420 if len(table) > 10 else "content",
        column_config={
            "learned": st.column_config.NumberColumn(
                "learned at step",
                format="localized",
                help="The first step at which half of the facts that are right at the last step "
                "are right and stay right.",
            ),
            "p_at_k": st.column_config.NumberColumn(
                f"P@{choice.k} at the end, %", format="%.1f", help=METRICS["p_at_1"].meaning
            ),
            "n": "facts",
            "right": "right at the end",
        },
    )
    st.caption("Tick a row to see the relation's facts at the last step.")
    if picked.rows:
        open_facts(choice.with_runs([found.series.last]), relations=[labels[picked.rows[0]]])
    draw_export("relations over training", lambda: table, _made(found, choice), request)


def _draw_facts(choice: RunChoice, found: TrainedSeries, request: ResultsRequest) -> None:
    """Draw the forgotten facts, or the learned ones with the step from which they stay right."""
    fates = found.training.fates
    st.markdown("### Facts")
    which = pick("Facts", FATES, key="fates", label_visibility="collapsed")
    chosen = fates[fates["forgotten"] if which == FORGOTTEN else fates["learned"].notna()]
    if chosen.empty:
        st.info(f"No fact is {which}.", icon=":material/check:")
        return
    chosen = chosen.sort_values("last" if which == FORGOTTEN else "learned", kind="stable")
    shown = chosen.head(MOST_FACTS)
    labels = found.training.labels
    columns = {
        "subject": shown["subject"],
        "relation": [relation_label(one, labels.get(one, "")) for one in shown["relation"]],
        "right answer": shown["object"],
        "first right at": shown["first"].astype("Int64"),
    }
    if which == FORGOTTEN:
        columns["last right at"] = shown["last"].astype("Int64")
    else:
        columns["stays right from"] = shown["learned"].astype("Int64")
    picked = draw_table(
        pd.DataFrame(columns),
        key=f"training facts {which}",
        picks="single-row",
        height=420 if len(shown) > 10 else "content",
    )
    first = f"the first {MOST_FACTS:,} of " * (len(chosen) > MOST_FACTS)
    st.caption(
        f"Shown: {first}{counted(len(chosen), 'fact')}; the columns contain training steps. Tick a "
        f"row to see the answers at up to {MAX_RUNS} steps."
    )
    if picked.rows:
        fact = shown.iloc[picked.rows[0]]
        open_facts(
            choice.with_runs(_spread(found.series.runs, MAX_RUNS)),
            fact=f"{fact['fact_id']}#{fact['prompt']}",
        )
    draw_export("facts over training", lambda: fates, _made(found, choice), request)


def _spread(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most `most` items, evenly spaced from the first to the last."""
    n = min(most, len(items))
    return [items[round(at * (len(items) - 1) / max(1, n - 1))] for at in range(n)]


def _made(found: TrainedSeries, choice: RunChoice) -> dict[str, object]:
    pairs = zip(found.series.steps, found.series.runs, strict=True)
    runs = {str(step): run.id for step, run in pairs}
    return {"series": found.series.name, "runs": runs, "ranking": choice.ranking, "k": choice.k}
