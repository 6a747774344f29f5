"""A new study from the page: the command line's own `prompts fit`, watched and cancelled."""

import shlex

import streamlit as st

from lama_core.asking.settings import DEFAULT_MODEL
from lama_core.datasets.library.installed import listing
from lama_core.models.catalog import all_models
from lama_core.models.sources import locate
from pages.ui import cache, jobs
from pages.ui.messages import show_fault

JOB = "a study of prompts"


def draw_form() -> None:
    """Choose what to study, start it, watch it."""
    job = jobs.find(JOB)
    if job is not None and job.running:
        jobs.draw_progress(JOB, _describe)
        return
    if job is not None:
        if job.cancelled:
            st.info("Cancelled. What was scored is kept: the same choice goes on from there.",
                    icon=":material/pause_circle:")  # fmt: skip
        elif job.error:
            show_fault(job.error)
        else:
            st.success("The study is whole: choose it above.", icon=":material/check_circle:")
            if st.button("Show it", type="primary"):
                jobs.forget(JOB)
                st.rerun()
    words = _choose()
    if words is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Start", type="primary", icon=":material/play_arrow:"):
            jobs.start(JOB, words)
            st.rerun()
        with st.popover("Command line", icon=":material/terminal:"):
            st.caption("The same from a terminal:")
            command = shlex.join(["python", "-m", "lama_core", *words])
            st.code(command, language="shell", wrap_lines=True)
        st.caption("It goes on while you look at other pages.")


def _choose() -> list[str] | None:
    """The arguments of the command; None while something is missing."""
    data = [row.name for row in listing() if row.installed and row.kind == "facts"]
    models = [entry.name for entry in all_models() if locate(entry) is not None]
    if not data or not models:
        st.info("Get a dataset and a model first, on the Data and Models pages.",
                icon=":material/info:")  # fmt: skip
        return None
    left, right = st.columns(2, gap="large")
    with left:
        dataset = st.selectbox("Data", data, key="study data")
        relations = cache.relations_of(dataset)
        chosen = st.multiselect(
            "Relations", relations, format_func=lambda name: relations[name],
            key="study relations", placeholder=f"All {len(relations)}",
        )  # fmt: skip
        first = models.index(DEFAULT_MODEL) if DEFAULT_MODEL in models else 0
        model = st.selectbox("Model", models, index=first, key="study model")
        limit = st.number_input(
            "Facts a relation (at most, to train and to test)", 1, None, 100, key="study limit"
        )
    with right:
        prompts = st.text_input(
            "LPAQA's prompts (optional)", key="study prompts",
            help="A folder with mine, paraphrase and manual_paraphrase in it. Without it: the "
            "relation's own template and paraphrases.",
        )  # fmt: skip
        training = st.text_input(
            "Training pairs (optional)", key="study training",
            help="A folder with one P*.jsonl a relation. Without it half of the facts train and "
            "the other half test.",
        )  # fmt: skip
        own = st.text_area(
            "Your own prompts (optional, one a line)", key="study own",
            help="For a single relation. [X] stands for the subject, [Y] for the blank.",
        )  # fmt: skip
    words = ["prompts", "fit", "--dataset", dataset, "--model", model]
    for relation in chosen:
        words += ["--relation", relation]
    words += ["--limit", str(int(limit)), "--train-limit", str(int(limit))] if limit else []
    words += ["--prompts", prompts] if prompts else []
    words += ["--training", training, "--drop-overlap"] if training else []
    for line in own.splitlines():
        words += ["--template", line.strip()] if line.strip() else []
    return words


def _describe(job: jobs.Job) -> str:
    return f"{job.stage}: {job.done:,} of {job.total:,}" if job.total else job.stage
