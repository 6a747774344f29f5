"""New run and New study: what they score, how long it takes, and their choices in the URL."""

import re
from typing import Any

import pytest
import streamlit as st
from opening import open_page, press, said

from lama_core.datasets import load_dataset
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.generation.request import GenerateRequest
from lama_core.probes.prompts.request import StudyRequest
from lama_core.probes.prompts.spec import list_studies
from lama_core.probes.run_time import sample_of, seconds_of, size_of
from lama_core.probes.statements.request import StatementsRequest
from lama_core.probes.tracing.request import TraceRequest
from lama_core.requests import command_line
from lama_core.scoring.shared_fields import RunSettings
from pages.ui.prompts.new_study import _result
from pages.ui.results import new_run
from pages.ui.shared import jobs, links, screens

pytestmark = pytest.mark.usefixtures("home")
MODEL = "minilm-mlm"
RELATION = "P36"


@pytest.fixture(autouse=True)
def no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_JOBS", {})


def test_the_choices_of_a_new_run_are_in_its_url() -> None:
    app = open_page(
        "data",
        **screens.NEW_RUN,
        data="starter",
        run_relations=[RELATION],
        run_limit="7",
        run_prompts="paraphrases",
    )
    assert app.multiselect(key="run_relations").value == [RELATION]
    assert app.number_input(key="run_limit").value == 7
    assert "Scores **7 facts** of 1 relation with MiniLM-MLM" in said(app)
    command = next(code.value for code in app.code if "probe" in code.value)
    assert "--limit 7" in command and "--prompts paraphrases" in command
    assert app.query_params["data"] == "starter"


@pytest.mark.parametrize(
    "request_",
    (
        ProbeRequest(
            "starter", (MODEL,), (RELATION,), prompts="paraphrases", context="both", limit=7
        ),
        StatementsRequest("starter", (MODEL,), (RELATION,), template=1, aggregate="mean", limit=3),
        GenerateRequest("starter", ("chat:http://127.0.0.1:9#x",), shots=2, plain=True, limit=5),
        TraceRequest("starter", (MODEL,), (RELATION, "P30"), restore="mlp", window=1, limit=5),
    ),
    ids=lambda request: request.python,
)
def test_a_run_opens_as_a_new_run_with_its_settings(
    monkeypatch: pytest.MonkeyPatch, request_: RunSettings
) -> None:
    kept: dict[str, Any] = {}
    gone: list[Any] = []
    with monkeypatch.context() as patched:
        patched.setattr(st, "session_state", kept)
        patched.setattr(links, "go", lambda *there: gone.append(there))
        new_run.open_form(request_, request_.models[0])
    ((_, params),) = gone
    app = open_page("data", **{name: value for name, value in params.items() if value})
    for key, value in kept.items():
        app.session_state[key] = value
    app.run()
    (shown,) = (code.value for code in app.code if code.value.startswith("lama-explorer"))
    assert shown == command_line(request_)


def test_the_time_of_a_run_is_measured_on_a_part_of_it_or_cancelled() -> None:
    app = open_page("data", **screens.NEW_RUN, run_relations=[RELATION])
    press(app, "How long will it take?")
    (job,) = jobs._JOBS.values()
    press(app, "Cancel")
    job.over.wait()
    app.run()
    assert "Takes about" not in said(app)
    press(app, "How long will it take?")
    (job,) = jobs._JOBS.values()
    job.over.wait()
    app.run()
    assert not app.exception and not job.error
    assert "on this machine, measured on 17 queries." in said(app)
    assert job.scratch is not None and not job.scratch.exists()
    app.number_input(key="run_limit").set_value(40).run()
    assert "measured on 17 queries." in said(app)  # also of a run with another limit


@pytest.mark.parametrize(
    "request_",
    [
        ProbeRequest("starter", (MODEL,), limit=100),
        StatementsRequest("starter", (MODEL,), limit=20),
        StudyRequest(dataset="starter", model=MODEL, limit=100, train_limit=100),
    ],
    ids=["words", "answers", "study"],
)
def test_a_sample_is_a_small_part_of_the_run(
    request_: ProbeRequest | StatementsRequest | StudyRequest,
) -> None:
    dataset = load_dataset("starter")
    whole, sample = (size_of(one, dataset) for one in (request_, sample_of(request_, dataset)))
    assert set(sample.of_relation) < set(whole.of_relation)
    assert 0 < sample.total < whole.total / 10
    seconds = seconds_of(request_, dataset, before=3.0, scoring=2.0)
    assert seconds == pytest.approx(3 + 2 * whole.total / sample.total)


def test_a_finished_study_says_what_its_best_prompts_and_the_manual_ones_get_right() -> None:
    study = next(one for one in list_studies() if one.info.model == "minilm-mlm")
    n = study.info.n
    expected = rf"get [1-9]\d* of {n} test facts right, the manual prompts [1-9]\d* of {n}\."
    assert re.search(expected, _result([study.info.id]))
