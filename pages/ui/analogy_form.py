"""A probe from the page: the command line's own `analogy probe`, watched and cancelled."""

import shlex

import streamlit as st

from lama_core.asking.settings import DEFAULT_MODEL
from lama_core.datasets.library.installed import analogy_names
from lama_core.models.catalog import all_models, find_model
from lama_core.models.sources import locate
from lama_core.probes.analogy.templates import DEFAULT_TEMPLATE, TEMPLATES
from pages.ui import cache, jobs
from pages.ui.messages import faults_shown, show_fault

JOB = "an analogy probe"
FIRST_LIMIT = 20


def draw_form() -> None:
    """Choose what to probe, start it, watch it."""
    job = jobs.find(JOB)
    if job is not None and job.running:
        jobs.draw_progress(JOB, _describe)
        return
    if job is not None:
        _draw_ended(job)
    with faults_shown():
        words = _choose()
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button("Start", type="primary", icon=":material/play_arrow:", key="start probe"):
                jobs.start(JOB, words)
                st.rerun()
            with st.popover("Command line", icon=":material/terminal:"):
                st.caption("The same from a terminal:")
                st.code(
                    shlex.join(["python", "-m", "lama_core", *words]), language="shell",
                    wrap_lines=True,
                )  # fmt: skip
        st.caption(
            "It goes on while you look at other pages. Cancelled, it keeps the relations that are "
            "done, and the same choice goes on from there. Word vectors and RelBERT, as baselines, "
            "are on the command line: `analogy probe --help`."
        )


def _choose() -> list[str]:
    """The widgets of a new probe, as a command."""
    left, right = st.columns(2, gap="large")
    with left:
        data = st.selectbox("Analogies", analogy_names(), key="new analogies")
        relations = [relation.name for relation in cache.analogies_of(data).relations]
        chosen = st.multiselect(
            "Relations", relations, key="new analogy relations", placeholder=f"All {len(relations)}"
        )
        here = [entry.name for entry in all_models() if locate(entry) is not None]
        first = [DEFAULT_MODEL] if DEFAULT_MODEL in here else here[:1]
        models = st.multiselect(
            "Models", here, default=first, key="new analogy models", accept_new_options=True,
            placeholder="Choose models",
        )  # fmt: skip
    with right:
        setting = st.segmented_control(
            "Setting", ("unsupervised", "supervised", "both"), default="unsupervised",
            required=True, key="new setting",
        )  # fmt: skip
        limit = st.number_input(
            "Instances a relation (at most)", 1, None, FIRST_LIMIT, key="new analogy limit",
            help="Drawn at random with a fixed seed. Empty: all n(n-1) of a relation's n pairs.",
        )  # fmt: skip
        template = st.selectbox(
            "Template", [DEFAULT_TEMPLATE, *(t for t in TEMPLATES if t != DEFAULT_TEMPLATE)],
            key="new template",
        )  # fmt: skip
        normalise = st.segmented_control(
            "Log-probabilities", ("sum", "mean"), default="sum", required=True, key="new normalise"
        )
    words = ["analogy", "probe", "--dataset", data]
    for name in models:
        words += ["--model", find_model(name).name]
    for name in chosen:
        words += ["--relation", name]
    words += ["--setting", str(setting)]
    words += ["--limit", str(int(limit))] if limit else []
    words += ["--template", template] if template != DEFAULT_TEMPLATE else []
    words += ["--normalise", str(normalise)] if normalise != "sum" else []
    return words


def _describe(job: jobs.Job) -> str:
    return f"{job.stage}: {job.done:,} of {job.total:,} decisions" if job.total else job.stage


def _draw_ended(job: jobs.Job) -> None:
    """Say how the last probe ended."""
    if job.cancelled:
        st.info("Cancelled. The relations that were done are kept.", icon=":material/pause_circle:")
    elif job.error:
        show_fault(job.error)
    else:
        st.success("The probe is whole: choose its model above.", icon=":material/check_circle:")
