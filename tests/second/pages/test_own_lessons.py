"""Lessons of one's own: copied, edited, imported; files at the machine, else in the session."""

import pytest
from opening import html, open_page, press, said
from streamlit import config
from streamlit.testing.v1 import AppTest

from lama_core.lessons.lesson import STEPS, lesson_file, lesson_text, list_lessons
from pages.ui.lessons import editor, own
from pages.ui.shared import visitors

FIRST = "1-cloze-queries"
COPY = f"{FIRST}-copy"


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app as it is for anybody."""
    monkeypatch.setenv("LAMA_PUBLIC", "1")
    monkeypatch.setattr(config, "set_option", lambda *_: None)
    visitors._offered_at_start.cache_clear()


def copied() -> AppTest:
    """The first lesson, copied and opened in the editor at its first step."""
    app = open_page("lessons")
    app.button(key=f"copy {FIRST}").click().run()
    app = follow(app, lesson=COPY, step="1", edit="true")
    return app


def follow(app: AppTest, **params: str) -> AppTest:
    """The same visitor at an address that a click orders from the browser."""
    app.query_params.clear()
    for name, value in params.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def field(app: AppTest, label: str) -> AppTest:
    """The editor's field with this label."""
    (found,) = (one for one in (*app.text_input, *app.text_area) if one.label == label)
    return found


@pytest.mark.usefixtures("home")
def test_a_copy_is_a_file_and_each_valid_change_is_saved() -> None:
    app = copied()
    assert not app.error and str(lesson_file(COPY)) in said(app)
    field(app, "Text").set_value("<script>alert(1)</script> **mine**").run()
    saved = list_lessons().find(COPY)
    assert saved is not None and saved.own
    assert saved.steps[0].text == "<script>alert(1)</script> **mine**"
    original = list_lessons().find(FIRST)
    assert original is not None and saved.steps[1:] == original.steps[1:]
    assert "<script>" not in html(app)
    assert "\\<script" in "".join(one.value for one in app.markdown)

    field(app, "Text").set_value("").run()
    assert "step 1 (“Text”): text is empty" in said(app)
    assert list_lessons().find(COPY) == saved, "an invalid lesson isn't saved"
    field(app, "Text").set_value("again").run()
    assert not app.error and "again" in lesson_file(COPY).read_text(encoding="utf-8")


@pytest.mark.usefixtures("home")
def test_a_lesson_that_is_only_opened_in_the_editor_is_not_written() -> None:
    app = copied()
    path = lesson_file(COPY)
    path.write_text("# mine\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    for step in range(11):
        follow(app, lesson=COPY, step=str(step), edit="true")
    assert path.read_text(encoding="utf-8").startswith("# mine")


@pytest.mark.usefixtures("home", "public")
def test_in_public_a_limited_number_of_copies_is_in_the_session_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = copied()
    assert "in this browser session only" in said(app)
    field(app, "Text").set_value("mine").run()
    assert app.session_state[own.KEPT][COPY].steps[0].text == "mine"
    assert not lesson_file(COPY).parent.exists()
    other = open_page("lessons", lesson=COPY, step="1", edit="true")
    assert "There is no lesson" in said(other)
    monkeypatch.setattr(own, "MAX_KEPT", 1)
    follow(app)
    app.button(key=f"copy {FIRST}").click().run()
    assert "delete one of yours first" in app.error[0].value


@pytest.mark.usefixtures("home", "public")
def test_in_public_the_operators_lessons_cant_be_edited() -> None:
    path = lesson_file("operators")
    path.parent.mkdir(parents=True)
    (first,) = (one for one in list_lessons().lessons if one.id == FIRST)
    path.write_text(lesson_text(first), encoding="utf-8")
    app = open_page("lessons", lesson="operators", step="1", edit="true")
    assert not app.text_area and "Delete this lesson" not in {one.label for one in app.button}


@pytest.mark.usefixtures("home", "public")
def test_a_pasted_lesson_is_imported_and_a_broken_one_is_explained() -> None:
    app = open_page("lessons")
    (first,) = (one for one in list_lessons().lessons if one.id == FIRST)
    app.text_area[0].set_value("title = ").run()
    assert "invalid TOML" in app.error[0].value
    app.text_area[0].set_value(lesson_text(first)).run()
    assert app.session_state[own.KEPT]["lesson"].steps == first.steps


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("kind", STEPS)
def test_a_step_of_each_kind_is_made_by_its_form(kind: str) -> None:
    app = copied()
    (choice,) = (one for one in app.selectbox if one.label == "Kind of step")
    choice.set_value(kind).run()
    if kind == "predict":
        field(app, "Answer").set_value("Paris").run()
    assert not app.error
    saved = list_lessons().find(COPY)
    assert saved is not None and saved.steps[0].kind == kind


@pytest.mark.usefixtures("home")
def test_steps_are_added_moved_and_removed() -> None:
    app = copied()

    def kinds(label: str) -> list[str]:
        press(app, label)
        follow(app, lesson=COPY, step=app.query_params["step"][0], edit="true")
        found = list_lessons().find(COPY)
        assert found is not None
        return [step.kind for step in found.steps]

    assert kinds("Add a step")[:3] == ["text", "text", "predict"]
    field(app, "Text").set_value("new").run()
    saved = kinds("Remove")
    assert saved[:2] == ["text", "predict"] and len(saved) == 10
    assert kinds("Undo Remove")[:3] == ["text", "text", "predict"]
    assert kinds("Remove") == saved
    assert len(kinds("Remove")) == 9  # a second one: both come back
    assert kinds("Undo Remove") == saved and kinds("Undo Remove")[:2] == ["text", "text"]
    assert editor.DRAFT in app.session_state
