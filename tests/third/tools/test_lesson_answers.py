"""The recorded answers of the lessons are those of the model."""

from random import Random

import pytest

from lama_core.lessons.lesson import list_lessons
from lama_core.lessons.stored_answers import recorded_answers
from lama_core.models.sources.catalog import find_model
from lama_core.models.sources.locations import is_here
from tools.lesson_answers import recorded

MODEL, SEED, N = "smollm2-135m", 11, 8


@pytest.mark.usefixtures("users_models")
def test_recorded_answers_are_those_of_the_model_itself() -> None:
    if not is_here(find_model(MODEL)):
        pytest.skip("SmolLM2 isn't installed")
    every = [
        request
        for lesson in list_lessons().lessons
        for step in lesson.steps
        for request in step.requests.values()
        if MODEL in request.models
    ]
    for request in Random(SEED).sample(every, N):
        one = recorded(request, MODEL)
        kept = recorded_answers()[MODEL, one.models, one.context, one.text]
        words = [item.token for item in one.blank.predictions]
        assert [item.token for item in kept.predictions] == words
        values = [item.log_prob for item in one.blank.predictions]
        assert [item.log_prob for item in kept.predictions] == pytest.approx(values, abs=1e-3)
        assert kept.describe_outside() == one.blank.describe_outside()
        rank = one.blank.gold.rank if one.blank.gold else None
        assert (kept.gold.rank if kept.gold else None) == rank
