"""Data: the knowledge sources, fetched or imported, and the runs that were made on them."""

import streamlit as st

from lama_core.datasets.library import installed
from pages.ui.data import look, runs, take
from pages.ui.shared import visitors
from pages.ui.shared.messages import faults_shown
from pages.ui.shared.router import draw_page, draw_tabs

TABS = ("Sources", "Runs")


def draw_tab(name: str) -> None:
    """One of the two tabs."""
    if name == "Runs":
        runs.draw_runs()
        return
    sources = [row for row in installed.listing() if row.installed or visitors.may("fetch")]
    chosen = take.choose_source(sources)
    left, right = st.columns([3, 2], gap="large")
    with left, faults_shown():
        take.draw_source(chosen)
    with right, faults_shown():
        take.draw_import()
    if chosen.installed:
        with faults_shown():
            look.draw_content(chosen)


def main() -> None:
    """The sources (the list, the chosen one, a field to import one), or the runs."""
    st.header("Data", anchor=False)
    fetched = (
        " The starter sets come with the project; the published ones are fetched when you say so, "
        "from their authors' own addresses."
    )
    st.caption(
        "The knowledge sources: facts to ask models, pairs for analogies, prompts."
        + fetched * visitors.may("fetch")
    )
    draw_tabs(TABS, draw_tab)


draw_page(main)
