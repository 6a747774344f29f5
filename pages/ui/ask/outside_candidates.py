"""What the candidates leave out: said above the answers where it has most of the probability."""

from collections.abc import Sequence

import streamlit as st

from lama_core.candidates.lists import COMMON, WORDS, is_word
from lama_core.probes.cloze.query import BlankAnswer, ModelAnswer
from lama_core.rounding import fixed, percent
from pages.ui.shared.messages import plain
from pages.ui.shared.url_state import title_of


def draw_left_out(answers: Sequence[ModelAnswer], blank: int, candidates: str) -> bool:
    """Name the models and their likeliest tokens, with a button for a list that has these.

    candidates: the list that is ranked, by name. Returns whether there is anything to say.
    """
    found = {one.name: one.blanks[blank] for one in answers if one.blanks[blank].mostly_outside}
    if not found:
        return False
    said = "; ".join(f"{plain(title_of(name))} {_share(one)}" for name, one in found.items())
    firsts = [one.first.token for one in found.values() if one.first]
    wider = WORDS if candidates == COMMON and any(map(is_word, firsts)) else "full"

    def widen() -> None:
        st.session_state["candidates"] = wider

    st.markdown(f"Most of the probability is outside the candidates: {said}.", width="stretch")
    st.button(
        "Include function words" if wider == WORDS else "Rank the whole vocabulary",
        key=f"widen {blank}",
        icon=":material/playlist_add:",
        on_click=widen,
        help=f"Sets Candidates, under Options, to **{wider}**.",
    )
    return True


def _share(blank: BlankAnswer) -> str:
    """The share outside, and the likeliest token of all where it is there."""
    said = f"{percent(blank.outside or 0.0, 0)} %"
    if blank.likeliest_outside is None:
        return said
    token = blank.likeliest_outside
    return f"{said}, likeliest **{plain(token.token)}** ({fixed(token.prob, 3)})"
