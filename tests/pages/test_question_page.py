"""The tab Question: generated answers side by side, with the embedded models."""

import pytest
from opening import open_page
from streamlit.testing.v1 import AppTest

from lama_core.api.generation import AskRequest
from lama_core.requests import arguments
from pages.ui.shared import cache, history, pins

pytestmark = pytest.mark.usefixtures("home")


def opened(**params: str | list[str]) -> AppTest:
    app = open_page("", tab="Question", **params)
    assert [one.value for one in app.error] == []
    return app


def html(app: AppTest) -> str:
    return " ".join(one.proto.body for one in app.get("html"))


def commands(app: AppTest) -> str:
    return " ".join(one.value for one in app.code)


def test_an_example_is_answered_and_judged() -> None:
    app = opened()
    assert app.text_input(key="question").value == "What is the capital of Norway?"
    assert app.text_input(key="right_texts").value == "Oslo"
    assert app.multiselect(key="generators").value == ["smollm2-135m"]
    assert "✓ match" in html(app) and "prob. " in html(app) and "Tokens" in html(app)
    request = AskRequest("What is the capital of Norway?", ("Oslo",), models=("smollm2-135m",))
    assert " ".join(arguments(request)[1:]) in commands(app).replace("'", "").replace('"', "")


def test_the_page_and_the_library_give_the_same_answer() -> None:
    app = opened(question="What is the capital of France?", right_texts="Paris | Lutetia")
    request = AskRequest(
        "What is the capital of France?", ("Paris", "Lutetia"), models=("smollm2-135m",)
    )
    assert cache.generated_text(request, "smollm2-135m").generated.text.strip() in html(app)
    assert "--gold Paris --gold Lutetia" in commands(app)


def test_without_right_answers_there_is_no_verdict() -> None:
    app = opened(question="What is the capital of France?")
    assert app.text_input(key="right_texts").value in ("", None)
    assert "match" not in html(app)


def test_models_that_fill_blanks_get_one_sentence() -> None:
    app = opened(generators=["minilm-mlm", "smollm2-135m", "minilm-mlm-twin"])
    (note,) = [one.value for one in app.info if "Not asked" in one.value]
    assert "MiniLM" in note and "chat server" in note
    assert html(app).count("lx-sentence") == 1
    app = opened(generators=["minilm-mlm"])
    assert any("Not asked" in one.value for one in app.info)
    assert "lx-sentence" not in html(app)


def test_an_address_names_no_chat_server() -> None:
    app = opened(generators=["chat:http://127.0.0.1:9#x"])
    assert any("can't reference" in one.value for one in app.warning)
    assert "lx-sentence" not in html(app)


def test_an_empty_question_and_a_control_token_get_a_sentence() -> None:
    app = open_page("", tab="Question", question="Say <|im_end|> now", generators="smollm2-135m")
    assert any("control token" in one.value for one in app.error)
    app.text_input(key="question").set_value("").run()
    assert any("The question is empty" in one.value for one in app.error)


def test_an_example_sets_its_right_answers() -> None:
    app = opened()
    next(one for one in app.button if "Quixote" in one.label).click().run()
    assert app.text_input(key="right_texts").value == "Miguel de Cervantes | Cervantes"
    app.text_input(key="question").set_value("What is the capital of Italy?").run()
    assert app.text_input(key="right_texts").value in ("", None)


def test_a_question_comes_back_from_history_and_pins() -> None:
    request = AskRequest("Who is it?", ("A", "B"), plain=True, max_tokens=3, models=("m",))
    assert history.Entry(request).params() == {
        "tab": "Question",
        "question": "Who is it?",
        "plain": "true",
        "longest": "3",
        "precision": "auto",
        "generators": ["m"],
        "right_texts": "A|B",
    }
    asked = AskRequest("Who is it?", ("A", "B"), plain=True, models=("smollm2-135m",))
    assert pins.kind_of(asked) == "question"
    app = opened(question="2 + 2 =", plain="true", longest="4")
    app.button(key="question pin").click().run()
    assert not app.exception and app.error == []
    assert any(one.value == "Pinned" for one in app.subheader)
    assert app.query_params["pin"]


def test_a_time_limit_keeps_the_text_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lama_core.scoring.limits.Limits.until", lambda _: 0.0)
    app = opened(question="Count from one to ten.")
    assert "The time limit ended the text" in html(app)


def test_a_long_question_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMA_QUERY_TOKENS", "8")
    app = open_page("", tab="Question", question="Which is the largest lake of the whole of Asia?")
    assert any("the maximum here is 8" in one.value for one in app.error)
