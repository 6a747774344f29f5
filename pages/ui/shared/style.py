"""Styles that Streamlit's theme can't set, names for elements without one, charts as SVG.

Colours follow the theme (currentColor, --st-*), so the same sheet serves light and dark.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import streamlit as st

HERE = Path(__file__).parent

# Streamlit writes white on the primary colour, which is light in the dark theme (contrast 2.5:1).
DARK = """
[data-testid^="stBaseButton-primary"]:enabled, [data-testid^="stBaseButton-primary"]:enabled *,
[data-tag], [data-tag] * { color: var(--lx-page) !important; }
"""


def theme() -> Literal["dark", "light"]:
    """Whether the page is `dark` or `light`."""
    return "dark" if st.context.theme.type == "dark" else "light"


def draw_style(added: Sequence[str] = ()) -> None:
    """Add the style sheet to the page, and the app's name as the heading above the page's.

    added: The titles of plug-ins' pages in the menu, next to which a running job is shown.

    Call once per rerun, in the router. Only screen readers get the heading.
    """
    with st.container(key="names"):
        st.html("<h1>LAMA Explorer</h1>")
        st.components.v2.component(
            "lama_names", js=(HERE / "names.js").read_text(encoding="utf-8")
        )(key="names of parts")
    page = f":root {{ --lx-page: {st.get_option(f'theme.{theme()}.backgroundColor')};"
    page += f" --lx-menu: {36 + sum(3.2 + 0.5 * len(title) for title in added):.1f}rem; }}"
    page += (HERE / "style.css").read_text(encoding="utf-8") + DARK * (theme() == "dark")
    st.html(f"<style>{page}</style>")
