"""Analogy: solve one, score candidate pairs, and see what probes with many of them found."""

import streamlit as st

from pages.ui.shared.router import draw_page, draw_tabs

TABS = ("Solve", "Score", "Probes")


def draw_tab(name: str) -> None:
    """One of the three tabs; what it needs is loaded when it is opened."""
    if name == "Solve":
        from pages.ui.analogy.solve import draw_solve

        draw_solve()
    elif name == "Score":
        from pages.ui.analogy.score import draw_score

        draw_score()
    else:
        from pages.ui.analogy.probes import draw_probes

        draw_probes()


def main() -> None:
    """Read which tab is open, and draw it."""
    st.header("Analogies", anchor=False)
    st.caption(
        "A is to B as C is to D. A model that completes analogies knows a relation without being "
        "told which."
    )
    draw_tabs(TABS, draw_tab, key="view")


draw_page(main)
