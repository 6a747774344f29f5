"""The chart Training: what the checkpoints of a training run know, step by step."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from lama_core.metrics.training import Measure
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from lama_core.runs.series import CheckpointSeries, find_series
from lama_core.views import vega
from lama_core.views.training import (
    LEAST_FACTS,
    TrainedSeries,
    TrainingRequest,
    readings_conclusion,
    readings_figure,
    series_title,
    training,
)
from lama_core.views.view import Shown
from pages.ui.results.draw_view import (
    draw_figure,
    draw_rows,
    draw_view_export,
    open_facts,
    open_line,
)
from pages.ui.shared import links, screens
from pages.ui.shared.export import draw_export
from pages.ui.shared.messages import counted, draw_headline
from pages.ui.shared.run_choice import MAX_RUNS, RunChoice, draw_comparison_basis, evenly_spaced
from pages.ui.shared.url_state import choose, pick, title_of

ShownTraining = Shown[TrainingRequest, tuple[TrainedSeries, ...]]
EARLY_TO_LATE = ("#b9a7d6", "#5a93cf", "#1aa179")  # training steps; visible on dark and white pages
MOST_STEPS = 4  # maximum number of lines in the chart of readings
LEAST_SHARE = 0.02  # of right answers in the chart of readings: lines at 0 hide each other
LEAST_RIGHT = 5  # facts of a relation that says when it is learned
MOST_FACTS = 500  # rows of the table on screen; the export has all
SOURCE, RELATION, _ = LINES = ("source", "relation", screens.ALL_TOGETHER)
MEASURES: dict[str, Measure] = {
    "P@k": "p_at_k",
    "mean rank": "mean_rank",
    "log-probability": "log_prob",
}
FORGOTTEN = "forgotten"
FATES = (FORGOTTEN, "learned")


def training_needs(choice: RunChoice, listing: RunListing) -> str:
    """Return what is missing for the chart, in words; empty if nothing is missing."""
    found = _series(choice, listing)
    return "" if found else "runs of at least two checkpoints of one model on this data"


def _series(choice: RunChoice, listing: RunListing) -> dict[str, CheckpointSeries]:
    """Name -> series on the chosen data; series of the chosen prompts come first."""
    found = find_series(run for run in listing if run.dataset == choice.data)
    found = tuple(sorted(found, key=lambda one: one.last.prompts != choice.prompts))
    names: dict[str, CheckpointSeries] = {}
    for one in found:
        last = one.last
        more = [last.prompts] if last.prompts != "manual" else []
        more += [f"{last.limit} facts of each relation"] if last.limit else []
        name = ", ".join([_title(one.name), *more])
        names[name if name not in names else f"{name}, {last.digest[:6]}"] = one
    return names


def _title(name: str) -> str:
    """Return a series' name for display; a folder's path is cut to its last two parts."""
    return series_title(name) if name.startswith("/") else title_of(name)


def draw_training(choice: RunChoice, listing: RunListing) -> Sequence[RunInfo]:
    """Draw the scores over training by step, relation and fact; return the series' runs."""
    named = _series(choice, listing)
    with st.container(key="way-choice"):
        boxes = st.columns([3, 3, 1.8], vertical_alignment="bottom")
    name = choose("Series", list(named), key="series", place=boxes[0])
    series = named[name]
    offered = list(MEASURES)[: 1 if not series.last.has_ranks else None]
    measure = pick(
        "Measure",
        offered,
        key="training_measure",
        place=boxes[1],
        help=f"P@k is P@{choice.k}; *More options* changes k.",
    )
    by = pick("A line for each", LINES, key="lines", place=boxes[2])
    chosen = choice.with_runs(series.runs)
    options = {
        "ranking": choice.ranking,
        "by": "all" if by == screens.ALL_TOGETHER else by,
        "measure": MEASURES[measure],
    }
    shown = chosen.view(training, **options)
    (found,) = shown.found
    draw_comparison_basis(chosen)
    first = st.query_params.get("part") == screens.READINGS
    if first:
        links.set_param("part", [screens.READINGS])
        _draw_readings(chosen, shown)
    draw_headline(shown.conclusion.replace(series_title(found.series.name), name, 1))
    trained, steps = found.training, found.series.steps
    dropped = f" {counted(trained.n_dropped, 'fact')} count only at some steps and are excluded."
    st.caption(
        f"{len(steps)} checkpoints from step {steps[0]:,} to step {steps[-1]:,}, compared on the "
        "facts that count at all of them." + dropped * (trained.n_dropped > 0)
    )
    title = shown.figure.title.replace(series_title(found.series.name), _title(found.series.name))
    figure = replace(shown.figure, title=title)
    inks = shown.view.inks(shown, {})
    several = len(figure.names) > len(inks)
    mark = draw_figure(chosen, figure, "training chart", inks)
    st.caption(
        ("A source's value is the mean over its relations. " if shown.request.by == SOURCE else "")
        + f"In colour: the {len(inks)} best at the last step; choose relations above to see "
        "others. "
        * several
        + (
            "Whiskers: 95 % intervals of the last step. "
            if len(inks) <= vega.MOST_WHISKERS
            else "Hover for the 95 % interval. "
        )
        + "Click a point to see the facts at this step."
    )
    open_line(chosen, shown, mark, alone=True)
    draw_view_export(chosen, shown, made=_made(found), figure=figure)
    if not first:
        _draw_readings(chosen, shown)
    _draw_relations(chosen, shown)
    _draw_facts(chosen, shown)
    return series.runs


