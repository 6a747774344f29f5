"""The URL in the address bar: links between pages, and URLs that hold all choices of a screen.

Widgets are bound to URL parameters of the same name (`url_state.py`), and Streamlit omits values
that equal the default. At the end of each rerun, `write_url` gives the browser the complete URL
without an entry in its history; `go`, which opens another page, adds an entry. Streamlit itself
would add an entry for each parameter that a page sets, and the Back button would drop the
parameters that both pages use.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from math import isinf
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NoReturn
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.proto.ClientState_pb2 import ContextInfo
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.query_params import QueryParams

from lama_core.runs.chosen_facts import mark_of
from lama_core.runs.info import RunInfo
from pages.ui.shared import screens, short_links
from pages.ui.shared.screens import Params
from pages.ui.shared.text import show_note

AMONG = "among"
ONLY = "only"  # chosen facts, see `lama_core.runs.chosen_facts`; also a session key
SHORT = "link"  # the URL parameter with the name of a short link
BUNDLED = "b-"  # begins the mark of the bundled runs in the URL's list
# Session keys: the path below which the app is served, without a slash at its end; the current
# page, whether its URL is new, the runs that the URL lists, the parameters set by `set_param` in
# this rerun, the parameters used since the URL was new, the query where the last step in the
# browser's history led, and the short spellings of values: parameter -> {long: short}.
ROOT, PAGE, ENTERED, RUNS, PUT, USED, ASKED, SHORTER = (
    "address root",
    "address of",
    "address entered",
    "address among",
    "address put",
    "address used",
    "address asked",
    "address shorter",
)

_JS = Path(__file__).with_name("address.js").read_text(encoding="utf-8")
_runs = count()


def go(there: str, params: Params, *, replaces: bool = False) -> NoReturn:
    """Open a page, with one entry in the browser's history.

    Args:
        there: The page's file, a constant of `screens.py`.
        params: The URL parameters; empty values are dropped.
        replaces: Whether the entry replaces the current one.
    """
    query = urlencode({name: one for name, one in params.items() if one not in ("", (), [])}, True)
    _order(path_of(there), query, "replace" if replaces else "go")
    st.stop()


def draw_link(label: str, icon: str, there: str, params: Params, **options: Any) -> None:
    """Draw a link to another screen.

    `st.page_link` would lose the parameters to which the current page binds widgets, such as `tab`.

    Args:
        label: The link's text.
        icon: The name of a Material icon.
        there: The page's file, a constant of `screens.py`.
        params: The URL parameters.
        options: Of `st.button`; by default the type is tertiary.
    """
    if st.button(label, icon=f":material/{icon}:", **({"type": "tertiary"} | options)):
        go(there, params)


def enter(page: str, name: str) -> None:
    """Store whether the URL is new or from the browser's history; call before drawing `page`.

    If so, state that depends on the last URL is dropped.

    Args:
        page: The page's file, a constant of `screens.py`.
        name: The path of the page's URL below the app's; empty for the first page.
    """
    context = get_script_run_ctx()
    if ROOT not in st.session_state:
        st.session_state[ROOT] = root_of(context.context_info if context else None, name)
    returned = context is not None and context.is_history_navigation
    before = st.session_state.get(PAGE)
    st.session_state[ENTERED] = returned or before != page
    if before is not None and (before == screens.ASK) != (page == screens.ASK):
        # On Ask, `models` are queried and `gold` is the right answer of the sentence; elsewhere
        # `models` selects runs (none means all) and `gold` filters facts.
        for name in ("models", "gold"):
            st.session_state.pop(name, None)
    st.session_state[PAGE] = page
    st.session_state[PUT] = set()
    st.session_state[SHORTER] = {}
    if st.session_state[ENTERED]:
        st.session_state.pop(RUNS, None)
        st.session_state[USED] = set()
    if context is not None and returned:
        st.session_state[ASKED] = context.query_string
        with query_params() as params:
            params.populate_from_query_string(context.query_string)
            params.set_initial_query_params(context.query_string)
            params._send_query_param_msg()  # makes no history entry at this point


def root_of(browser: ContextInfo | None, name: str) -> str:
    """The path below which the app is served, such as `/lama`; empty for the host's root.

    It can end in the name of a page, so `st.context.url`, which removes such a name, is wrong here.
    A proxy that removes the path from requests hides it from `server.baseUrlPath`, too.

    Args:
        browser: What a new session's browser sent: the URL that it shows.
        name: The path of the shown page below the app's.
    """
    path = urlsplit(browser.url).path.rstrip("/") if browser else ""
    return path.removesuffix(f"/{name}") if name else path


def follow_moved(name: str) -> None:
    """Redirect /ask to the first page, and URLs of version 0.1 to the pages of today.

    name: the path of the page's URL below the app's.
    """
    params = params_without(())
    if SHORT in params:
        found = short_links.read(st.query_params[SHORT])
        if found is not None:
            go(*found, replaces=True)
        with st.container(key="unknown-link"):
            show_note("This short link is unknown here. Ask for a new one, or choose a page above.")
        return
    page, there = screens.resolve(name, params)
    if name in screens.REDIRECTS or there != params:
        go(page, there, replaces=True)


def is_new_url() -> bool:
    """Whether this is the first rerun with this URL, not one after a click."""
    return bool(st.session_state.get(ENTERED))


@contextmanager
def query_params() -> Iterator[QueryParams]:
    """Streamlit's internal URL parameters, with the widgets that they are bound to."""
    context = get_script_run_ctx()
    assert context is not None, "only pages have a URL"
    with context.session_state.query_params() as params:
        yield params


