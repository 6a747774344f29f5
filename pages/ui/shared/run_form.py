"""The form that starts a run of any kind of probe.

A page draws the choices. This module draws the rest: start, progress, cancel, the outcome, and the
command that does the same from a terminal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lama_core import plugins
from lama_core.datasets.library.installed import listing
from lama_core.errors import Unavailable
from lama_core.grouping import grouped
from lama_core.models.sources.catalog import find_model
from lama_core.probes.run_time import Startable
from lama_core.requests import Request, record
from lama_core.rounding import counted
from lama_core.runs.find import load_run
from lama_core.runs.info import FACT_KINDS, RunInfo
from lama_core.runs.manage import KeptRun, list_kept
from lama_core.scoring.shared_fields import DEFAULT_MODEL
from pages.ui.shared import fetching, jobs, links, run_time, screens, visitors
from pages.ui.shared.export import draw_command
from pages.ui.shared.messages import errors_shown, plain, show_error, show_note
from pages.ui.shared.url_state import BOUND, choose_several, title_of

OPENED_MODELS = "models of the opened run"  # in the session: some may not be installed
KEPT: Literal["session"] = "session"  # keeps inputs while a run hides the form


@dataclass(frozen=True)
class RunForm:
    """A page's form for one kind of run.

    Attributes:
        name: The job's name.
        choose: Draws the fields; returns the request, or None while a choice is missing.
        note: A text in the help of the button Start.
        result: Describes the scores of the finished runs with these names, as Markdown.
        noun: What is finished, if several runs are one thing, such as `Study`.
        show: Opens the screen of the finished runs with these names.
    """

    name: str
    choose: Callable[[], Request | None]
    note: str = ""
    result: Callable[[Sequence[str]], str] | None = None
    noun: str = ""
    show: Callable[[Sequence[str]], NoReturn] = lambda names: show_runs(infos_of(names))


def draw_run_form(form: RunForm, ended: DeltaGenerator | None = None) -> None:
    """Draw the form, or the progress of the run; when the run is finished, a button shows it.

    ended: The place of how the last run ended; by default above the form.
    """
    job = jobs.find(form.name)
    if job is not None and job.running:
        links.keep_params()  # of the hidden form
        jobs.draw_progress(form.name)
        return
    ended = ended or st.container()
    if not visitors.may("run"):
        st.info(visitors.WHO_HAS_RIGHT["run"], icon=":material/lock:")
        return
    about = form.noun
    with errors_shown():
        request = form.choose()
        if request is not None:
            about = run_time.about(request) if isinstance(request, Startable) else about
            measured = request if isinstance(request, Startable) else None
            if measured is not None:
                run_time.draw_size(measured)
            with st.container(horizontal=True, vertical_alignment="center"):
                if st.button(
                    "Start",
                    type="primary",
                    icon=":material/play_arrow:",
                    key=f"start {form.name}",
                    help="The run continues while you open other pages. A cancelled run keeps its "
                    f"finished parts: resume it under Runs. {form.note}".strip(),
                ):
                    if measured is not None:
                        run_time.stop_measuring(measured)
                    jobs.start(form.name, request, about=about)
                    st.rerun()
                if measured is not None:
                    run_time.draw_measure(measured)
                with st.popover(
                    "Command line", icon=":material/terminal:", key=f"command of {form.name}"
                ):
                    draw_command(request, key=f"command line of {form.name}")
            if measured is not None:
                run_time.draw_measuring(measured)
    # Whoever started a run sees its end: a success until the form has other choices.
    if job is not None and (
        job.cancelled or (jobs.is_own(job) and (job.error or about == job.about))
    ):
        with ended, errors_shown():
            _draw_ended(job, form)
            made = job.names("run")
            # The result says what a run has; its folder is for the command line.
            notes = [one for one in job.notes if not one.startswith(tuple(f"{n}: " for n in made))]
            if notes and jobs.is_own(job):
                with st.expander(
                    f"Messages ({len(notes)})",
                    expanded=len(made) < len(getattr(job.request, "models", ())),
                ):
                    st.markdown("\n".join(f"- {plain(job.words(note))}" for note in notes))


def _draw_ended(job: jobs.Job, form: RunForm) -> None:
    """Draw how the last run ended; a button shows a finished run."""
    if job.cancelled:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(
                plain(kept_in_words(job.about, runs_of(job, list_kept()))),
                icon=":material/pause_circle:",
            )
            if st.button(
                "Resume", icon=":material/play_arrow:", type="primary", key=f"resume {form.name}"
            ):
                jobs.restart(job)
                st.rerun()
        return
    names = job.names("run")
    if job.error:
        show_error(job.words(job.error))
        if not names:
            return
    with st.container(horizontal=True, vertical_alignment="center"):
        finished = "Run finished" if len(names) == 1 else f"{len(names)} runs finished"
        finished = f"{form.noun} finished" if form.noun and not job.error else finished
        finished += f" ({plain(job.about)})" * (job.about not in ("", form.noun))
        scores = form.result(names) if form.result and names else ""
        st.success(f"{finished}. {scores}".strip(), icon=":material/check_circle:")
        if names and st.button("Show it", type="primary", key=f"show {form.name}"):
            jobs.forget(form.name)
            form.show(names)


def runs_of(job: jobs.Job, kept: Sequence[KeptRun]) -> list[KeptRun]:
    """Return the runs that a job made or began, among those on disk."""
    made_by = (job.request.python, record(job.request)) if job.request else None
    requests = [(run, run.info.request if run.info else run.started) for run in kept]
    return [run for run, by in requests if by and (by.function, by.fields) == made_by]


def kept_in_words(about: str, runs: Sequence[KeptRun], how: str = "cancelled") -> str:
    """Return how much of some runs is kept, in one sentence.

    Args:
        about: What the runs are called.
        runs: The finished and unfinished runs; none if no part was finished.
        how: Why they aren't finished.
    """
    started = [run for run in runs if not run.info]
    n_whole, n_parts = len(runs) - len(started), sum(run.n_parts for run in started)
    totals = [run.started.n_parts if run.started else 0 for run in started]
    kept = f"{counted(n_whole, 'finished run')} and " * bool(n_whole)
    if totals and all(totals):
        kept += f"{n_parts:,} of {counted(sum(totals), 'part')}"
    else:
        kept += counted(n_parts, "finished part")
    return f"{about or 'Run'}: {how}, {kept} kept."


def infos_of(names: Sequence[str]) -> list[RunInfo]:
    """What is known of the runs with these names."""
    return [load_run(name).info for name in names]


def show_runs(infos: Sequence[RunInfo]) -> NoReturn:
    """Open the screen with the results of finished runs of one kind."""
    names, kind, data = [info.id for info in infos], infos[0].kind, {"data": infos[0].dataset}
    if kind in FACT_KINDS:
        links.go(screens.RESULTS, {**data, "runs": names})
    if (added := plugins.find("kinds", kind)) and added.page:
        links.go(f"pages/{added.page}.py", {"run": names[0]})
    if kind == "study":
        links.go(screens.RESULTS, {**screens.PROMPTS, "study": names[0]})
    if kind == "trace":
        links.go(screens.RESULTS, {**screens.chart(screens.TRACES), **data, "trace_run": names[0]})
    links.go(screens.RESULTS, {**screens.ANALOGY_PROBES, **data})


def facts_here() -> list[str]:
    """The names of the fact datasets on this machine."""
    return [row.name for row in listing() if row.installed and row.kind == "facts"]


def choose_models(key: str) -> tuple[str, ...]:
    """Draw the choice of models and return their names; visitors with `fetch` can type others."""
    here = visitors.models_here()
    fetches = visitors.may("fetch")
    opened = st.session_state.get(OPENED_MODELS, ()) if fetches else ()
    chosen = choose_several(
        "Models",
        {name: title_of(name) for name in (*here, *opened)},
        default=default_models(here),
        key=key,
        persist_state=KEPT,
        accept_new_options=fetches,
        placeholder="Choose models",
        help="Models on this machine."
        + " You can also type a folder, or a hub name, which is downloaded first." * fetches,
    )
    entries = [find_model(name) for name in chosen]
    if any(one.source.how in ("folder", "server") and one.name not in here for one in entries):
        visitors.check("paths")
    return tuple(entry.name for entry in entries)


def default_models(here: Sequence[str]) -> list[str]:
    """The model that a new run queries by default, among the models on this machine, or none."""
    return [name for name in here if name == DEFAULT_MODEL] or list(here[:1])


def choose_relations(
    labels: dict[str, str],
    key: str,
    *,
    help: str | None = None,
    bound: bool = False,
    default: Sequence[str] = (),
) -> tuple[str, ...]:
    """Draw the choice of relations; none means all.

    labels: name -> displayed label. bound: whether the choice is in the URL.
    """
    return choose_several(
        "Relations",
        {name: labels[name] for name in sorted(labels, key=labels.__getitem__)},
        default=default,
        key=key,
        bind=BOUND if bound else None,
        persist_state=KEPT,
        placeholder=f"All {len(labels)}",
        help=help,
    )


def choose_limit(
    first: int,
    key: str,
    *,
    what: str = "Facts per relation (at most)",
    help: str | None = None,
    bound: bool = False,
) -> int | None:
    """Draw the field for the largest number of facts per relation; None means all.

    bound: whether the number is in the URL.
    """
    if bound:
        links.drop_infinite(key)
    chosen = st.number_input(
        what,
        1,
        None,
        first,
        key=key,
        bind=BOUND if bound else None,
        persist_state=KEPT,
        placeholder="All",
        help=help,
    )
    return int(chosen) if chosen else None


def choose_possible(
    label: str, names: Sequence[str], impossible: Mapping[str, Unavailable], *, key: str, help: str
) -> str | None:
    """Draw a selectbox of the available options; list the unavailable ones below with reasons.

    Options that only need a download come with a button for it. Returns the chosen option, or None
    if no option is available.
    """
    chosen = st.selectbox(
        label,
        [name for name in names if name not in impossible],
        key=key,
        bind=BOUND,
        help=help,
        placeholder="None works with these data",
    )
    reasons = grouped((impossible[name].reason, name) for name in names if name in impossible)
    if reasons:
        listed = "; ".join(
            f"**{plain(', '.join(which))}** ({plain(reason)})" for reason, which in reasons.items()
        )
        sources = dict.fromkeys(one.source for one in impossible.values() if one.source)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Not available: {listed}.", width="content" if sources else "stretch")
            for source in sources:
                fetching.draw_small_source_offer(source)
    return chosen


def draw_no_data(what: str) -> None:
    """Draw the note that facts or models are missing, with a link to Data and runs."""
    show_note(f"No {what} are installed yet: download or import them first.")
    st.page_link(screens.DATA, label="To Data and runs", icon=":material/database:")
