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

from pages.ui.shared.messages import faults_shown
from pages.ui.shared.state import BOUND

APP = Path(__file__).resolve().parents[3] / "app.py"
_here = threading.local()


@contextmanager
def routing() -> Iterator[None]:
    """What runs in the block has been chosen by app.py."""
    _here.routed = True
    try:
        yield
    finally:
        _here.routed = False


def draw_tabs(names: Sequence[str], draw: Callable[[str], None], *, key: str = "tab") -> None:
    """Tabs of which the open one is drawn; which one it is stands in the address bar."""
    for name, tab in zip(names, st.tabs(names, key=key, bind=BOUND), strict=True):
        if tab.open:
            with tab, faults_shown():
                draw(name)


def draw_page(main: Callable[[], None]) -> None:
    """Draw the page, or let app.py do it where it hasn't been asked."""
    if getattr(_here, "routed", False):
        main()
    else:
        runpy.run_path(str(APP), run_name="__main__")