def set_param(name: str, values: Sequence[str]) -> None:
    """Set a URL parameter to these values."""
    with query_params() as params:
        params.set_with_no_forward_msg(name, values[0] if len(values) == 1 else list(values))
        params._initial_query_params[name] = list(values)
    for names in (PUT, USED):  # USED already now, because the rerun may be interrupted
        st.session_state[names].add(name)


def params_without(without: Iterable[str]) -> dict[str, str | list[str]]:
    """The URL parameters, except those named in `without`."""
    return {name: st.query_params.get_all(name) for name in st.query_params if name not in without}


def keep_params() -> None:
    """Keep all URL parameters, also those whose widgets aren't drawn in this rerun."""
    for name, values in params_without(()).items():
        set_param(name, [values] if isinstance(values, str) else values)


def drop_infinite(name: str) -> None:
    """Empty a URL parameter that is infinite, such as 1e309, which makes Streamlit fail."""
    for value in st.query_params.get_all(name):
        with suppress(ValueError):
            if isinf(float(value)):
                set_param(name, [""])


def drop_long(name: str, n_max: int) -> None:
    """Empty a URL parameter with a value of more than `n_max` characters."""
    if any(len(value) > n_max for value in st.query_params.get_all(name)):
        set_param(name, [""])


def replace_values(name: str, spelled: Mapping[str, str]) -> None:
    """Replace a URL parameter's values by the widget's spelling.

    spelled: value -> spelling, such as `P19` -> `P19 place of birth`.
    """
    st.session_state.setdefault(SHORTER, {})[name] = {
        text: value for value, text in spelled.items() if text.startswith(value)
    }
    values = st.query_params.get_all(name)
    replaced = [spelled.get(value, value) for value in values]
    if replaced != values:
        set_param(name, replaced)


