"""History and pinned answers: what they keep, where they lead, and what they don't trust."""

import json
from typing import Any

import pytest
from opening import ROOT, TIMEOUT, captions, html, open_page, press, shared
from streamlit.testing.v1 import AppTest

from lama_core.errors import UserError
from lama_core.queries import cloze
from lama_core.queries.analogy import SolveRequest
from lama_core.queries.answers import RankRequest
from lama_core.queries.batch import ManyRequest
from lama_core.queries.cloze import ClozeRequest
from lama_core.queries.pairs import ScoreRequest
from lama_core.queries.question import AskRequest
from lama_core.queries.sentences import SentencesRequest
from lama_core.queries.wordings import RelationRequest
from lama_core.requests import Request
from lama_core.types import Query
from pages.ui.queries import history, pins
from pages.ui.queries.history import HistoryEntry
from pages.ui.shared import screens, visitors
from pages.ui.shared.messages import plain

pytestmark = pytest.mark.usefixtures("home")
MODEL = "minilm-mlm"
M = (MODEL,)
PIN: dict[str, Any] = {"kind": "cloze", "models": [MODEL], "text": "Rome is in ___."}
WORDS: dict[str, Any] = {"candidates": "full", "context": "left", "n_rescored": 40,
                         "renormalise": True, "precision": "bf16"}  # fmt: skip
ASKED: tuple[HistoryEntry, ...] = (
    HistoryEntry(ClozeRequest(text="A & b ___?", models=M, gold="c|d", top_k=7, **WORDS)),
    HistoryEntry(RelationRequest(relation="P36", subject="Peru", dataset="starter", models=M,
                                 gold="Lima", mined=True, **WORDS)),
    HistoryEntry(RankRequest(text="A ___.", answers=("b c", "d"), gold="d", models=M,
                              part="answer", aggregate="mean", hiding="original")),
    HistoryEntry(SentencesRequest(texts=("A b.", "A c."), models=M, hiding="original")),
    HistoryEntry(ManyRequest(file="many.csv", models=M, **WORDS), "A ___.\tb\nC ___."),
    HistoryEntry(SolveRequest(text=("a", "___", "c", "d"), template="she-as", gold="b", top_k=3,
                               keep_query_words=True, models=M, **WORDS)),
    HistoryEntry(AskRequest("Who?", ("A b", "C"), plain=True, max_tokens=7,
                             models=("smollm2-135m",))),
    HistoryEntry(ScoreRequest(query="a:b", pairs=("c:d", "e:f"), models=M, template="she-as",
                               normalise="mean")),
)  # fmt: skip


@pytest.mark.parametrize("entry", ASKED, ids=lambda one: one.tab.name)
def test_the_address_of_an_entry_asks_it_again(entry: HistoryEntry) -> None:
    params = entry.params()
    if entry.text:
        params["sentences_many"] = entry.text
    app = open_page("", **params)
    assert not app.error
    (again, *_) = app.session_state[history.HISTORY]
    assert again == entry


def test_an_entry_whose_data_are_gone_is_a_sentence() -> None:
    app = open_page("cloze", models=MODEL, text="Rome is in ___.")
    gone = RelationRequest(relation="P36", subject="Peru", dataset="deleted", models=M)
    app.session_state[history.GOING] = HistoryEntry(gone)
    app.run()
    assert not app.exception
    assert "deleted" in app.error[0].value
    assert app.text_input(key="text").value == "Rome is in ___."


