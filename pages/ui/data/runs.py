"""The runs on this machine, running and on disk; starting, resuming, naming and deleting them."""

import datetime
import re
from collections import Counter
from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from lama_core.datasets.prompt_sets import TITLES
from lama_core.errors import UserError
from lama_core.files import format_bytes
from lama_core.models.devices import settings_text
from lama_core.models.sources.checkpoints import checkpoint_of
from lama_core.probes import kinds
from lama_core.probes.contrast.spec import ContrastSpec
from lama_core.probes.prompts.spec import Study, StudySpec
from lama_core.rounding import percent, percentage
from lama_core.runs.info import ENSEMBLE, FACT_KINDS, Run, RunInfo, prompts_in_words
from lama_core.runs.manage import KeptRun, ListRunsRequest, delete_run, list_kept, rename_run
from lama_core.runs.series import place_of
from lama_core.scoring.shared_fields import RunSettings
from lama_core.views.figure import relation_label
from pages.ui.prompts.ensembles import METHODS_IN_WORDS
from pages.ui.results import new_run
from pages.ui.shared import cache, jobs, links, screens, visitors
from pages.ui.shared.export import draw_command, draw_export, request_of
from pages.ui.shared.messages import counted, errors_shown, name_value_lines, plain, show_error
from pages.ui.shared.run_form import kept_in_words, runs_of, show_runs
from pages.ui.shared.url_state import choose_row, title_of

MESSAGE = "message on runs"  # in the session: shown at the next rerun


def draw_runs() -> None:
    """Draw the runs, or the form of a new run or study if the URL asks for it."""
    if (new := st.query_params.get("new")) in ("run", "study"):
        links.set_param("new", [new])
        links.draw_link("All runs", "arrow_back", screens.DATA, screens.RUNS)
        if new == "run":
            new_run.draw_form()
        else:
            from pages.ui.prompts import new_study  # imported only when it is opened

            new_study.draw_form()
        return
    if MESSAGE in st.session_state:
        st.toast(plain(st.session_state.pop(MESSAGE)), icon=":material/check:")
    for job in jobs.ended_runs():
        if job.cancelled or not (job.error or jobs.is_own(job)):
            continue
        jobs.forget(job.name)
        if job.error:
            show_error(job.words(job.error))
        else:
            about = plain(f" ({job.about})" * bool(job.about))
            st.success(f"Run finished{about}.", icon=":material/check_circle:")
            if made := job.names("run"):
                links.set_param("run", made[:1])
                st.session_state["run"] = made[0]
    kept = sorted(list_kept(), key=_order)
    runs = _grouped([run for run in kept if run.info or run.problem])
    with st.container(horizontal=True, vertical_alignment="center"):
        if visitors.may("run"):
            there = screens.DATA
            links.draw_link("New run", "play_arrow", there, screens.NEW_RUN, type="primary")
            links.draw_link("New study", "science", there, screens.NEW_STUDY, type="secondary")
        own = [run for run in kept if not run.bundled]
        st.markdown(_count(own, len(kept) - len(own)))
    of_jobs = {run.name: _job_of(run) for run in kept if not run.info and not run.problem}
    for job in (*jobs.running(), *jobs.ended_runs()):
        if job.running:
            jobs.draw_progress(job.name)
        elif job.cancelled and job not in of_jobs.values():
            with jobs.draw_row("", job.share, kept_in_words(job.about, runs_of(job, kept))):
                _draw_resume(job.name, partial(jobs.restart, job))
                if st.button("Discard", icon=":material/delete:", key=f"discard {job.name}"):
                    jobs.forget(job.name)
                    st.rerun()
    for run in kept:
        if run.name in of_jobs and not ((made_by := of_jobs[run.name]) and made_by.running):
            _draw_unfinished(run, made_by)
    if not runs:
        return
    left, right = st.columns([5, 2], gap="medium")
    with left:
        n_runs = Counter(map(_name, runs))
        table = pd.DataFrame(
            {
                "run": f"{'↳ ' * _is_ensemble(run)}{_name(run)}"
                + f", {run.changed[11:16]}" * (n_runs[_name(run)] > 1),
                "data": run.info.dataset if run.info else None,
                "scored": run.info.n if run.info else None,
                "P@1": _precision(run.info) if run.info else None,
                "state": run.state * bool(run.problem) or None,
            }
            for run in runs
        )
        if not any(run.problem for run in runs):
            del table["state"]
        name = choose_row(
            "Run",
            table,
            [run.name for run in runs],
            key="run",
            column_config={
                "run": st.column_config.TextColumn(width=460),
                "data": st.column_config.TextColumn(width=80),
                "scored": st.column_config.NumberColumn(
                    format="localized",
                    help="Scored queries: a fact asked in ten wordings counts ten times. Of "
                    "studies: test facts; of analogy probes: decisions; else as in the details.",
                ),
                "P@1": st.column_config.NumberColumn(
                    format="%.1f %%",
                    help="Percent of the scored queries with a right first answer: the mean over "
                    "relations; the chosen run has both means. Empty: not of facts, "
                    "or of negated or misprimed queries, where a first answer has another meaning.",
                ),
            },
        )
        draw_export(
            "runs", lambda: [run.record() for run in kept], {"runs": len(kept)}, ListRunsRequest()
        )
    with right, st.container(key="detail"):
        _draw_run(next(run for run in runs if run.name == name))


