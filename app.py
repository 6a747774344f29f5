"""LAMA Explorer: the router. `streamlit run app.py`.

The menu and an outline are drawn first: on a cold start the imports in `main` take seconds.
"""

import sys

import streamlit as st

from lama_core.paths import ASSETS
from pages.ui.shared import style

PAGES = {
    "Ask": [
        st.Page("pages/cloze.py", title="Cloze", icon=":material/edit_note:", default=True),
        st.Page("pages/analogy.py", title="Analogy", icon=":material/balance:"),
    ],
    "Learn": [st.Page("pages/lessons.py", title="Lessons", icon=":material/school:")],
    "Browse": [
        st.Page("pages/results.py", title="Results", icon=":material/bar_chart:"),
        st.Page("pages/facts.py", title="Facts", icon=":material/fact_check:"),
        st.Page("pages/prompts.py", title="Prompts", icon=":material/format_quote:"),
        st.Page("pages/method.py", title="Method", icon=":material/rule:"),
    ],
    "Set up": [
        st.Page("pages/data.py", title="Data", icon=":material/database:"),
        st.Page("pages/models.py", title="Models", icon=":material/memory:"),
    ],
}


def main() -> None:
    """Draw the page that the address names."""
    st.set_page_config(page_icon=str(ASSETS / "icon.png"), layout="wide")
    page = st.navigation([page for group in PAGES.values() for page in group], position="top")
    style.draw_style()
    outline = st.empty()
    if "pages.ui.shared.router" not in sys.modules:
        with outline.container():
            st.header(page.title, anchor=False)
            st.skeleton(height=160)
            st.skeleton(height=260)

    from pages.ui.shared import memory, visitors
    from pages.ui.shared.router import draw_pinned, draw_way_to_method, routing

    visitors.close_doors()
    file = f"pages/{page.title.lower()}.py"
    with routing(file, page.title, outline):
        page.run()
        draw_pinned(file)
        draw_way_to_method(file)
    memory.settle()


main()
