"""Results: what finished runs say, by relation and model; every number leads to its facts."""

from collections.abc import Callable

import streamlit as st

from lama_core.runs.find import RunListing
from pages.ui.results.compare import draw_comparison
from pages.ui.results.form import draw_form
from pages.ui.results.measured import draw_measured
from pages.ui.results.ranks import (
    draw_calibration,
    draw_correlates,
    draw_curves,
    draw_margins,
    draw_ranks,
)
from pages.ui.results.scores import draw_scores, draw_types
from pages.ui.results.slices import draw_slices
from pages.ui.results.wording import draw_wording
from pages.ui.shared import links
from pages.ui.shared.choice import RunChoice, draw_runs, open_runs
from pages.ui.shared.messages import faults_shown, show_note
from pages.ui.shared.router import draw_page, draw_tabs


def draw_all(choice: RunChoice, listing: RunListing) -> None:
    """One way of looking at the runs at a time."""
    drawn: dict[str, Callable[[], None]] = {
        "P@k": lambda: draw_scores(choice),
        "LAMA T-REx": lambda: draw_measured(choice),
        "Curves": lambda: draw_curves(choice),
        "Ranks": lambda: draw_ranks(choice, listing),
        "Margins": lambda: draw_margins(choice),
        "Types": lambda: draw_types(choice),
        "Slices": lambda: draw_slices(choice),
        "Calibration": lambda: draw_calibration(choice),
        "Correlations": lambda: draw_correlates(choice),
        "Wording": lambda: draw_wording(choice, listing),
        "Compare": lambda: draw_comparison(choice, listing),
        "New run": draw_form,
    }
    draw_tabs(list(drawn), lambda name: drawn[name]())


def draw_empty() -> None:
    """No run yet: what a run is, and the way to the first."""
    show_note(
        "No finished run is here yet. A run asks a model every fact of a knowledge source; start "
        "one below, or with `lama-explorer probe --dataset starter --model minilm-mlm`."
    )
    draw_form()


def main() -> None:
    """Choose runs, relations and k; look at them in one of several ways."""
    st.header("Results", anchor=False)
    st.caption(
        "How often models give the right word first, by relation. Behind every number and mark are "
        "its facts."
    )
    with faults_shown():
        opened = open_runs(links.RESULTS)
        if opened is None:
            draw_empty()
            return
        listing, choice = opened
        draw_all(choice, listing)
        draw_runs(choice)


draw_page(main)
