"""How much of the probability isn't the candidates', and the buttons that rank more tokens."""

from collections.abc import Sequence

import streamlit as st

from lama_core.candidates.lists import FULL, OWN, OWN_WITH_FUNCTION_WORDS
from lama_core.queries.blank_answers import ModelAnswer
from lama_core.rounding import percent
from pages.ui.shared import cache
from pages.ui.shared.messages import plain
from pages.ui.shared.url_state import title_of

# Candidate list -> the button that chooses it.
BUTTONS = {
    OWN: "Rank each model's own words",
    OWN_WITH_FUNCTION_WORDS: "Include function words",
    FULL: "Rank all tokens",
}


def draw_outside_candidates(kind: str, answers: Sequence[ModelAnswer], blank: int) -> None:
    """Offer the lists that have the likeliest tokens; the cards show those that aren't ranked.

    Args:
        kind: The name of the kind of query.
        answers: The models' answers to one query.
        blank: Index of the blank, from 0.
    """
    found = {model.name: model.blanks[blank] for model in answers}
    beaten = {name: one for name, one in found.items() if one.likeliest_outside}
    mostly = {
        name: one for name, one in found.items() if (one.outside or 0) > 0.5 and name not in beaten
    }
    if mostly:
        shares = (f"{title_of(name)} {percent(one.outside or 0)} %" for name, one in mostly.items())
        said = plain("; ".join(shares))
        st.markdown(f"Most of the probability is outside the candidates: {said}.", width="stretch")
    seconds = max(1, round(cache.usual_seconds(kind, [model.name for model in answers])))
    lists = {one.not_ranked.ranked_with for one in beaten.values() if one.not_ranked}
    for name in (name for name in BUTTONS if name in lists):
        st.button(
            f"{BUTTONS[name]} (about {seconds} s)",
            key=f"{name} {blank}",
            icon=":material/playlist_add:",
            on_click=st.session_state.update,
            args=({"candidates": name},),
            help=f"Asks the models again, with **{name}** as Candidates under Options.",
        )
