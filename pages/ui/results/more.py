"""The More tab of Results: a menu of questions, and the charts that answer the chosen one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import streamlit as st

from lama_core import plugins
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from lama_core.views.analogies import analogies
from lama_core.views.calibration import calibration
from lama_core.views.correlations import correlations
from lama_core.views.known_by import known_by
from lama_core.views.margins import margins
from lama_core.views.mentions import NAMES, mentions, panels
from lama_core.views.ranks import ranks
from lama_core.views.relation_types import relation_types
from lama_core.views.slices import slices
from lama_core.views.training import training
from lama_core.views.view import ViewFunction
from lama_core.views.ways import ways
from lama_core.views.wording import wording
from pages.ui.results.charts import (
    draw_calibration,
    draw_correlates,
    draw_margins,
    draw_ranks,
    draw_types,
)
from pages.ui.results.draw_view import draw_whole
from pages.ui.results.slices import draw_slices
from pages.ui.results.traces import draw_traces, traces_need
from pages.ui.results.training import draw_training, training_needs
from pages.ui.results.ways_of_asking import draw_ways, ways_need
from pages.ui.results.wording import ALTERED, SEVERAL, draw_wording, wording_runs
from pages.ui.shared import links, screens
from pages.ui.shared.messages import plain, show_note
from pages.ui.shared.run_choice import RunChoice, draw_comparison_basis, pick_runs
from pages.ui.shared.url_state import pick

# Draws a chart or tab; returns the runs that it shows, or None if it shows the chosen runs.
Draw = Callable[[RunChoice, RunListing], Sequence[RunInfo] | None]
# Returns what is missing for a chart, in words; empty if nothing is missing.
Needs = Callable[[RunChoice, RunListing], str]
PROBES = analogies.view.title
PER_ROW = 3


@dataclass(frozen=True)
class MenuChart:
    """A chart of the menu.

    Attributes:
        question: The question that the chart answers.
        draw: Draws the chart.
        needs: Returns what is missing for the chart, in words; empty if nothing is missing.
        of_runs: Whether the chart counts all facts of the chosen runs, which a line above it says.
        idle: The parts of the choice of runs that change nothing in the chart.
        lacks: Returns what the chart needs and a run doesn't have; see `View.lacks`.
    """

    question: str
    draw: Draw
    needs: Needs = lambda *_: ""
    of_runs: bool = True
    idle: Sequence[str] = ()
    lacks: Callable[[RunInfo], str] = lambda _: ""

    def missing(self, choice: RunChoice, listing: RunListing) -> str:
        """Return what is missing for the chart, in words; empty if nothing is missing."""
        lacks = dict.fromkeys(map(self.lacks, choice.runs))
        if lacks and "" not in lacks:
            return f"a run with {' and '.join(lacks)}"
        return self.needs(choice, listing)


def _type_needs(choice: RunChoice, _: RunListing) -> str:
    typed = any(
        one.type is not None and one.n and one.name in (choice.relations or choice.labels)
        for run in choice.runs
        for one in run.relations
    )
    return "" if typed else "relations with a type in the data (1-1, N-1 or N-M)"


def _known_by_needs(choice: RunChoice, _: RunListing) -> str:
    few, most = known_by.view.least_runs, known_by.view.most_runs
    return "" if few <= len(choice.runs) <= (most or few) else f"{few} to {most} models"


def _draw_known_by(choice: RunChoice, _: RunListing) -> None:
    by = pick("Rows of the table", ("all", "source", "relation"), key="known_by")
    several = f"the right answer is among its first {choice.k}"
    known = "its first answer is right" if choice.k == 1 else several
    draw_whole(
        choice,
        known_by,
        f"A model knows a fact if {known}. Whiskers: 95 % intervals. Click a bar to see its facts.",
        "known_by n share interval" if by == "all" else "by known_by n share interval of",
        by=by,
    )


def _draw_mentions(choice: RunChoice, _: RunListing) -> None:
    of = pick("Mentions of the", tuple(NAMES), key="mentions_of", format_func=NAMES.__getitem__)
    draw_whole(
        choice,
        mentions,
        f"P@{choice.k} over facts by how often a text mentions its {NAMES[of]}. Whiskers: 95 % "
        "intervals.",
        "mentions model n p_at_k interval",
        panels,
        of=of,
    )


def _margin_runs(choice: RunChoice, listing: RunListing) -> RunChoice | None:
    """Return the chosen runs if any has margins, else runs of the chosen data; None without any."""
    if any(run.ranks_statements for run in choice.runs):
        return choice
    usable = [run for run in listing if run.dataset == choice.data and run.ranks_statements]
    picked = pick_runs(usable, choice.data, usable[0].prompts) if usable else {}
    return choice.with_runs([*picked.values()]) if picked else None


def _draw_margins(choice: RunChoice, listing: RunListing) -> Sequence[RunInfo] | None:
    """Draw the margins; the choice of the other tabs stays as it is."""
    shown = _margin_runs(choice, listing)
    assert shown is not None, "`needs` is empty"
    if shown is not choice:
        st.caption(
            f"Shown here only: {plain(', '.join(shown.titles))}. The chosen runs have no margins."
        )
    draw_comparison_basis(shown)
    draw_margins(shown)
    return shown.runs


def _draw_probes(*_: object) -> None:
    from pages.ui.analogy.probes import draw_probes

    draw_probes()


def _of_view(
    function: ViewFunction[..., Any, Any],
    draw: Draw,
    needs: Needs = lambda *_: "",
    *,
    of_runs: bool = True,
    idle: Sequence[str] = (),
) -> tuple[str, MenuChart]:
    """The title of a view and its chart."""
    view = function.view
    return view.title, MenuChart(view.question, draw, needs, of_runs, idle, view.lacks)


CHARTS = dict(
    (
        _of_view(ranks, draw_ranks),
        _of_view(relation_types, lambda choice, _: draw_types(choice), _type_needs, of_runs=False),
        _of_view(calibration, lambda choice, _: draw_calibration(choice)),
        _of_view(correlations, lambda choice, _: draw_correlates(choice), of_runs=False),
        _of_view(known_by, _draw_known_by, _known_by_needs),
        _of_view(mentions, _draw_mentions),
        _of_view(slices, lambda choice, _: draw_slices(choice)),
        (
            margins.view.title,
            MenuChart(
                margins.view.question,
                _draw_margins,
                lambda *given: "" if _margin_runs(*given) else "a whole-answer run",
                of_runs=False,
            ),
        ),
        _of_view(ways, draw_ways, ways_need, of_runs=False, idle=("models",)),
        _of_view(training, draw_training, training_needs, of_runs=False, idle=("models",)),
        (
            screens.TRACES,
            MenuChart(
                "Through which words and layers does a fact reach the answer?",
                draw_traces,
                traces_need,
                of_runs=False,
                idle=("models", "relations", "more"),
            ),
        ),
        _of_view(
            wording,
            draw_wording,
            lambda *given: (
                ""
                if any(wording_runs(*given))
                else f"a run of these models with the prompts {', '.join(ALTERED + SEVERAL)}"
            ),
            of_runs=False,
        ),
        _of_view(analogies, _draw_probes, of_runs=False),
    )
)


# The charts of each entry of the menu; the first one that can be drawn is opened.
GROUPS: tuple[tuple[str, ...], ...] = (
    ("Rank distribution", "Margins"),
    ("Slices", "Relation types", "Mentions", "Correlations"),
    ("Calibration",),
    ("Known by",),
    ("Wording and negation",),
    (screens.WAYS,),
    (screens.TRAINING,),
    (screens.TRACES, PROBES),
)
# What an entry with several charts answers; that of a single chart is the chart's question.
QUESTIONS = {
    "Rank distribution": "How far from the top is the right answer?",
    "Slices": "Which facts do models know, and what do these have in common?",
    screens.TRACES: "Through which layers does a fact pass, and are analogies understood?",
}


@cache
def entries() -> dict[str, tuple[str, ...]]:
    """What each entry of the menu answers -> the names of its charts; those of plug-ins last."""
    groups = GROUPS + tuple((name,) for name in all_charts() if name not in CHARTS)
    return {QUESTIONS.get(one[0], all_charts()[one[0]].question): one for one in groups}


@cache
def all_charts() -> dict[str, MenuChart]:
    """The charts by name; those of plug-ins last, and those of their views that have a figure."""
    views = [one for one in plugins.rows("views").values() if one.view.has_figure]
    drawn = dict(_of_view(view, partial(_draw_added, view)) for view in views)
    return {**drawn, **plugins.rows("charts"), **CHARTS}


def _draw_added(function: ViewFunction[..., Any, Any], choice: RunChoice, _: RunListing) -> None:
    """Draw a plug-in's view with its figure, and its table if it has columns."""
    draw_whole(choice, function, "")


