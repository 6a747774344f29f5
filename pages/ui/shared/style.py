"""The look that Streamlit's theme can't set: tables of predictions, chips, spacing; and names for
what Streamlit leaves without one.

Colours follow the theme (currentColor, --st-*), so light and dark need no second set.
"""

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent

# Streamlit writes white on the primary colour, which in the dark is a light one (2.5 to 1).
DARK = """
[data-testid^="stBaseButton-primary"]:enabled, [data-testid^="stBaseButton-primary"]:enabled *,
[data-tag], [data-tag] * { color: %s !important; }
"""


def draw_style() -> None:
    """Put the style sheet on the page; call once a run, in the router."""
    with st.container(key="names"):
        st.components.v2.component(
            "lama_names", js=(HERE / "names.js").read_text(encoding="utf-8")
        )(key="names of parts")
    dark = st.context.theme.type == "dark"
    more = DARK % st.get_option("theme.dark.backgroundColor") if dark else ""
    st.html(f"<style>{(HERE / 'style.css').read_text(encoding='utf-8')}{more}</style>")
