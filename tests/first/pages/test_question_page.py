"""The tab Question: generated answers side by side, of made-up models and of SmolLM2."""

from collections.abc import Sequence

import numpy as np
import pytest
from opening import open_page
from streamlit.testing.v1 import AppTest

from lama_core.models.protocols import Chat, GeneratedText
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from lama_core.queries.question import AskRequest
from lama_core.queries.question_prompts import BRIEFLY
from lama_core.requests import command_line
from lama_core.runs.find import list_runs, load_run
from pages.ui.queries.question import EXAMPLES
from pages.ui.shared import links, screens
from pages.ui.shared.query_queue import ANSWERS

SMOLLM = "smollm2-135m"
NORWAY, FRANCE = "What is the capital of Norway?", "What is the capital of France?"


class Speaker:
    """A chat model with one answer; its tokens have probabilities 1/2, 1/4, and so on."""

    kind, precision, device, identity, notes = "causal", "fp32", "cpu", "made up", ()

    def __init__(self, name: str) -> None:
        self.name = name

    def generate(
        self, prompts: Sequence[str | Chat], max_tokens: int, *, again: bool = False
    ) -> list[GeneratedText]:
        tokens = ("", "") if "empty" in self.question(prompts[0]) else ("It is ", "Oslo <b>.")
        log_probs = -np.log([2.0, 4.0]) if self.name == SMOLLM else [np.nan]
        shown = tokens if self.name == SMOLLM else ()
        made = "" if self.name == SMOLLM else "2026-11-25 09:30"
        text = "".join(tokens) + " once more" * again
        log_probs = np.array(log_probs, np.float32)
        return [
            GeneratedText(text, shown, log_probs, made=made, is_stored=bool(made) and not again)
        ]

    @staticmethod
    def question(prompt: str | Chat) -> str:
        return prompt if isinstance(prompt, str) else prompt.messages[-1].text