def runs_of_url(runs: Sequence[RunInfo], of: str) -> frozenset[str]:
    """The ids of the runs that the URL lists, or all if it lists none.

    A URL lists the runs that were on the machine when it was copied, so it keeps showing the same
    runs after new ones are added. The bundled runs are one entry of the list, which stands for
    those of this version of the app.

    Args:
        runs: All runs of one kind on this machine. They are added to a URL without runs.
        of: The dataset or study of the runs. When it changes, all runs are shown again.

    Returns:
        The ids that the URL lists, or all ids if it lists no run on this machine.
    """
    ids = {mark_of(run.id): run.id for run in runs}
    bundled = [run.id for run in runs if run.bundled]
    together = BUNDLED + mark_of(" ".join(sorted(bundled)))
    own = [mark for mark, run in ids.items() if run not in bundled]
    listed = tuple(filter(None, st.query_params.get(AMONG, "").split(".")))
    before, wanted = st.session_state.setdefault(RUNS, (of, listed))
    if before != of:
        st.session_state[RUNS] = (of, ())
        wanted = ()
    found = {ids[mark] for mark in wanted if mark in ids}
    if any(mark.startswith(BUNDLED) for mark in wanted):
        found |= set(bundled)
    kept = frozenset(found or ids.values())
    unknown = {*wanted} - {*ids, together}
    n_more = len(ids) - len(kept)
    every = (*[together] * any(bundled), *own)
    set_param(AMONG, [".".join(wanted if found and (unknown or n_more) else every)])
    if unknown or n_more:
        other_version = any(mark.startswith(BUNDLED) for mark in unknown)
        _draw_other_runs(len(unknown) - other_version, n_more, other_version=other_version)
    return kept


def only_facts() -> str:
    """The chosen facts to which the URL, or the screen before it, restricts Results; "" is all."""
    if is_new_url() or ONLY in st.query_params:
        st.session_state[ONLY] = st.query_params.get(ONLY, "")
    return str(st.session_state.get(ONLY, ""))


def lists_runs() -> bool:
    """Whether the URL listed runs when it was opened, as all URLs that the app writes do."""
    return bool(st.session_state.get(RUNS, ("", ()))[1])


def _draw_other_runs(n_missing: int, n_more: int, *, other_version: bool) -> None:
    """Show how the runs differ from those of the URL.

    Args:
        n_missing: How many runs of the URL are missing.
        n_more: How many runs the URL doesn't list.
        other_version: Whether the bundled runs were others.
    """
    parts = []
    if n_missing:
        parts.append(
            f"{n_missing} of this URL's runs {'are' if n_missing > 1 else 'is'} missing on this "
            "machine"
        )
    if other_version:
        parts.append("another version of the app made this URL, with other bundled runs")
    if n_more:
        parts.append(f"{n_more} other {'runs' if n_more > 1 else 'run'} not shown")
    with st.container(horizontal=True, vertical_alignment="center"):
        said = "; ".join(parts)
        st.caption(f"{said[:1].upper()}{said[1:]}.", width="content")
        if n_more and st.button("Show all runs", icon=":material/undo:", type="tertiary"):
            go(st.session_state[PAGE], params_without(()) | {AMONG: ""})


def write_url() -> str:
    """Give the browser the complete URL of the drawn page; return its shortest query string."""
    with query_params() as params:
        shown = {name for name in params if _is_drawn(params, name)} | st.session_state[PUT]
        used = st.session_state[USED]
        # Omit parameters of tabs that aren't open any more.
        values = {
            name: params.get_all(name) for name in params if name in shown or name not in used
        }
    used |= shown
    _order(path_of(st.session_state[PAGE]), urlencode(values, doseq=True), "write")
    shorter: dict[str, dict[str, str]] = st.session_state[SHORTER]
    return urlencode(
        {
            name: [shorter.get(name, {}).get(one, one) for one in several]
            for name, several in values.items()
        },
        doseq=True,
    )


def _is_drawn(params: QueryParams, name: str) -> bool:
    """Whether a widget drawn in this rerun is bound to the parameter."""
    context, binding = get_script_run_ctx(), params.get_binding_for_param(name)
    return (
        context is not None
        and binding is not None
        and binding.widget_id in context.shared.widget_ids_this_run.snapshot()
    )


def path_of(page: str) -> str:
    """The path of a page's URL."""
    return f"{st.session_state[ROOT]}/{'' if page == screens.ASK else PurePosixPath(page).stem}"


def _order(path: str, query: str, act: Literal["go", "replace", "write"]) -> None:
    context = get_script_run_ctx()
    # Where the last step in the history led, also for a rerun after it, and this run's own query.
    asked = [st.session_state.get(ASKED, ""), context.query_string if context else ""]
    with st.container(key="address"):
        st.components.v2.component("lama_address", js=_JS)(
            key=act,
            data={"path": path, "query": query, "asked": asked, "act": act, "run": next(_runs)},
        )
