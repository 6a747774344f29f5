"""Offer a model that is not here yet, and show its coming, without holding up the page."""

import streamlit as st

from lama_core.models.catalog import Entry, ModelRequest
from lama_core.models.sources import locate
from pages.ui.shared import jobs
from pages.ui.shared.messages import plain, show_fault


def size_of(entry: Entry) -> str:
    """The download's size where it is known, as ` (93 MB)`."""
    n_bytes = entry.source.n_bytes
    return f" ({n_bytes / 1e6:.0f} MB)" if n_bytes else ""


def draw_offer(entry: Entry) -> None:
    """A button that fetches the model, or the progress of a fetch that goes on."""
    job = jobs.find(entry.name)
    if job is not None and job.running:
        jobs.draw_progress(entry.name, lambda: locate(entry) is not None)
        return
    if job is not None and job.error:
        show_fault(job.error)
    elif job is not None and job.cancelled:
        st.caption("Cancelled; nothing half-made was kept.")
    if st.button(f"Get it{size_of(entry)}", key=f"get {entry.name}", icon=":material/download:"):
        jobs.start(entry.name, ModelRequest(entry.name))
        st.rerun()
    st.caption(f"{plain(entry.title)} is not on this machine yet. {plain(entry.note)}")