def test_history_is_newest_first_bounded_and_holds_the_same_once(
    gone: list[dict[str, Any]],
) -> None:
    app = open_page("cloze", models=MODEL, text="Rome is in ___.", gold="")
    for text in ("Oslo is in ___.", "<b>Rome</b> *is* in ___.", "Oslo is in ___."):
        app.text_input(key="text").set_value(text).run()
    app.slider(key="k").set_value(2).run()
    rows = [one for one in app.button if str(one.key).startswith("history ")]
    assert [one.label.split(" :gray")[0] for one in rows] == [
        plain(text) for text in ("Oslo is in ___.", "<b>Rome</b> *is* in ___.", "Rome is in ___.")
    ]
    rows[2].click().run()
    params, *_ = gone
    assert (params["page"], params["text"]) == (screens.ASK, "Rome is in ___.")
    assert "tab" not in params, "the tab Sentence is the first"
    asked = app.session_state[history.HISTORY]
    assert asked[0].request.top_k == 2, "the same with other options stands there once"
    app.session_state[history.HISTORY] = tuple(
        HistoryEntry(ClozeRequest(text=f"{n} ___", models=M)) for n in range(history.MAX_ENTRIES)
    )
    app.run()
    assert len(app.session_state[history.HISTORY]) == history.MAX_ENTRIES
    press(app, "Clear history")
    assert len(app.session_state[history.HISTORY]) == 1, "what is on the screen"


def test_pinned_answers_are_the_views_own_and_stand_in_the_address() -> None:
    app = open_page("cloze", models=MODEL, text="Rome is in ___.", gold="Italy")
    own = html(app)
    app.button(key="cloze pin").click().run()
    (pin,) = shared(app)["pin"]
    assert json.loads(pin) == {**PIN, "gold": "Italy", "candidates": "own"}
    word = own.split('<td class="word">')[1].split("<")[0]
    assert own.count('<td class="word">') == 5
    assert html(app).count('<td class="word">') == 5 and "query above is pinned" in captions(app)
    both = html(open_page("cloze", models=MODEL, text="Oslo is in ___.", pin=pin))
    assert both.count('<td class="word">') == 10 and f'<td class="word">{word}</td>' in both
    right = json.dumps({**PIN, "gold": word.upper()})
    marked = html(open_page("cloze", models=MODEL, text="Oslo is in ___.", pin=right))
    assert f'<tr class="gold"><td class="rank">1</td><td class="word">{word}</td>' in marked
    rank = own.split("Right answer <b>Italy</b>: rank <b>")[1].split("<")[0]
    assert f"Right answer Italy: rank {rank}<" in both
    again = open_page("analogy", models=MODEL, pin=pin)
    assert f'<td class="word">{word}</td>' in html(again)
    again.button(key="analogy pin").click().run()
    assert [json.loads(one)["kind"] for one in shared(again)["pin"]] == ["cloze", "analogy"]
    said = captions(again)
    assert "Differ between pins (in bold): ranked." in said
    assert "**ranked: own, each model" in said and "precision: fp32" in said
    next(one for one in again.button if one.key == "pin 0 unpin").click().run()
    assert [json.loads(one)["kind"] for one in shared(again)["pin"]] == ["analogy"]
    again.button(key="analogy pin").click().run()
    assert "pin" not in shared(again)


def test_of_many_pins_those_that_nobody_asked_wait_until_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    ask = cloze.query_model

    def counted(model: Any, query: Query, *words: Any, **more: Any) -> Any:
        asked.append(query.text("___"))
        return ask(model, query, *words, **more)

    monkeypatch.setattr(cloze, "query_model", counted)
    monkeypatch.setattr(pins, "N_ASKED", 2)
    texts = [f"The {n}th pin is ___." for n in range(5)]
    link = [json.dumps({**PIN, "text": text}) for text in texts]
    page = {"score": "Whole sentences", "models": MODEL, "sentences": "A b.\nA c."}
    app = open_page("cloze", pin=link, **page)
    assert asked == texts[:2] and html(app).count("not queried yet") == 3
    app.run()
    assert asked == texts[:2], "another run of the page asks no more"
    assert "Evaluated pins only." in captions(app)
    more = app.button(key="pins ask")
    assert more.label == "Run the next 2 of 3"
    more.click().run()
    assert asked == texts[:4]
    assert app.button(key="pins ask").label == "Run the other 1"
    again = open_page("cloze", pin=[link[0], link[3]], **page)
    assert asked == texts[:4] and "not queried yet" not in html(again), "they are kept"
    monkeypatch.setattr(pins, "N_ASKED", 0)
    other = open_page("cloze", pin=link, **page)
    assert asked == texts[:4] and html(other).count("not queried yet") == 1


