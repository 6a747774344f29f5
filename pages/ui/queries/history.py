"""The history of queries in this browser session; a click opens a query again.

An entry holds the request that the tab would give to the command line; the entry's URL is made
from the request. The history is kept in the session only.
"""

from dataclasses import dataclass
from typing import Any, cast

import streamlit as st

from lama_core.requests import Request
from pages.ui.queries.batch import OPENED
from pages.ui.queries.tab import Tab
from pages.ui.queries.table import tab_of
from pages.ui.shared import links, screens, url_state
from pages.ui.shared.messages import counted, errors_shown, plain

MAX_ENTRIES = 50
MAX_TITLE = 70
HISTORY, GOING = "asked so far", "asked again"  # session keys: the entries; the entry to open


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A query.

    text: The sentences of a batch as they were typed, else empty. They may be too long for a URL.
    """

    request: Request
    text: str = ""

    @property
    def tab(self) -> Tab[Any, Any, Any]:
        """The tab of the query."""
        return tab_of(self.request)

    @property
    def title(self) -> str:
        """The query in one line."""
        title = self.tab.kind.title(cast(Any, self.request))
        if self.text:
            n = sum(bool(line.strip()) for line in self.text.split("\n"))
            title = f"{counted(n, 'sentence')}: {self.text[:MAX_TITLE]}"
        title = " ".join(title.split())
        return title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the query."""
        return cast(Any, self.request).models

    def params(self) -> dict[str, str | list[str]]:
        """The parameters of the query's URL."""
        found = {**self.tab.opens, **self.tab.form.params(self.request)}
        return {
            name: list(map(str, value))
            if isinstance(value, tuple)
            else str(value).lower()
            if isinstance(value, bool)
            else str(value)
            for name, value in found.items()
            if value is not None
        }


def add_entry(request: Request, text: str = "") -> None:
    """Add a query to the history; it replaces a query that differs only in the options."""
    entry = HistoryEntry(request, text)
    same = (entry.tab.name, entry.title, entry.models, entry.text)
    others = [one for one in entries() if (one.tab.name, one.title, one.models, one.text) != same]
    st.session_state[HISTORY] = (entry, *others)[:MAX_ENTRIES]


def entries() -> tuple[HistoryEntry, ...]:
    """The history, newest first."""
    return cast(tuple[HistoryEntry, ...], st.session_state.get(HISTORY, ()))


def open_chosen() -> None:
    """Open the entry that was clicked; call before a page is drawn."""
    entry = st.session_state.pop(GOING, None)
    if entry is not None:
        with errors_shown():  # the entry's dataset may have been deleted
            st.session_state[OPENED] = entry.text
            links.go(screens.ASK, entry.params())


def choose(entry: HistoryEntry) -> None:
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
            models = plain(", ".join(map(url_state.title_of, entry.models)))
            st.button(
                f"{plain(entry.title)} :gray[{entry.tab.name} · {models}]",
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
