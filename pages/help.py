"""Help: how a query becomes a number, what the words mean, and departures from the papers."""

import streamlit as st

from lama_core.files import read_file
from lama_core.glossary import glossary_text, read_terms
from lama_core.metrics.relation_figures import figures_text
from lama_core.paths import DOCS
from pages.ui.help.illustrated import draw_illustrated
from pages.ui.shared.messages import plain
from pages.ui.shared.router import draw_page
from pages.ui.shared.url_state import BOUND

PAGE = "departures.md"
EVERY = "All"


def read_papers(text: str) -> tuple[str, dict[str, str]]:
    """The text before the papers, and each paper's departures, of docs/departures.md."""
    introduction, *parts = text.split("\n## ")
    papers = dict(part.split("\n", 1) for part in parts)
    return introduction.partition("\n")[2], papers


def draw_departures() -> None:
    """The departures from each paper, folded; the paper that the address names is open."""
    introduction, papers = read_papers(read_file(DOCS / PAGE).decode())
    asked = st.query_params.get("paper", "")
    st.subheader("Departures from the papers", anchor=False)
    st.caption(
        "Where a number here follows another rule than a paper, and the option that restores the "
        "paper's rule."
    )
    place = st.container(gap="xxsmall")
    with place.expander("All departures in a table", expanded=asked == EVERY):
        st.markdown(introduction)
    for paper, text in papers.items():
        with place.expander(plain(paper), expanded=paper.partition(":")[0] == asked):
            st.markdown(text.replace("\n### ", "\n#### "))


def draw_glossary() -> None:
    """The terms of the app and its measures, all or those that a search finds."""
    st.subheader("Glossary", anchor=False)
    terms = read_terms(glossary_text()) | read_terms(figures_text())
    sought = st.text_input(
        "Search the glossary", key="term", bind=BOUND, placeholder="P@1, candidates, ..."
    )
    wanted = (sought or "").strip().lower()
    found = {term: text for term, text in terms.items() if wanted in f"{term} {text}".lower()}
    named = {term: text for term, text in found.items() if wanted in term.lower()}
    shown = {**named, **found}
    if not shown:
        st.caption(f"No term has {plain(repr(wanted[:60]))}; there are {len(terms)}.")
    place = st.container(gap="xxsmall")
    for term, text in shown.items():
        with place.expander(plain(term), expanded=[term] == list(named)):
            st.markdown(text)


def main() -> None:
    """Four pictures, the glossary, the departures."""
    st.header("Help", anchor=False)
    draw_illustrated()
    draw_glossary()
    draw_departures()


draw_page(main)
