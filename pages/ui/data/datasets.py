"""The list of datasets; downloading, importing, renaming and deleting them."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd
import streamlit as st

from lama_core import plugins
from lama_core.datasets.library import installed
from lama_core.datasets.library.download import ImportRequest, import_name
from lama_core.datasets.library.installed import Listed
from lama_core.datasets.library.manage import (
    dataset_bytes,
    delete_dataset,
    rename_dataset,
    users_of,
)
from lama_core.datasets.library.published import is_published, source
from lama_core.errors import UserError, reason_of
from lama_core.files import format_bytes, user_path
from lama_core.runs.find import list_runs
from lama_core.scoring.multi_token_answers import find_multi_token_answers
from pages.ui.data.contents import counts_by_source, draw_content, draw_dropped
from pages.ui.data.file_forms import FileForm
from pages.ui.data.mapping import ChosenFile, draw_mapping, read_once
from pages.ui.results.new_run import WHOLE_ANSWERS, WORDS_AT_BLANK, start_run
from pages.ui.shared import cache, fetching, jobs, links, screens, visitors
from pages.ui.shared.export import draw_download
from pages.ui.shared.messages import (
    counted,
    errors_shown,
    name_value_lines,
    plain,
    show_error,
    show_note,
)
from pages.ui.shared.run_form import default_models
from pages.ui.shared.url_state import choose_row, title_of

IMPORT = "import data"
IMPORTED = "imported"  # in the session: the name of the last imported dataset
DATA = "facts to ask"  # what a file has that no plug-in takes
TABLE_HELP = (
    "A table has one row per fact, with the columns **subject** and **object**, and a **template** "
    "such as `The capital of [X] is [Y] .` or a **sentence** with `[MASK]`. The column "
    "**relation** groups rows; without it all rows form one relation, named after the file. Before "
    "the import you can choose columns with other names and type missing templates."
)
PATTERN = """\
subject,relation,object,template
Peru,capital,Lima,The capital of [X] is [Y] .
Japan,capital,Tokyo,The capital of [X] is [Y] .
Peru,currency,sol,The currency of [X] is the [Y] .
Japan,currency,yen,The currency of [X] is the [Y] .
"""


def draw_sets() -> None:
    """Draw the table of datasets and, next to it, the one that was clicked last, with its facts."""
    sources = sorted(
        (row for row in installed.listing() if row.installed or visitors.may("fetch")),
        key=lambda listed: not listed.installed,
    )
    table = pd.DataFrame(
        {
            "name": listed.name,
            "about": listed.title.partition(":")[2].strip() or listed.title,
            "availability": fetching.availability(listed.size, is_installed=listed.installed),
        }
        for listed in sources
    )
    names = list(table["name"])
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption("Lists of facts, pairs and prompts to ask models. Click one to see it.")
        chosen = choose_row(
            "Data set", table, names, key="source", drops=("relation",), height=None
        )
    listed = sources[names.index(chosen)]
    with right, st.container(key="detail-of-data"):
        with errors_shown():
            draw_source(listed)
        if listed.installed:
            with errors_shown():
                draw_content(listed)


def draw_source(listed: Listed) -> None:
    """Draw a dataset's description, licence and actions; the licence is above the download."""
    st.subheader(plain(listed.title), anchor=False)
    published = is_published(listed.name)
    is_imported = listed.name in installed.installed_names()
    if listed.n_facts:
        of = f" of {counted(listed.n_relations, 'relation')}" if listed.n_relations else ""
        st.markdown(f"**{listed.n_facts:,} {listed.kind}**{of}")
    facts = {
        **counts_by_source(listed),
        "licence": listed.licence,
        "cite": listed.citation,
        "home": listed.homepage,
        "folder": listed.path if listed.installed and visitors.may("manage") else "",
        "size on disk": format_bytes(dataset_bytes(listed.name)) if is_imported else "",
        "note": source(listed.name).note if published else "",
    }
    if not listed.installed:
        st.markdown(name_value_lines(facts, links=published))
        fetching.draw_source_offer(listed.name, about=False)
        return
    with st.container(horizontal=True):
        if listed.kind == "facts" and visitors.may("run"):
            links.draw_link(
                "Ask models these facts",
                "play_arrow",
                screens.DATA,
                _new_run(listed.name, WORDS_AT_BLANK),
                type="primary",
            )
        if (
            listed.kind == "analogies"
            and visitors.may("run")
            and st.button(
                "Probe models with these pairs", icon=":material/play_arrow:", type="primary"
            )
        ):
            st.session_state["new analogies"] = listed.name
            links.go(screens.RESULTS, {**screens.NEW_PROBE, "data": listed.name})
        if is_imported:
            _draw_rename_and_delete(listed.name)
    with st.expander("Sources, licence and folder"):
        st.markdown(name_value_lines(facts, links=published))


