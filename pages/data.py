"""Data and runs: the data sets, imported or downloaded, and the runs made on them."""

import streamlit as st

from pages.ui.data import datasets, runs
from pages.ui.router import is_routed, open_tab


def main() -> None:
    """Draw the open tab."""
    st.header("Data and runs", anchor=False)
    tabs = {"Data": datasets.draw_sets, "Import": datasets.draw_import, "Runs": runs.draw_runs}
    with open_tab(list(tabs)) as name:
        tabs[name]()


if is_routed():
    main()
