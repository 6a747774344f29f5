"""How much a new run scores and how long it takes, measured on a small part of it."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.kinds import KINDS
from lama_core.probes.prompts.plan import prompts_to_study
from lama_core.probes.prompts.request import StudyRequest
from lama_core.probes.run_time import Startable, sample_of, seconds_of, size_of
from lama_core.probes.statements.request import StatementsRequest
from lama_core.probes.tracing.request import TraceRequest
from lama_core.progress import brief_time
from lama_core.requests import arguments
from pages.ui.shared import cache, jobs
from pages.ui.shared.messages import counted, plain, show_error
from pages.ui.shared.url_state import title_of

MOST_NAMED = 3  # relations


def draw_size(request: Startable) -> None:
    """Draw one sentence with what a run scores and, if measured, how long it takes."""
    dataset = cache.dataset_of(request.dataset)
    size = size_of(request, dataset)
    verbs: dict[type, str] = {
        GenerateRequest: "Asks a question about",
        TraceRequest: "Traces at most",
    }
    text = f"{verbs.get(type(request), 'Scores')} **{size.total:,} {size.unit}**"
    if isinstance(request, StudyRequest):
        ((_, pool), *others) = prompts_to_study(request, dataset)
        n = len(pool.entries)
        each = f" ({counted(n, 'prompt')} × {size.total // n:,} facts)"
        text += " (each prompt with each fact)" if others else each
    if isinstance(request, StatementsRequest):
        text += " (each fact with each answer of its relation)"
    names = ", ".join(map(title_of, _models(request)))
    text += f" of {counted(len(size.of_relation), 'relation')} with {plain(names)}."
    job = jobs.find(_name(request))
    if job is not None and _is_measured(job):
        scoring = (job.step.total or 0) / job.pace.per_second
        before = max(0.0, job.seconds - scoring)
        seconds = seconds_of(request, dataset, before=before, scoring=scoring)
        text += (
            f" Takes about **{brief_time(seconds)}** on this machine, measured on "
            f"{job.step.total:,} {job.step.unit}."
        )
    st.markdown(text)


def about(request: Startable) -> str:
    """Return the models, data, relations, limit and kind of a run, as plain text."""
    labels = cache.relations_of(request.dataset)
    relations = [labels.get(name, name) for name in request.relations]
    if len(relations) > MOST_NAMED:
        relations = [counted(len(relations), "relation")]
    said = [f"{', '.join(map(title_of, _models(request)))} on {request.dataset}", *relations]
    if request.limit:
        said.append(f"at most {counted(request.limit, 'fact')} each")
    if type(request) not in (ProbeRequest, StudyRequest):  # the usual one of its form
        said += [one.title for one in KINDS.values() if type(request) in one.requests]
    return ", ".join(said)


def draw_measure(request: Startable) -> None:
    """Draw the button that measures the time of a run, unless it is measured or in progress."""
    name = _name(request)
    job = jobs.find(name)
    if job is not None and (job.running or _is_measured(job)):
        return
    if st.button(
        "How long will it take?",
        icon=":material/timer:",
        key="measure",
        help="Scores about 50 queries with the chosen models, without saving them.",
    ):
        folder = Path(tempfile.mkdtemp(prefix="lama-measure-"))
        sample = replace(sample_of(request, cache.dataset_of(request.dataset)), out=folder)
        jobs.start(name, sample, scratch=folder, title="Measurement")
        st.rerun()


def draw_measuring(request: Startable) -> None:
    """Draw the progress of a measurement with a button to cancel it, or its error."""
    job = jobs.find(_name(request))
    if job is None:
        return
    if job.running:
        jobs.draw_progress(job.name)
    elif job.error:
        show_error(job.error)


def stop_measuring(request: Startable) -> None:
    """End the measurement of a run that is started, so that it doesn't slow the run down."""
    job = jobs.find(_name(request))
    if job is not None and job.running:
        job.cancel()


def _is_measured(job: jobs.Job) -> bool:
    failed = job.running or job.error or job.cancelled
    return bool(job.step.total and job.pace.per_second and not failed)


def _models(request: Startable) -> Sequence[str]:
    return getattr(request, "models", ()) or (request.model,)  # type: ignore[union-attr]


def _name(request: Startable) -> str:
    return f"time of {' '.join(arguments(sample_of(request, cache.dataset_of(request.dataset))))}"
