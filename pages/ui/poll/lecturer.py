"""The lecturer's page of a poll: the room's link, the arriving answers, Reveal and End."""

from dataclasses import replace
from typing import NoReturn
from urllib.parse import urlencode

import streamlit as st

from lama_core.queries.kind import Asked
from pages.ui.poll.bars import draw_class, draw_question, draw_results
from pages.ui.poll.entry import MINE
from pages.ui.poll.rooms import ROOMS, ModelAnswers, Room
from pages.ui.shared import cache, links, share
from pages.ui.shared.messages import errors_shown, plain
from pages.ui.shared.predictions import name_of_values, short_title

EVERY = 1.0  # seconds between two looks at the answers
N_SHOWN = 5  # answers of a model
# Streamlit sizes everything relative to the root font size: read from the last row of a hall.
LARGE = """<style>@media (min-width: 1000px) { html { font-size: 20px !important; }
.lx-sentence { font-size: 1.7rem; } .lx-head { flex-wrap: nowrap; } }</style>"""


def draw(room: Room) -> None:
    """Draw the page."""
    links.set_param("room", [room.code])
    links.set_param("key", [room.secret])
    st.html(LARGE)
    with st.container(horizontal=True, vertical_alignment="bottom", key="poll-head"):
        st.header("Class poll", anchor=False)
        reveal = st.empty()
        if st.button(
            "Next question",
            icon=":material/arrow_forward:",
            help="Go back, and press Class poll at another sentence: it goes to the same room.",
        ):
            st.session_state[MINE] = room
            _go_back(room)
        with st.popover("End", icon=":material/stop_circle:"):
            st.caption("Closes the room and deletes all answers.")
            if st.button("End the poll", type="primary"):
                ROOMS.end(room)
                _go_back(room)
    draw_question(room)
    address = share.whole_address(urlencode({"room": room.code}))
    if room.models is not None:
        with reveal.popover(f"Room {room.code}", icon=":material/qr_code:"):  # for latecomers
            share.draw_address(address)
        draw_results(room)
        return
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.subheader(f"Room {room.code}", anchor=False)
        share.draw_address(address)
    with right:
        with st.container(border=True):
            arriving = st.container()
            early = st.toggle(
                "Show answers as they come",
                help="Late answers may follow the majority.",
            )
            with arriving:
                st.fragment(_draw_arriving, run_every=EVERY)(room, early=early)
        titles = ", ".join(map(short_title, room.question.query[1].models))
        if titles:
            st.caption(f":material/visibility_off: Hidden until you reveal them: {plain(titles)}.")
    with st.spinner("Querying the models"):
        kind, request = room.question.query
        if hasattr(request, "top_k"):
            request = replace(request, top_k=max(request.top_k, N_SHOWN))
        found = []
        for name in request.models:
            with errors_shown():
                one = cache.answer(kind, request, name)
                asked = Asked(request, cache.prepared(kind, request), cache.candidates_for(request))
                rows = kind.first_answers(asked, one, N_SHOWN + 1)
                # A likelier token that isn't ranked is one more row.
                rows = rows[: N_SHOWN + (rows[0].rank is None)]
                number = name_of_values(kind.settings(asked, one))
                found.append(ModelAnswers(name, rows, kind.gold(asked, one), number))
        models = tuple(found)
    reveal.button(
        "Reveal",
        type="primary",
        icon=":material/visibility:",
        on_click=room.reveal,
        args=(models,),
    )


def _go_back(room: Room) -> NoReturn:
    """Open the page where the poll was opened."""
    page, params = room.question.back
    links.go(page, params, replaces=True)


def _draw_arriving(room: Room, *, early: bool) -> None:
    """Draw the class's answers or, unless `early`, only their number; runs every second."""
    ROOMS.end_old()
    if room.has_ended:  # also if this comes before the answer to the click that ended it
        _go_back(room)
    if room.models is not None:
        st.rerun()
    draw_class(room, reveals=False, counts_only=not early)