def _draw_readings(choice: RunChoice, shown: ShownTraining) -> None:
    """Draw P@k by the number of training passages read with subject and object, if known."""
    (found,) = shown.found
    every = found.by_readings
    if every.empty:
        return
    table = every[every["n"] >= LEAST_FACTS]
    drawn = table.groupby("step")["p_at_k"].agg(["size", "max"])
    drawn = drawn[(drawn["size"] > 1) & (drawn["max"] >= LEAST_SHARE)]
    steps = evenly_spaced([int(step) for step in drawn.index], MOST_STEPS)
    if not steps:
        return
    st.markdown("### How often must a model read a fact?")
    draw_headline(readings_conclusion(shown), key="headline readings")
    figure = readings_figure(shown, steps)
    title = figure.title.replace(series_title(found.series.name), _title(found.series.name))
    inks = dict(
        zip(
            figure.names,
            [vega.between(EARLY_TO_LATE, share) for share in np.linspace(0, 1, len(steps))],
            strict=True,
        )
    )
    draw_figure(choice, replace(figure, title=title), "readings chart", inks)
    st.caption(
        f"Each line is a training step. A point is the share of right answers among the facts "
        "whose subject and object the model had read together that often: in that many passages "
        f"of its training text before this step. Points of fewer than "
        f"{LEAST_FACTS} facts aren't drawn. Whiskers: 95 % intervals of the last step. Facts that "
        "are read often differ in other ways, too: their answers are more frequent words."
    )
    draw_export("readings", lambda: every, choice.made() | _made(found), shown.request)


def _draw_relations(choice: RunChoice, shown: ShownTraining) -> None:
    """Draw the relations in the order in which they are learned; a row opens its facts."""
    (found,) = shown.found
    table = found.training.relations()
    few = table["n_learned"].to_numpy() < LEAST_RIGHT
    table = table.iloc[few.argsort(kind="stable")].reset_index(drop=True)
    st.markdown("### The order in which relations are learned")
    relation, step, p_at_k, *others = shown.chosen("relation learned p_at_k n right n_forgotten")
    at_end = replace(p_at_k, label=f"{p_at_k.head} at the end")
    picked = draw_rows(
        table,
        [relation, step, at_end, *others],
        "training relations",
        picks="single-row",
        placeholder="never",
        height=420 if len(table) > 10 else "content",
    )
    st.caption(
        "Learned at a step: half of the relation's facts that are right at the end are right from "
        f"then on. Relations with fewer than {LEAST_RIGHT} such facts come last: all but the first "
        f"{(~few).sum():,} of {len(table):,}. Tick a row, or tap its card, to see the relation's "
        "facts at the last step."
    )
    if picked.rows:
        last = choice.with_runs([found.series.last])
        open_facts(last, relations=[last.labels[table["relation"].iloc[picked.rows[0]]]])
    draw_export(
        "relations over training", lambda: table, choice.made() | _made(found), shown.request
    )


def _draw_facts(choice: RunChoice, shown: ShownTraining) -> None:
    """Draw the forgotten facts, or the learned ones with the step from which they stay right."""
    (found,) = shown.found
    fates = found.training.fates
    st.markdown("### Facts")
    which = pick("Facts", FATES, key="fates", label_visibility="collapsed")
    table = fates[fates["forgotten"] if which == FORGOTTEN else fates["learned"].notna()]
    if table.empty:
        st.info(f"No fact is {which}.", icon=":material/check:")
        return
    table = table.sort_values("last" if which == FORGOTTEN else "learned", kind="stable")
    facts = table.head(MOST_FACTS)
    end = "last" if which == FORGOTTEN else "stays"
    picked = draw_rows(
        facts,
        shown.chosen(f"subject relation object first {end}"),
        f"training facts {which}",
        picks="single-row",
        height=420 if len(facts) > 10 else "content",
    )
    first = f"the first {MOST_FACTS:,} of " * (len(table) > MOST_FACTS)
    st.caption(
        f"Shown: {first}{counted(len(table), 'fact')}; the columns contain training steps. Tick a "
        f"row, or tap its card, to see the answers at up to {MAX_RUNS} steps."
    )
    if picked.rows:
        fact = facts.iloc[picked.rows[0]]
        some = choice.with_runs(evenly_spaced(found.series.runs, MAX_RUNS))
        open_facts(some, fact=f"{fact['fact_id']}#{fact['prompt']}")
    draw_export("facts over training", lambda: fates, choice.made() | _made(found), shown.request)


def _made(found: TrainedSeries) -> dict[str, object]:
    pairs = zip(found.series.steps, found.series.runs, strict=True)
    return {"series": found.series.name, "runs": {str(step): run.id for step, run in pairs}}
