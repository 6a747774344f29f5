"""Links between pages that carry what the next page shows, and the way back.

Pages give the same names to the same things in the address bar. Streamlit refuses to set a
parameter that a widget of the page being left is bound to, so the widgets are unbound first. It
also drops such parameters when the browser goes back; what a page had is therefore kept in the
session, and given back to the page when it is entered without any.
"""

from collections.abc import Mapping, Sequence
from typing import NoReturn

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

RESULTS = "pages/results.py"
FACTS = "pages/facts.py"
CLOZE = "pages/cloze.py"
DATA = "pages/data.py"
PROMPTS = "pages/prompts.py"
ANALOGY = "pages/analogy.py"

Params = Mapping[str, str | Sequence[str]]


def go(here: str, there: str, params: Params) -> NoReturn:
    """Leave the page `here` for the page `there`, with these parameters in the address bar."""
    left = st.session_state.setdefault("left pages", {})
    left[here] = {name: st.query_params.get_all(name) for name in st.query_params}
    _switch(there, params)


def restore(here: str) -> None:
    """Give a page back what was on its screen when it was left through `go`; call it first."""
    left = st.session_state.get("left pages", {}).pop(here, None)
    if left and not st.query_params:
        _switch(here, left)


def _switch(page: str, params: Params) -> NoReturn:
    context = get_script_run_ctx()
    if context is not None:
        with context.session_state.query_params() as bound:
            names = list(bound._bindings_by_param)
            for widget in list(bound._bindings_by_widget):
                bound.unbind_widget(widget)
        for name in names:  # else a value here would hide one of the next page's defaults
            st.session_state.pop(name, None)
    st.switch_page(page, query_params={k: v for k, v in params.items() if v not in ("", (), [])})