def _name(run: KeptRun) -> str:
    """What a run is called: the user's title, else model, data, prompts, limit and day."""
    about = run.info or run.started
    if about is None:
        return run.name
    if run.info and run.info.title:
        return run.info.title
    day = datetime.date.fromisoformat(run.changed[:10])
    year = f" {day.year}" * (day.year != datetime.datetime.now(datetime.UTC).year)
    limit = run.info.limit if run.info else run.started and run.started.fields.get("limit")
    few = f", {counted(limit, 'fact')} a relation" if limit else ""
    return (
        f"{_model_title(about.kind, about.model, run.info)} on {about.dataset}, "
        f"{_prompts(about.kind, about.prompts)}{few}, {day.day} {day:%b}{year}"
    )


def _order(run: KeptRun) -> tuple[bool, list[int | str]]:
    """Own runs first, as listed; then the bundled ones by name, numbers by value."""
    parts = re.split(r"(\d+)", run.name * run.bundled)
    return run.bundled, [int(part) if part.isdecimal() else part for part in parts]


def _grouped(runs: list[KeptRun]) -> list[KeptRun]:
    """Return the runs with the ensembles of a study, which are saved after it, below it."""
    studies = [at for at, run in enumerate(runs) if run.info and run.info.kind == "study"]
    places = {
        run.name: next((study for study in studies if study > at), len(runs)) + 0.5
        if _is_ensemble(run)
        else at
        for at, run in enumerate(runs)
    }
    return sorted(runs, key=lambda run: places[run.name])


def _is_ensemble(run: KeptRun) -> bool:
    return run.info is not None and run.info.kind == "ensemble"


def _count(own: list[KeptRun], n_others: int) -> str:
    """A sentence with the number of runs, own ones with their size, and what to do with them."""
    size = format_bytes(sum(run.n_bytes for run in own))
    own_runs = f"**{counted(len(own), 'run')}** of your own ({size})"
    return f"{own_runs if own else 'No runs of your own yet'}; {n_others} came with the project."


def _prompts(kind: str, prompts: str) -> str:
    """A run's prompts for display; of an ensemble how it combines which prompts."""
    if kind != ENSEMBLE:
        return prompts_in_words(prompts)
    combination, _, method = prompts.partition(" ")
    method, comma, drawn = method.partition(",")
    method = METHODS_IN_WORDS.get(method, method)
    return f"{TITLES.get(combination, combination)}: {method}{comma}{drawn}"


