"""The parts that all pages share; app.py draws every page, also the first one opened.

Until `st.navigation` has run once, Streamlit treats a folder named `pages` as its older kind of
multipage app: a browser that opens /models first would get that page without the menu. A page that
runs this way calls app.py, which draws it.
"""

import runpy
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core import plugins
from pages.ui.shared import links, running, screens, share
from pages.ui.shared.messages import errors_shown
from pages.ui.shared.url_state import BOUND, note_unknown

APP = Path(__file__).resolve().parents[2] / "app.py"
TABS = "open tabs"  # in the session: page title -> its last open tab
_here = threading.local()


@contextmanager
def routing(page: str, name: str, title: str, outline: DeltaGenerator) -> Iterator[None]:
    """Draw the shared parts of all pages around the page that runs in the block.

    Args:
        page: The page's file, a constant of `screens.py`.
        name: The path of the page's URL below the app's; empty for the first page.
        title: The page's title.
        outline: The placeholder shown until the page is drawn.
    """
    if page == screens.ASK:
        from pages.ui.queries import history  # with all kinds of queries; other pages need none

        history.open_chosen()
    links.enter(page, name)
    links.follow_moved(name)
    _name(title)
    if page != screens.POLL:  # a class reads it
        running.draw_running()
    place = share.make_place()
    _here.routed, _here.title, _here.outline = True, title, outline
    try:
        yield
    finally:
        _here.routed = False
    query = links.write_url()
    if page == screens.ASK:
        from pages.ui.queries import pins

        pins.draw_history(place)
    share.draw_share(place, query)


def _name(title: str, tab: str = "") -> None:
    """Set the document's title to the page and its open tab, or its last open tab."""
    last_tabs = st.session_state.setdefault(TABS, {})
    last_tabs[title] = tab = tab or last_tabs.get(title, "")
    st.set_page_config(page_title=" · ".join(filter(None, (tab, title, "LAMA Explorer"))))


def draw_pinned(page: str) -> None:
    """Draw the pins at the bottom of the Ask page."""
    if page == screens.ASK:
        from pages.ui.queries import pins

        with errors_shown():
            pins.draw_pinned()


def draw_help_link(page: str) -> None:
    """Draw the link to the departures from the paper on which the screen's numbers are based.

    The numbers of a plug-in's tab are its own.
    """
    if page == screens.ASK and st.session_state.get("tab") in plugins.names("tabs"):
        return
    opened = {"tab": st.session_state.get("tab"), "chart": st.query_params.get("chart")}
    for there, params, paper in screens.PAPERS:
        if there == page and params.items() <= opened.items():
            st.page_link(
                screens.HELP,
                label="How this is measured",
                icon=":material/help:",
                query_params={"paper": paper},
            )
            return


@contextmanager
def open_tab(names: Sequence[str]) -> Iterator[str]:
    """Draw tabs; the block draws the open one, whose name it gets. The name is in the URL."""
    note_unknown("Tab", "tab", {name: name for name in names}, names[0])
    for name, tab in zip(names, st.tabs(names, key="tab", bind=BOUND), strict=True):
        if tab.open:
            _name(_here.title, name)
            with tab, errors_shown():
                yield name


def is_routed() -> bool:
    """Whether app.py called the page; if not, run app.py, which draws it."""
    if not getattr(_here, "routed", False):
        runpy.run_path(str(APP), run_name="__main__")
        return False
    _here.outline.empty()
    return True
