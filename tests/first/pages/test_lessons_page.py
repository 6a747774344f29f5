"""Lessons: every step draws, a prediction comes before its answer, the address says the step."""

from html import escape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from opening import html, open_page, press, said
from streamlit.testing.v1 import AppTest

from lama_core.lessons.handout import sheet
from lama_core.lessons.lesson import (
    Predict,
    bundled_lessons,
    list_lessons,
    read_lesson,
)
from lama_core.lessons.step_results import StepResult
from lama_core.lessons.stored_answers import recorded_answers
from lama_core.models.sources.catalog import find_model
from lama_core.queries.analogy import SolveRequest
from lama_core.queries.cloze import ClozeRequest
from lama_core.scoring.blanks import parse_query
from pages.ui.lessons import progress
from pages.ui.lessons.step_view import _mark

pytestmark = pytest.mark.usefixtures("home")
FIRST = "1-cloze-queries"
HOSTILE = """
title = "<img src=x> [a](http://evil.example) $x$"
minutes = 5
question = ":material/delete: **q**"
sources = ["http://evil.example"]

[[steps]]
kind = "text"
text = "<script>alert(1)</script> ![i](http://evil.example/i.png) **bold**"

[[steps]]
kind = "predict"
question = "<b>one</b> or two?"
choices = ["<b>one</b>", "two"]
answer = "two"

[[steps]]
kind = "explain"
text = "why"
source = "<i>me</i>"
"""


def to_step(app: AppTest, number: int) -> AppTest:
    """The same reader, at another step's address."""
    app.query_params["step"] = str(number)
    app.run()
    assert not app.exception and not app.error
    return app


def predict(app: AppTest, step: Predict) -> None:
    """Answer the question that is on the screen, with its first choice."""
    if step.options:
        app.radio[0].set_value(step.options[0])
    else:
        app.text_input[0].set_value("guess")
    button = next(one for one in app.button if one.label == "Predict")
    button.click().run()
    assert not app.exception and not app.error


def test_the_summary_shows_the_answers_to_questions_without_a_prediction() -> None:
    path = bundled_lessons() / f"{FIRST}.toml"
    lesson = read_lesson(path, own=False)
    app = open_page("lessons", lesson=FIRST, step=str(len(lesson.steps) + 1), large="true")
    questions = [step.question for step in lesson.steps if isinstance(step, Predict)]
    assert "Questions and answers" in {one.value for one in app.subheader}
    assert all(escape(question) in html(app) for question in questions)
    assert html(app).count("not shown") == len(questions)
    press(app, "Show the answers")
    assert not app.error
    assert "canberra" in html(app) and "not shown" not in html(app)


def test_what_shows_an_answer_waits_for_the_prediction() -> None:
    app = open_page("lessons", lesson=FIRST, step="3")
    assert app.info[0].value.startswith("This lesson has a question before this step.")
    labels = [one.label for one in app.button]
    assert labels[-3:] == ["To the question", "Open the step", "All lessons"]
    assert "Next" not in {one.label for one in app.button}
    assert not app.session_state[progress.KEY][FIRST][1].shown
    to_step(app, 2)
    assert next(one for one in app.button if one.label == "Next").disabled
    lesson = read_lesson(bundled_lessons() / f"{FIRST}.toml")
    step = lesson.steps[1]
    assert isinstance(step, Predict)
    press(app, "Predict")
    assert "Make a prediction first" in app.warning[0].value
    predict(app, step)
    to_step(app, 3)
    assert "You predicted **Australia**. MiniLM-MLM: **canberra**." in said(app)


def test_the_stored_answers_stand_in_for_a_model_that_is_not_here() -> None:
    app = open_page("lessons", lesson=FIRST, step="2")
    step = read_lesson(bundled_lessons() / f"{FIRST}.toml").steps[1]
    assert isinstance(step, Predict)
    predict(app, step)
    to_step(app, 3)
    assert any(one.label.startswith("Get it") for one in app.button)
    assert "Recorded from the installed model, among 15,809 words" in html(app)
    for rank in (1, 2):  # of MiniLM-MLM, and of the stored answer
        assert html(app).count(f"Right answer <b>Canberra</b>: rank <b>{rank}</b>") == 1
    assert html(app).count('<tr class="gold">') == 2, "the stored answer is marked, too"
    assert "Ranked by MiniLM-MLM: 22,426 words that are one token each." in said(app)


