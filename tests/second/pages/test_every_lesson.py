"""Every step of every bundled lesson draws, and every prediction has an answer."""

from pathlib import Path

import pytest
from first.pages.test_lessons_page import predict, to_step
from opening import open_page
from streamlit.testing.v1 import AppTest

from lama_core.lessons.lesson import Lesson, Predict, ShowRun, bundled_lessons, read_lesson
from lama_core.lessons.step_results import judged_predictions
from pages.ui.lessons import progress

pytestmark = pytest.mark.usefixtures("home")


LESSONS = sorted(bundled_lessons().iterdir())


def known_to(app: AppTest, lesson: Lesson) -> progress.LessonProgress:
    return app.session_state[progress.KEY][lesson.id][1]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_step_of_every_lesson_draws_and_every_prediction_has_an_answer(path: Path) -> None:
    lesson = read_lesson(path, own=False)
    app = open_page("lessons", lesson=lesson.id, step="1")
    for number, step in enumerate(lesson.steps, start=1):
        to_step(app, number)
        if isinstance(step, Predict):
            predict(app, step)
        if isinstance(step, ShowRun):
            shown = known_to(app, lesson).shown[number]
            assert shown.values or "There was no finished run." in shown.notes
    to_step(app, len(lesson.steps) + 1)
    kept = known_to(app, lesson)
    found = list(judged_predictions(lesson, kept.predicted, kept.shown))
    assert len(found) == sum(isinstance(step, Predict) for step in lesson.steps)
    assert all(one.answer for one in found)
    for (number, step), one in zip(
        ((n, s) for n, s in enumerate(lesson.steps, 1) if isinstance(s, Predict)),
        found,
        strict=True,
    ):
        if step.choices:  # the models and runs that come with the project choose one of them
            answers = [choice.casefold() for choice in step.choices]
            assert one.answer.casefold().split(" (")[0] in answers, (number, one)
