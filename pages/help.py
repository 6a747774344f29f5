"""Help: ways in for each role, an introduction, the glossary, and departures from the papers."""

import streamlit as st

from lama_core.files import read_file
from lama_core.glossary import glossary_text, read_terms
from lama_core.metrics.relation_figures import figures_text
from lama_core.paths import DOCS, plugin_pages
from pages.ui.help.illustrated import draw_illustrated
from pages.ui.help.roles import draw_roles
from pages.ui.router import is_routed
from pages.ui.shared.messages import draw_document, plain
from pages.ui.shared.url_state import BOUND

DEPARTURES, TERMS = "Departures from the papers", "Terms"  # headings in plug-ins' pages
# File of docs/ -> its title.
DOCUMENTS = {"guide": "Guide to all pages", "lessons": "Lesson files", "hosting": "Hosting"}
# The terms that a first answer on Ask needs.
TERMS_OF_ASK = (
    "Cloze query",
    "Gold answer",
    "Masked model",
    "Causal model",
    "Token",
    "Candidates",
    "Log-probability",
    "Rank",
    "P@k",
    "Inspect",
)


def of_plugins(wanted: str) -> list[str]:
    """Return the sections of this heading in plug-ins' pages, each under its page's title."""
    sections = []
    for page in plugin_pages():
        head, *parts = read_file(page).decode().removeprefix("# ").split("\n## ")
        title = head.partition("\n")[0]
        found = (part.partition("\n") for part in parts)
        sections += [f"{title}\n{text}" for heading, _, text in found if heading == wanted]
    return sections


def draw_departures(wanted: str = "") -> None:
    """Draw docs/departures.md as folded sections; the wanted paper's is open.

    Those of a plug-in are under the same heading in its page.
    """
    introduction, *sections = read_file(DOCS / "departures.md").decode().split("\n## ")
    sections += of_plugins(DEPARTURES)
    st.subheader(DEPARTURES, anchor=False)
    st.caption(
        "Numbers that are computed differently than in the paper, and the option that restores the "
        "paper's rule."
    )
    place = st.container(gap="xxsmall")
    with place.expander("All departures in a table", expanded=wanted == "All"):
        st.markdown(introduction.partition("\n")[2])
    for section in sections:
        paper, _, text = section.partition("\n")
        with place.expander(plain(paper), expanded=paper.partition(":")[0] == wanted):
            st.markdown(text.replace("\n### ", "\n#### "))


def draw_documents(wanted: str = "") -> None:
    """Draw documents as folded sections; the wanted one is open."""
    st.subheader("Documentation", anchor=False)
    with st.container(gap="xxsmall"):
        for name, title in DOCUMENTS.items():
            with st.expander(title, expanded=name == wanted):
                draw_document(DOCS / f"{name}.md")


def draw_glossary() -> None:
    """Draw the terms that match the search, those with a match in their name first.

    Without a search, draw those of the page Ask, or all.
    """
    st.subheader("Glossary", anchor=False)
    every = {
        term: text
        for terms in (glossary_text(), figures_text(), *of_plugins(TERMS))
        for term, text in read_terms(terms).items()
    }
    typed = st.text_input(
        "Search the glossary", key="term", bind=BOUND, placeholder="P@1, candidates, ..."
    )
    wanted = (typed or "").strip().lower()
    found = {term: text for term, text in every.items() if wanted in f"{term} {text}".lower()}
    named = {term: text for term, text in found.items() if wanted in term.lower()}
    if not found:
        st.caption(f"None of the {len(every)} terms contains {plain(repr(wanted[:60]))}.")
    if not wanted and not st.toggle(f"All {len(every)} terms", key="all_terms", bind=BOUND):
        found = named = {term: every[term] for term in TERMS_OF_ASK}
    shown = sorted(found, key=lambda one: (one.lower() != wanted, one not in named, one.lower()))
    half = -(-len(shown) // 2)
    for column, terms in zip(st.columns(2), (shown[:half], shown[half:]), strict=True):
        with column.container(gap="xxsmall"):
            for term in terms:
                with st.expander(
                    plain(term), expanded=[term] == list(named) or term.lower() == wanted
                ):
                    st.markdown(found[term])


def _draw_measured() -> None:
    with st.container(key="pictures"):  # the last part on phones (`style.css`)
        st.subheader("From a sentence to P@1", anchor=False)
        draw_illustrated()


def main() -> None:
    """Draw the page."""
    st.header("Help", anchor=False)
    st.caption(
        "LAMA Explorer shows what language models know. Type a sentence with a blank and see which "
        "words models put there, or compare models over thousands of facts."
    )
    # What the URL names comes first; before departures, what the numbers are.
    if wanted := st.query_params.get("paper"):
        _draw_measured()
        draw_departures(wanted)
    if document := st.query_params.get("doc"):
        draw_documents(document)
    draw_roles()
    if not wanted:
        _draw_measured()
    draw_glossary()
    if not wanted:
        draw_departures()
    if not document:
        draw_documents()


if is_routed():
    main()
