"""The runs on this machine, running and on disk; resuming, naming and deleting them."""

import re
from collections import Counter

import pandas as pd
import streamlit as st

from lama_core.datasets.prompt_sets import TITLES
from lama_core.errors import UserError
from lama_core.files import format_bytes
from lama_core.models.devices import settings_text
from lama_core.probes import kinds
from lama_core.probes.prompts.spec import Study, StudySpec
from lama_core.rounding import percent, percentage
from lama_core.runs.info import ENSEMBLE, FACT_KINDS, Run, RunInfo
from lama_core.runs.manage import KeptRun, ListRunsRequest, delete_run, list_kept, rename_run
from lama_core.runs.series import place_of
from lama_core.scoring.shared_fields import RunSettings
from lama_core.views.figure import relation_label
from pages.ui.prompts.ensembles import METHODS_IN_WORDS
from pages.ui.results.new_run import open_form
from pages.ui.shared import cache, jobs, visitors
from pages.ui.shared.export import draw_command, draw_export, request_of
from pages.ui.shared.messages import counted, errors_shown, name_value_lines, plain, show_error
from pages.ui.shared.run_form import show_runs
from pages.ui.shared.url_state import choose_row, title_of

MOST_NAMED = 2  # relations of a run in the table

RESUME = "resume "  # the prefix of a job's name, before the run's name
MESSAGE = "message on runs"  # in the session: shown at the next rerun


def draw_runs() -> None:
    """Draw the running jobs, the table of runs and the chosen run."""
    if MESSAGE in st.session_state:
        st.toast(plain(st.session_state.pop(MESSAGE)), icon=":material/check:")
    for job in jobs.ended(RESUME):
        jobs.forget(job.name)
        if job.error:
            show_error(job.error)
        elif job.cancelled:
            st.info("Cancelled. Finished parts are kept.", icon=":material/pause_circle:")
        else:
            st.success("Run finished.", icon=":material/check_circle:")
            st.session_state["run"] = next(iter(job.names("run")), None)
    for job in jobs.running():
        jobs.draw_progress(job.name)
    runs = _grouped(sorted(list_kept(), key=_order))
    own = [run for run in runs if not run.bundled]
    st.markdown(_count(own, len(runs) - len(own)))
    if not runs:
        return
    left, right = st.columns([5, 2], gap="medium")
    with left:
        names = {
            run.name: f"{_title(run)}, {run.info.dataset}, {_prompts(run.info)}"
            if run.info
            else run.name
            for run in runs
        }
        n_runs = Counter(names.values())
        titles = {
            name: title if n_runs[title] == 1 else f"{title}, {name.rpartition('-')[2]}"
            for name, title in names.items()
        }
        table = pd.DataFrame(
            {
                "model": [f"{'↳ ' * _is_ensemble(run)}{_title(run)}" for run in runs],
                "data": [run.info.dataset if run.info else None for run in runs],
                "kind": [_kind(run) for run in runs],
                "prompts": [_prompts(run.info) if run.info else None for run in runs],
                "relations": [len(run.info.scored_relations) if run.info else None for run in runs],
                "scored": [run.info.n if run.info else None for run in runs],
                "P@1": [_precision(run.info) if run.info else None for run in runs],
                "made": [run.changed[:10] for run in runs],
            }
        )
        if any(run.state != "whole" for run in runs):
            table["state"] = ["with the project" if run.bundled else _state(run) for run in runs]
        name = choose_row(
            "Run",
            table,
            [run.name for run in runs],
            key="run",
            show=titles.__getitem__,
            column_config={
                "data": st.column_config.TextColumn(width=80),
                "kind": st.column_config.TextColumn(width=158),
                "relations": st.column_config.NumberColumn(help="With a scored fact."),
                "scored": st.column_config.NumberColumn(
                    format="localized",
                    help="Scored queries: a fact asked in ten wordings counts ten times. Of "
                    "studies: test facts; of causal traces: facts; of analogy probes: decisions.",
                ),
                "P@1": st.column_config.NumberColumn(
                    format="%.1f %%",
                    help="Percent of the scored queries with a right first answer, averaged over "
                    "relations.",
                ),
            },
        )
        draw_export(
            "runs", lambda: [run.record() for run in runs], {"runs": len(runs)}, ListRunsRequest()
        )
    with right, st.container(key="detail"):
        _draw_run(next(run for run in runs if run.name == name))


