"""Which models read a text, by its script."""

import pytest

from lama_core.models.languages import language_note
from lama_core.models.sources.catalog import find_model, known_models

ENGLISH = find_model("minilm-mlm")
MANY = find_model("xlm-roberta-base")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The capital of France is .", ""),
        ("La capitale de la France est .", ""),  # the script alone is looked at
        ("I love 🙂 and .", ""),
        ("1 + 1 = ", ""),
        ("عاصمة فرنسا هي .", "Arabic script"),
        ("法国的首都是。", "Chinese characters"),
        ("日本の首都はです", "Japanese"),
        ("Столица Франции", "Cyrillic script"),
        ("😀😀  😀", "no words"),
    ],
)
def test_a_text_in_another_script_names_the_models_that_read_english(text: str, said: str) -> None:
    note = language_note(text, [ENGLISH, MANY])
    assert (said in note) if said else note == ""
    assert not said or (ENGLISH.title in note and MANY.title not in note)
    assert language_note(text, [MANY]) == ""


def test_the_catalog_gives_the_languages_of_the_models_that_come_with_the_project() -> None:
    languages = {entry.name: entry.languages for entry in known_models()}
    assert languages["minilm-mlm"] == languages["smollm2-135m"] == "English"
    assert languages["xlm-roberta-base"] == "100 languages"
