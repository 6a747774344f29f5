"""The charts of the More tab: a menu, each with the question that it answers."""

from collections.abc import Callable

import streamlit as st

from lama_core.runs.find import RunListing
from pages.ui.results.measured import draw_measured
from pages.ui.results.ranks import (
    draw_calibration,
    draw_correlates,
    draw_curves,
    draw_margins,
    draw_ranks,
)
from pages.ui.results.scores import draw_types
from pages.ui.results.slices import draw_slices
from pages.ui.results.wording import draw_wording
from pages.ui.shared.choice import RunChoice
from pages.ui.shared.state import choose

Draw = Callable[[RunChoice, RunListing], None]
# Chart -> the question that it answers, and what draws it.
CHARTS: dict[str, tuple[str, Draw]] = {
    "Curves": (
        "How often is the right answer among the first k? P@k for every k.",
        lambda choice, _: draw_curves(choice),
    ),
    "Ranks": ("At which rank is the right answer?", draw_ranks),
    "Types": (
        "Do models do better where a subject has one answer? P@k by type of relation.",
        lambda choice, _: draw_types(choice),
    ),
    "Calibration": (
        "Is a confident model right more often?",
        lambda choice, _: draw_calibration(choice),
    ),
    "Correlations": (
        "What goes with a right answer: confidence, frequency, length of the subject?",
        lambda choice, _: draw_correlates(choice),
    ),
    "Slices": (
        "On which facts is a model better: frequent answers, names that give the answer away?",
        lambda choice, _: draw_slices(choice),
    ),
    "Margins": (
        "By how much does the right answer beat the best wrong one? Needs a whole-answer run.",
        lambda choice, _: draw_margins(choice),
    ),
    "Wording": ("Does the answer change with the wording or a negation?", draw_wording),
    "LAMA T-REx": (
        "What did these models reach on LAMA's own T-REx facts?",
        lambda choice, _: draw_measured(choice),
    ),
}
PROBES = "Analogy probes"
QUESTIONS = {name: question for name, (question, _) in CHARTS.items()} | {
    PROBES: "How often does a model choose the right pair of an analogy?"
}


def draw_more(with_runs: Callable[[Draw], None]) -> None:
    """The menu, and the chosen chart. with_runs: chooses runs and draws what is shown of them."""
    chosen = choose("Chart", tuple(QUESTIONS), key="chart")
    st.markdown(QUESTIONS[chosen])
    if chosen == PROBES:
        from pages.ui.analogy.probes import draw_probes

        draw_probes()
    else:
        with_runs(CHARTS[chosen][1])
