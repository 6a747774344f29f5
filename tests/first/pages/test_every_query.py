"""What holds for every kind of query: one answer everywhere, and no answer of another request."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import streamlit as st
from chart_marks import charts
from opening import open_page
from streamlit.testing.v1 import AppTest

from lama_core.queries.table import QUERIES
from lama_core.requests import RequestField, literal_values, request_fields
from lama_core.service.queries import Visitor
from lama_core.testing import check_query
from pages.ui.queries import draw, history
from pages.ui.shared import cache
from pages.ui.shared.messages import plain
from pages.ui.shared.screens import LIST, ONLY_THESE, WORDINGS

pytestmark = pytest.mark.usefixtures("home")
MODELS = ("minilm-mlm", "minilm-mlm-twin")
TEXT = "The capital of Norway is ___."
# Function -> the fields of a query of its kind.
ASKED: dict[str, dict[str, Any]] = {
    "fill": {"text": TEXT, "gold": "Oslo"},
    "relation": {"relation": "P36", "subject": "Norway"},
    "rank": {"text": TEXT, "answers": ("Oslo", "the city of Rome"), "gold": "Oslo"},
    "sentences": {"texts": ("The keys are here.", "The keys is here.")},
    "ask": {"question": "What is the capital of Norway?", "golds": ("Oslo",)},
    "analogy": {"text": ("Paris", "France", "Rome", "___"), "gold": "Italy", "template": "to-as"},
    "score_analogies": {"query": "Paris:France", "pairs": ("Rome:Italy", "Italy:Rome"),
                        "gold": "Italy:Rome"},
    "inspect": {"text": TEXT, "gold": "Oslo"},
    "grid": {"texts": ("{Paris|Rome} is the capital of ___.",), "n_groups": 2},
    "batch": {"file": "sentences.txt"},
}  # fmt: skip
GENERATES = ("ask",)  # no model here generates text
ON_PAGE = [name for name in ASKED if name not in (*GENERATES, "inspect", "batch")]


def request_of(name: str) -> Any:
    kind = next(one for one in QUERIES if one.request.python == name)
    return kind.request(**ASKED[name], models=MODELS)


def test_every_kind_is_asked_here_and_in_the_test_of_stale_values() -> None:
    assert {one.request.python for one in QUERIES} <= set(ASKED)
    assert set(ASKED) == {name.partition(" ")[0] for name in CHANGED} | set(WHOLE)


@pytest.mark.parametrize("name", [name for name in ASKED if name not in (*GENERATES, "batch")])
def test_command_function_and_page_give_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of(name)
    query = next(one for one in QUERIES if one.request.python == name)
    answer = check_query(query, **ASKED[name], models=MODELS)
    whole = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    if name not in ON_PAGE:
        return
    drawn: list[Any] = []
    monkeypatch.setattr(draw, "draw_answer_export", lambda *given: drawn.append(given))
    app = open_page("", **history.HistoryEntry(request).params())
    assert not app.error and not app.exception
    _, shown, shown_request, _ = drawn[-1]
    assert shown_request == app.session_state[history.HISTORY][0].request == request
    assert json.loads(json.dumps(shown.to_json(), allow_nan=False)) == whole
    assert shown.rows() == answer.rows()


# Kind of query -> a tab with another query's values, the field that changes, its new value, and the
# fields that belong to the query with their values for the new one.
CHANGED: dict[str, tuple[dict[str, str], str, str, dict[str, Any]]] = {
    "fill": ({"text": TEXT, "gold": "Oslo"}, "text", "Rome is in ___.", {"gold": ""}),
    "ask": ({"tab": "Question", "question": "Who is it?", "right_texts": "Ada"},
            "question", "What is the capital of Norway?", {"right_texts": "Oslo"}),
    "analogy": ({"tab": "Analogy", "solve": "Oslo : Norway :: Rome : ?", "solution": "Italy"},
                "solve", "Tokyo : Japan :: Paris : ?", {"solution": "France"}),
    "rank": (ONLY_THESE | {"text": TEXT, "answers": "Oslo\nRome", "right_answer": "Oslo"},
             "text", "Rome is in ___.", {"right_answer": None}),
    "relation": (WORDINGS | {"relation": "P36 capital", "subject": "Norway", "object": "Oslo"},
                 "subject", "France", {"object": ""}),
    "inspect layers": ({"text": TEXT, "look": "Which words mattered", "explain": "Oslo"},
                       "text", "Rome is in ___.", {"explain": ""}),
    "inspect trace": (
        {"text": TEXT, "look": "Causal trace", "subject": "Norway", "explain": "Oslo"},
        "text", "The capital of Peru is ___.", {"explain": "", "subject": "Peru"}),
    "inspect logit": ({"text": TEXT, "look": "Parts of the logit", "against": "Bergen"},
                      "text", "Rome is in ___.", {"against": ""}),
    "batch": (LIST | {"sentences_many": TEXT, "many_find": "Norway"},
              "many sentences", "Rome is in ___.", {"many_find": ""}),
}  # fmt: skip
# All their fields are the query itself.
WHOLE = ("sentences", "score_analogies", "grid")


@pytest.mark.parametrize("name", CHANGED)
def test_no_field_keeps_a_value_of_another_query(name: str) -> None:
    params, key, value, expected = CHANGED[name]
    app = open_page("", models=[MODELS[0]], **params)
    for field in expected:
        assert shown_value(app, field) == params.get(field, ""), "a URL's values are shown"
    field_of(app, key).set_value(value).run()
    assert {field: shown_value(app, field) for field in expected} == expected


def field_of(app: AppTest, key: str) -> Any:
    fields = (*app.text_input, *app.selectbox, *app.text_area)
    return next(one for one in fields if one.key == key)


def shown_value(app: AppTest, key: str) -> Any:
    value = field_of(app, key).value
    return value if value is not None or field_of(app, key).type == "selectbox" else ""


def other_value(choice: RequestField, value: Any) -> Any:
    """A value that differs from a field's."""
    if names := literal_values(choice.kind):
        return next(name for name in names if name != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, tuple):
        return (*value, "another")
    return f"{value} another"


