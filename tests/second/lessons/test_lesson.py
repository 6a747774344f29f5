"""Lessons as files: what is read, and the one sentence that says what is wrong."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lama_core.errors import UserError
from lama_core.lessons.charts import CHARTS
from lama_core.lessons.lesson import (
    FIGURES,
    STEPS,
    Compare,
    Lesson,
    Predict,
    bundled_lessons,
    free_name,
    lesson_fields,
    lesson_text,
    list_lessons,
    parse_lesson,
    read_lesson,
    save_lesson,
    toml_value,
)
from lama_core.lessons.markup import as_html, as_markdown
from lama_core.paths import DOCS

HEAD = 'title = "T"\nminutes = 5\nquestion = "Q?"\nsources = []\n'
TEXT = '[[steps]]\nkind = "text"\ntext = "t"\n'
ASK = '[[steps]]\nkind = "ask"\nquery = "The capital of France is ___."\n'
RUN = '[[steps]]\nkind = "run"\nfigure = "curve"\n'
PREDICT = '[[steps]]\nkind = "predict"\nquestion = "Q?"\n'


def lesson_of(folder: Path, text: str, name: str = "mine") -> Lesson:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return read_lesson(path)


def test_every_lesson_of_the_project_is_whole_and_written_as_it_is_read() -> None:
    listing = list_lessons()
    bundled = [one for one in listing.lessons if not one.own]
    assert len(bundled) == 11 and not listing.problems  # one is a plug-in's
    for path in sorted(bundled_lessons().iterdir()):
        lesson = read_lesson(path, own=False)
        assert 5 <= lesson.minutes <= 10 and lesson.sources
        kinds = [step.kind for step in lesson.steps]
        assert {"predict", "explain", "run", "try"} <= set(kinds)
        assert set(kinds) & {"ask", "compare", "analogy"}
        lesson = read_lesson(path)
        assert parse_lesson(lesson_text(lesson).encode(), lesson.id) == lesson
        assert parse_lesson(lesson_fields(lesson), lesson.id) == lesson


@pytest.mark.parametrize(
    "value",
    [
        "x\r\ny",
        'a "quoted" \\n text',
        'three """ quotes\nin \\ two lines\n',
        "\r\t\x00\x7f\u2028é",
        [["Paris", "France"], ["Rome", "Italy"]],
        {"tab": "Compare", "a b": True, 'c"': 1.5, "é": 3},
    ],
    ids=repr,
)
def test_any_value_is_written_as_toml(value: Any) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}") == {"value": value}


def test_a_new_lesson_never_takes_the_name_of_a_file(home: Path) -> None:
    folder = home / "data" / "lessons"
    folder.mkdir(parents=True)
    (folder / "rivers.toml").write_text("not a lesson", encoding="utf-8")
    lesson = parse_lesson((HEAD + TEXT).encode(), free_name("../Rivers!", list_lessons()))
    assert lesson.id == "rivers-2"
    save_lesson(lesson)
    assert list_lessons().find("rivers-2") == lesson
    assert (folder / "rivers.toml").read_text(encoding="utf-8") == "not a lesson"