def draw_more(with_runs: Callable[[Draw, Sequence[str]], None]) -> None:
    """Draw the chart that the URL names, else the menu. with_runs: draws the choice of runs."""
    name = st.query_params.get("chart", "")
    if name == PROBES:  # the choice of runs doesn't have them
        _draw_head(name)
        _draw_probes()
        return
    chart = all_charts().get(name)
    if name and chart is None and links.is_new_url():
        show_note(plain(f"Unknown chart {name!r}. Choose one below."))
    with_runs(
        lambda choice, listing: _draw(name, choice, listing), () if chart is None else chart.idle
    )


def _draw(name: str, choice: RunChoice, listing: RunListing) -> Sequence[RunInfo] | None:
    chart = all_charts().get(name)
    if chart is None:
        _draw_menu(choice, listing)
        return None
    _draw_head(name)
    if missing := chart.missing(choice, listing):
        show_note(f"Needs: {missing}.")
        links.draw_link("Start a run", "play_arrow", screens.DATA, screens.NEW_RUN)
        return None
    shown = choice.where(lambda run: not chart.lacks(run))
    if len(shown.runs) < len(choice.runs):
        lacks = " or ".join(filter(None, dict.fromkeys(map(chart.lacks, choice.runs))))
        hidden = plain(", ".join(one for one in choice.titles if one not in shown.titles))
        st.caption(f"Hidden, because they have no {lacks}: {hidden}.")
        choice = shown
    if chart.of_runs:
        draw_comparison_basis(choice)
    return chart.draw(choice, listing)