def draw_import() -> None:
    """Draw the form that imports a local path or an upload, with a preview of tables.

    The form keeps its inputs until an import succeeds.
    """
    if not visitors.may("upload"):
        st.caption(visitors.WHO_HAS_RIGHT["upload"])
        return
    job = jobs.find(IMPORT)
    running = job is not None and job.running
    if running:
        jobs.draw_progress(IMPORT)
    elif job is not None:
        _end_import(job)
    imported = st.container()
    others: dict[str, FileForm] = {}
    described = ""
    for has, other in plugins.rows("file_forms").items():
        with errors_shown():  # a plug-in's mistake doesn't hide the others, and the form of data
            other.draw_progress()
            described += f"  \n{other.describe()}"
            others[has] = other
    form = st.session_state.get("import forms", 0)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            "**Facts to ask models**: a table with one fact per row (subject, object and a "
            f"template or sentence), or a data set as published.{described}"
        )
        icon = ":material/download:"
        meaning = "\n\n".join((TABLE_HELP, *(other.help for other in others.values())))
        draw_download("Example facts", PATTERN, "example-facts.csv", icon=icon, help=meaning)
        for has, other in others.items():
            file_name, text = other.example
            draw_download(f"Example {has.split()[0]}", text, file_name, icon=icon)
    file = _choose_file(form, meaning)
    if file is None:
        if (name := st.session_state.get(IMPORTED)) in installed.installed_names():
            with imported, errors_shown():
                _draw_imported(name)
        else:
            show_note(
                f"Choose a file{', or type a path' * visitors.may('paths')}: its first rows are "
                "shown before anything is imported."
            )
        return
    st.session_state.pop(IMPORTED, None)
    content: str | None = None  # after an error
    with errors_shown():
        content = _choose_content(file, others)
        if content and content in others:
            others[content].draw(file)
    if content == DATA:
        _draw_import_of_data(file, form, running=running)


def _draw_import_of_data(file: ChosenFile, form: int, *, running: bool) -> None:
    """Draw the columns, name and button for a file of facts; start the import once it is agreed.

    form: the number of the form, which is part of its widgets' keys.
    running: whether an import is running.
    """
    request: ImportRequest | str = ""
    given = ""
    with errors_shown():
        request = draw_mapping(file, ImportRequest(file.name))
        given = st.text_input(
            "Name of the data set",
            key=f"import name {form}",
            placeholder=import_name(Path(file.name), None),
            help="If a data set already has this name, the app asks before replacing it.",
        ).strip()
    with st.container(horizontal=True, vertical_alignment="center"):
        # Enabled while the template is missing: the click that ends its typing starts the import.
        wanted = st.button(
            "Import",
            icon=":material/upload:",
            type="primary",
            disabled=running or not request,  # the file can't be read
        )
        if request and isinstance(request, str):
            (show_error if wanted else show_note)(request)
    if isinstance(request, str) or running:
        return
    name = import_name(Path(file.name), given or None)
    exists = name in installed.installed_names()
    if wanted and exists:
        st.session_state["to replace"] = name  # until another name is typed
    replaces = exists and st.session_state.get("to replace") == name and _agree_to_replace(name)
    if not (replaces or (wanted and not exists)):
        return
    path = file.open()
    request = replace(request, path=str(path), name=given or None, replace=replaces)
    jobs.start(IMPORT, request, scratch=path.parent if file.is_copy else None)
    st.rerun()


