"""The import of results that another tool made: check them, then save them as runs."""

from dataclasses import replace
from pathlib import Path

import streamlit as st

from lama_core.datasets.user_table import TablePreview
from lama_core.rounding import percent
from lama_core.runs.find import load_run
from lama_tool_results.formats import all_formats
from lama_tool_results.importing import ImportRunRequest, preview_results, takes
from pages.ui.data.file_forms import FileForm
from pages.ui.data.mapping import NONE, ChosenFile, draw_rows, read_once
from pages.ui.shared import cache, jobs, links, screens
from pages.ui.shared.messages import counted, plain, show_error, show_note
from pages.ui.shared.url_state import title_of

JOB = "import results"
CHECKED = "results checked"  # in the session: the last import that was checked, and its report
SAVED = "results saved"  # in the session: the names of the runs that were saved last
# Role -> label of the field for its column.
LABELS = {
    "subject": "Subjects",
    "object": "Right answers",
    "relation": "Relations",
    "model": "Models",
    "rank": "Ranks of the right answers",
    "correct": "Right or wrong",
    "predictions": "Predictions",
    "log_prob": "Log-probabilities",
}
RESULTS = "results of models"  # as in the plug-in's table
EXAMPLE = """\
model,relation,subject,object,prediction,rank
my-model,capital,Peru,Lima,Lima,1
my-model,capital,Japan,Tokyo,Kyoto,3
"""


def draw_progress() -> None:
    """Draw the running check or import, or how the last one ended."""
    job = jobs.find(JOB)
    if job is not None and job.running:
        jobs.draw_progress(JOB)
    elif job is not None:
        _end(job)
    if names := st.session_state.get(SAVED):
        st.success(plain(f"Saved: {'; '.join(map(_said, names))}."), icon=":material/check_circle:")
        there = {"data": load_run(names[0]).info.dataset, "runs": list(names)}
        links.draw_link("Show the results", "visibility", screens.RESULTS, there, type="primary")


def _end(job: jobs.Job) -> None:
    """Keep the report of a check, or the names of the saved runs; show an error once."""
    jobs.forget(JOB)
    if job.error:
        st.session_state.pop(CHECKED, None)
        show_error(job.error)
    elif job.cancelled:
        st.caption("Cancelled; nothing is saved.")
    elif names := job.names("run"):
        st.session_state[SAVED] = names
        st.session_state["import forms"] = st.session_state.get("import forms", 0) + 1
        st.session_state.pop(CHECKED, None)
        st.rerun()
    elif CHECKED in st.session_state:
        st.session_state[CHECKED] = (st.session_state[CHECKED][0], list(job.notes))


def _said(name: str) -> str:
    """The saved run: its model, data, number of rows and P@1."""
    info = load_run(name).info
    over_facts, over_relations = cache.precision_of(info)
    several = f", mean over relations (over facts: {percent(over_facts)} %)"
    return (
        f"{info.title or title_of(info.model)} on {info.dataset}, {counted(info.n, 'row')}"
        + f", P@1 {percent(over_relations)} %" * bool(info.n)
        + several * (len(info.scored_relations) > 1)
    )


def draw_form(file: ChosenFile) -> None:
    """Draw the choices of an import, its check, and the report with the button that saves it.

    Raises:
        UserError: If the file can't be read.
    """
    request = ImportRunRequest(file.name)
    has_models = read_once(file, (RESULTS,), takes) == "yes"
    if not has_models:
        preview: TablePreview = read_once(file, (), preview_results)
        draw_rows(preview)
        chosen = _choose_columns(file, preview)
        request = replace(request, column=tuple(f"{role}={name}" for role, name in chosen.items()))
        if missing := [LABELS[role] for role in ("subject", "object") if role not in chosen]:
            show_note(f"Choose the column: {', '.join(missing)}.")
            return
        has_models = "model" in chosen
    left, right = st.columns(2)
    model = left.text_input(
        "Model (optional)" if has_models else "Model",
        key=f"model of {file.mark}",
        placeholder="the model that the files name" if has_models else "bert-base-cased",
    )
    title = right.text_input(
        "Name of the run (optional)",
        key=f"title of {file.mark}",
        placeholder="model, data and tool",
    )
    request = replace(
        request,
        model=model.strip() or None,
        name=title.strip() or None,
        partial=st.checkbox(
            "Leave out unusable rows",
            key=f"partial of {file.mark}",
            help="Import the other rows, even if rows are unusable for a reason that may depend on "
            "the model's answer. The run then says between which bounds P@1 of all rows is.",
        ),
    )
    job = jobs.find(JOB)
    running = job is not None and job.running
    checked, report = st.session_state.get(CHECKED, (None, None))
    asked = (file.mark, request)
    if st.button(
        "Check",
        icon=":material/fact_check:",
        type="secondary" if checked == asked and report else "primary",
        disabled=running,
        help="Reads all rows and says what is matched and what is left out. Saves nothing.",
    ):
        st.session_state.pop(SAVED, None)
        st.session_state[CHECKED] = (asked, None)
        _start(file, replace(request, dry_run=True))
    if checked != asked or not report:
        return
    st.markdown("\n".join(f"- {plain(line)}" for line in report))
    if st.button("Save as a run", icon=":material/save:", type="primary", disabled=running):
        _start(file, request)


def _choose_columns(file: ChosenFile, preview: TablePreview) -> dict[str, str]:
    """Draw a field for each role's column; return role -> column."""
    options = [NONE, *preview.header]
    chosen = {}
    cells = [*st.columns(4), *st.columns(4)]
    for (role, label), cell in zip(LABELS.items(), cells, strict=True):
        first = preview.columns.get(role) or preview.guessed.get(role, NONE)
        chosen[role] = cell.selectbox(
            label,
            options,
            index=options.index(first),
            format_func=lambda name: name or "None",
            key=f"results {role} {file.mark}",
        )
    if preview.guessed:
        st.caption("Columns with other names are guessed: check them.")
    return {role: name for role, name in chosen.items() if name}


def _start(file: ChosenFile, request: ImportRunRequest) -> None:
    path: Path = file.open()
    scratch = path.parent if file.is_copy else None
    jobs.start(JOB, replace(request, path=str(path)), scratch=scratch)
    st.rerun()


def _describe() -> str:
    *tools, table = all_formats()
    known = "; ".join((table.title, *(one.title for one in tools)))
    return f"**Results that you have**: a {known}."


FORM = FileForm(
    describe=_describe,
    help="Results of models have a **rank**, **prediction** or **correct** in each row, too; or "
    "they are a tool's results folder as a zip file.",
    example=("example-results.csv", EXAMPLE),
    takes=takes,
    draw=draw_form,
    draw_progress=draw_progress,
)
