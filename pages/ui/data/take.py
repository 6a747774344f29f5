"""The list of knowledge sources, and the ways to get one: fetch it, or import it."""

import shutil
import tempfile
from pathlib import Path

import pandas as pd
import streamlit as st

from lama_core.datasets.library import installed
from lama_core.datasets.library.catalog import is_published, source
from lama_core.datasets.library.download import GetRequest, ImportRequest
from lama_core.datasets.library.installed import Listed
from lama_core.errors import UserError
from lama_core.requests import command_line
from pages.ui.shared import cache, jobs, links
from pages.ui.shared.messages import plain, show_fault
from pages.ui.shared.state import BOUND

IMPORT = "import data"
UPLOADS = ("csv", "tsv", "jsonl", "txt", "zip", "tar", "tgz", "tar.gz")
TABLE_HELP = (
    "A table has a row a fact: **subject** and **object**, and what asks for it: a **template** "
    "such as `The capital of [X] is [Y] .`, or a **sentence** with `[MASK]`. **relation** groups "
    "rows; without it they are one relation, named as the file."
)


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
        jobs.draw_progress(name, lambda: listed.name in installed.installed_names())
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
        jobs.start(name, GetRequest(listed.name))
        st.rerun()
    if needs in installed.installed_names() and st.button(
        f"Compute it from {needs}", icon=":material/function:"
    ):
        jobs.start(name, GetRequest(listed.name, compute=True))
        st.rerun()
    st.caption(
        "From a terminal: "
        f"`{command_line(GetRequest(listed.name))}`. A broken fetch is continued; the file is "
        f"checked before it is used.{first}"
    )


def draw_import() -> None:
    """A field for what is on this machine already, and one for a file from the browser.

    What was typed stays until an import has succeeded.
    """
    st.subheader("Import your own", anchor=False)
    job = jobs.find(IMPORT)
    running = job is not None and job.running
    if running:
        jobs.draw_progress(IMPORT)
    elif job is not None:
        _end_import(job)
    form = st.session_state.get("import forms", 0)
    with st.form("import", border=False):
        path = st.text_input(
            "Folder, archive or table on this machine",
            key=f"import path {form}",
            placeholder="/path/to/LAMA/data, data.zip, or facts.csv",
            help="LAMA, LPAQA, ParaRel, BATS or Google's analogies as their authors publish them, "
            "or a CSV, TSV or JSONL with subject, relation and object. It is copied.",
        ).strip()
        upload = st.file_uploader("Or a file from here", type=UPLOADS, key=f"import file {form}",
                                  help=TABLE_HELP)  # fmt: skip
        name = st.text_input(
            "Name", key=f"import name {form}", placeholder="As the folder or file",
            help="An import of the same name is replaced.",
        ).strip()  # fmt: skip
        wanted = st.form_submit_button("Import", icon=":material/upload:", disabled=running)
    if not wanted:
        return
    if bool(path) == (upload is not None):
        both = ", not both" if path else ""
        st.info(f"Type a path or choose a file{both}.", icon=":material/info:")
        return
    if upload is None:
        jobs.start(IMPORT, ImportRequest(path, name or None))
    else:
        kept = _keep(upload)
        jobs.start(IMPORT, ImportRequest(str(kept), name or None), scratch=kept.parent)
    st.rerun()


def _end_import(job: jobs.Job) -> None:
    """Say how an import ended, once; what was imported is opened."""
    jobs.forget(IMPORT)
    if job.error:
        show_fault(job.error)
        return
    if job.cancelled:
        st.caption("Cancelled; nothing half-made was kept.")
        return
    st.session_state["import forms"] = st.session_state.get("import forms", 0) + 1
    (name,) = job.names("data")
    st.toast(plain(_describe_import(name)), icon=":material/check:", duration="long")
    st.session_state["source later"] = name
    st.rerun()


def _describe_import(name: str) -> str:
    """How much was read of it, and how many lines were not."""
    record = installed.read_record(name)
    read = cache.analogies_of if record.kind == "analogies" else cache.dataset_of
    n_dropped = len(read(name).report.dropped)
    what = {"analogies": "pairs", "facts": "facts", "prompts": "facts"}[record.kind]
    said = f"Imported {name}: {record.n_facts:,} {what}."
    if n_dropped:
        said += f" Lines left out: {n_dropped:,}; the reasons are at the end of this page."
    return said


def _keep(upload: "st.runtime.uploaded_file_manager.UploadedFile") -> Path:
    """The uploaded file on disk, under its own name, alone in a folder."""
    folder = Path(tempfile.mkdtemp(prefix="lama-import-"))
    path = folder / Path(upload.name).name
    try:
        path.write_bytes(upload.getbuffer())
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(
            f"The file could not be kept here: {error.strerror}. Rename it or make room, and "
            "choose it again."
        ) from error
    return path
