"""The presenter's view: everything on the page in larger letters."""

import streamlit as st

LARGE = "large"  # in the session and in the address
USUAL, ENLARGED = 16, 23  # pixels of the page's letters
# Everything on a page of Streamlit is measured in the root's letters, except charts.
LARGE_CSS = f"""
<style>
html {{ font-size: {ENLARGED}px !important; }}
.stMainBlockContainer {{ max-width: 100rem; }}
</style>
"""


def enlarged() -> float:
    """How much larger than usual letters are."""
    return ENLARGED / USUAL if st.session_state.get(LARGE) else 1.0
