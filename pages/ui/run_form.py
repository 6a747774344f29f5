"""A probing run from the page: the command line's own `probe`, watched and cancelled."""

import shlex

import streamlit as st

from lama_core.asking.prompts import PROMPT_SETS
from lama_core.asking.settings import DEFAULT_MODEL
from lama_core.datasets.library.installed import listing
from lama_core.models.catalog import all_models, find_model
from lama_core.models.sources import locate
from lama_core.runs.pipeline import ProbeRequest
from lama_core.runs.records import RunInfo, list_runs
from pages.ui import cache, jobs, links
from pages.ui.messages import faults_shown, show_fault

JOB = "a probing run"
MOST_FACTS = 1_000_000  # a total above this counts bytes
KEPT = "session"  # while a run goes on, the form isn't drawn
CANDIDATES = ("common", "full", "lama", "relation")
CANDIDATES_HELP = (
    "**common**: words that are one token in every chosen model (Petroni et al. 2019, section 4.4)."
    " **full**: each model's whole vocabulary. **lama**: the paper's list, once it is fetched. "
    "**relation**: the relation's own objects."
)


def arguments_of(request: ProbeRequest) -> list[str]:
    """The command line that makes the same runs."""
    words = ["probe", "--dataset", request.dataset]
    for model in request.models:
        words += ["--model", model]
    for relation in request.relations:
        words += ["--relation", relation]
    words += ["--prompts", request.prompts] if request.prompts != "manual" else []
    words += ["--candidates", request.candidates] if request.candidates != "common" else []
    words += ["--context", request.context] if request.context else []
    words += ["--limit", str(request.limit)] if request.limit else []
    return words


def draw_run_form(here: str) -> None:
    """Choose what to run, start it, watch it; when it is whole the page shows it."""
    job = jobs.find(JOB)
    if job is not None and job.running:
        jobs.draw_progress(JOB, _describe)
        return
    if job is not None:
        _draw_ended(job, here)
    names = [row.name for row in listing() if row.installed and row.kind == "facts"]
    if not names:
        st.info(
            "No facts are here yet: get or import a knowledge source first.",
            icon=":material/info:",
        )
        st.page_link(links.DATA, label="To the Data page", icon=":material/database:")
        return
    with faults_shown():
        request = _choose(names)
        words = arguments_of(request)
        ready = bool(request.models)
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button("Start", type="primary", icon=":material/play_arrow:", disabled=not ready):
                jobs.start(JOB, words)
                st.rerun()
            st.caption("It goes on while you look at other pages. Cancelled, it keeps what is "
                       "scored, and the same choice takes it up again.")  # fmt: skip
        with st.popover("Command line", icon=":material/terminal:"):
            st.caption("The same from a terminal:")
            st.code(shlex.join(["python", "-m", "lama_core", *words]), language="shell",
                    wrap_lines=True)  # fmt: skip


def _choose(names: list[str]) -> ProbeRequest:
    """The widgets of a new run; they are not part of the page's address."""
    left, right = st.columns(2, gap="large")
    with left:
        data = st.selectbox("Data", names, key="new data", persist_state=KEPT)
        relations = cache.relations_of(data)
        chosen = st.multiselect(
            "Relations", relations, format_func=lambda name: relations[name],
            key="new relations", persist_state=KEPT,
            placeholder=f"All {len(relations)}",
        )  # fmt: skip
        here = [entry.name for entry in all_models() if locate(entry) is not None]
        first = [DEFAULT_MODEL] if DEFAULT_MODEL in here else here[:1]
        models = st.multiselect(
            "Models", here, default=first, key="new models", persist_state=KEPT,
            accept_new_options=True,
            placeholder="Choose models",
            help="Models that are on this machine. A hub name or a folder can be typed in; it is "
            "fetched first.",
        )  # fmt: skip
    with right:
        limit = st.number_input(
            "Facts a relation (at most)", 1, None, 100, key="new limit", persist_state=KEPT,
            help="The first so many facts of each relation in file order. Empty: all.",
        )  # fmt: skip
        prompts = st.selectbox(
            "Prompts", list(PROMPT_SETS), key="new prompts", persist_state=KEPT,
            help="\n\n".join(f"**{name}**: {one.meaning}" for name, one in PROMPT_SETS.items()),
        )  # fmt: skip
        candidates = st.selectbox(
            "Candidates", CANDIDATES, key="new candidates", persist_state=KEPT,
            help=CANDIDATES_HELP,
        )  # fmt: skip
        context = st.segmented_control(
            "Left-to-right models see", ("left", "both"), default="left", required=True,
            key="new context", persist_state=KEPT,
            help="**left**: what stands left of the blank, as in the paper. **both**: the whole "
            "sentence; slower.",
        )  # fmt: skip
    return ProbeRequest(
        dataset=data,
        models=tuple(find_model(name).name for name in models),
        relations=tuple(chosen),
        prompts=prompts,
        candidates=candidates,
        context="both" if context == "both" else None,
        limit=int(limit) if limit else None,
    )


def _describe(job: jobs.Job) -> str:
    """The stage, how much is done, at what pace, and the time left."""
    if not job.total:
        return job.stage
    if job.total > MOST_FACTS:
        return f"{job.stage}: {job.done / 1e6:.0f} of {job.total / 1e6:.0f} MB"
    text = f"{job.stage}: {job.done:,} of {job.total:,} facts"
    if not job.rate:
        return text
    minutes, seconds = divmod(round((job.total - job.done) / job.rate), 60)
    return f"{text}, {job.rate:,.0f} a second, {minutes}:{seconds:02} left"


def _draw_ended(job: jobs.Job, here: str) -> None:
    """Say how the last run ended; a whole one is shown by one click."""
    if job.cancelled:
        st.info(
            "Cancelled. What was scored is kept: the same choice goes on from there.",
            icon=":material/pause_circle:",
        )
    elif job.error:
        show_fault(job.error)
    else:
        runs = _runs_of(job)
        with st.container(horizontal=True, vertical_alignment="center"):
            facts = sum(run.n for run in runs)
            st.success(f"Finished: {facts:,} facts scored.", icon=":material/check_circle:")
            if runs and st.button("Show it", type="primary"):
                jobs.forget(JOB)
                ids = [run.id for run in runs]
                links.go(here, links.RESULTS, {"data": runs[0].dataset, "runs": ids})


def _runs_of(job: jobs.Job) -> list[RunInfo]:
    """The runs that the command has named as it finished them."""
    by_id = {run.id: run for run in list_runs()}
    names = dict.fromkeys(line.split(":", 1)[0] for line in job.complaints)
    return [by_id[name] for name in names if name in by_id]
