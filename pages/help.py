"""How this is measured: where numbers follow another rule than the papers', and what words mean."""

import streamlit as st

from lama_core.files import read_file
from lama_core.glossary import glossary_text
from lama_core.metrics.figures import figures_text
from lama_core.paths import DOCS
from pages.ui.shared.router import draw_page, draw_tabs
from pages.ui.shared.state import pick

PAGE = "departures.md"
EVERY = "All"


def read_papers(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the papers, and each paper's departures, of docs/departures.md."""
    introduction, *parts = text.split("\n## ")
    papers = dict(part.split("\n", 1) for part in parts)
    return introduction.partition("\n")[2], papers


def draw_departures() -> None:
    """The departures from one paper, or from all with the table of them."""
    introduction, papers = read_papers(read_file(DOCS / PAGE).decode())
    names = {paper.partition(":")[0]: paper for paper in papers}
    chosen = pick("Departures from", (EVERY, *names), key="paper")
    if chosen == EVERY:
        st.markdown(introduction)
    for name, paper in names.items():
        if chosen in (EVERY, name):
            st.markdown(f"### {paper}\n" + papers[paper].replace("\n### ", "\n#### "))


def draw_glossary() -> None:
    """What the words of the app mean, and its figures."""
    text = glossary_text().partition("\n")[2] + f"\n{figures_text()}"
    st.markdown(text.replace("\n### ", "\n#### ").replace("\n## ", "\n### "))


def main() -> None:
    """The departures, or the glossary."""
    st.header("Help", anchor=False)
    st.caption(
        "How this is measured: where numbers follow another rule than the papers', and what words "
        "mean."
    )
    views = {"Glossary": draw_glossary, "Departures": draw_departures}
    draw_tabs(list(views), lambda name: views[name]())


draw_page(main)