@pytest.mark.parametrize(
    ("pin", "said"),
    [
        ("x", "it is not valid JSON"),
        ("[" * 100_000, "it is not valid JSON"),
        (json.dumps({**PIN, "kind": "probe"}), "it has no known kind of query"),
        (json.dumps({**PIN, "models": "minilm-mlm"}), "models must be a list"),
        (json.dumps({**PIN, "models": [MODEL] * 9}), "9 models are chosen"),
        (json.dumps({**PIN, "top_k": 10**9}), "top k can't be 1000000000"),
        (json.dumps({**PIN, "text": "\ud800 ___"}), "it is not valid JSON"),
        (json.dumps({**PIN, "models": ["/etc"]}), "can't reference the model '/etc'"),
        (
            json.dumps({**PIN, "models": ["server:http://localhost:9#x"]}),
            "can't reference the model 'server:",
        ),
        (
            json.dumps({**PIN, "candidates": "file:/etc/passwd"}),
            "can't reference the candidate list",
        ),
        (json.dumps({**PIN, "open_book": "/etc"}), "can't reference the open-book text '/etc'"),
    ],
)  # fmt: skip
def test_a_bad_pin_of_an_address_is_left_out_in_a_sentence(pin: str, said: str) -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    app.query_params["pin"] = [pin, json.dumps(PIN)]
    app.query_params.update({"score": "Whole sentences"})
    app.query_params["models"] = MODEL
    app.run()
    assert not app.exception
    (fault,) = (one.value for one in app.error)
    assert fault.startswith(plain("A pin in this URL was excluded: "))
    assert plain(said) in fault
    assert len(app.session_state[pins.PINS]) == 1


def test_twelve_are_pinned_and_no_model_that_the_app_doesnt_offer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = [json.dumps({**PIN, "text": f"{n} and ___."}) for n in range(14)]
    app = open_page("cloze", models=MODEL, pin=written)
    assert len(app.session_state[pins.PINS]) == pins.MAX_PINS == 12
    assert app.button(key="cloze pin").disabled
    monkeypatch.setattr(visitors, "offered_models", lambda: frozenset({MODEL}))
    app = open_page("cloze", models=MODEL, pin=json.dumps({**PIN, "models": ["bert-base-cased"]}))
    assert any("offer the model" in one.value for one in app.error)


def test_what_is_taken_away_can_be_brought_back() -> None:
    requests: tuple[Request, ...] = tuple(
        entry.request for entry in ASKED if entry.tab.kind.answer_field
    )
    assert len(requests) == 6
    file = json.dumps({"made_with": {}, "pinned": [pins.write_pin(one) for one in requests]})
    app = open_page("cloze", models=MODEL, pin=json.dumps(PIN))
    app.file_uploader(key="pin file 0").upload("x.json", file.encode(), "application/json").run()
    next(one for one in app.button if "Replace current pins" in one.label).click().run()
    assert app.session_state[pins.PINS] == requests


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff", "my.json is not valid JSON. Use a file or URL"),
        (b"[]", "No pins found in my.json: upload a JSON file"),
        (json.dumps({"pinned": [PIN] * 13}).encode(), "my.json has 13 pins; the maximum is 12."),
        (json.dumps({"pinned": [{**PIN, "text": ""}]}).encode(), "my.json, pin 1: The text is"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence(data: bytes, said: str) -> None:
    with pytest.raises(UserError) as refused:
        pins.read_file(data, "my.json")
    assert str(refused.value).startswith(said)
