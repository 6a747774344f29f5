"""A line at the top of every page while a job runs, with its progress and a link to it."""

import streamlit as st

from lama_core.progress import describe_briefly
from pages.ui.shared import jobs, links, screens
from pages.ui.shared.text import plain

SECONDS = 1
OPENED = "open the runs"  # in the session: the line was clicked


def draw_running() -> None:
    """Draw the line if a job runs that this visitor can see."""
    if st.session_state.pop(OPENED, False):
        links.go(screens.DATA, screens.RUNS)
    # Drawn even if empty, so that the elements below keep their identity; takes no space.
    with st.container(key="running"):
        if jobs.running():
            _draw_line()


@st.fragment(run_every=SECONDS)
def _draw_line() -> None:
    """Draw the progress of the oldest job; redraw the page when no job is left."""
    first, *others = jobs.running() or (None,)
    if first is None:
        st.rerun()
        return
    text = describe_briefly(first.about or first.title, first.step, first.pace)
    if others:
        text += f" · {len(others)} more"
    if st.button(plain(text), key="to running jobs", icon=":material/sync:", type="tertiary"):
        st.session_state[OPENED] = True
        st.rerun()
