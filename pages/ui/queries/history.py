"""The history of queries in this browser session; a click opens a query again.

An entry holds the request that the tab would give to the command line; the entry's URL is made
from the request. The history is kept in the session only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import streamlit as st

from lama_core.queries.batch import ManyRequest
from lama_core.requests import Request
from pages.ui.queries.tab import Tab
from pages.ui.queries.table import TABS
from pages.ui.shared import links, screens, url_state
from pages.ui.shared.messages import counted, errors_shown, plain

MAX_ENTRIES = 50
MAX_TITLE = 70
# Session keys: the entries; the entry to open; the sentences of an opened batch.
HISTORY, GOING, TEXT = "asked so far", "asked again", "asked text"


@dataclass(frozen=True, slots=True)
class Entry:
    """A query. text: the sentences of a batch as they were typed, else empty."""

    request: Request
    text: str = ""

    @property
    def tab(self) -> "View | Tab[Any, Any, Any]":
        """The tab of the query."""
        kind = type(self.request)
        return TABS[kind] if kind in TABS else VIEWS[kind]

    @property
    def title(self) -> str:
        """The query in one line."""
        tab = self.tab
        title = tab.title(self) if isinstance(tab, View) else tab.kind.title(self.request)
        title = " ".join(title.split())
        return title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the query."""
        return cast(Any, self.request).models

    def params(self) -> dict[str, str | list[str]]:
        """The parameters of the query's URL."""
        tab = self.tab
        if isinstance(tab, View):
            given = {name: getattr(self.request, field) for name, field in tab.given.items()}
            found = {**tab.tab, "models": self.models, **given, **tab.more(self.request)}
        else:
            found = {**tab.opens, **tab.form.params(self.request)}
        return {name: _url_value(value) for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class View:
    """A tab of the Ask page, or a view in it.

    Attributes:
        name: The tab's or view's name.
        tab: The URL parameters that open it.
        title: Makes the title of an entry.
        given: URL parameter -> field of the request.
        more: Makes the URL parameters that depend on several fields.
    """

    name: str
    tab: screens.Params
    title: Callable[[Entry], str]
    given: Mapping[str, str]
    more: Callable[[Any], dict[str, Any]] = lambda _: {}


def _url_value(value: object) -> str | list[str]:
    """A value as widgets write it into the URL."""
    if isinstance(value, bool):
        return str(value).lower()
    return list(map(str, value)) if isinstance(value, tuple) else str(value)


def _context_params(request: Any) -> dict[str, Any]:
    return {"context": request.context or "auto"}


def _batch_title(entry: Entry) -> str:
    n = sum(bool(line.strip()) for line in entry.text.split("\n"))
    return f"{counted(n, 'sentence')}: {entry.text[:MAX_TITLE]}"


WORDS = {
    "precision": "precision",
    "candidates": "candidates",
    "rescored": "n_rescored",
    "renormalise": "renormalise",
}
VIEWS: dict[type, View] = {
    # The sentences may be too long for a URL: `take_text` returns them.
    ManyRequest: View("Batch", {"tab": "Batch"}, _batch_title, WORDS, _context_params),
}


def add_entry(request: Request, text: str = "") -> None:
    """Add a query to the history; it replaces a query that differs only in the options."""
    entry = Entry(request, text)
    same = (entry.tab.name, entry.title, entry.models, entry.text)
    others = [
        one
        for one in st.session_state.get(HISTORY, ())
        if (one.tab.name, one.title, one.models, one.text) != same
    ]
    st.session_state[HISTORY] = (entry, *others)[:MAX_ENTRIES]


def entries() -> tuple[Entry, ...]:
    """The history, newest first."""
    return cast(tuple[Entry, ...], st.session_state.get(HISTORY, ()))


def open_chosen() -> None:
    """Open the entry that was clicked; call before a page is drawn."""
    entry = st.session_state.pop(GOING, None)
    if entry is not None:
        with errors_shown():  # the entry's dataset may have been deleted
            st.session_state[TEXT] = entry.text
            links.go(screens.ASK, entry.params())


def take_text() -> str:
    """Return the sentences of the opened entry and remove them from the session."""
    return cast(str, st.session_state.pop(TEXT, ""))


def choose(entry: Entry) -> None:
    """Open an entry at the next rerun; for a button's `on_click`."""
    st.session_state[GOING] = entry


def draw_entries() -> None:
    """Draw the history in a popover, one button per entry."""
    found = entries()
    if not found:
        st.caption("Your queries appear here for as long as this browser tab is open.")
        return
    st.caption(
        "Your queries in this browser tab, newest first. Click one to ask it again."
        + f" The list keeps the last {MAX_ENTRIES}." * (len(found) == MAX_ENTRIES)
    )
    with st.container(
        height=320 if len(found) > 6 else "content", border=False, gap=None, key="history"
    ):
        for number, entry in enumerate(found):
            models = ", ".join(map(url_state.title_of, entry.models))
            st.button(
                f"{plain(entry.title)} :gray[{entry.tab.name} · {plain(models)}]",
                key=f"history {number}",
                type="tertiary",
                on_click=choose,
                args=(entry,),
            )
    st.button(
        "Clear history",
        icon=":material/delete:",
        on_click=st.session_state.pop,
        args=(HISTORY, None),
    )
