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

from pages.ui.shared import history, links, running, screens, share, shelf
from pages.ui.shared.messages import faults_shown
from pages.ui.shared.state import BOUND

APP = Path(__file__).resolve().parents[3] / "app.py"
TABS = "open tabs"  # in the session: page title -> its tab that was open last
# The pages whose numbers follow a paper's rules; Help says where they depart from it.
MEASURED = (screens.ASK, screens.RESULTS)
_here = threading.local()


@contextmanager
def routing(page: str, title: str) -> Iterator[None]:
    """What runs in the block is that page, chosen by app.py; what all pages have is drawn with it.

    page: its file, as the constants in `links.py`.
    """
    history.follow()
    links.enter(page)
    links.follow_moved()
    _name(title)
    running.draw_running()
    place = share.make_place()
    _here.routed, _here.title = True, title
    try:
        yield
    finally:
        _here.routed = False
    query = links.write()
    if page == screens.ASK:
        shelf.draw_history(place)
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
            shelf.draw_pinned()


def draw_help_link(page: str) -> None:
    """The link to what the words and numbers of a page mean, where it has numbers."""
    if page in MEASURED:
        st.page_link(screens.HELP, label="How this is measured", icon=":material/help:")


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
        main()
    else:
        runpy.run_path(str(APP), run_name="__main__")
