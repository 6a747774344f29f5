"""The runs on this machine: what runs now, what is on disk; resuming, naming and deleting runs."""

import pandas as pd
import streamlit as st

from lama_core.errors import UserError
from lama_core.files import bytes_text
from lama_core.models.devices import how_computed
from lama_core.probes.kinds import FACT_KINDS, KINDS
from lama_core.runs.manage import KeptRun, RunsRequest, delete_run, list_kept, rename_run
from pages.ui.shared import jobs, links, screens, visitors
from pages.ui.shared.export import draw_command, draw_export
from pages.ui.shared.messages import counted, described, faults_shown, plain, show_fault
from pages.ui.shared.url_state import BOUND, draw_rows, drop_stale

RESUME = "resume "  # begins the name of a job, before the run's


def draw_runs() -> None:
    """All runs as a table, and the chosen one."""
    if "said of runs" in st.session_state:
        st.toast(plain(st.session_state.pop("said of runs")), icon=":material/check:")
    _draw_jobs()
    runs = list_kept()
    own = [one for one in runs if not one.bundled]
    unfinished = sum(one.state == "unfinished" for one in own)
    st.caption(
        f"{counted(len(runs) - len(own), 'run')} came with the project, {len(own)} "
        f"{'is' if len(own) == 1 else 'are'} your own: "
        f"{bytes_text(sum(one.n_bytes for one in own))}. "
        + (
            f"{counted(unfinished, 'run')} of your own {'is' if unfinished == 1 else 'are'} "
            "unfinished: choose it to resume or delete it."
            if unfinished
            else "A run that is cancelled is kept and listed here, and can be resumed."
        )
    )
    if not runs:
        return
    chosen = _choose_run(sorted(runs, key=lambda one: one.bundled))
    _draw_run(chosen)


def _draw_jobs() -> None:
    """What runs now, each with its progress and Cancel; how a resumed run ended, once."""
    for job in jobs.ended(RESUME):
        jobs.forget(job.name)
        if job.error:
            show_fault(job.error)
        elif job.cancelled:
            st.info("Cancelled. What was done is kept.", icon=":material/pause_circle:")
        else:
            st.success("Run finished.", icon=":material/check_circle:")
            st.session_state["run"] = next(iter(job.names("run")), None)
    for job in jobs.running():
        jobs.draw_progress(job.name)


def _choose_run(runs: list[KeptRun]) -> KeptRun:
    """The table; a click on a row, or the field under it, chooses a run."""
    table = pd.DataFrame(
        {
            "run": [_title(one) for one in runs],
            "kind": [_kind(one) for one in runs],
            "model": [one.info.model if one.info else None for one in runs],
            "data": [one.info.dataset if one.info else None for one in runs],
            "prompts": [one.info.prompts if one.info else None for one in runs],
            "rows": [one.info.n if one.info else None for one in runs],
            "made": [one.changed.replace("T", " ").removesuffix("Z") for one in runs],
            "size (MB)": [one.n_bytes / 1e6 for one in runs],
            "place": ["with the project" if one.bundled else "your own" for one in runs],
            "state": [_state(one) for one in runs],
        }
    )
    number, names = st.column_config.NumberColumn, [one.name for one in runs]
    draw_rows(
        table,
        names,
        key="run",
        height=300,
        column_config={
            "run": st.column_config.TextColumn(width="medium"),
            "rows": number(
                format="localized", help="Queries that count: facts, or decisions of analogies."
            ),
            "made": st.column_config.TextColumn(help="UTC; of an unfinished run, last written."),
            "size (MB)": number(format="%.2f"),
        },
    )
    draw_export("runs", lambda: [one.record() for one in runs], {"runs": len(runs)}, RunsRequest())
    drop_stale("run", names)
    left, _ = st.columns([3, 2], gap="large")
    name = left.selectbox("Run", names, key="run", bind=BOUND)
    return runs[names.index(name)]


