"""Teacher mode: larger type, nothing but the lesson, a menu of all steps, and arrow keys."""

from pathlib import Path

import streamlit as st

LARGE = "large"  # key in the session and in the URL
BACK, NEXT = "lesson back", "lesson next"  # keys of the buttons that the arrow keys press
USUAL, ENLARGED = 16, 23  # font size of the page, in pixels, and in teacher mode
HEIGHT = 430  # maximum height of a chart in pixels: a 900-pixel screen minus title and text
# Streamlit sizes everything relative to the root font size, except charts.
_CSS = f"""
<style>
@media (min-width: 641px) {{ html {{ font-size: {ENLARGED}px !important; }} }}
.stMainBlockContainer {{ max-width: 100rem; padding-top: 1rem; }}
header[data-testid="stHeader"], div:has(> .st-key-share), .st-key-menu, .st-key-running,
.st-key-login {{ display: none; }}
[data-testid="stHeading"] h2 {{ padding: 0 0 .8rem; font-size: 1.5rem; }}
[data-testid="stHeading"] h3 {{ padding: 0 0 .8rem; font-size: 1.25rem; }}
.stMainBlockContainer [data-testid="stVerticalBlock"] {{ gap: .5rem; }}
.st-key-lesson-mode {{ padding-right: 0; }}
</style>
"""
_JS = Path(__file__).with_name("arrows.js").read_text(encoding="utf-8")


def is_teaching() -> bool:
    """Whether teacher mode is on."""
    return bool(st.session_state.get(LARGE))


def draw_teacher_mode() -> None:
    """Add the larger type and the listener for the arrow keys."""
    st.html(_CSS)
    with st.container(key="arrows"):
        st.components.v2.component("lama_arrows", js=_JS)(key="arrow keys")