def test_the_documentations_example_is_a_lesson_and_every_kind_and_figure_is_in_it(
    tmp_path: Path,
) -> None:
    text = (DOCS / "lessons.md").read_text(encoding="utf-8")
    whole, *parts = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    lesson = lesson_of(tmp_path, whole)
    assert [step.kind for step in lesson.steps] == ["text", "predict", "ask", "try"]
    for part in parts:
        lesson_of(tmp_path, HEAD + part)
    for kind in STEPS:
        assert f"### {kind}\n" in text
    for figure in CHARTS:
        assert f"| `{figure}` |" in text
    assert tuple(CHARTS) == FIGURES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", "invalid TOML"),
        (HEAD, "steps is missing: start each with [[steps]]"),
        (HEAD + "[[steps]]\nkind = 'predikt'", "(did you mean 'predict'?)"),
        (HEAD.replace("minutes", "minuts") + TEXT, "unknown field 'minuts' (did you mean"),
        (HEAD.replace("5", "500") + TEXT, "minutes must be at most 120"),
        (HEAD + TEXT + "[[steps]]\nkind = 'text'", "step 2 (text): text is empty"),
        (HEAD + TEXT * 61, "the number of steps must be at most 60"),
        (HEAD + ASK.replace("___", "so"), "step 1 (ask): 'The capital of France is so.': The text"),
        (HEAD + ASK + "models = ['/etc']", "'/etc' is not a model name"),
        (HEAD + ASK + "models = ['server:http://x#y']", "is not a model name"),
        (HEAD + PREDICT + TEXT, "the answer is missing: add answer, or a next step"),
        (HEAD + PREDICT + "choices = ['a', 'b']\nanswer = 'c'", "'c' is not one of the choices"),
        (HEAD + PREDICT + "between = [40, 20]\n" + RUN, "the numbers of between must increase"),
        (
            HEAD + PREDICT + "row = 'The capital of Franc is ___.'\n" + ASK,
            "is not one of the next step",
        ),
        (
            HEAD + "[[steps]]\nkind = 'compare'\nqueries = ['a ___']\ngolds = ['a', 'b']",
            "golds has 2 answers",
        ),
    ],
)
def test_a_fault_is_one_sentence_with_the_file_and_the_step(
    text: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as raised:
        lesson_of(tmp_path, text)
    message = str(raised.value)
    assert said in message
    assert message.startswith(str(tmp_path / "mine.toml"))
    assert message.endswith(".") and "\n" not in message


def test_what_is_no_text_and_what_has_no_name_is_said(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(UserError, match="is not UTF-8: save it as text in UTF-8"):
        read_lesson(tmp_path / "mine.toml")
    with pytest.raises(UserError, match="lower-case letters, digits and hyphens: rename"):
        lesson_of(tmp_path, HEAD + TEXT, "My lesson")
    with pytest.raises(UserError, match="can't be read"):
        read_lesson(tmp_path / "none.toml")


def test_a_users_lessons_stand_behind_the_projects_and_a_bad_one_stops_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMA_HOME", str(tmp_path))
    folder = tmp_path / "data" / "lessons"
    folder.mkdir(parents=True)
    lesson_of(folder, HEAD + TEXT, "a-first")
    lesson_of(folder, HEAD + TEXT, "1-cloze-queries")
    (folder / "bad.toml").write_text("title")
    (folder / "notes.txt").write_text("no lesson")
    listing = list_lessons()
    assert [one.id for one in listing.lessons if one.own] == ["a-first"]
    assert listing.lessons[-1].id == "a-first"
    taken, bad = listing.problems
    assert "1-cloze-queries.toml: another lesson has this name: rename the file" in taken
    assert "bad.toml: invalid TOML" in bad


def test_ranges_are_named_by_their_bounds_and_one_gold_is_that_of_all_queries() -> None:
    step = Predict(question="?", between=(5, 12.5))
    assert step.options == ("less than 5\u00a0%", "5 to 12.5\u00a0%", "12.5\u00a0% or more")
    compare = Compare(queries=("a ___", "b ___"), golds=("x",))
    assert compare.gold_of == {"a ___": "x", "b ___": "x"}


def test_texts_have_paragraphs_lists_and_three_marks_and_nothing_else() -> None:
    text = "One **two** *three*\nfour `a*b`.\n\n- <b>x</b>\n- y\n  z"
    assert as_html(text) == (
        "<p>One <b>two</b> <i>three</i> four <code>a*b</code>.</p>"
        "<ul><li>&lt;b&gt;x&lt;/b&gt;</li><li>y z</li></ul>"
    )
    shown = as_markdown("**a** [x](http://y) ![i](z) 2 * 3", lambda piece: f"({piece})")
    assert shown == "**(a)**( [x](http://y) ![i](z) 2 * 3)"