def _order(run: KeptRun) -> tuple[bool, list[int | str]]:
    """Own runs first, as listed; then the bundled ones by name, numbers by value."""
    parts = re.split(r"(\d+)", run.name) if run.bundled else []
    return run.bundled, [int(part) if part.isdecimal() else part for part in parts]


def _grouped(runs: list[KeptRun]) -> list[KeptRun]:
    """Return the runs with the ensembles of a study, which are saved after it, below it."""
    found: list[KeptRun] = []
    ensembles: list[KeptRun] = []
    for run in runs:
        if _is_ensemble(run):
            ensembles.append(run)
            continue
        found.append(run)
        if run.info and run.info.kind == "study":
            found += ensembles
            ensembles = []
    return found + ensembles


def _is_ensemble(run: KeptRun) -> bool:
    return run.info is not None and run.info.kind == "ensemble"


def _count(own: list[KeptRun], n_others: int) -> str:
    """A sentence with the number of runs, own ones with their size, and what to do with them."""
    others = f"{n_others} came with the project"
    if not own:
        return f"No runs of your own yet; {others}."
    size = format_bytes(sum(run.n_bytes for run in own))
    n_ensembles = sum(map(_is_ensemble, own))
    text = f"**{counted(len(own) - n_ensembles, 'run')}** of your own"
    text += f" with {counted(n_ensembles, 'ensemble')} of studies" * bool(n_ensembles)
    text += f" ({size}); {others}."
    unfinished = sum(run.state == "unfinished" for run in own)
    if unfinished:
        text += f" **{unfinished} unfinished**: choose it to resume or delete it."
    return text


def _prompts(info: RunInfo) -> str:
    """A run's prompts for display; of an ensemble how it combines which prompts."""
    if info.kind != ENSEMBLE:
        return info.prompts_said
    combination, _, method = info.prompts.partition(" ")
    method, comma, drawn = method.partition(",")
    words = METHODS_IN_WORDS.get(method, method)
    return f"{TITLES.get(combination, combination)}: {words}{comma}{drawn}"


def _precision(info: RunInfo) -> float | None:
    """P@1 in percent, mean over a run's relations; None if it has none or can't be read."""
    if info.kind not in FACT_KINDS or not info.n:
        return None
    try:
        return percentage(cache.precision_of(info)[1])
    except UserError:
        return None  # choosing the run shows the error


def _title(run: KeptRun) -> str:
    """The name that the user gave the run, else its model, else the run's own name."""
    if run.info is None:
        return run.name
    return run.info.title or _model_title(run.info)


def _model_title(info: RunInfo) -> str:
    """A model's name for display; of a checkpoint also its step."""
    if info.kind not in FACT_KINDS or not (place := place_of(info)):
        return title_of(info.model)
    return f"{title_of(place.series)}, step {place.step:,}"


def _state(run: KeptRun) -> str:
    """A run's state for display."""
    return {"whole": "finished", "being made": "running"}.get(run.state, run.state)


def _kind(run: KeptRun) -> str | None:
    """The kind of probe for display; None if it isn't known."""
    if run.info is None:
        return None
    return kinds.title_of(run.info.kind)


