"""The charts of Overview, linked: scores by source, P@k curves and ranks.

A click on a row of the scores selects its relation or source in all charts, a click elsewhere the
mark's model; what is selected is in the URL. A click on the only relation and model opens the facts
behind the mark. One chart can have the width of the page, without the others; the URL names it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from lama_core.tables import Line
from lama_core.views.curves import curves
from lama_core.views.figure import Figure
from lama_core.views.ranks import ranks
from lama_core.views.view import Shown, ViewFunction
from pages.ui.results.curves_and_ranks import draw_curves, draw_histogram
from pages.ui.results.draw_view import draw_figure, open_facts, open_line
from pages.ui.shared import links, screens
from pages.ui.shared.run_choice import RunChoice

SCORES, RANKS = "scores", "ranks"
VIEWS: dict[str, ViewFunction[..., Any, Any]] = {screens.CURVES: curves, RANKS: ranks}
ENLARGED = {screens.CURVES: draw_curves, RANKS: draw_histogram}
ICON = ":material/open_in_full:"
MOST_BESIDE = 14  # rows of the scores; with more, the other charts stand above them
LEAST_HEIGHT = 430  # pixels, of the scores next to the others


def draw_dashboard(choice: RunChoice, bars: Figure) -> Line | None:
    """Draw the three charts; return a clicked mark of the scores whose facts are to be opened.

    bars: the scores, with columns `run`, `source` and `relation`.
    """
    if (choice.models or choice.relations) and st.button(
        "Wrong answers", icon=":material/fact_check:", type="tertiary", key="wrongs"
    ):
        open_facts(choice, wrong=[choice.names[0]], sort=screens.CONFIDENT_FIRST)
    ranked = choice.where(lambda run: run.has_ranks)
    is_wide = bars.frame[bars.by.column].nunique() > MOST_BESIDE
    large = st.query_params.get("large")
    names = (SCORES, *VIEWS) if ranked.runs else (SCORES,)
    if large in names:
        links.set_param("large", [large])
        if st.button("All charts", icon=":material/close_fullscreen:", type="tertiary"):
            _select(large=[])
        if large in ENLARGED:
            ENLARGED[large](ranked)
            return None
    with st.container(key="dashboard"):
        if not ranked.runs or large == SCORES:
            places: list[Any] = [st.container()]
        elif is_wide:  # the others first, because the scores may be longer than the screen
            above = st.columns(2, gap="medium")
            places = [st.container(), *above]
        else:
            places = list(st.columns([5, 4, 4], gap="medium"))
        for name, place in zip(names, places, strict=False):
            if large != name and place.button(f"Enlarge {name}", icon=ICON, type="tertiary"):
                _select(large=[name])
        with places[0]:
            height = 0 if is_wide else LEAST_HEIGHT
            bars = replace(bars, caption="")  # the headline and the line below say it
            mark = draw_figure(choice, _short(bars), "precision chart", height=height)
        others: list[tuple[Shown[Any, Any], Line]] = []
        for function, place in zip(VIEWS.values(), places[1:], strict=False):
            shown = ranked.view(function)
            with place:
                key = f"overview {function.view.name} chart"
                line = draw_figure(ranked, _short(shown.figure), key, about=shown.caption)
            if line is not None:
                others.append((shown, line))
    if mark is not None:
        relations = _relations_of(choice, mark)
        if relations and {*relations} != {*(choice.relations or choice.labels)}:
            _select(relations=choice.labels_of(relations))
        _select_model(choice, str(mark["run"]))
        return mark
    for shown, clicked in others:
        _select_model(choice, str(clicked["run"]))
        open_line(choice, shown, clicked)
    return None


def _short(figure: Figure) -> Figure:
    """Return a figure with a title of one line, so that charts side by side begin together."""
    return replace(figure, title=figure.title.partition(",")[0])


def _relations_of(choice: RunChoice, mark: Line) -> list[str]:
    """Return the relations of a row of the scores; [] of the row for all."""
    if isinstance(mark["relation"], str):
        return [mark["relation"]]
    if not isinstance(mark["source"], str):
        return []
    every = {one.name: one.source for run in choice.runs for one in run.relations}
    chosen = choice.relations or tuple(every)
    return [name for name in chosen if every.get(name) == mark["source"]]


def _select_model(choice: RunChoice, run_id: str) -> None:
    """Show the run alone, unless it is alone."""
    if len(choice.runs) < 2:
        return
    if choice.exact:
        _select(runs=[run_id])
    _select(models=[run.model for run in choice.runs if run.id == run_id])


def _select(**params: Sequence[str]) -> None:
    """Open the page with another choice of runs or relations."""
    others = links.params_without([*params])
    links.go(screens.RESULTS, others | {name: list(values) for name, values in params.items()})