@pytest.fixture
def speaking(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue's causal models are made-up ones."""
    ANSWERS.clear()
    monkeypatch.setattr("lama_core.service.queries.load_model", lambda name, **_: Speaker(name))
    for module in ("shared.model_columns", "queries.pins", "queries.question"):
        monkeypatch.setattr(f"pages.ui.{module}.is_here", lambda _: True)
    monkeypatch.setattr("lama_core.service.queries.CACHE.identity", lambda *_: "made up")


def opened(**params: str | list[str]) -> AppTest:
    app = open_page("", tab="Question", **params)
    assert [one.value for one in app.error] == []
    return app


def answers(app: AppTest) -> list[str]:
    return [one.proto.body for one in app.get("html") if '"lx-sentence"' in one.proto.body]


def commands(app: AppTest) -> str:
    return " ".join(one.value for one in app.code)


@pytest.mark.usefixtures("speaking")
def test_an_example_is_answered_and_judged() -> None:
    app = opened()
    assert app.text_input(key="question").value == NORWAY
    assert app.text_input(key="right_texts").value == "Oslo"
    assert app.multiselect(key="generators").value == [SMOLLM]
    (answer,) = answers(app)
    assert "It is Oslo &lt;b&gt;." in answer and "✓ contains the right answer" in answer
    assert 'prob. 0.125<span class="lx-detail">, log-prob. -2.08, 2 tokens' in answer  # 1/2 x 1/4
    request = AskRequest(NORWAY, ("Oslo",), models=(SMOLLM,))
    assert command_line(request) in commands(app)


@pytest.mark.usefixtures("speaking")
def test_every_name_of_the_right_answer_counts_and_without_one_there_is_no_verdict() -> None:
    (answer,) = answers(opened(question=FRANCE, right_texts="Paris | Lutetia"))
    assert "✗ wrong" in answer
    app = opened(question=FRANCE, right_texts="Paris|  oslo |Oslo")
    assert "✓ contains the right answer" in answers(app)[0]
    assert "--gold Paris --gold oslo --gold Oslo" in commands(app)
    app = opened(question=FRANCE)
    assert app.text_input(key="right_texts").value in ("", None)
    assert "lx-chip" not in answers(app)[0]
    app.text_input(key="question").set_value("").run()
    assert any("The question is empty" in one.value for one in app.error)


@pytest.mark.usefixtures("speaking")
def test_an_unknown_probability_and_an_empty_text_are_named() -> None:
    (answer,) = answers(opened(generators="smollm2-360m"))
    assert "the server returns no log-probabilities" in answer and "Tokens" not in answer
    (answer,) = answers(opened(question="empty", right_texts="Oslo"))
    assert "(an empty text)" in answer and "no answer" in answer


@pytest.mark.usefixtures("speaking")
def test_a_stored_answer_has_its_date_and_is_asked_for_again() -> None:
    app = opened(generators=[SMOLLM, "smollm2-360m"])
    local, stored = answers(app)
    assert "nswer of" not in local and "Stored answer of 2026-11-25 09:30 UTC." in stored
    app.button(key="ask server").click().run()
    local, again = answers(app)
    assert "once more" not in local
    assert "once more" in again and "Answer of 2026-11-25 09:30 UTC." in again
    assert "once more" in answers(app.run())[1], "it remains"
    app = opened()
    assert not [one for one in app.button if one.key == "ask server"]


@pytest.mark.usefixtures("speaking")
def test_models_that_fill_blanks_and_servers_of_an_address_are_not_asked() -> None:
    app = opened(generators=["minilm-mlm", SMOLLM, "smollm2-360m", "minilm-mlm-twin"])
    (note,) = [one.value for one in app.info if "Not asked" in one.value]
    assert "MiniLM" in note and "chat server" in note
    assert len(answers(app)) == 2
    app = opened(generators=["minilm-mlm"])
    assert any("Not asked" in one.value for one in app.info) and not answers(app)
    app = open_page("", tab="Question", generators=["chat:http://127.0.0.1:9#x"])
    assert any("can't reference" in one.value for one in app.warning) and not answers(app)


@pytest.mark.skipif(not is_here(find_model(SMOLLM)), reason="SmolLM2 isn't installed")
def test_smollm_answers_within_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    ANSWERS.clear()
    assert "✓ correct" in answers(opened())[0]
    app = open_page("", tab="Question", question="Say <|im_end|> now")
    assert any("control token" in one.value for one in app.error)
    with monkeypatch.context() as patch:
        patch.setattr("lama_core.scoring.limits.Limits.until", lambda _: 0.0)
        assert "The time limit ended the text" in answers(opened(question="Count to ten."))[0]
    monkeypatch.setenv("LAMA_QUERY_TOKENS", "8")
    app = open_page("", tab="Question", question="Which is the largest lake of the whole of Asia?")
    assert any("the maximum here is 8" in one.value for one in app.error)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("question", "gold", "text", "verdict"),
    [
        (NORWAY, "Oslo", "The capital of Norway is Oslo.", "✓ contains the right answer"),
        ("In which city was Pablo Picasso born?", "Malaga", "Pablo Picasso was born in Barcelona",
         "✗ wrong"),
    ],
)  # fmt: skip
def test_a_model_that_is_not_here_has_its_stored_answer_and_a_button(
    monkeypatch: pytest.MonkeyPatch, question: str, gold: str, text: str, verdict: str
) -> None:
    gone: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(links, "go", lambda page, params: gone.append((page, dict(params))))
    app = opened(question=question, right_texts=gold)
    (answer,) = answers(app)
    assert text in answer and verdict in answer
    assert f"“{question} {BRIEFLY}”" in answer, "the prompt, which differs from that of the app"
    assert any("**✓**: the text contains" in one.value for one in app.caption)
    assert any("SmolLM2 135M Instruct** isn't installed." in one.value for one in app.markdown)
    assert [one.label for one in app.button].count("Get it (92.9 MB)") == 1
    (link,) = (one for one in app.button if one.label == "Its answers to 1,240 questions")
    link.click().run()
    ((page, params),) = gone
    assert page == screens.RESULTS and params["tab"] == "Wrong answers"
    assert str(params["runs"]).startswith("starter-smollm2_135m-questions_0_shot")


@pytest.mark.usefixtures("home")
def test_a_question_without_a_stored_answer_gets_a_sentence_and_no_other_answer() -> None:
    app = opened(question="Who are you?")
    assert not answers(app)
    assert any("no stored answer to this question" in one.value for one in app.info)


@pytest.mark.usefixtures("home")
def test_all_examples_have_a_stored_answer() -> None:
    asked = [question for question, _ in EXAMPLES]
    for info in list_runs(kinds=("generation",)).runs:
        assert set(asked) <= set(load_run(info.id).facts["query"])