def _has_precision(info: RunInfo) -> bool:
    """Whether P@1 is shown for a run: not for negated queries, where the object is wrong.

    Nor for misprimed ones, which are of the same kind.
    """
    return info.kind in FACT_KINDS and info.kind != ContrastSpec.kind and info.n > 0


def _precision(info: RunInfo) -> float | None:
    """P@1 in percent, mean over a run's relations; None if it has none or can't be read."""
    if not _has_precision(info):
        return None
    try:
        return percentage(cache.precision_of(info)[1])
    except UserError:
        return None  # choosing the run shows the error


def _model_title(kind: str, model: str, info: RunInfo | None) -> str:
    """A model's name for display; of a checkpoint also its step. info: None if it is unfinished."""
    place = place_of(info) if info else checkpoint_of(model)
    if kind not in FACT_KINDS or not place:
        return title_of(model)
    return f"{title_of(place.series)}, step {place.step:,}"


def _job_of(run: KeptRun) -> jobs.Job | None:
    """The job that makes an unfinished run, or made it until it was cancelled."""
    every = (*jobs.running(), *jobs.ended_runs())
    return next((job for job in every if runs_of(job, [run])), None)


def _draw_resume(name: str, resume: Callable[[], object]) -> None:
    """Draw the button that resumes a run in a job."""
    if st.button("Resume", icon=":material/play_arrow:", key=f"resume {name}"):
        resume()
        st.rerun()


def _draw_unfinished(run: KeptRun, job: jobs.Job | None) -> None:
    """Draw the row of an unfinished run: how much is done, Resume and its details.

    job: the cancelled job that made it, if this app started it.
    """
    is_made, how = run.state == "being made", "unfinished"
    if is_made or (job and job.cancelled):
        how = "made by another process" if is_made else "cancelled"
    with jobs.draw_row("", run.share, kept_in_words(_name(run), [run], how)):
        if job and jobs.may_cancel(job):
            _draw_resume(job.name, partial(jobs.restart, job))
        if not is_made and (visitors.may("manage") or (job and jobs.is_own(job))):
            with st.popover("Discard", icon=":material/delete:", key=f"discard {run.name}"):
                _draw_delete(run)
        if not visitors.may("manage"):
            return
        try:
            request, folder = kinds.saved_request(run.name)
        except UserError as error:
            st.caption(plain(str(error)))
            request = None
        if request and not job and not is_made:
            about = _name(run)
            start = partial(jobs.start, f"resume {run.name}", request, folder=folder, about=about)
            _draw_resume(run.name, start)
        with st.popover("Details", key=f"details of {run.name}"):
            st.markdown(name_value_lines(_details(run)))
            if request:
                draw_command(request, key=f"command of {run.name}")


def _details(run: KeptRun) -> dict[str, str]:
    """What is known of a run's folder."""
    facts = {
        "run": run.name,
        "changed": run.changed.replace("T", " ").removesuffix("Z") + " UTC",
        "size on disk": format_bytes(run.n_bytes),
    }
    if visitors.may("manage"):
        facts["folder"] = str(run.folder)
    if run.info:
        facts["kind"] = kinds.title_of(run.info.kind)
        facts["rows"] = f"{run.info.n:,} scored, {run.info.n_excluded:,} excluded"
        if run.info.n_excluded and run.info.kind != StudySpec.kind:  # whose training facts aren't
            reasons = Counter(cache.finished_run(run.info).facts["excluded"].dropna())
            facts["why excluded"] = ", ".join(f"{why} ({n:,})" for why, n in reasons.items())
        if how := settings_text(run.info.precision, run.info.device):
            facts["computed"] = how
        if made_by := run.info.imported:
            facts["imported from"] = ", ".join(filter(None, (made_by.source, made_by.created)))
            facts["SHA-256 of the files"] = made_by.digest
    return facts