def _params_to(name: str) -> dict[str, str | list[str]]:
    """The URL parameters of a chart, or of the menu, that keep the choices of the open one."""
    without = ["chart"]
    if PROBES in (name, st.query_params.get("chart")):  # where these mean something else
        without += ["data", "models", "among", "new_probe"]
    return links.params_without(without) | {"tab": "More", "chart": name}


def _draw_head(name: str) -> None:
    """Draw what the chart's entry answers, the choice of its charts, and the way to the menu."""
    links.set_param("chart", [name])
    links.draw_link("All questions", "arrow_back", screens.RESULTS, _params_to(""))
    title, names = next(one for one in entries().items() if name in one[1])
    st.subheader(title, anchor=False)
    if len(names) == 1:
        return
    chosen = st.segmented_control(
        "Chart",
        names,
        default=name,
        required=True,
        key=f"instead of {name}",
        label_visibility="collapsed",
    )
    if chosen != name:
        links.go(screens.RESULTS, _params_to(chosen))
    st.caption(all_charts()[name].question)


def _draw_menu(choice: RunChoice, listing: RunListing) -> None:
    place, rows = st.container(key="charts"), [*entries().items()]
    for first in range(0, len(rows), PER_ROW):
        for (title, names), box in zip(rows[first:], place.columns(PER_ROW), strict=False):
            missing = {one: all_charts()[one].missing(choice, listing) for one in names}
            ready = [one for one in names if not missing[one]]
            with box.container(border=True, height="stretch", gap="xsmall"):
                if ready:
                    links.draw_link(
                        f"**{title}**", "arrow_forward", screens.RESULTS, _params_to(ready[0])
                    )
                else:  # aligned with the buttons of the other cards
                    st.button(f"**{title}**", type="tertiary", disabled=True)
                st.caption(" · ".join(names))
                if not ready:
                    st.caption(f"**Needs:** {missing[names[0]]}.")
                    links.draw_link(
                        "Start a run",
                        "play_arrow",
                        screens.DATA,
                        screens.NEW_RUN,
                        key=f"start for {names[0]}",
                    )