def _choose_content(file: ChosenFile, others: Mapping[str, FileForm]) -> str | None:
    """Return the name of the form that takes a file, or `DATA`; the visitor can say it of a table.

    None if the visitor has to say it.
    """
    for name, other in others.items():
        try:
            with st.spinner("Reading the file"):
                takes = read_once(file, (name,), other.takes)
        except Exception as error:
            if isinstance(error, UserError) or not plugins.blame(error):
                raise
            with errors_shown():  # a plug-in's mistake: the next form may take the file
                raise
            continue
        if takes == "yes":
            return name
        if takes != "no":
            chosen: str | None = st.segmented_control(
                "This table has",
                (name, DATA),
                default=name if takes == "likely" else None,
                key=f"content of {file.mark}",
            )
            if chosen is None:
                show_note(f"Choose what the table has: {name}, or {DATA} them.")
            return chosen
    return DATA


def _choose_file(form: int, meaning: str) -> ChosenFile | None:
    """Draw the fields for an upload and for a path on this machine; return the file.

    None if no file is chosen yet, or two. form: the number of the form. meaning: the help text.
    """
    upload = st.file_uploader("Upload a table or archive", key=f"import file {form}", help=meaning)
    path = ""
    if visitors.may("paths"):
        path = st.text_input(
            "Or a table, archive or folder on this machine",
            key=f"import path {form}",
            placeholder="/path/to/facts.csv, data.zip, or LAMA/data",
            help="A data set as its authors publish it, such as LAMA or BATS, or a table "
            "(CSV, TSV, JSON, Parquet, Arrow, Excel, ODS) with a row per fact. The app copies the "
            "file. Or the results of another tool: a table with ranks or predictions, or a folder.",
        ).strip()
    if path and upload is not None:
        show_note("Type a path or choose a file, not both.")
        return None
    if upload is not None:
        file = upload
        return ChosenFile(file.name, file.file_id, file.size, lambda: _save_upload(file), True)
    if not path:
        return None
    given = user_path(path)
    if not given.is_file():
        return ChosenFile(path, path, 0, lambda: given, False)
    stat = given.stat()
    mark = f"{given} {stat.st_mtime_ns} {stat.st_size}"
    return ChosenFile(path, mark, stat.st_size, lambda: given, False)


def _agree_to_replace(name: str) -> bool:
    """Warn that an import would replace a dataset; return whether the local user agreed."""
    exists = f"**{plain(installed.describe(name))}** already exists"
    if not visitors.may("manage"):
        st.warning(f"{exists}: choose another name for the import.", icon=":material/warning:")
        return False
    st.warning(f"{exists}. Replace it{_consequences(name)}?", icon=":material/warning:")
    with st.container(horizontal=True):
        yes = st.button("Replace it", icon=":material/sync:", key="replace")
        if st.button("Keep it", key="keep"):
            del st.session_state["to replace"]
            st.rerun()
    return yes


def _consequences(name: str) -> str:
    """How deleting or replacing a dataset affects its runs and datasets that use its templates.

    Returns:
        The effects in parentheses, after a space; empty if there are none.
    """
    n_runs, users = sum(run.dataset == name for run in list_runs()), users_of(name)
    runs = f"its {counted(n_runs, 'run')} stay{'s' * (n_runs == 1)}" * bool(n_runs)
    s = "s" * (len(users) == 1)
    uses = f"{plain(', '.join(users))} use{s} its templates and lose{s} them" * bool(users)
    return f" ({'; '.join(filter(None, (runs, uses)))})" if runs or uses else ""