@pytest.mark.parametrize("name", ASKED)
def test_another_request_never_gets_the_same_answer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = next((one for one in QUERIES if one.request.python == name), None)
    if query is None:
        pytest.skip("not yet a kind of its own")
    keys: list[Any] = []

    def keep(key: Any, _: Callable[[], Any]) -> None:
        keys.append(key)

    monkeypatch.setattr(cache, "cached_answer", keep)
    monkeypatch.setattr(cache, "prepared", lambda *_: None)
    request = request_of(name)
    cache.answer(query.kind, request, MODELS[0])
    cache.answer(query.kind, request, MODELS[1])
    fields = [choice for choice in request_fields(type(request)) if choice.name != "models"]
    for choice in fields:
        changed = replace(
            request, **{choice.name: other_value(choice, getattr(request, choice.name))}
        )
        cache.answer(query.kind, changed, MODELS[0])
    assert len(set(keys)) == len(keys) == len(fields) + 2


def test_a_stopped_query_is_resumed_by_a_button(monkeypatch: pytest.MonkeyPatch) -> None:
    find = cache.cached_answer

    def stopped(key: Any, ask: Callable[[], Any]) -> Any:
        st.session_state[cache.STOPPED] = key
        return find(key, ask)

    with monkeypatch.context() as patch:
        patch.setattr(cache, "cached_answer", stopped)
        texts = "The first stopped ___.\nThe second stopped ___."
        app = open_page("", tab="Several", what="Alternatives", grid=texts, models=MODELS[0])
    assert [one.value for one in app.error] == [plain("Stopped before the answer.")]
    next(one for one in app.button if one.key == f"resume {MODELS[0]}").click().run()
    assert not app.error and len(charts(app)) == 1


def test_a_step_with_several_long_queries_to_one_model_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache, "SHOW_AFTER", 0.0)
    app = open_page("lessons", lesson="6-where-knowledge-comes-from", step="2")
    assert not app.exception and not app.error


def test_a_query_that_waits_without_a_step_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SHOW_AFTER", 0.0)
    stops: list[str] = []

    def wait(visitor: Visitor, *_: object, **__: object) -> None:
        visitor.check()
        stops.append("drawn")
        st.stop()  # as a click interrupts the run

    monkeypatch.setattr(cache, "run_query", wait)
    app = open_page("", text="No other test asks ___.", models=[MODELS[0]])
    assert stops
    (stop,) = (one for one in app.button if one.label == "Stop")
    stop.click().run()
    assert [one for one in app.button if one.label == "Resume"]
    assert any("Stopped before the answer" in one.value for one in app.error)
