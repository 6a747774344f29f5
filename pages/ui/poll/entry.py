"""The button that opens a poll for a query."""

from dataclasses import replace
from typing import Any

import streamlit as st

from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.queries.answers import RankRequest
from lama_core.queries.cloze import ClozeRequest
from lama_core.queries.kind import QueryKind
from lama_core.scoring.blanks import parse_query
from pages.ui.poll.rooms import ROOMS, PollQuestion, Room
from pages.ui.shared import links, screens, visitors

POLLED = (ClozeRequest, RankRequest)  # the queries that a poll can ask
MINE = "my poll"  # in the session: the visitor's room, which takes the next question, too
SHOWN = "answers shown"  # in the session: the queries whose answers were shown with a click


def hides_answers(request: object, key: str, *, always: bool = False) -> bool:
    """Draw a button that shows the models' answers, if they are hidden; return whether they are.

    They are hidden from a class while the visitor's room is open, until they are revealed there.

    Args:
        request: The query.
        key: The button's key.
        always: Whether they are hidden without a room, too.
    """
    if not isinstance(request, POLLED):
        return False
    room: Room | None = st.session_state.get(MINE)
    is_open = room is not None and not room.has_ended
    asked = room if room and is_open and room.question.text == request.text else None
    shown: set[str] = st.session_state.setdefault(SHOWN, set())
    if not (is_open or always) or (asked and asked.models is not None) or request.text in shown:
        return False
    st.button(
        "Show the models' answers",
        key=key,
        icon=":material/visibility:",
        on_click=shown.add,
        args=(request.text,),
        help="Hidden, so that the class can answer first.",
    )
    return True


def draw_open_room() -> None:
    """Draw the code of the visitor's open room, if there is one, and the way back to it."""
    room: Room | None = st.session_state.get(MINE)
    if room is None or room.has_ended:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(
            f"Room {room.code} is open. Choose the next sentence and press Class poll: it goes to "
            "the same room.",
            icon=":material/groups:",
        )
        there = {"room": room.code, "key": room.secret}
        links.draw_link("Back to the poll", "arrow_back", screens.POLL, there, type="secondary")


def draw_entry(
    kind: QueryKind[Any, Any, Any],
    request: object,
    *,
    options: tuple[str, ...] = (),
    asks: str = "",
    key: str,
) -> None:
    """Draw the button, if the query has one blank.

    Args:
        kind: The kind of query.
        request: The query, with the models that the visitor may query.
        options: The answers to choose from, unless the query has its own.
        asks: A question about a model's answer, so that the right answer to the query isn't its
            answer; empty for what fills the blank.
        key: The button's key.
    """
    if not isinstance(request, POLLED):
        return
    if parse_query(request.text).n_blanks > 1 or not st.button(
        "Class poll",
        key=key,
        icon=":material/groups:",
        help="Your class answers on phones, without seeing the models' answers, until you reveal "
        "them. The phones must reach this app: on your own computer, start it with "
        "`lama-explorer app --public`.",
    ):
        return
    gold: str | None = (request.gold or "").strip()
    if isinstance(request, RankRequest):
        _, options, gold = request.asked()
    models = tuple(name for name in request.models if is_here(find_model(name)))
    question = PollQuestion(
        text=request.text,
        options=options,
        gold="" if asks else gold or "",
        asks=asks,
        query=(kind, replace(request, models=models)),
        back=(st.session_state[links.PAGE], links.params_without(())),
    )
    room: Room | None = st.session_state.get(MINE)
    if room and not room.has_ended:
        room.ask(question)
    else:
        st.session_state[MINE] = room = ROOMS.open(question, visitors.address())
    links.go(screens.POLL, {"room": room.code, "key": room.secret})
