"""Models behind servers on the pages: an address calls nobody, and a cut list is said."""

import html
from pathlib import Path

import pytest
from completions_server import Server, serve
from opening import open_page
from streamlit import config

from lama_core.models.sources.catalog import add_model
from pages.ui.shared import jobs, visitors

TEXT = "Oslo is the capital of ___."
PLACES = ("public", "from elsewhere", "at the machine")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path))
    monkeypatch.setattr(jobs, "_JOBS", {})
    visitors._offered_at_start.cache_clear()
    return tmp_path


@pytest.mark.parametrize("who", [*PLACES, "members"])
def test_no_address_makes_the_app_call_a_server(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if who == "public":
        monkeypatch.setenv("LAMA_PUBLIC", "1")
        monkeypatch.setattr(config, "set_option", lambda *_: None)
    if who in ("members", "from elsewhere"):
        monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: False)
    if who == "members":
        monkeypatch.setenv("LAMA_MEMBERS", "1")
    with serve(Server()) as server:
        for page, names in (("cloze", "models"), ("analogy", "models"), ("models", "model")):
            app = open_page(page, text=TEXT, **{names: ["minilm-mlm", server.reference]})
            assert not any(button.label == "Connect" for button in app.button)
    assert server.keys == []


def test_a_server_of_the_list_is_asked_its_cut_list_is_said_and_that_it_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(Server(max_list=20)) as server:
        add_model(server.reference)
        app = open_page("cloze", text=TEXT, models=[server.reference], gold="Zanzibar")
        drawn = "".join(one.proto.body for one in app.get("html"))
        assert "tiny (server)" in drawn and "Shortened list: the server returns only its" in drawn
        assert "the right answer isn't among them" in html.unescape(drawn) and not app.error
    with serve(Server()) as server:
        add_model(server.reference)
        for score, part in (("Only these answers", "Marseille"), ("Whole sentences", "lx-pair")):
            app = open_page("", score=score, models=[server.reference])
            assert not app.error
            assert part in "".join(one.proto.body for one in app.get("html"))
    monkeypatch.setattr("lama_core.models.server.completions.time.sleep", lambda _: None)
    add_model("server:http://127.0.0.1:9#m")
    app = open_page("cloze", text=TEXT, models=["minilm-mlm", "server:http://127.0.0.1:9#m"])
    said = [one.value.replace("\\", "") for one in app.error]
    assert said and all("connection was refused" in one for one in said)


def test_in_public_a_server_is_only_offered_where_the_operator_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "server:http://127.0.0.1:9#m"
    add_model(name)
    monkeypatch.setenv("LAMA_PUBLIC", "1")
    assert name not in (visitors.offered_models() or ())
    monkeypatch.setenv("LAMA_PUBLIC_MODELS", f"minilm-mlm, {name}")
    visitors._offered_at_start.cache_clear()
    assert name in (visitors.offered_models() or ())
