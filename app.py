"""LAMA Explorer: the router. `streamlit run app.py`."""

import streamlit as st

from lama_core.paths import ASSETS
from pages.ui.shared import memory, style, visitors
from pages.ui.shared.router import draw_pinned, draw_way_to_method, routing

visitors.close_doors()
st.set_page_config(page_icon=str(ASSETS / "icon.png"), layout="wide")
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
page = st.navigation([page for group in PAGES.values() for page in group], position="top")
style.draw_style()
file = f"pages/{page.title.lower()}.py"
with routing(file, page.title):
    page.run()
    draw_pinned(file)
    draw_way_to_method(file)
memory.settle()
