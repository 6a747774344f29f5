"""The relations with the worst scores, as buttons."""

import streamlit as st

from lama_core.views.scores import RunScores, ScoreMeasure, ScoresRequest, weakest
from lama_core.views.view import Shown
from pages.ui.shared.messages import plain
from pages.ui.shared.run_choice import RunChoice

N_WEAKEST = 3
HELP = (
    "The relations with the worst mean over the models. Click one to see the facts that are wrong, "
    "the most confident answers first."
)


def draw_weakest(
    choice: RunChoice, shown: Shown[ScoresRequest, RunScores], measure: ScoreMeasure
) -> str | None:
    """Draw the relations with the worst mean over the models; return the clicked one's label.

    Nothing is drawn for a few relations.
    """
    if shown.frame["relation"].nunique() <= N_WEAKEST:
        return None
    clicked = None
    st.markdown("**Weakest relations** (mean over the models)", width="content", help=HELP)
    for name, value in weakest(shown, measure, N_WEAKEST).items():
        said = measure.metric.shown(value) + " %" * measure.metric.is_share
        if st.button(f"{plain(choice.labels[name])}: {said}", type="tertiary"):
            clicked = choice.labels[name]
    return clicked
