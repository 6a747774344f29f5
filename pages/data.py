"""Data: what facts are here, what can be fetched or imported, and a look into each relation."""

import streamlit as st

from lama_core.datasets.library import installed
from pages.ui.data import look, take
from pages.ui.shared import links
from pages.ui.shared.messages import faults_shown
from pages.ui.shared.router import draw_page


def main() -> None:
    """The list, the chosen source, a field to import one, and its relations."""
    links.restore(links.DATA)
    st.header("Data", anchor=False)
    st.caption(
        "The knowledge sources: facts to ask models, pairs for analogies, prompts. The starter "
        "sets come with the project; the published ones are fetched when you say so, from their "
        "authors' own addresses."
    )
    with faults_shown():
        sources = installed.listing()
        chosen = take.choose_source(sources)
        left, right = st.columns([3, 2], gap="large")
        with left:
            take.draw_source(chosen)
        with right, faults_shown():
            take.draw_import()
        if chosen.installed:
            with faults_shown():
                look.draw_content(chosen)


draw_page(main)
