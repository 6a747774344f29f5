"""A participant's page of a poll: the question, then everyone's answers; made for phones."""

import streamlit as st

from lama_core.errors import int_from_env
from pages.ui.poll.bars import draw_question, draw_results
from pages.ui.poll.rooms import MAX_LETTERS, N_LETTERS, ROOMS, Room
from pages.ui.shared import links, screens, visitors
from pages.ui.shared.addresses import CONNECTIONS
from pages.ui.shared.messages import plain

ME = "me"  # in the session and the URL: the participant's id in this room
EVERY = 3.0  # seconds between two looks for the reveal; a class may have 300 phones
PLAIN = """<style>header[data-testid="stHeader"], .st-key-menu { display: none; }
.stMainBlockContainer { max-width: 60rem; padding-top: 1rem; }</style>"""


def hide_menu() -> None:
    """Hide the menu: participants came for this page only."""
    st.html(PLAIN)


def draw_door() -> None:
    """Draw the field for a room code."""
    st.header("Class poll", anchor=False)
    st.caption("Enter the code on the screen in front of you.")
    with st.form("door", border=False):
        code = st.text_input("Room code", key="poll code", max_chars=2 * N_LETTERS)
        if st.form_submit_button("Join", type="primary") and code.strip():
            links.go(screens.POLL, {"room": code.strip().upper()})


def sent_id() -> str:
    """The participant's id that the session or the URL has; empty if neither has one."""
    return str(st.session_state.get(ME) or st.query_params.get(ME, ""))


def draw(room: Room) -> None:
    """Draw the page."""
    hide_menu()
    me = sent_id()
    if room.models is None:
        most = int_from_env("LAMA_ADDRESS_CONNECTIONS", CONNECTIONS)
        me = room.join(me, visitors.address(), most)
    st.session_state[ME] = me
    links.set_param("room", [room.code])
    links.set_param(ME, [me])  # a page that is loaded again is the same participant
    waits = room.models is None
    what = "your prediction" if room.question.asks else "what fills the blank?"
    st.caption(f"**Class poll**: {what}" if waits else "**Class poll**: the answers")
    draw_question(room)
    if waits:
        said = st.container()
        key = f"poll {room.n_asked}"
        with st.form(f"answer {room.n_asked}", border=False):
            if room.question.options:
                text = st.radio(
                    "Your answer", room.question.options, index=None, format_func=plain, key=key
                )
            else:
                text = st.text_input(
                    "Your answer",
                    key=key,
                    max_chars=MAX_LETTERS,
                    placeholder="The word for the blank",
                )
            sent = st.form_submit_button("Send", type="primary", icon=":material/send:")
        if sent:
            room.answer(me, text or "")
        if answered := room.answer_of(me):
            said.success(
                f"Your answer: **{plain(answered)}**. You can change it until the answers are "
                "revealed; this page then shows them.",
                icon=":material/check:",
            )
    else:
        if given := room.answer_of(me):
            mark = " (correct)" if room.question.is_gold(given) else " (wrong)"
            st.markdown(f"Your answer: **{plain(given)}**{mark * bool(room.question.gold)}")
        draw_results(room)
        st.caption("Stay here: the next question appears on this page.")
    st.fragment(_wait, run_every=EVERY)(room, room.n_asked, room.models)


def _wait(room: Room, n_asked: int, models: object) -> None:
    """Draw the page again after the reveal, the next question or the end of the poll."""
    ROOMS.end_old()
    if room.has_ended or (room.n_asked, room.models) != (n_asked, models):
        st.rerun()
