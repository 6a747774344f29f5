"""Data and runs: the data sets, imported or downloaded, and the runs made on them."""

import streamlit as st

from lama_core.datasets.library import installed
from pages.ui.data import contents, datasets, runs
from pages.ui.results.new_run import draw_form
from pages.ui.router import is_routed, open_tab
from pages.ui.shared import visitors
from pages.ui.shared.messages import errors_shown


def draw_sets() -> None:
    """Draw the list of data sets and the facts of the chosen one."""
    sources = [row for row in installed.listing() if row.installed or visitors.may("fetch")]
    st.markdown(
        "A data set is a list of facts to ask models. Choose one to see its relations and facts."
    )
    left, right = st.columns([2, 1], gap="large")
    with left:
        chosen = datasets.choose_source(sources)
    with right, st.container(key="detail"), errors_shown():
        datasets.draw_source(chosen)
    if chosen.installed:
        with errors_shown():
            contents.draw_content(chosen)


def draw_study() -> None:
    """Draw the form for a new prompt study. Its modules are imported only when it is opened."""
    from pages.ui.prompts.new_study import draw_form

    draw_form()


def main() -> None:
    """Draw the open tab."""
    st.header("Data and runs", anchor=False)
    tabs = {
        "Data sets": draw_sets,
        "Import": datasets.draw_import,
        "New run": draw_form,
        "New study": draw_study,
        "Runs": runs.draw_runs,
    }
    with open_tab(list(tabs)) as name:
        tabs[name]()


if is_routed():
    main()
