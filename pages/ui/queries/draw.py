"""Draw a tab of any kind of query: its form, each model's answer, and the export."""

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core.queries.kind import Answer, Asked
from lama_core.views.colours import model_colours
from pages.ui.poll.entry import draw_entry, hides_answers
from pages.ui.queries import history, pins
from pages.ui.queries.answer_table import DETAILS
from pages.ui.queries.tab import Tab
from pages.ui.shared import cache, predictions
from pages.ui.shared.export import draw_answer_export
from pages.ui.shared.messages import errors_shown, plain
from pages.ui.shared.model_columns import draw_language_note, query_models
from pages.ui.shared.url_state import BOUND


def draw_query(tab: Tab[Any, Any, Any], poll: DeltaGenerator) -> None:
    """Draw the tab below its caption. poll: the place of the button that opens a poll."""
    with errors_shown():
        request = tab.form.draw()
        unable = tuple(name for name in request.models if not tab.can_answer(name))
        asked_models = tuple(name for name in request.models if name not in unable)
        if unable and not asked_models:
            _draw_unable(tab, unable)
            return
        request = replace(request, models=asked_models)
        request.check()
        with poll:  # before the answers, so that a class can guess first
            draw_entry(tab.kind, request, key=f"{tab.exported} poll")
        if hides_answers(request, f"{tab.exported} show"):
            return
        shared = cache.prepared(tab.kind, request)
        history.add_entry(request)
        asked = Asked(request, shared)
        draw_language_note(tab.language_of(request), request.models)
        lines = tab.above(asked) or ()
        colours, stored = model_colours(request.models), tab.stored(asked)
        columns = query_models(
            request.models,
            lambda name, here: cache.answer(
                tab.kind,
                replace(request, models=here),
                name,
                since=tab.since(request, name),
                **tab.calls(colours[name]),
            ),
            tab.describe,
            per_row=tab.per_row,
            stored=stored,
            draw=partial(tab.draw, asked),
        )
        if unable:
            _draw_unable(tab, unable)
        if not columns:
            for line in lines:
                line.empty()
            if alone := {name: found.blank for name, found in stored.items() if found}:
                with lines[0]:
                    predictions.draw_first_answers(alone)
            return
        request = replace(request, models=tuple(columns))
        asked = Asked(request, shared, cache.candidates_for(request))
        answer = Answer(tab.kind, asked, tuple(column.answer for column in columns.values()))
        tab.below(answer, lines, {name: stored.get(name) for name in asked_models})
        draw_answer_export(tab.exported, answer, request, partial(_draw_more, tab, request))
        tab.after(answer)
        pins.draw_pinned()


def _draw_more(tab: Tab[Any, Any, Any], request: Any) -> None:
    """Draw the button Pin next to Export, and the switch for what the cards don't show at first."""
    if tab.kind.answer_field:
        pins.draw_pin(request, key=f"{tab.exported} pin")
    if tab.has_details:
        st.toggle(
            "Details",
            key=DETAILS,
            bind=BOUND,
            help="Log-probabilities, and what the lists count.",
        )


def _draw_unable(tab: Tab[Any, Any, Any], names: tuple[str, ...]) -> None:
    """Name the chosen models that can't answer."""
    titles = plain(", ".join(map(predictions.short_title, names)))
    st.info(f"Not asked: {titles}. {tab.cannot}", icon=":material/block:")
