"""A page of the app."""

import streamlit as st

from lama_core.runs.find import list_runs


def draw() -> None:
    """Draw how many finished runs there are."""
    st.header("A page of a plug-in", anchor=False)
    st.write(f"{len(list_runs().intact()):,} finished runs are on this machine.")
