"""The list of knowledge sources, the ways to get one, and renaming and deleting one's own."""

import shutil
import tempfile
from pathlib import Path

import pandas as pd
import streamlit as st

from lama_core.datasets.library import installed
from lama_core.datasets.library.catalog import is_published, source
from lama_core.datasets.library.download import ImportRequest, import_name
from lama_core.datasets.library.installed import Listed
from lama_core.datasets.library.keeping import (
    dataset_bytes,
    delete_dataset,
    rename_dataset,
    users_of,
)
from lama_core.errors import UserError
from lama_core.files import bytes_text
from lama_core.runs.find import list_runs
from pages.ui.shared import cache, fetching, jobs, links, screens, visitors
from pages.ui.shared.messages import described, faults_shown, plain, show_fault, show_note
from pages.ui.shared.state import choose, draw_rows

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
    number, names = st.column_config.NumberColumn, [listed.name for listed in sources]
    draw_rows(
        table,
        names,
        key="source",
        height=None,
        column_config={
            "relations": number(format="localized"),
            "facts or pairs": number(format="localized"),
            "to fetch (MB)": number(format="%.1f"),
            "what": st.column_config.TextColumn(width="large"),
        },
    )
    left, _ = st.columns([3, 2], gap="large")
    name = choose("Source", names, key="source", place=left)
    return sources[names.index(name)]


def draw_source(listed: Listed) -> None:
    """What is known of a source, and what can be done with it; its licence before any fetch."""
    st.subheader(plain(listed.title), anchor=False)
    published = is_published(listed.name)
    note = source(listed.name).note if published else ""
    own = listed.name in installed.installed_names()
    facts = {
        "licence": listed.licence,
        "cite": listed.citation,
        "home": listed.homepage,
        "folder": listed.path if listed.installed and visitors.may("manage") else "",
        "size on disk": bytes_text(dataset_bytes(listed.name)) if own else "",
        "note": note,
    }
    st.markdown(described(facts, links=published))
    if not listed.installed:
        fetching.draw_source_offer(listed.name)
        return
    with st.container(horizontal=True):
        can_ask = listed.kind == "facts" and visitors.may("run")
        if can_ask and st.button("Ask models these facts", icon=":material/play_arrow:"):
            st.session_state["new data"] = listed.name
            links.go(screens.DATA, screens.NEW_RUN)
        if own:
            _draw_own(listed.name)


def draw_import() -> None:
    """A field for what is on this machine already, and one for a file from the browser.

    What was typed stays until an import has succeeded.
    """
    st.subheader("Import your own", anchor=False)
    if not visitors.may("upload"):
        st.caption(visitors.WHO["upload"])
        return
    job = jobs.find(IMPORT)
    running = job is not None and job.running
    if running:
        jobs.draw_progress(IMPORT)
    elif job is not None:
        _end_import(job)
    form = st.session_state.get("import forms", 0)
    with st.form("import", border=False):
        path = ""
        if visitors.may("paths"):
            path = st.text_input(
                "Folder, archive or table on this machine",
                key=f"import path {form}",
                placeholder="/path/to/LAMA/data, data.zip, or facts.csv",
                help="LAMA, LPAQA, ParaRel, BEAR, BATS or Google's analogies as their authors "
                "publish them, or a CSV, TSV or JSONL with subject, relation and object. It is "
                "copied.",
            ).strip()
        upload = st.file_uploader(
            "Or a file from here" if visitors.may("paths") else "A file",
            type=UPLOADS,
            key=f"import file {form}",
            help=TABLE_HELP,
        )
        name = st.text_input(
            "Name",
            key=f"import name {form}",
            placeholder="As the folder or file",
            help="Where there is one of that name, you are asked before it is replaced.",
        ).strip()
        wanted = st.form_submit_button("Import", icon=":material/upload:", disabled=running)
    if wanted:
        st.session_state.pop("to replace", None)
        if bool(path) == (upload is not None):
            both = ", not both" if path else ""
            show_note(f"Type a path or choose a file{both}.")
            return
    given = path or (upload.name if upload is not None else "")
    if not given or running:
        return
    taken = import_name(Path(given), name or None)
    is_there = taken in installed.installed_names()
    if wanted and is_there:
        st.session_state["to replace"] = taken
    replace = is_there and st.session_state.get("to replace") == taken and _agree(taken)
    if not (replace or (wanted and not is_there)):
        return
    if upload is None:
        jobs.start(IMPORT, ImportRequest(path, name or None, replace))
    else:
        kept = _keep(upload)
        request = ImportRequest(str(kept), name or None, replace)
        jobs.start(IMPORT, request, scratch=kept.parent)
    st.rerun()


def _agree(name: str) -> bool:
    """Say what an import of this name would replace; whether its owner has said yes."""
    said = f"**{plain(installed.describe(name))}** is here already"
    if not visitors.may("manage"):
        st.warning(f"{said}: give the import another name.", icon=":material/warning:")
        return False
    st.warning(f"{said}, and would be replaced{_consequences(name)}.", icon=":material/warning:")
    with st.container(horizontal=True):
        yes = st.button("Replace it", icon=":material/sync:", key="replace")
        if st.button("Keep it", key="keep"):
            del st.session_state["to replace"]
            st.rerun()
    return yes


def _consequences(name: str) -> str:
    """What else hangs on a source, as the rest of a sentence."""
    n_runs = sum(run.dataset == name for run in list_runs())
    users = users_of(name)
    said = []
    if n_runs:
        runs = f"{n_runs} runs made on it are" if n_runs > 1 else "1 run made on it is"
        said.append(f"; {runs} kept")
    if users:
        said.append(f"; {plain(', '.join(users))} ask with its templates, and lose them")
    return "".join(said)


def _draw_own(name: str) -> None:
    """Rename or delete a source; only for its owner."""
    if not visitors.may("manage"):
        st.caption(visitors.OWNERS_ONLY)
        return
    with st.popover("Rename", icon=":material/edit:"), faults_shown():
        new = st.text_input("New name", name, key=f"new name of {name}")
        st.caption(f"Runs that were made on it show the old name{_consequences(name)}.")
        if st.button("Rename it", key=f"rename {name}"):
            st.session_state["source later"] = rename_dataset(name, new)
            st.rerun()
    with st.popover("Delete", icon=":material/delete:"), faults_shown():
        st.markdown(
            f"{plain(installed.describe(name))}, {bytes_text(dataset_bytes(name))}, is removed "
            f"from the disk for good{_consequences(name)}."
        )
        if st.button("Delete it for good", key=f"delete {name}", type="primary"):
            delete_dataset(name)
            st.session_state["source later"] = installed.STARTER
            st.rerun()


def _end_import(job: jobs.Job) -> None:
    """Say how an import ended, once; open what was imported on the tab Data sets."""
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
    links.go(screens.DATA, {"source": name})


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
