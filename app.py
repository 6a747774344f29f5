"""LAMA Explorer: the router. `streamlit run app.py`."""

import streamlit as st

from pages.ui import style

st.set_page_config(page_title="LAMA Explorer", page_icon=":material/travel_explore:", layout="wide")
PAGES = {
    "Ask": [
        st.Page("pages/cloze.py", title="Cloze", icon=":material/edit_note:", default=True),
    ],
    "Set up": [
        st.Page("pages/models.py", title="Models", icon=":material/memory:"),
    ],
}
page = st.navigation([page for group in PAGES.values() for page in group], position="top")
style.draw_style()
page.run()