def _draw_rename_and_delete(name: str) -> None:
    """Draw the local user's buttons to rename and delete an imported dataset."""
    if not visitors.may("manage"):
        st.caption(visitors.LOCAL_USER_ONLY)
        return
    with st.popover("Rename", icon=":material/edit:"), errors_shown():
        new = st.text_input("New name", name, key=f"new name of {name}")
        st.caption(f"Its runs keep showing the old name{_consequences(name)}.")
        if st.button("Rename it", key=f"rename {name}"):
            st.session_state["source"] = rename_dataset(name, new)
            st.rerun()
    with st.popover("Delete", icon=":material/delete:"), errors_shown():
        st.markdown(
            f"This permanently deletes {plain(installed.describe(name))}, "
            f"{format_bytes(dataset_bytes(name))}{_consequences(name)}."
        )
        if st.button("Delete permanently", key=f"delete {name}", type="primary"):
            delete_dataset(name)
            st.session_state["source"] = installed.STARTER
            st.rerun()


def _end_import(job: jobs.Job) -> None:
    """Show once how an import ended; after a success reset the form and select the dataset."""
    jobs.forget(IMPORT)
    if job.error:
        show_error(job.error)
        return
    if job.cancelled:
        st.caption("Cancelled; partial files are removed.")
        return
    st.session_state["import forms"] = st.session_state.get("import forms", 0) + 1
    (name,) = job.names("data")
    st.session_state["source"] = st.session_state[IMPORTED] = name
    st.rerun()


def _draw_imported(name: str) -> None:
    """Draw the result of an import: counts, excluded rows with reasons, and next steps."""
    record = installed.read_record(name)
    is_facts = record.kind == "facts"
    st.success(
        f"Imported {plain(name)}: {counted(record.n_facts or 0, record.item)}.",
        icon=":material/check_circle:",
    )
    draw_dropped(cache.content_of(record).report.dropped, opened=True)
    found = None
    if is_facts:
        with st.spinner("Counting the tokens of the answers"):
            found = cache.uncached(find_multi_token_answers, cache.dataset_of(name))
    if found and found.long:
        are, their = ("is", "its") if len(found.long) == 1 else ("are", "their")
        examples = ", ".join(found.long[:3]) + ", ..." * (len(found.long) > 3)
        show_note(
            f"{len(found.long):,} of {counted(found.n_objects, 'object')} {are} more than one "
            f"token in {plain(found.model)} ({plain(examples)}). A run that ranks single words "
            f"excludes {their} facts. Rank whole answers instead?"
        )
    with st.container(horizontal=True):
        if is_facts and visitors.may("run"):
            if found and found.long:
                whole, icon = _new_run(name, WHOLE_ANSWERS), "format_list_numbered"
                links.draw_link("Rank whole answers", icon, screens.DATA, whole, type="primary")
            form, models = _new_run(name, WORDS_AT_BLANK), default_models(visitors.models_here())
            if models and st.button(
                f"Ask {plain(', '.join(map(title_of, models)))}", icon=":material/bolt:"
            ):
                start_run(name, models)
                links.go(screens.DATA, form)
            label = "Choose models and options"
            links.draw_link(label, "play_arrow", screens.DATA, form, type="secondary")
        there = {"source": name}
        links.draw_link("Show the data set", "visibility", screens.DATA, there, type="secondary")


def _new_run(name: str, kind: str) -> screens.Params:
    """The form of a new run on a dataset. kind: `WORDS_AT_BLANK` or `WHOLE_ANSWERS`."""
    return {**screens.NEW_RUN, "data": name, "run_rank": kind}


def _save_upload(upload: "st.runtime.uploaded_file_manager.UploadedFile") -> Path:
    """Save an upload in a new temporary folder; return the file's path."""
    folder = Path(tempfile.mkdtemp(prefix="lama-import-"))
    path = folder / Path(upload.name).name
    try:
        path.write_bytes(upload.getbuffer())
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(
            f"The upload could not be saved: {reason_of(error)}. Rename the file or free disk "
            "space, then choose it again."
        ) from error
    return path
