"""Results: scores of finished runs by relation and model; every number links to its facts."""

from collections.abc import Container
from typing import TYPE_CHECKING

import streamlit as st

from pages.ui.router import is_routed, open_tab
from pages.ui.shared import links, screens
from pages.ui.shared.messages import show_note
from pages.ui.shared.run_choice import draw_runs, open_runs

if TYPE_CHECKING:
    from pages.ui.results.more import Draw


def with_runs(draw: "Draw", idle: Container[str] = ()) -> None:
    """Draw the choice of runs, relations and k, then call `draw` with it; a note without runs.

    idle: as of `open_runs`.
    """
    opened = open_runs(idle)
    if opened is None:
        show_note(
            "There is no finished run yet. A run queries a model about every fact of a data set. "
            "Start one on the page Data and runs, or with `lama-explorer probe --dataset starter "
            "--model minilm-mlm`."
        )
        links.draw_link("Start a run", "play_arrow", screens.DATA, screens.NEW_RUN)
        return
    listing, choice = opened
    shown = draw(choice, listing)
    draw_runs(choice if shown is None else choice.with_runs(shown))


def draw_overview_tab() -> None:
    """Draw the tab Overview."""
    if st.query_params.get("large") == screens.LAMA_TREX:  # the same for every choice of runs
        from pages.ui.results.lama_trex import draw_measured

        draw_measured()
        return
    from pages.ui.results.overview import draw_overview

    with_runs(lambda choice, _: draw_overview(choice))


def draw_compare_tab() -> None:
    """Draw the tab Compare."""
    from pages.ui.results.compare import draw_comparison

    with_runs(draw_comparison, idle=("models",))


def draw_wrong_tab() -> None:
    """Draw the tab Wrong answers."""
    from pages.ui.wrong_answers.view import draw_wrong_answers

    with_runs(lambda choice, _: draw_wrong_answers(choice))


def draw_prompts() -> None:
    """Draw the tab Prompts."""
    from pages.ui.prompts.view import draw_prompts_tab

    if links.only_facts():
        st.caption("A study has its own facts, which the chosen facts don't restrict.")
    draw_prompts_tab()


def draw_more_tab() -> None:
    """Draw the tab More."""
    from pages.ui.results.more import draw_more

    draw_more(with_runs)


# Each tab imports what it draws with when it is opened, so that the first one is drawn sooner.
TABS = {
    "Overview": draw_overview_tab,
    "Compare": draw_compare_tab,
    "Wrong answers": draw_wrong_tab,
    "Prompts": draw_prompts,
    "More": draw_more_tab,
}


def main() -> None:
    """Draw the open tab."""
    st.header("Results", anchor=False)
    with open_tab(list(TABS)) as name:
        TABS[name]()


if is_routed():
    main()