def test_every_query_of_a_lesson_has_a_recorded_answer() -> None:
    wanted = {
        (name, tuple(request.models), request.context, _text(request))
        for lesson in list_lessons().lessons
        for step in lesson.steps
        for request in step.requests.values()
        for name in request.models
        if find_model(name).source.how != "assets"
    }
    assert wanted <= {*recorded_answers()}


def _text(request: ClozeRequest | SolveRequest) -> str:
    if isinstance(request, SolveRequest):
        return request.question().query.text()
    return parse_query(request.text).text()


def test_a_model_without_a_run_is_named_with_the_command_that_makes_it(home: Path) -> None:
    folder = home / "data" / "lessons"
    folder.mkdir(parents=True)
    text = HOSTILE.split("[[steps]]")[0]
    text += '[[steps]]\nkind = "run"\nfigure = "curve"\nmodels = ["bert-base-cased", "nobody"]\n'
    text += '[[steps]]\nkind = "ask"\nquery = "A ___."\nmodels = ["nobody", "minilm-mlm"]\n'
    (folder / "mine.toml").write_text(text)
    app = open_page("lessons", lesson="mine", step="1")
    assert not app.error
    assert "`lama-explorer probe --dataset starter --model bert-base-cased`" in said(app)
    to_step(app, 2)
    assert "nobody: this version has no model of that name" in said(app)


def lesson_at(home: Path, *steps: str) -> AppTest:
    """The first step of a lesson of the user's own."""
    folder = home / "data" / "lessons"
    folder.mkdir(parents=True)
    text = HOSTILE.split("[[steps]]")[0] + "".join(f"[[steps]]\n{step}\n" for step in steps)
    (folder / "mine.toml").write_text(text)
    return open_page("lessons", lesson="mine", step="1")


def test_the_readers_own_query_is_kept_for_the_handout(home: Path) -> None:
    app = lesson_at(home, 'kind = "try"\nquery = "A ___."\nmodels = ["minilm-mlm"]')
    app.text_input(key="own").set_value("The capital of Norway is ___.").run()
    shown = app.session_state[progress.KEY]["mine"][1].shown[1]
    assert shown.title == "The capital of Norway is ___."
    assert shown.rows[0][1].startswith("oslo (")
    app.text_input(key="meant").set_value("Norway").run()
    assert "Right answer <b>Norway</b>: rank" in html(app)
    app.text_input(key="own").set_value("The capital of Peru is ___.").run()
    assert app.text_input(key="meant").value == "", "it belongs to the former sentence"


def test_the_handout_marks_right_answers_as_the_page_does(home: Path) -> None:
    queries = 'queries = ["The capital of Norway is ___."]\nmodels = ["minilm-mlm"]'
    app = lesson_at(
        home, f'kind = "compare"\n{queries}\ngolds = ["Oslo"]', f'kind = "compare"\n{queries}'
    )
    to_step(app, 2)
    with_gold, without = (app.session_state[progress.KEY]["mine"][1].shown[n] for n in (1, 2))
    assert with_gold.heads[2:] == ("right answer",) and with_gold.rows[0][2] == "Oslo"
    assert with_gold.rows[0][1].startswith("oslo (") and with_gold.rows[0][1].endswith(") ✓")
    assert without.heads[2:] == () and without.rows[0][1].endswith(")")


@pytest.mark.parametrize(
    ("step", "shown"), [("4", "4"), ("0", "1"), ("0001" + "9" * 5000, "1"), ("²", "1")]
)
def test_the_address_holds_lesson_step_and_large_type(step: str, shown: str) -> None:
    app = open_page("lessons", lesson="3-negation", step=step, large="true")
    kept = {**{n: "x" for n in range(1, 9)}}
    app.session_state[progress.KEY]["3-negation"][1].predicted.update(kept)
    app.query_params["step"] = step
    app.run()
    address = parse_qs(urlsplit(app.code[0].value).query)
    assert address == {"lesson": ["3-negation"], "step": [shown], "large": ["true"]}
    assert app.toggle(key="large").value is True


