"""Starting a run from a page, of any kind of probe: the command line's own command, watched.

A page says what can be chosen; this says the rest: start, progress, cancel, how it ended, and the
command that does the same from a terminal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from lama_core.datasets.library.installed import listing
from lama_core.errors import Impossible
from lama_core.models.sources.catalog import find_model
from lama_core.requests import Request
from lama_core.scoring.shared_fields import DEFAULT_MODEL
from pages.ui.shared import fetching, jobs, links, screens, visitors
from pages.ui.shared.export import draw_command
from pages.ui.shared.messages import faults_shown, plain, show_fault, show_note

KEPT: Literal["session"] = "session"  # while a run goes on, the form isn't drawn


@dataclass(frozen=True)
class RunForm:
    """A page's form for one kind of run.

    name: of the job. choose: draws the widgets; None while something is missing. show: opens the
    runs of these names, once they are whole. note: what else a user should know.
    """

    name: str
    choose: Callable[[], Request | None]
    show: Callable[[Sequence[str]], None]
    note: str = ""


def draw_run_form(form: RunForm) -> None:
    """Choose what to run, start it, watch it; when it is whole one click shows it."""
    job = jobs.find(form.name)
    if job is not None and job.running:
        jobs.draw_progress(form.name)
        return
    if job is not None:
        with faults_shown():
            _draw_ended(job, form)
    if not visitors.may("run"):
        st.info(visitors.WHO["run"], icon=":material/lock:")
        return
    with faults_shown():
        request = form.choose()
        if request is None:
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(
                "Start", type="primary", icon=":material/play_arrow:", key=f"start {form.name}"
            ):
                jobs.start(form.name, request)
                st.rerun()
            with st.popover(
                "Command line", icon=":material/terminal:", key=f"command of {form.name}"
            ):
                draw_command(request, key=f"command line of {form.name}")
        st.caption(
            "The run continues while you look at other pages. A cancelled run keeps what is "
            f"done: resume it under Runs. {form.note}"
        )


def _draw_ended(job: jobs.Job, form: RunForm) -> None:
    """Say how the last run ended; a whole one is shown by one click."""
    if job.cancelled:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(
                "Cancelled. What was done is kept: start the same choice again to resume it.",
                icon=":material/pause_circle:",
            )
            if st.button("Runs", icon=":material/list:", key=f"runs after {form.name}"):
                links.go(screens.DATA, screens.RUNS)
        return
    if job.error:
        show_fault(job.error)
        return
    names = job.names("run")
    with st.container(horizontal=True, vertical_alignment="center"):
        finished = "Run finished" if len(names) == 1 else f"{len(names)} runs finished"
        st.success(f"{finished}.", icon=":material/check_circle:")
        if names and st.button("Show it", type="primary", key=f"show {form.name}"):
            jobs.forget(form.name)
            form.show(names)
    if job.notes:
        with st.expander(f"Messages ({len(job.notes)})"):
            st.markdown("\n".join(f"- {plain(note)}" for note in job.notes))


def facts_here() -> list[str]:
    """The names of the sources of facts that are on this machine."""
    return [row.name for row in listing() if row.installed and row.kind == "facts"]


def choose_models(key: str) -> tuple[str, ...]:
    """The models to ask: those that are here, or any other by its name."""
    here = visitors.models_here()
    fetches = visitors.may("fetch")
    models = st.multiselect(
        "Models",
        here,
        default=[name for name in here if name == DEFAULT_MODEL] or here[:1],
        key=key,
        persist_state=KEPT,
        accept_new_options=fetches,
        placeholder="Choose models",
        help="Models that are on this machine."
        + " A hub name or a folder can be typed in; it is fetched first." * fetches,
    )
    entries = [find_model(name) for name in models]
    typed = [entry for entry in entries if entry.source.how in ("folder", "server")]
    if any(entry.name not in here for entry in typed):
        visitors.check("paths")
    return tuple(entry.name for entry in entries)


def choose_relations(known: dict[str, str], key: str) -> tuple[str, ...]:
    """Some of the relations (name -> what people call it); none chosen is all."""
    chosen = st.multiselect(
        "Relations",
        known,
        format_func=lambda name: known[name],
        key=key,
        persist_state=KEPT,
        placeholder=f"All {len(known)}",
    )
    return tuple(chosen)


def choose_limit(
    first: int, key: str, *, what: str = "Facts a relation (at most)", help: str | None = None
) -> int | None:
    """How many facts of each relation; None is all."""
    chosen = st.number_input(what, 1, None, first, key=key, persist_state=KEPT, help=help)
    return int(chosen) if chosen else None


def choose_possible(
    label: str, names: Sequence[str], impossible: Mapping[str, Impossible], *, key: str, help: str
) -> str | None:
    """One of the choices that can work; under it the others, each with the reason.

    What a fetch would fix comes with a button that fetches it. None where no choice can work.
    """
    chosen = st.selectbox(
        label,
        [name for name in names if name not in impossible],
        key=key,
        persist_state=KEPT,
        help=help,
        placeholder="None works with these data",
    )
    reasons: dict[str, list[str]] = {}
    for name in names:
        if name in impossible:
            reasons.setdefault(impossible[name].reason, []).append(name)
    if reasons:
        said = "; ".join(
            f"**{plain(', '.join(which))}** ({plain(reason)})" for reason, which in reasons.items()
        )
        sources = dict.fromkeys(one.source for one in impossible.values() if one.source)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Not available: {said}.", width="content" if sources else "stretch")
            for source in sources:
                fetching.draw_small_source_offer(source)
    return chosen


def draw_no_data(what: str) -> None:
    """There is nothing to ask yet: the way to get it."""
    show_note(f"No {what} are here yet: get or import a source first.")
    st.page_link(screens.DATA, label="To Data and runs", icon=":material/database:")
