"""The sentence that the app proposes for a relation."""

import pytest

from lama_core.datasets import load_dataset
from lama_core.datasets.proposed_sentences import proposed_template

KNOWN = load_dataset("starter").relations


@pytest.mark.parametrize("name", ["P1376", "wdt:P1376", "P1376 (capital of)", "capitalOf"])
def test_a_propertys_id_or_label_gives_its_template(name: str) -> None:
    assert proposed_template(name, "", KNOWN) == "[X] is the capital of [Y]."


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("makes sound", "[X] makes the sound [Y]."),
        ("barks at", "[X] barks at [Y]."),
        ("born in", "[X] was born in [Y]."),
        ("situated_in", "[X] is situated in [Y]."),
        ("mother of", "[X] is the mother of [Y]."),
        ("hasColor", "The color of [X] is [Y]."),
        ("national anthem", "The national anthem of [X] is [Y]."),
        ("is cousin of", "[X] is cousin of [Y]."),
    ],
)
def test_the_form_of_the_words_gives_the_sentence(name: str, sentence: str) -> None:
    assert proposed_template(name, "", KNOWN) == sentence


@pytest.mark.parametrize(
    "name", ["P9999", "languages", "parents of", "Correct answer", "r1", "of", "invented", ""]
)
def test_nothing_is_proposed_if_no_sentence_is_likely(name: str) -> None:
    assert proposed_template(name, "", KNOWN) == ""


def test_the_label_comes_before_an_unknown_id() -> None:
    assert proposed_template("P9999", "mother of", KNOWN) == "[X] is the mother of [Y]."
