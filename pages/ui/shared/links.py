"""The address bar: links between pages, and that an address says all that its screen depends on.

Widgets are bound to parameters of their own names, and Streamlit leaves out what equals a default
(`state.py`). The rest is here. At the end of a run the browser is given the whole address
(`write`), which makes no entry in its history; a way to another page (`go`) makes one. Streamlit's
own ways make an entry for every parameter that a page sets, and drop, on the way back, the
parameters whose names both pages use.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import count
from math import isinf
from pathlib import Path, PurePosixPath
from typing import Literal, NoReturn
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.query_params import QueryParams

from pages.ui.shared import screens
from pages.ui.shared.screens import Params

# Parameters with one name and two meanings: models to query, or models whose runs are shown, where
# none chosen means all; the gold answer of a sentence, or a filter of facts.
TWO_MEANINGS = ("models", "gold")

AMONG = "among"
# In the session: the page that is drawn, whether its address is new, the runs that it is about,
# and the parameters that were put into it, in this run and since it was new.
PAGE, ENTERED, RUNS, PUT, USED = (
    "address of",
    "address entered",
    "address among",
    "address put",
    "address used",
)

_JS = Path(__file__).with_name("address.js").read_text(encoding="utf-8")
_runs = count()


def go(there: str, params: Params, *, replaces: bool = False) -> NoReturn:
    """Go to the page `there` with these parameters: one entry in the browser's history.

    replaces: The entry takes the place of the present one.
    """
    given = {name: value for name, value in params.items() if value not in ("", (), [])}
    _order(path_of(there), urlencode(given, doseq=True), "replace" if replaces else "go")
    st.stop()


def enter(page: str) -> None:
    """Call before `page` is drawn: an address that was gone to, or gone back to, is taken whole."""
    context = get_script_run_ctx()
    returned = context is not None and context.is_history_navigation
    before = st.session_state.get(PAGE)
    st.session_state[ENTERED] = returned or before != page
    if before is not None and (before == screens.ASK) != (page == screens.ASK):
        for name in TWO_MEANINGS:
            st.session_state.pop(name, None)
    st.session_state[PAGE] = page
    st.session_state[PUT] = set()
    if st.session_state[ENTERED]:
        st.session_state.pop(RUNS, None)
        st.session_state[USED] = set()
    if context is not None and returned:
        with query_params() as params:
            params.populate_from_query_string(context.query_string)
            params.set_initial_query_params(context.query_string)
            params._send_query_param_msg()  # here it makes no entry in the history


def follow_moved() -> None:
    """Go on from an address of an earlier version to the page that shows the same now."""
    name = PurePosixPath(urlsplit(st.context.url or "").path).name
    params = {one: st.query_params.get_all(one) for one in st.query_params}
    page, there = screens.resolve(name if name in screens.names() else "", params)
    if name in screens.OLD_PAGES or there != params:
        go(page, there, replaces=True)


def entered() -> bool:
    """Whether this run is the first with this address, and not an answer to a click."""
    return bool(st.session_state.get(ENTERED))


@contextmanager
def query_params() -> Iterator[QueryParams]:
    """The parameters of the address as Streamlit keeps them, with what it binds them to."""
    context = get_script_run_ctx()
    assert context is not None, "the address is that of a page"
    with context.session_state.query_params() as params:
        yield params


def put(name: str, values: Sequence[str]) -> None:
    """Take the parameter `name` to stand in the address with these values."""
    with query_params() as params:
        params.set_with_no_forward_msg(name, values[0] if len(values) == 1 else list(values))
        params._initial_query_params[name] = list(values)
    st.session_state[PUT].add(name)


def kept(without: Iterable[str]) -> dict[str, str | list[str]]:
    """The parameters of the address, less some."""
    names = [name for name in st.query_params if name not in without]
    return {name: st.query_params.get_all(name) for name in names}


def leave_endless(name: str) -> None:
    """Empty a parameter that is an endless number, as 1e309: Streamlit fails on it."""
    if any(_is_endless(value) for value in st.query_params.get_all(name)):
        put(name, [""])


def _is_endless(value: str) -> bool:
    try:
        return isinf(float(value))
    except ValueError:
        return False


def respell(name: str, spelled: Mapping[str, str]) -> None:
    """Take the values of a parameter as `spelled` writes them: P19 as `P19 place of birth`."""
    asked = st.query_params.get_all(name)
    meant = [spelled.get(value, value) for value in asked]
    if meant != asked:
        put(name, meant)


def among(ids: Iterable[str], of: str) -> frozenset[str]:
    """Which of the runs that are here an address is about: all, or those that it was made among.

    ids: of all runs of one kind that are here; they are written into the address. of: what they
    are runs of; when it changes, all runs count again.
    """
    marks = {_mark(one): one for one in ids}
    asked = tuple(filter(None, st.query_params.get(AMONG, "").split(".")))
    known, wanted = st.session_state.setdefault(RUNS, (of, asked))
    if known != of:
        st.session_state[RUNS] = (of, ())
        wanted = ()
    found = {mark: one for mark, one in marks.items() if mark in wanted} or marks
    put(AMONG, [".".join(wanted if found is not marks else marks)])
    if wanted and set(wanted) != set(marks):
        _draw_other_runs(len(set(wanted) - set(marks)), len(marks) - len(found))
    return frozenset(found.values())


def _mark(run: str) -> str:
    """A run's name, short enough for an address."""
    return blake2b(run.encode(), digest_size=4).hexdigest()


def _draw_other_runs(n_missing: int, n_more: int) -> None:
    """Say how the runs that are here differ from those that an address was made among."""
    said = []
    if n_missing:
        said.append(
            f"{n_missing} that it was made among {'are' if n_missing > 1 else 'is'} not here"
        )
    if n_more:
        said.append(f"{n_more} more {'are' if n_more > 1 else 'is'} here and not shown")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Runs of this address: {'; '.join(said)}.", width="content")
        if n_more and st.button("All that are here", icon=":material/undo:", type="tertiary"):
            go(st.session_state[PAGE], kept(()) | {AMONG: ""})


def write() -> str:
    """Give the browser the whole address of what has been drawn; returns its parameters."""
    with query_params() as params:
        shown = {name for name in params if _is_drawn(params, name)} | st.session_state[PUT]
        used = st.session_state[USED]
        # Without what belongs to a tab that isn't open any more.
        values = {
            name: params.get_all(name) for name in params if name in shown or name not in used
        }
    used |= shown
    query = urlencode(values, doseq=True)
    _order(path_of(st.session_state[PAGE]), query, "write")
    return query


def _is_drawn(params: QueryParams, name: str) -> bool:
    """Whether a widget of this run is bound to the parameter."""
    context, binding = get_script_run_ctx(), params.get_binding_for_param(name)
    drawn = context.shared.widget_ids_this_run.snapshot() if context else frozenset()
    return binding is not None and binding.widget_id in drawn


def path_of(page: str) -> str:
    """The path of a page's address."""
    place = PurePosixPath(urlsplit(st.context.url or "").path or "/")
    root = place.parent if place.name in screens.names() else place
    return str(root) if page == screens.ASK else str(root / PurePosixPath(page).stem)


def _order(path: str, query: str, act: Literal["go", "replace", "write"]) -> None:
    address = st.components.v2.component("lama_address", js=_JS)
    order = {"path": path, "query": query, "act": act, "run": next(_runs)}
    with st.container(key="address"):
        address(key=act, data=order)