def _draw_run(run: KeptRun) -> None:
    """Draw a run's scores, actions and details; changes are for the local user only."""
    st.subheader(plain(_name(run)), anchor=False)
    if run.info:
        with errors_shown():
            st.markdown(_measured(run.info))
    with st.container(horizontal=True):
        if run.info and st.button("Show it", icon=":material/visibility:", key="show run"):
            show_runs([run.info])
        request = None
        try:
            request = request_of(run.info) if run.info else None
        except UserError as error:  # such as of a plug-in that isn't installed
            st.caption(plain(str(error)))
        if run.info and request:
            if (
                isinstance(request, RunSettings)
                and visitors.may("run")
                and st.button(
                    "Edit and run",
                    icon=":material/tune:",
                    key="edit run",
                    help="Opens New run with these settings.",
                )
            ):
                new_run.open_form(request, run.info.model)
            with st.popover("Command line", icon=":material/terminal:", key="command of the run"):
                if (n_models := len(getattr(request, "models", ()))) > 1:
                    st.caption(
                        f"One command made {n_models} runs, one per model. With fewer models, "
                        "other words can be candidates."
                    )
                draw_command(request, key=f"command of {run.name}")
        if not run.bundled and visitors.may("manage"):
            if run.info:
                with st.popover("Rename", icon=":material/edit:"), errors_shown():
                    title = st.text_input(
                        "Display name",
                        run.info.title,
                        key=f"title of {run.name}",
                        placeholder="None",
                        help="Pages show this name. Leave empty to show model, data, prompts, "
                        "limit and day.",
                    )
                    if st.button("Save the name", key=f"rename {run.name}"):
                        info = rename_run(run.name, title)
                        st.session_state[MESSAGE] = f"{run.name} is now called {info.label}."
                        st.rerun()
            with st.popover("Delete", icon=":material/delete:"):
                _draw_delete(run)
        elif not run.bundled:
            st.caption(visitors.LOCAL_USER_ONLY)
    with st.expander("Details"), errors_shown():
        st.markdown(name_value_lines(_details(run)))


def _measured(info: RunInfo) -> str:
    """A run's facts, relations and, if it scores facts, P@1, as Markdown."""
    names = [relation_label(one.name, one.label) for one in info.relations]
    n_relations = len(info.scored_relations)
    of = plain(", ".join(names) if len(names) <= 2 else counted(n_relations, "relation"))
    if info.kind == StudySpec.kind:
        prompts = counted(sum(one.n_templates for one in info.relations), "prompt")
        queries = f"{Study(Run(info)).n_queries:,} queries of training and test facts"
        return f"**{counted(info.n, 'test fact')}** of {of}, {prompts}, {queries}"
    kind = kinds.find_kind(info.kind)
    unit = kind.unit if kind and info.unit == "fact" else info.unit
    text = f"**{counted(info.n, unit)}** of {of}" * bool(info.relations)
    if _has_precision(info):
        over_facts, over_relations = cache.precision_of(info)
        text += f"; **P@1 {percent(over_relations)} %**"
        if n_relations > 1:
            text += f" on average over relations (over {info.counts}: {percent(over_facts)} %)"
    return text


def _draw_delete(run: KeptRun) -> None:
    """Draw what deleting a run loses, and the button that deletes it."""
    if run.state == "being made":
        st.markdown("The run is in progress: cancel it first.")
        return
    st.markdown(
        f"Deleting is permanent and frees {format_bytes(run.n_bytes)}. "
        + ("Pages no longer show the run." if run.info else "Its finished parts are lost.")
    )
    if st.button("Delete permanently", key=f"delete {run.name}", type="primary"):
        with errors_shown():
            delete_run(run.name)
            if job := _job_of(run):
                jobs.forget(job.name)
            st.session_state[MESSAGE] = f"{_name(run)} is deleted."
            st.rerun()
