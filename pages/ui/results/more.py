"""The More tab of Results: a menu of charts by the question they answer, and the chosen chart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core import plugins
from lama_core.runs.find import RunListing
from lama_core.runs.info import RunInfo
from lama_core.views.analogies import analogies
from lama_core.views.calibration import calibration
from lama_core.views.correlations import correlations
from lama_core.views.curves import curves
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
from pages.ui.results.curves_and_ranks import (
    draw_calibration,
    draw_correlates,
    draw_curves,
    draw_margins,
    draw_ranks,
)
from pages.ui.results.draw_view import draw_whole
from pages.ui.results.lama_trex import draw_measured
from pages.ui.results.relation_types import draw_types
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
PROBES, LAMA = analogies.view.title, "LAMA T-REx"
# URL parameters of analogy probes that mean something else, or nothing, in other charts.
OF_RUNS = ("data", "among", "new_probe")
PER_ROW = 3
ADDED = "From plug-ins"  # the heading of their charts
# Heading of the menu -> its charts.
GROUPS = {
    "How much do models know?": (
        "P@k curves", "Rank distribution", "Calibration", "Known by", LAMA, "Margins",
    ),
    "Which facts do they know, and why?": (
        "Relation types", "Slices", "Mentions", "Correlations", "Training", screens.TRACES,
    ),
    "Does it depend on how they are asked?": ("Ways of asking", "Wording and negation", PROBES),
}  # fmt: skip


@dataclass(frozen=True)
class MenuChart:
    """A chart of the menu.

    Attributes:
        question: The question that the chart answers.
        draw: Draws the chart.
        needs: Returns what is missing for the chart, in words; empty if nothing is missing.
        of_runs: Whether the chart counts all facts of the chosen runs, which a line above it says.
        lacks: Returns what the chart needs and a run doesn't have; see `View.lacks`.
    """

    question: str
    draw: Draw
    needs: Needs = lambda *_: ""
    of_runs: bool = True
    lacks: Callable[[RunInfo], str] = lambda _: ""

    def missing(self, choice: RunChoice, listing: RunListing) -> str:
        """Return what is missing for the chart, in words; empty if nothing is missing."""
        lacks = dict.fromkeys(map(self.lacks, choice.runs))
        if lacks and "" not in lacks:
            return f"a run with {' and '.join(lacks)}"
        return self.needs(choice, listing)


def _type_needs(choice: RunChoice, _: RunListing) -> str:
    chosen = set(choice.relations or choice.labels)
    relations = (relation for run in choice.runs for relation in run.relations)
    typed = any(one.type is not None and one.n for one in relations if one.name in chosen)
    return "" if typed else "relations with a type in the data (1-1, N-1 or N-M)"


def _wording_needs(choice: RunChoice, listing: RunListing) -> str:
    found = any(wording_runs(choice, listing))
    return "" if found else f"a run of these models with the prompts {', '.join(ALTERED + SEVERAL)}"


def _known_by_needs(choice: RunChoice, _: RunListing) -> str:
    few, most = known_by.view.least_runs, known_by.view.most_runs
    return "" if few <= len(choice.runs) <= (most or few) else f"{few} to {most} models"


def _draw_known_by(choice: RunChoice, _: RunListing) -> None:
    by = pick("Rows of the table", ("all", "source", "relation"), key="known_by")
    known = f"the right answer is among its first {choice.k}"
    known = "its first answer is right" if choice.k == 1 else known
    draw_whole(
        choice,
        known_by,
        f"A model knows a fact if {known}. Whiskers: 95 % intervals. Click a bar to see its facts.",
        "known_by n share interval" if by == "all" else "by known_by n share interval of",
        by=by,
    )


def _draw_mentions(choice: RunChoice, _: RunListing) -> None:
    links.replace_values("mentions_of", {"object": NAMES["object"]})  # of earlier versions
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


def _draw_probes(*_: object) -> None:
    from pages.ui.analogy.probes import draw_probes

    draw_probes()


def _of_view(
    function: ViewFunction[..., Any, Any],
    draw: Draw,
    needs: Needs = lambda *_: "",
    *,
    of_runs: bool = True,
) -> tuple[str, MenuChart]:
    """The title of a view and its chart."""
    view = function.view
    return view.title, MenuChart(view.question, draw, needs, of_runs, view.lacks)


CHARTS = dict(
    (
        _of_view(curves, lambda choice, _: draw_curves(choice)),
        _of_view(ranks, draw_ranks),
        _of_view(relation_types, lambda choice, _: draw_types(choice), _type_needs, of_runs=False),
        _of_view(calibration, lambda choice, _: draw_calibration(choice)),
        _of_view(correlations, lambda choice, _: draw_correlates(choice), of_runs=False),
        _of_view(known_by, _draw_known_by, _known_by_needs),
        _of_view(mentions, _draw_mentions),
        _of_view(slices, lambda choice, _: draw_slices(choice)),
        _of_view(
            margins,
            lambda choice, _: draw_margins(choice),
            lambda choice, _: (
                "" if any(run.ranks_statements for run in choice.runs) else "a whole-answer run"
            ),
        ),
        _of_view(ways, draw_ways, ways_need, of_runs=False),
        _of_view(training, draw_training, training_needs, of_runs=False),
        (
            screens.TRACES,
            MenuChart(
                "Through which words and layers does a fact reach the answer?",
                draw_traces,
                traces_need,
                of_runs=False,
            ),
        ),
        _of_view(wording, draw_wording, _wording_needs, of_runs=False),
        (
            LAMA,
            MenuChart(
                "How well do two models do on LAMA's own T-REx facts?",
                lambda *_: draw_measured(),
                of_runs=False,
            ),
        ),
        _of_view(analogies, _draw_probes, of_runs=False),
    )
)


@cache
def all_charts() -> dict[str, MenuChart]:
    """The charts by name; those of plug-ins last, and those of their views that have a figure."""
    views = [one for one in plugins.rows("views").values() if one.view.has_figure]
    drawn = dict(_of_view(view, partial(_draw_added, view)) for view in views)
    return CHARTS | {k: v for k, v in (drawn | plugins.rows("charts")).items() if k not in CHARTS}


def _draw_added(function: ViewFunction[..., Any, Any], choice: RunChoice, _: RunListing) -> None:
    """Draw a plug-in's view with its figure, and its table if it has columns."""
    draw_whole(choice, function, "")


