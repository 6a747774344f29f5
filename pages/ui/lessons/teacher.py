"""Teacher mode: larger letters, no header, every step within reach, and the arrow keys."""

from pathlib import Path

import streamlit as st

LARGE = "large"  # in the session and in the address
BACK, NEXT = "lesson back", "lesson next"  # keys of the buttons that the arrow keys press
USUAL, ENLARGED = 16, 23  # pixels of the page's letters
HEIGHT = 560  # pixels of a chart, at most: a screen of 900 less title and text
# Everything on a page of Streamlit is measured in the root's letters, except charts.
_CSS = f"""
<style>
html {{ font-size: {ENLARGED}px !important; }}
.stMainBlockContainer {{ max-width: 100rem; padding-top: 1rem; }}
header[data-testid="stHeader"], .st-key-share {{ display: none; }}
</style>
"""
_JS = Path(__file__).with_name("arrows.js").read_text(encoding="utf-8")


def is_teaching() -> bool:
    """Whether teacher mode is on."""
    return bool(st.session_state.get(LARGE))


def draw_teacher_mode() -> None:
    """The larger letters, and what listens to the arrow keys."""
    st.html(_CSS)
    with st.container(key="arrows"):
        st.components.v2.component("lama_arrows", js=_JS)(key="arrow keys")


def enlarged() -> float:
    """How much larger than usual letters are."""
    return ENLARGED / USUAL if is_teaching() else 1.0
