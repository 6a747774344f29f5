"""Warning above the answers when most of the probability is outside the candidates."""

from collections.abc import Sequence

import streamlit as st

from lama_core.candidates.lists import COMMON, WORDS, is_word
from lama_core.queries.blank_answers import BlankAnswer, ModelAnswer, shown_token
from lama_core.rounding import fixed, percent
from pages.ui.shared.messages import plain
from pages.ui.shared.url_state import title_of


def draw_outside_candidates(answers: Sequence[ModelAnswer], blank: int, candidates: str) -> bool:
    """Name the models with most of their probability outside the candidates; offer a longer list.

    Args:
        answers: The models' answers to one query.
        blank: Index of the blank, from 0.
        candidates: Name of the list of candidates.

    Returns:
        Whether anything was drawn.
    """
    found = {model.name: model.blanks[blank] for model in answers}
    found = {name: answer for name, answer in found.items() if answer.mostly_outside}
    if not found:
        return False
    shares = "; ".join(f"{plain(title_of(name))} {_share(one)}" for name, one in found.items())
    firsts = [answer.first.token for answer in found.values() if answer.first]
    wider = WORDS if candidates == COMMON and any(map(is_word, firsts)) else "full"

    def widen() -> None:
        st.session_state["candidates"] = wider

    st.markdown(f"Most of the probability is outside the candidates: {shares}.", width="stretch")
    st.button(
        "Include function words" if wider == WORDS else "Rank the whole vocabulary",
        key=f"widen {blank}",
        icon=":material/playlist_add:",
        on_click=widen,
        help=f"Sets Candidates, under Options, to **{wider}**.",
    )
    return True


def _share(answer: BlankAnswer) -> str:
    """The share outside the candidates, and the likeliest token there if it is known."""
    share = f"{percent(answer.outside or 0.0)} %"
    if answer.likeliest_outside is None:
        return share
    token = answer.likeliest_outside
    return f"{share}, likeliest {plain(shown_token(token.token))} ({fixed(token.prob, 3)})"
