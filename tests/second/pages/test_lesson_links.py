"""The link of a lesson's chart leads to a screen of Results that has the chart's numbers."""

import json
import re

import pytest
from chart_marks import charts
from opening import open_page, said

from lama_core.lessons.charts import chart_table
from lama_core.lessons.lesson import ShowRun, list_lessons
from lama_core.rounding import percent
from pages.ui.lessons.step_view import _runs_of, screen_of
from pages.ui.shared import cache

pytestmark = pytest.mark.usefixtures("home")
STEPS = {
    repr((step.figure, step.prompts, step.by, step.of, len(step.models))): step
    for lesson in list_lessons().lessons
    for step in lesson.steps
    if isinstance(step, ShowRun)
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_the_numbers_of_a_chart_are_on_the_screen_of_its_link(step: ShowRun) -> None:
    infos = _runs_of(step)
    table = chart_table([cache.finished_run(info) for info in infos], step)
    page, params = screen_of(step, infos)
    app = open_page(
        page, **{name: [*v] if not isinstance(v, str) else v for name, v in params.items()}
    )
    shown = [json.dumps(next(iter(charts(app))).marks())] if charts(app) else []  # the first one
    shown += [said(app), *(one.value.to_csv() for one in app.dataframe)]
    numbers = {*re.findall(r"\d+\.\d", " ".join(shown))}
    assert len(table) and {percent(value) for value in table["value"]} <= numbers
