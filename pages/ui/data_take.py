"""The list of knowledge sources, and the ways to get one: fetch it, or import it."""

import shutil
import tempfile
from pathlib import Path

import pandas as pd
import streamlit as st

from lama_core.datasets import library
from lama_core.datasets.catalog import is_published, source
from lama_core.datasets.library import Listed
from pages.ui import jobs, links
from pages.ui.messages import plain, show_fault
from pages.ui.state import BOUND

IMPORT = "import data"
UPLOADS = ("zip", "gz", "tgz", "tar", "csv", "tsv", "jsonl")


def status_of(listed: Listed) -> str:
    """Where a source is, in two or three words."""
    return "here" if listed.installed else "can be fetched"


def choose_source(sources: list[Listed]) -> Listed:
    """All sources as a table; a click on a row, or the field under it, chooses one."""
    if "source later" in st.session_state:
        st.session_state["source"] = st.session_state.pop("source later")
    table = pd.DataFrame(
        {
            "name": [listed.name for listed in sources],
            "what": [listed.title for listed in sources],
            "kind": [listed.kind for listed in sources],
            "where": [status_of(listed) for listed in sources],
            "relations": [listed.n_relations for listed in sources],
            "facts or pairs": [listed.n_facts for listed in sources],
            "to fetch (MB)": [
                listed.size / 1e6 if listed.size and not listed.installed else None
                for listed in sources
            ],
            "licence": [listed.licence for listed in sources],
        }
    )

    def take() -> None:
        rows = st.session_state["sources table"]["selection"]["rows"]
        if rows:
            st.session_state["source"] = sources[rows[0]].name

    number = st.column_config.NumberColumn
    st.dataframe(
        table,
        hide_index=True,
        key="sources table",
        on_select=take,
        selection_mode="single-row",
        placeholder="",
        height="content",
        column_config={
            "relations": number(format="localized"),
            "facts or pairs": number(format="localized"),
            "to fetch (MB)": number(format="%.1f"),
            "what": st.column_config.TextColumn(width="large"),
        },
    )
    names = [listed.name for listed in sources]
    left, _ = st.columns([3, 2], gap="large")
    name = left.selectbox("Source", names, key="source", bind=BOUND)
    return sources[names.index(name)]


def draw_source(listed: Listed) -> None:
    """What is known of a source, and what can be done with it; its licence before any fetch."""
    st.subheader(plain(listed.title), anchor=False)
    note = source(listed.name).note if is_published(listed.name) else ""
    facts = {
        "licence": listed.licence,
        "cite": listed.citation,
        "home": listed.homepage,
        "folder": listed.path if listed.installed else "",
        "note": note,
    }
    lines = [f"**{what}**: {plain(value)}" for what, value in facts.items() if value]
    st.markdown("  \n".join(lines))
    if not listed.installed:
        _draw_offer(listed)
    elif listed.kind == "facts" and st.button(
        "Ask models these facts", icon=":material/play_arrow:"
    ):
        st.session_state["new data"] = listed.name
        links.go(links.DATA, links.RESULTS, {"tab": "New run"})


def _draw_offer(listed: Listed) -> None:
    """A button that fetches the source, or the progress of a fetch that goes on."""
    name = f"data {listed.name}"
    job = jobs.find(name)
    if job is not None and job.running:
        _draw_progress(name, listed.name)
        return
    if job is not None and job.error:
        show_fault(job.error)
    elif job is not None and job.cancelled:
        st.caption("Cancelled; what was fetched is kept, and the next try goes on from there.")
    size = f" ({listed.size / 1e6:.0f} MB)" if listed.size else ""
    needs = source(listed.name).needs
    first = f" It needs {needs}, which is fetched first." if needs else ""
    label = f"Get it{size}, under the licence above"
    if st.button(label, icon=":material/download:", key=f"get {listed.name}"):
        jobs.start(name, ["data", "get", listed.name])
        st.rerun()
    if needs in library.installed_names() and st.button(
        f"Compute it from {needs}", icon=":material/function:"
    ):
        jobs.start(name, ["data", "get", listed.name, "--compute"])
        st.rerun()
    st.caption(
        "From a terminal: "
        f"`python -m lama_core data get {listed.name}`. A broken fetch is continued; the file is "
        f"checked before it is used.{first}"
    )


def draw_import() -> None:
    """A field for what is on this machine already, and one for a file from the browser."""
    st.subheader("Import your own", anchor=False)
    job = jobs.find(IMPORT)
    if job is not None and job.running:
        _draw_progress(IMPORT, "")
        return
    if job is not None:
        _end_import(job)
    with st.form("import", border=False):
        path = st.text_input(
            "Folder, archive or table on this machine",
            placeholder="/path/to/LAMA/data, data.zip, or facts.csv",
            help="LAMA, LPAQA, ParaRel, BATS or Google's analogies as their authors publish them, "
            "or a CSV, TSV or JSONL with subject, relation and object. It is copied.",
        )
        upload = st.file_uploader("Or a file from here", type=UPLOADS)
        name = st.text_input("Name", placeholder="As the folder or file")
        if st.form_submit_button("Import", icon=":material/upload:") and (path or upload):
            place = path.strip() if path else _keep(upload)
            words = ["data", "import", place]
            words += ["--name", name.strip()] if name and name.strip() else []
            st.session_state["sources before"] = library.installed_names()
            jobs.start(IMPORT, words)
            st.rerun()


def _end_import(job: jobs.Job) -> None:
    """Say how an import ended, once; a new source is opened."""
    jobs.forget(IMPORT)
    if "upload" in st.session_state:
        shutil.rmtree(st.session_state.pop("upload"), ignore_errors=True)
    if job.error:
        show_fault(job.error)
    elif job.cancelled:
        st.caption("Cancelled; nothing half-made was kept.")
    else:
        before = st.session_state.get("sources before", ())
        new = [name for name in library.installed_names() if name not in before]
        st.toast(plain(f"Imported: {', '.join(new) or 'read again'}"), icon=":material/check:")
        if new:
            st.session_state["source later"] = new[0]
            st.rerun()


def _keep(upload: "st.runtime.uploaded_file_manager.UploadedFile") -> str:
    """The uploaded file on disk, under its own name."""
    folder = Path(tempfile.mkdtemp(prefix="lama-import-"))
    st.session_state["upload"] = str(folder)
    path = folder / Path(upload.name).name
    path.write_bytes(upload.getbuffer())
    return str(path)


@st.fragment(run_every=0.5)
def _draw_progress(name: str, wanted: str) -> None:
    job = jobs.find(name)
    if job is None or not job.running:
        if job is not None and wanted in library.installed_names():
            jobs.forget(name)
        st.rerun()
        return
    text = plain(job.stage)
    if job.total:
        text += f": {job.done / 1e6:.1f} of {job.total / 1e6:.1f} MB"
    elif job.done:
        text += f": {job.done / 1e6:.1f} MB"
    st.progress(job.share or 0.0, text=text)
    if st.button("Cancel", key=f"cancel {name}", icon=":material/close:"):
        job.cancel()