def _draw_run(run: KeptRun) -> None:
    """Draw a run's details and actions; changes are for the local user only."""
    of = f" on {run.info.dataset}" if run.info and not run.info.title else ""
    st.subheader(plain(f"{_title(run)}{of}"), anchor=False)
    if run.info:
        with errors_shown():
            st.markdown(_measured(run.info))
    made = run.changed.replace("T", " ").removesuffix("Z") + " UTC"
    facts = {"run": run.name, "changed": made, "size on disk": format_bytes(run.n_bytes)}
    if visitors.may("manage"):
        facts["folder"] = str(run.folder)
    if run.info:
        facts["rows"] = f"{run.info.n:,} scored, {run.info.n_excluded:,} excluded"
        if how := settings_text(run.info.precision, run.info.device):
            facts["computed"] = how
        if made_by := run.info.imported:
            facts["imported from"] = ", ".join(filter(None, (made_by.source, made_by.created)))
            facts["SHA-256 of the files"] = made_by.digest
    else:
        facts["state"] = f"{_state(run)}, {counted(run.n_parts, 'finished part')}"
    st.markdown(name_value_lines(facts))
    with st.container(horizontal=True):
        if run.info and st.button("Show it", icon=":material/visibility:", key="show run"):
            show_runs([run.info])
        request = None
        try:
            request = request_of(run.info) if run.info else None
        except UserError as error:  # such as of a plug-in that isn't installed
            st.caption(plain(str(error)))
        if run.info and request:
            if isinstance(request, RunSettings) and visitors.may("run"):
                help = "Opens New run with these settings."
                if st.button("Edit and run", icon=":material/tune:", key="edit run", help=help):
                    open_form(request, run.info.model)
            with st.popover("Command line", icon=":material/terminal:", key="command of the run"):
                draw_command(request, key=f"command of {run.name}")
        if run.bundled:
            return
        if not visitors.may("manage"):
            st.caption(visitors.LOCAL_USER_ONLY)
            return
        if run.info:
            with st.popover("Rename", icon=":material/edit:"), errors_shown():
                title = st.text_input(
                    "Display name",
                    run.info.title,
                    key=f"title of {run.name}",
                    placeholder="None",
                    help="Pages show this name; the run keeps its own name as its identity. Leave "
                    "empty to show the run's own name.",
                )
                if st.button("Save the name", key=f"rename {run.name}"):
                    info = rename_run(run.name, title)
                    st.session_state[MESSAGE] = f"{run.name} is now called {info.label}."
                    st.rerun()
        elif run.state == "unfinished":
            _draw_resume(run)
        _draw_delete(run)


def _measured(info: RunInfo) -> str:
    """A run's facts, relations and, if it scores facts, P@1, as Markdown."""
    names = [relation_label(one.name, one.label) for one in info.relations]
    n_relations = len(info.scored_relations)
    of = ", ".join(names) if len(names) <= MOST_NAMED else counted(n_relations, "relation")
    unit = {"facts": "fact"}.get(info.counts, "query")
    text = f"**{counted(info.n, unit)}** of {plain(of)}" * bool(info.relations)
    if info.kind == StudySpec.kind:
        prompts = counted(sum(one.n_templates for one in info.relations), "prompt")
        queries = f"{Study(Run(info)).n_queries:,} queries of training and test facts"
        return f"**{counted(info.n, 'test fact')}** of {plain(of)}, {prompts}, {queries}"
    if info.kind in FACT_KINDS and info.n:
        over_facts, over_relations = cache.precision_of(info)
        text += f"; **P@1 {percent(over_relations)} %**"
        if n_relations > 1:
            text += f" on average over relations (over {info.counts}: {percent(over_facts)} %)"
    return text


def _draw_resume(run: KeptRun) -> None:
    """Draw the button that resumes a run: it repeats the request without the finished parts."""
    job = jobs.find(f"{RESUME}{run.name}")
    if job is not None and job.running:
        return
    try:
        request, folder = kinds.saved_request(run.name)
    except UserError as error:
        st.caption(plain(str(error)))
        return
    if st.button("Resume", icon=":material/play_arrow:", type="primary", key=f"resume {run.name}"):
        jobs.start(f"{RESUME}{run.name}", request, folder=folder)
        st.rerun()
    draw_command(request, key=f"command of {run.name}")


def _draw_delete(run: KeptRun) -> None:
    with st.popover("Delete", icon=":material/delete:"), errors_shown():
        if run.state == "being made":
            st.markdown("The run is in progress: cancel it first.")
            return
        st.markdown(
            f"This permanently deletes {format_bytes(run.n_bytes)}. "
            + ("Pages no longer show the run." if run.info else "Its finished parts are lost.")
        )
        if st.button("Delete permanently", key=f"delete {run.name}", type="primary"):
            delete_run(run.name)
            st.session_state[MESSAGE] = f"{run.name} is deleted."
            st.rerun()
