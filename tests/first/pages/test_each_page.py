"""Each page, and each view of a page that has several, opens by its address and draws."""

import pytest
from opening import SCREENS, html, open_page, said

from lama_core.lessons.lesson import bundled_lessons
from pages.ui.prompts.view import VIEWS
from pages.ui.shared import share

PROMPTS = [("results", {"tab": "Prompts", "prompts_view": view}) for view in VIEWS]
STEPS = [
    ("lessons", {"lesson": path.stem, "step": step})
    for path in sorted(bundled_lessons().iterdir())[:2]
    for step in ("1", "2", "3", "4")
]


@pytest.mark.parametrize(("page", "params"), [*SCREENS, *PROMPTS, *STEPS])
def test_it_draws_without_an_error(page: str, params: dict[str, str]) -> None:
    app = open_page(page, **params)
    assert not app.error
    assert app.header and len(said(app) + html(app)) > 100
    assert len(f"https://lama.example{app.code[0].value}") <= share.LONG
