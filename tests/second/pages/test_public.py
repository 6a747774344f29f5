"""In public, and for visitors from elsewhere: they ask, browse, compare and export, and that's all.

What an address names is a name alone; and jobs are their starters' own.
"""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest
import streamlit as st
from opening import SCREENS, open_page, said
from project_files import ROOT
from streamlit import config, net_util
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.backend_operation_handler import (
    DismissSkillsNudgeHandler,
    InstallSkillsHandler,
)
from until import SECONDS, until

from lama_core.candidates import lists
from lama_core.datasets.library.download import GetRequest, ImportRequest
from lama_core.errors import UserError
from lama_core.models.cache import load_model
from lama_core.models.sources import locations
from lama_core.models.sources.catalog import ModelRequest, find_model
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.queries.blank_answers import MAX_GOLD
from lama_core.service import queries
from pages.ui.shared import cache, jobs, query_queue, screens, share, visitors
from pages.ui.shared.text import PARTED, plain

SECRET = "file:/etc/passwd"
PROBE = ProbeRequest(dataset="starter", models=("minilm-mlm",))
DOING = {
    "Import", "Add", "Unload", "Start", "Remove from the list", "Delete permanently", "Rename it",
    "Save the name", "Replace it",
}  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path))
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(jobs, "_JOBS", {})
    visitors._offered_at_start.cache_clear()
    return tmp_path


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app as it is for anybody."""
    monkeypatch.setenv("LAMA_PUBLIC", "1")
    monkeypatch.setattr(config, "set_option", lambda *_: None)


@pytest.mark.parametrize(
    ("page", "params"), [*SCREENS, ("data", {"source": "lama"}), ("models", {"model": "gpt2"})]
)
@pytest.mark.usefixtures("public")
def test_a_visitor_of_a_public_app_can_start_nothing(page: str, params: dict[str, str]) -> None:
    for request in (PROBE, ModelRequest("x"), GetRequest("lama"), ImportRequest("x.csv")):
        with pytest.raises(UserError, match="a signed-in user"):
            jobs.start("x", request)
    app = open_page(page, **params)
    labels = {button.label for button in app.button}
    assert not DOING & labels
    assert not any(label.startswith("Get ") for label in labels)
    assert str(Path.home()) not in said(app) and str(ROOT) not in said(app)


@pytest.mark.usefixtures("public")
def test_in_public_only_the_operators_models_are_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(
        "pages.ui.shared.url_state.find_model", lambda name: looked.append(name) or find_model(name)
    )
    app = open_page("cloze", models=["minilm-mlm", str(home), "owner/name"])
    assert "Excluded" in app.info[0].value
    assert looked == []
    assert app.multiselect(key="models").value == ["minilm-mlm"]
    (field,) = [one for one in app.multiselect if one.key == "models"]
    assert field.options == ["MiniLM-MLM", "MiniLM-MLM twin"], "what comes with the app"
    monkeypatch.setenv("LAMA_PUBLIC_MODELS", "minilm-mlm, nobody")
    visitors._offered_at_start.cache_clear()
    with pytest.raises(UserError, match="'nobody', which is not on this machine"):
        visitors.offered_models()


@pytest.mark.usefixtures("public")
def test_a_visitors_query_waits_a_limited_time_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = threading.Event()
    n_running: list[int] = []

    def load(name: str, **options: Any) -> Any:
        n_running.append(query_queue.QUEUE.n_running)
        assert finish.wait(SECONDS)
        return load_model(name, **options)

    monkeypatch.setenv("LAMA_QUERY_LOADING", "1")
    monkeypatch.setattr(queries, "load_model", load)
    monkeypatch.setattr(queries, "_is_loaded", lambda *_: False)
    query = {"text": "Berlin lies in ___.", "models": "minilm-mlm", "top_k": "7"}
    cache.st.cache_resource.clear()
    app = open_page("cloze", **query)
    assert "MiniLM-MLM wasn't loaded within 1 seconds" in said(app)
    assert n_running == [1], "a load counts as a query of the visitor"
    finish.set()
    monkeypatch.setenv("LAMA_QUERY_LOADING", "600")
    assert "wasn't loaded" not in said(open_page("cloze", **query))


@pytest.mark.parametrize("mode", ("public", "at the machine", "from elsewhere"))
def test_no_address_makes_the_app_read_a_file_of_the_machine(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mode == "public":
        monkeypatch.setenv("LAMA_PUBLIC", "1")
        monkeypatch.setattr(config, "set_option", lambda *_: None)
    elif mode == "from elsewhere":
        monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: False)
    read: list[str] = []
    monkeypatch.setattr(
        lists, "read_candidate_file", lambda path: read.append(str(path)) or ("Rome",)
    )
    looked = locations.is_here
    monkeypatch.setattr(
        "pages.ui.shared.model_columns.is_here",
        lambda entry: read.append(entry.name) if entry.source.how == "folder" else looked(entry),
    )
    open_page("cloze", candidates=SECRET)
    open_page("cloze", **screens.WORDINGS, candidates=SECRET)
    open_page("analogy", candidates=SECRET)
    for name in ("/etc", "~/models", "../secret", "./x", "a/b/c", "\\\\server\\share", "tests"):
        app = open_page("cloze", models=[name])
        assert "Excluded" in said(app) or "can't reference local folders" in said(app)
        open_page("analogy", models=[name])
    open_page("data", source="/etc", run="../../etc")
    open_page("prompts", study="/etc/passwd")
    open_page("results", data="/etc", runs=["/etc/passwd"])
    open_page("facts", data="../..", runs=["../.."])
    assert read == []


def test_what_the_operator_types_is_taken_and_what_a_link_brought_is_not(home: Path) -> None:
    app = open_page("cloze", models=["minilm-mlm", "/from/a/link"])
    # Another choice in the same field doesn't take what the link brought along.
    app.multiselect(key="models").set_value(["minilm-mlm", "/from/a/link", str(home)]).run()
    refused = [
        one.value
        for one in app.warning
        if "can't reference local folders" in one.value.replace("\\", "")
    ]
    assert len(refused) == 1 and "/from/a/link" in refused[0].replace("\\", "")


def test_only_who_may_type_paths_has_a_field_for_a_file_of_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for may in (True, False):
        monkeypatch.setattr(visitors, "may", lambda right, may=may: may or right != "paths")
        app = open_page("data", **screens.NEW_RUN, run_rank="whole answers")
        assert ("new answers" in {one.key for one in app.text_input}) == may


@pytest.mark.parametrize(
    ("environment", "here", "rights"),
    [
        ({}, True, visitors.ALL_RIGHTS),
        ({}, False, visitors.NO_RIGHTS),
        ({"LAMA_MEMBERS": "1"}, False, visitors.SIGNED_IN_RIGHTS),
        ({"LAMA_MEMBERS": "1"}, True, visitors.ALL_RIGHTS),
        ({"LAMA_PUBLIC": "1"}, True, visitors.NO_RIGHTS),
        ({"LAMA_PUBLIC": "1", "LAMA_MEMBERS": "1"}, False, visitors.NO_RIGHTS),
        ({"LAMA_PUBLIC": "1", "LAMA_PUBLIC_JOBS": "2"}, True, frozenset(("run",))),
        ({"LAMA_PUBLIC": "0"}, True, visitors.ALL_RIGHTS),
    ],
)
def test_who_may_do_what(
    environment: dict[str, str], here: bool, rights: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: here)
    assert visitors.rights() == rights
    monkeypatch.setattr(sys, "argv", ["app.py", "--public"])
    assert visitors.is_public()


@pytest.mark.usefixtures("public")
def test_public_runs_wait_for_each_other_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMA_PUBLIC_JOBS", "2")
    code = "import sys; sys.stdin.read()"

    def command(*_: object, **__: object) -> "subprocess.Popen[str]":
        return subprocess_of([sys.executable, "-c", code], stdin=-1, stderr=-1, text=True,
                             start_new_session=True)  # fmt: skip

    subprocess_of = subprocess.Popen
    monkeypatch.setattr(jobs.subprocess, "Popen", command)
    monkeypatch.setattr(jobs, "_session", lambda: session)
    session = "a"
    first = jobs.start("a run", PROBE)
    until(lambda: first.process is not None)
    session = "b"
    second = jobs.start("a run", PROBE)
    assert second is not first and second.process is None
    session = "c"
    with pytest.raises(UserError, match="Try again later"):
        jobs.start("a run", PROBE)
    assert not jobs.may_cancel(first) and not jobs.may_cancel(second)
    session = "b"
    assert jobs.may_cancel(second) and not jobs.may_cancel(first)
    assert first.process is not None and first.process.stdin is not None
    first.process.stdin.close()
    until(lambda: second.process is not None)
    second.cancel()
    until(lambda: not second.running)
    assert second.cancelled and not first.running


def test_a_job_is_its_starters_and_outlives_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_session", lambda: session)
    monkeypatch.setattr(jobs, "arguments", lambda request: ["models", "--json"])
    monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: False)
    monkeypatch.setenv("LAMA_MEMBERS", "1")
    session = "a"
    job = jobs.start("a run", PROBE)
    st.cache_resource.clear()
    st.cache_data.clear()
    assert jobs.find("a run") is job
    assert jobs.may_cancel(job)
    session = "b"
    assert jobs.find("a run") is job and not jobs.may_cancel(job)
    monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: True)
    assert jobs.may_cancel(job)
    until(lambda: not job.running)


def test_the_browser_can_neither_clear_what_all_share_nor_ask_for_the_repository() -> None:
    kept: list[int] = []

    @st.cache_resource
    def shared() -> int:
        kept.append(1)
        return 1

    shared()
    visitors.disable_streamlit_requests()
    for name in ("_handle_clear_cache_request", "_handle_git_information_request"):
        getattr(AppSession, name)(None)
    shared()
    assert kept == [1]


def test_the_browser_is_told_the_scripts_name_and_not_its_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def greet(*_: object, **__: object) -> ForwardMsg:
        message = ForwardMsg()
        message.new_session.main_script_path = "/home/operator/lama/app.py"
        return message

    class Session:
        """Whoever has a page open."""

    before, after = Session(), Session()  # the doors closed
    monkeypatch.setattr(visitors, "_new_session_message", greet)
    monkeypatch.setattr(visitors, "_know_folder", {before})
    for session, path in ((before, "/home/operator/lama/app.py"), (after, "app.py")):
        message = visitors._message_without_folder(cast(AppSession, session), "", None)
        assert message.new_session.main_script_path == path
    visitors.disable_streamlit_requests()
    assert AppSession._create_new_session_message is visitors._message_without_folder


@pytest.mark.parametrize("handler", (InstallSkillsHandler, DismissSkillsNudgeHandler))
@pytest.mark.usefixtures("public")
def test_in_public_the_browser_makes_streamlit_write_nothing(
    handler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "handle", handler.handle)  # put back behind the test
    monkeypatch.setattr(net_util, "get_external_ip", lambda: "203.0.113.7")
    visitors.disable_streamlit_requests()
    assert net_util.get_external_ip() is None
    request = BackendOperationRequest(request_id="1")
    answer = asyncio.run(handler.handle(None, request, ""))
    assert (answer.request_id, answer.error_msg) == ("1", "Not in public.")


def test_an_endless_number_in_an_address_is_left_out_and_filters_nothing() -> None:
    app = open_page("facts", count_max="-1e309", rank_min="-1e309")
    assert app.number_input(key="rank_min").value is None
    assert "scored facts" in app.markdown[0].value
    assert not any("facts of its relation" in button.label for button in app.button)


@pytest.mark.usefixtures("public")
def test_a_gold_that_is_no_word_is_refused_before_it_is_kept() -> None:
    gold = "x" * (MAX_GOLD + 1)
    for params in ({"gold": gold}, {**screens.WORDINGS, "object": gold}):
        app = open_page("cloze", text="Paris is in ___.", models=["minilm-mlm"], **params)
        assert "The right answer has 1,001 characters; the maximum is 1,000" in said(app)


@pytest.mark.usefixtures("public")
def test_a_command_that_cant_be_written_ends_its_job_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAMA_PUBLIC_JOBS", "1")
    job = jobs.start("a run", ProbeRequest(dataset="a\0b", models=("minilm-mlm",)))
    until(lambda: not job.running)
    assert "could not be started" in job.error


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see http://a.b/c", "http~://a.b/c"),
        ("www.a.b", "www~.a.b"),
        ("me@a.b", "me@~a.b"),
        (":material_home:", ":~material_home:"),
    ],
)
def test_what_streamlit_finds_in_finished_texts_is_parted(text: str, shown: str) -> None:
    assert plain(text).replace("\\", "").endswith(shown.replace("~", PARTED))
    assert plain("owner/name@main") == "owner\\/name\\@main"
    assert PARTED not in plain("http://a.b www.a.b me@a.b", links=True)


def test_an_app_that_answers_others_gives_them_the_machines_own_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(share, "get_internal_ip", lambda: "192.168.1.7")
    here = "http://localhost:8501/results?data=starter"
    assert share.address_for_others(here) == "", "the server answers this machine alone"
    monkeypatch.setattr(share.st, "get_option", lambda _: "0.0.0.0")
    assert share.address_for_others(here) == "http://192.168.1.7:8501/results?data=starter"
    monkeypatch.setattr(share, "get_internal_ip", lambda: "127.0.0.1")
    assert share.address_for_others(here) == "", "in no network"