def _state(run: KeptRun) -> str:
    """Whether a run is finished, for people."""
    return {"whole": "finished", "being made": "running"}.get(run.state, run.state)


def _title(run: KeptRun) -> str:
    """What its owner calls it, else its name."""
    return run.info.title if run.info and run.info.title else run.name


def _kind(run: KeptRun) -> str | None:
    """The kind of probe, for people; None where it isn't known."""
    if run.info is None:
        return None
    return KINDS[run.info.kind].title if run.info.kind in KINDS else run.info.kind


def _draw_run(run: KeptRun) -> None:
    """What is known of a run, the way to it, and what its owner can do with it."""
    st.subheader(plain(run.info.label if run.info else run.name), anchor=False)
    facts = {"run": run.name, "size on disk": bytes_text(run.n_bytes)}
    if visitors.may("manage"):
        facts["folder"] = str(run.folder)
    if run.info:
        facts["rows"] = f"{run.info.n:,} count, {run.info.n_excluded:,} are excluded"
        if how := how_computed(run.info.precision, run.info.device):
            facts["computed"] = how
    else:
        facts["state"] = f"{_state(run)}, {counted(run.n_parts, 'finished part')}"
    st.markdown(described(facts))
    with st.container(horizontal=True):
        if run.info and st.button("Show it", icon=":material/visibility:", key="show run"):
            _show(run)
        if run.bundled:
            return
        if not visitors.may("manage"):
            st.caption(visitors.OWNERS_ONLY)
            return
        if run.info:
            _draw_rename(run, run.info.title)
        elif run.state == "unfinished":
            _draw_resume(run)
        _draw_delete(run)


def _draw_resume(run: KeptRun) -> None:
    """Make the request that began the run again: what is finished of it isn't scored again."""
    from lama_core.api.resume import begun_request  # heavy: it brings every kind of run

    job = jobs.find(f"{RESUME}{run.name}")
    if job is not None and job.running:
        return
    try:
        request, folder = begun_request(run.name)
    except UserError as error:
        st.caption(plain(str(error)))
        return
    if st.button("Resume", icon=":material/play_arrow:", type="primary", key=f"resume {run.name}"):
        jobs.start(f"{RESUME}{run.name}", request, folder=folder)
        st.rerun()
    draw_command(request, key=f"command of {run.name}")


def _show(run: KeptRun) -> None:
    """Open the page on which the run is looked at."""
    assert run.info is not None
    if run.info.kind in FACT_KINDS:
        links.go(screens.RESULTS, {"data": run.info.dataset, "runs": [run.name]})
    if run.info.kind == "study":
        links.go(screens.RESULTS, {**screens.PROMPTS, "study": run.name})
    links.go(screens.RESULTS, {**screens.ANALOGY_PROBES, "data": run.info.dataset})


def _draw_rename(run: KeptRun, title: str) -> None:
    with st.popover("Rename", icon=":material/edit:"), faults_shown():
        said = st.text_input(
            "Name for people",
            title,
            key=f"title of {run.name}",
            placeholder="None",
            help="Shown in place of the run's own name, which stays its identity. Empty: none.",
        )
        if st.button("Save the name", key=f"rename {run.name}"):
            info = rename_run(run.name, said)
            st.session_state["said of runs"] = f"{run.name} is called {info.label}."
            st.rerun()


def _draw_delete(run: KeptRun) -> None:
    with st.popover("Delete", icon=":material/delete:"), faults_shown():
        if run.state == "being made":
            st.markdown("This run is running: cancel it first.")
            return
        st.markdown(
            f"{bytes_text(run.n_bytes)} are removed from the disk for good. "
            + ("Pages that show it now lose it." if run.info else "What was scored is lost.")
        )
        if st.button("Delete it for good", key=f"delete {run.name}", type="primary"):
            delete_run(run.name)
            st.session_state["said of runs"] = f"{run.name} is deleted."
            st.rerun()