def test_a_lesson_that_is_not_here_is_said_beside_those_that_are() -> None:
    app = open_page("lessons", lesson="<b>../../etc</b>")
    assert "There is no lesson" in app.info[0].value and "<b>" not in app.info[0].value
    assert len([one for one in app.button if one.label == "Start the lesson"]) == len(
        list_lessons().lessons
    )


def test_a_users_lesson_is_shown_as_text(home: Path) -> None:
    folder = home / "data" / "lessons"
    folder.mkdir(parents=True)
    (folder / "own.toml").write_text(HOSTILE)
    app = open_page("lessons", lesson="own", step="1")
    for number in (1, 2, 3):
        to_step(app, number)
        raw = " ".join(str(one.value) for one in (*app.markdown, *app.header, *app.caption))
        assert "<script>" not in raw and "<b>" not in raw and "<i>" not in raw
        assert "](http" not in raw
        assert number > 1 or "**bold**" in raw
        if number == 2:
            app.radio[0].set_value("two")
            press(app, "Predict")
            assert "You predicted **two**. Correct!" in said(app)
    to_step(app, 4)
    assert "1 of 1 predictions were right" in said(app)


def test_a_lesson_that_cant_be_read_is_said_to_its_owner_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "data" / "lessons"
    folder.mkdir(parents=True)
    (folder / "bad.toml").write_text("title")
    app = open_page("lessons", lesson="bad")
    assert "bad.toml: invalid TOML" in app.error[0].value.replace("\\", "")
    drawn = [str(getattr(one, "value", "")) for one in app.main]
    (error,) = (at for at, text in enumerate(drawn) if "invalid TOML" in text)
    assert error < next(at for at, text in enumerate(drawn) if text.startswith("### 1"))
    monkeypatch.setattr("pages.ui.shared.visitors.is_local_connection", lambda *_: False)
    app = open_page("lessons")
    assert not app.error and str(home) not in said(app)


def test_teacher_mode_jumps_to_any_step_and_reveals_the_answer_without_a_prediction() -> None:
    app = open_page("lessons", lesson="3-negation", step="6", large="true")
    assert not any(one.label == "To the question" for one in app.button)
    (question, answer) = app.info[0].value.split("\n")
    assert "same first answer" in question and answer.strip().startswith("MiniLM")
    app = open_page("lessons", lesson="3-negation", step="5", large="true")
    assert [one.label for one in app.button if one.label == "Reveal"] == ["Reveal"]
    assert not next(one for one in app.button if one.label == "Next").disabled
    usual = open_page("lessons", lesson="3-negation", step="6")
    assert any(one.label == "To the question" for one in usual.button)
    press(usual, "Open the step")
    assert "same first answer" in usual.info[0].value
    assert not any(one.label == "To the question" for one in usual.button)


def test_a_student_sheet_has_blanks_and_a_teacher_sheet_the_answers() -> None:
    lesson = next(one for one in list_lessons().lessons if one.id == "3-negation")
    blank = sheet(lesson)
    assert blank.count("Answer: <span class=line") == 2
    assert "MiniLM" in blank and "<script>addEventListener" in blank
    before, _, after = blank.partition("break-before: page")
    assert "Why “not” has little effect" in after and "Try your own" in before
    shown = StepResult(
        firsts={("The official language of France is not ___.", "minilm-mlm"): "french"}
    )
    step = next(n for n, one in enumerate(lesson.steps, 1) if isinstance(one, Predict))
    assert isinstance(lesson.steps[step - 1], Predict)
    answered = sheet(lesson, {step + 1: shown})
    assert "Answer: <b>french</b>" in answered and "Answer: <b>not shown</b>" in answered
    assert "class=line" not in answered.partition("</style>")[2]


def test_a_ruled_out_first_answer_is_wrong() -> None:
    assert _mark("french", "", "French") == "wrong"
    assert _mark("french", "French", "") == "gold"
    assert _mark("french", "", "") == _mark("french", "Dutch", "English") == ""
