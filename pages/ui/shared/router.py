"""Every page is drawn by app.py, also when it is the first that is opened.

Streamlit takes a folder named `pages` for its older kind of multipage app until `st.navigation` has
run once: a browser that opens /models first would get that page alone, without the menu. A page
that finds itself in that place hands over to app.py, which draws it.
"""

import runpy
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.shared import history, links, pins, running, screens, share
from pages.ui.shared.messages import faults_shown
from pages.ui.shared.url_state import BOUND

APP = Path(__file__).resolve().parents[3] / "app.py"
TABS = "open tabs"  # in the session: page title -> its tab that was open last
_here = threading.local()


@contextmanager
def routing(page: str, title: str, outline: DeltaGenerator) -> Iterator[None]:
    """What runs in the block is that page, chosen by app.py; what all pages have is drawn with it.

    page: its file, as the constants in `screens.py`. outline: stands there until the page is drawn.
    """
    history.follow()
    links.enter(page)
    links.follow_moved()
    _name(title)
    running.draw_running()
    place = share.make_place()
    _here.routed, _here.title, _here.outline = True, title, outline
    try:
        yield
    finally:
        _here.routed = False
    query = links.write()
    if page == screens.ASK:
        pins.draw_history(place)
    share.draw_share(place, query)


def _name(title: str, tab: str = "") -> None:
    """Name the document after the page, and its open tab or the one that was open last."""
    known = st.session_state.setdefault(TABS, {})
    known[title] = tab = tab or known.get(title, "")
    st.set_page_config(page_title=" · ".join(filter(None, (tab, title, "LAMA Explorer"))))


def draw_pinned(page: str) -> None:
    """The answers that were pinned, at the foot of the Ask page."""
    if page == screens.ASK:
        with faults_shown():
            pins.draw_pinned()


def draw_help_link(page: str) -> None:
    """The link to the departures from the paper whose rules the numbers of a screen follow."""
    opened = {"tab": st.session_state.get("tab"), "chart": st.query_params.get("chart")}
    paper = screens.paper_of(page, opened)
    if paper:
        st.page_link(
            screens.HELP,
            label="How this is measured",
            icon=":material/help:",
            query_params={"paper": paper},
        )


def draw_tabs(names: Sequence[str], draw: Callable[[str], None], *, key: str = "tab") -> None:
    """Tabs of which the open one is drawn; which one it is stands in the address bar."""
    for name, tab in zip(names, st.tabs(names, key=key, bind=BOUND), strict=True):
        if tab.open:
            _name(_here.title, name)
            with tab, faults_shown():
                draw(name)


def draw_page(main: Callable[[], None]) -> None:
    """Draw the page, or let app.py do it where it hasn't been asked."""
    if getattr(_here, "routed", False):
        _here.outline.empty()
        main()
    else:
        runpy.run_path(str(APP), run_name="__main__")