def draw_more(with_runs: Callable[[Draw], None]) -> None:
    """Draw the chart that the URL names, else the menu. with_runs: draws the choice of runs."""
    name = st.query_params.get("chart", "")
    if name in (PROBES, LAMA):  # the choice of runs has neither
        _draw_head(name)
        if name == LAMA:
            links.keep_params()  # for the way back to other charts
            draw_measured()
        else:
            _draw_probes()
        return
    if name and name not in all_charts() and links.is_new_url():
        show_note(plain(f"Unknown chart {name!r}. Choose one below."))
    with_runs(lambda choice, listing: _draw(name, choice, listing))


def _draw(name: str, choice: RunChoice, listing: RunListing) -> Sequence[RunInfo] | None:
    chart = all_charts().get(name)
    if chart is None:
        place = st.container(key="charts")
        added = tuple(one for one in all_charts() if one not in CHARTS)
        for heading, names in (GROUPS | ({ADDED: added} if added else {})).items():
            place.markdown(f"### {heading}")
            _draw_cards(place, names, choice, listing)
        return None
    _draw_head(name)
    own = None
    if missing := chart.missing(choice, listing):
        own = _own_runs(name, choice, listing)
        if own is None:
            show_note(f"Needs: {missing}.")
            _draw_link_to_new_run(name)
            return None
        st.caption(
            f"Shown here only: {plain(', '.join(own.titles))}. The chosen runs have no margins."
        )
        choice = own
    shown = choice.where(lambda run: not chart.lacks(run))
    if len(shown.runs) < len(choice.runs):
        lacks = " or ".join(filter(None, dict.fromkeys(map(chart.lacks, choice.runs))))
        hidden = ", ".join(one for one in choice.titles if one not in shown.titles)
        st.caption(f"Hidden, because they have no {lacks}: {plain(hidden)}.")
        choice = shown
    if chart.of_runs:
        draw_comparison_basis(choice)
    drawn = chart.draw(choice, listing)
    return own.runs if own and drawn is None else drawn


def _draw_head(name: str) -> None:
    """Draw the chart's name and question, and the button back to the menu."""
    links.set_param("chart", [name])
    kept = links.params_without(["chart", *(OF_RUNS if name == PROBES else ())])
    links.draw_link("All charts", "arrow_back", screens.RESULTS, kept)
    st.subheader(name, anchor=False)
    st.caption(all_charts()[name].question)


def _draw_cards(
    place: DeltaGenerator, names: Sequence[str], choice: RunChoice, listing: RunListing
) -> None:
    for first in range(0, len(names), PER_ROW):
        for name, box in zip(names[first:], place.columns(PER_ROW), strict=False):
            chart = all_charts()[name]
            missing = chart.missing(choice, listing)
            if missing and _own_runs(name, choice, listing):
                missing = ""
            with box.container(border=True, height="stretch", gap="xsmall"):
                if missing:  # aligned with the buttons of the other cards
                    st.button(f"**{name}**", key=f"open {name}", type="tertiary", disabled=True)
                else:
                    without = () if name != PROBES else (*choice.params(), *OF_RUNS)
                    kept = links.params_without(without) | {"tab": "More", "chart": name}
                    key = f"open {name}"
                    links.draw_link(f"**{name}**", "arrow_forward", screens.RESULTS, kept, key=key)
                st.caption(chart.question)
                if missing:
                    st.caption(f"**Needs:** {missing}.")
                    _draw_link_to_new_run(name)


def _own_runs(name: str, choice: RunChoice, listing: RunListing) -> RunChoice | None:
    """Return runs of the chosen data that a chart can draw, if the chosen runs can't be drawn.

    The choice of the other tabs stays as it is.
    """
    usable = [run for run in listing if run.dataset == choice.data and run.ranks_statements]
    if name != "Margins" or not usable:
        return None
    return choice.with_runs([*pick_runs(usable, choice.data, usable[0].prompts).values()])


def _draw_link_to_new_run(name: str) -> None:
    key = f"start for {name}"
    links.draw_link("Start a run", "play_arrow", screens.DATA, screens.NEW_RUN, key=key)
