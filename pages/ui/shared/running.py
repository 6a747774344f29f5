"""A line at the top of every page while a job runs: how far it is, and the way to it."""

import streamlit as st

from lama_core.progress import describe_briefly
from pages.ui.shared import jobs, links, screens
from pages.ui.shared.text import plain

SECONDS = 3
OPENED = "open the runs"  # in the session: the line was clicked


def draw_running() -> None:
    """Draw the line; nothing where no job runs that this visitor may see."""
    if st.session_state.pop(OPENED, False):
        links.go(screens.DATA, screens.RUNS)
    # Also when it is empty, so that what follows keeps its place; it takes no room.
    with st.container(key="running"):
        if jobs.running():
            _draw_line()


@st.fragment(run_every=SECONDS)
def _draw_line() -> None:
    """The job that began first; when none runs any more, the page is drawn again without a line."""
    first, *others = jobs.running() or (None,)
    if first is None:
        st.rerun()
        return
    text = describe_briefly(first.title, first.step, first.pace)
    if others:
        text += f" · {len(others)} more"
    if st.button(plain(text), key="to running jobs", icon=":material/sync:", type="tertiary"):
        st.session_state[OPENED] = True
        st.rerun()
