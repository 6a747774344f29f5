"""Offer a model that is not here yet, and show its coming, without holding up the page."""

import streamlit as st

from lama_core.models.catalog import Entry
from lama_core.models.sources import locate
from pages.ui import jobs
from pages.ui.messages import plain, show_fault


def size_of(entry: Entry) -> str:
    """The download's size where it is known, as ` (93 MB)`."""
    n_bytes = entry.source.n_bytes
    return f" ({n_bytes / 1e6:.0f} MB)" if n_bytes else ""


def draw_offer(entry: Entry) -> None:
    """A button that fetches the model, or the progress of a fetch that goes on."""
    job = jobs.find(entry.name)
    if job is not None and job.running:
        _draw_progress(entry)
        return
    if job is not None and job.error:
        show_fault(job.error)
    elif job is not None and job.cancelled:
        st.caption("Cancelled; nothing half-made was kept.")
    if st.button(f"Get it{size_of(entry)}", key=f"get {entry.name}", icon=":material/download:"):
        jobs.start(entry.name, ["models", "get", entry.name])
        st.rerun()
    st.caption(f"{plain(entry.title)} is not on this machine yet. {plain(entry.note)}")


@st.fragment(run_every=0.5)
def _draw_progress(entry: Entry) -> None:
    job = jobs.find(entry.name)
    if job is None or not job.running:
        if job is not None and locate(entry) is not None:
            jobs.forget(entry.name)
        st.rerun()
        return
    text = plain(job.stage)
    if job.total and job.total > 1000:
        text += f": {job.done / 1e6:.0f} of {job.total / 1e6:.0f} MB"
    elif job.total:
        text += f": step {job.done} of {job.total}"
    st.progress(job.share or 0.0, text=text)
    if st.button("Cancel", key=f"cancel {entry.name}", icon=":material/close:"):
        job.cancel()
