"""Results: scores of finished runs by relation and model; every number links to its facts."""

from collections.abc import Callable

import streamlit as st

from pages.ui.prompts.view import draw_prompts_tab
from pages.ui.results.compare import draw_comparison
from pages.ui.results.more import Draw, draw_more
from pages.ui.results.overview import draw_overview
from pages.ui.router import is_routed, open_tab
from pages.ui.shared import links, screens
from pages.ui.shared.messages import show_note
from pages.ui.shared.run_choice import RunChoice, draw_comparison_basis, draw_runs, open_runs
from pages.ui.wrong_answers.view import draw_wrong_answers


def draw_empty() -> None:
    """Explain what a run is, and link to the form that starts one."""
    show_note(
        "There is no finished run yet. A run queries a model about every fact of a data set. Start "
        "one on the page Data and runs, or with `lama-explorer probe --dataset starter --model "
        "minilm-mlm`."
    )
    links.draw_link("Start a run", "play_arrow", screens.DATA, screens.NEW_RUN)


def with_runs(draw: Draw) -> None:
    """Draw the choice of runs, relations and k, then call `draw` with the choice."""
    opened = open_runs(screens.RESULTS)
    if opened is None:
        draw_empty()
        return
    listing, choice = opened
    shown = draw(choice, listing)
    draw_runs(choice if shown is None else choice.with_runs(shown))


def draw_wrong(choice: RunChoice) -> None:
    """Draw the tab Wrong answers."""
    draw_comparison_basis(choice)
    draw_wrong_answers(choice)


def main() -> None:
    """Draw the open tab."""
    st.header("Results", anchor=False)
    tabs: dict[str, Callable[[], None]] = {
        "Overview": lambda: with_runs(lambda choice, _: draw_overview(choice)),
        "Compare": lambda: with_runs(draw_comparison),
        "Wrong answers": lambda: with_runs(lambda choice, _: draw_wrong(choice)),
        "Prompts": draw_prompts_tab,
        "More": lambda: draw_more(with_runs),
    }
    with open_tab(list(tabs)) as name:
        tabs[name]()


if is_routed():
    main()
