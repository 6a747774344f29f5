"""Buttons that download missing models and data in the background, and their progress."""

from collections.abc import Callable

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from lama_core.datasets.library import installed, published
from lama_core.datasets.library.download import GetRequest
from lama_core.files import format_bytes
from lama_core.models.sources.catalog import Entry, ModelRequest
from lama_core.models.sources.locations import describe_origin, fault_of, install_message, is_here
from lama_core.requests import command_line
from pages.ui.shared import jobs, visitors
from pages.ui.shared.text import plain, show_error


def size_of(n_bytes: int | None) -> str:
    """A download's size as ` (93 MB)`; empty if it isn't known."""
    return f" ({format_bytes(n_bytes)})" if n_bytes else ""


def availability(n_bytes: int | None, *, is_installed: bool) -> str:
    """The cell of a table that says whether something is installed, else its download's size."""
    return "installed" if is_installed else f"download{size_of(n_bytes)}"


def _draw_download(name: str, is_installed: Callable[[], bool], cancelled: str) -> bool:
    """Draw a download's progress, or its error or cancellation; return whether it is running."""
    job = jobs.find(name)
    if job is not None and job.running:
        jobs.draw_progress(name, is_installed)
        return True
    if job is not None and job.error:
        show_error(job.error)
    elif job is not None and job.cancelled:
        st.caption(cancelled)
    return False


def draw_offer(entry: Entry, note: str = "", *, about: bool = True) -> None:
    """Draw a line with a button that downloads the model, its progress, or how to install it.

    note: ends the sentence that the model isn't installed. about: whether the line names the
    model, and the button's tooltip describes it.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        if entry.source.how == "assets":  # its package is installed from a terminal
            st.caption(install_message(entry))
            return
        if _draw_download(
            entry.name, lambda: is_here(entry), "Cancelled; partial files are removed."
        ):
            return
        served = entry.source.how == "server"  # calling a server's URL needs the local user
        right: visitors.Right = "manage" if served else "fetch"
        label = "Connect" if served else f"Get it{size_of(entry.source.n_bytes)}"
        if not visitors.may(right):
            st.caption(f"{plain(entry.title)} isn't installed. {visitors.WHO_HAS_RIGHT[right]}")
            return
        if fault := fault_of(entry):
            st.warning(plain(fault, code=True), icon=":material/broken_image:")
        more = plain(f"{describe_origin(entry)} {entry.note}".strip(), code=True) if about else None
        if about:
            st.markdown(f"**{plain(entry.title)}** isn't installed{note}.", width="content")
        if st.button(label, key=f"get {entry.name}", icon=":material/download:", help=more):
            jobs.start(entry.name, ModelRequest(entry.name), about=entry.title)
            st.rerun()


def draw_small_source_offer(name: str) -> None:
    """Draw a small button that opens a source's download offer, or the download's progress."""
    if jobs.find(f"data {name}") is not None:
        draw_source_offer(name)
        return
    if not visitors.may("fetch"):
        return
    with st.popover(
        f"Get {name}{size_of(published.source(name).size)}",
        icon=":material/download:",
        type="tertiary",
        key=f"offer {name}",
    ):
        draw_source_offer(name)


def draw_source_offer(name: str, *, about: bool = True) -> None:
    """Draw a button that downloads a published source, or the progress.

    Drawn once per page, even if several parts of the page need the source. about: whether to name
    the source and its licence; else the page does it, and the button is its main one.
    """
    source, job_name = published.source(name), f"data {name}"
    context = get_script_run_ctx()
    if context is not None:
        drawn = context.shared.widget_user_keys_this_run
        if f"get {job_name}" in drawn or f"cancel {job_name}" in drawn:
            return
    if _draw_download(
        job_name,
        lambda: name in installed.installed_names(),
        "Cancelled. The next try resumes the download.",
    ):
        return
    if not visitors.may("fetch"):
        st.caption(
            f"{plain(source.title)} is not on this machine. {visitors.WHO_HAS_RIGHT['fetch']}"
        )
        return
    if st.button(
        f"Get {name}{size_of(source.size)}",
        type="secondary" if about else "primary",
        icon=":material/download:",
        key=f"get {job_name}",
    ):
        jobs.start(job_name, GetRequest(name))
        st.rerun()
    if source.needs in installed.installed_names() and st.button(
        f"Compute it from {source.needs}", icon=":material/function:", key=f"compute {job_name}"
    ):
        jobs.start(job_name, GetRequest(name, compute=True))
        st.rerun()
    first = f" Downloads {source.needs} first, which it needs." if source.needs else ""
    named = f"{plain(source.title)}. Licence: {plain(source.licence)}. " * about
    st.caption(
        f"{named}From a terminal: `{command_line(GetRequest(name))}`. An interrupted download "
        f"resumes; the file is checked before use.{first}"
    )
