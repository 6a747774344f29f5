"""Paraphrases by translation and by refilling, and refinement."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import save_model_folder

from lama_core.models.auxiliary.translator import HubTranslator, Translation
from lama_core.probes.prompts.refilling import (
    Refiller,
    paraphrase_by_translation,
    refine,
    repair_placeholders,
)
from lama_core.types import Fact

TEMPLATE = "The capital of [X] is [Y] ."
FACTS = [Fact("1", "France", "P36", "Paris", "TREx"), Fact("2", "Italy", "P36", "Rome", "TREx")]


class BookTranslator:
    """Translations written down."""

    def __init__(self, book: dict[str, list[tuple[str, float]]]) -> None:
        self.book = book

    def translate(self, texts: Sequence[str], n: int) -> list[tuple[Translation, ...]]:
        return [
            tuple(Translation(*entry) for entry in self.book.get(text, [])[:n]) for text in texts
        ]


THERE = BookTranslator({TEMPLATE: [("DE-1", -1.0), ("DE-2", -3.0), ("DE-3", -9.0)]})
BACK = BookTranslator(
    {
        "DE-1": [("[X]'s capital is [Y].", -2.0), (TEMPLATE, -0.1), ("The capital is [Y].", -0.2)],
        "DE-2": [("[ x ]'s capital is [ y ].", -0.5), ("[Y] heads [X].", -1.0)],
        "DE-3": [("never reached [X] [Y]", 0.0)],
    }
)


def test_round_trips_are_ranked_by_the_product_of_both_ways() -> None:
    found = paraphrase_by_translation(TEMPLATE, THERE, BACK, n_beams=2)
    assert [(one.template, one.log_prob, one.via) for one in found] == [
        ("[X]'s capital is [Y].", -3.0, "DE-1"),  # better than -3.5 through DE-2
        ("[Y] heads [X].", -4.0, "DE-2"),
    ]


def test_what_lost_a_placeholder_or_came_back_unchanged_is_dropped() -> None:
    found = paraphrase_by_translation(TEMPLATE, THERE, BACK, n_beams=7)
    assert "The capital is [Y]." not in [one.template for one in found]
    assert repair_placeholders("[ x ]  lives in [Y ].") == "[X] lives in [Y]."


def test_a_model_of_a_folder_gives_n_translations_best_first(tmp_path: Path) -> None:
    translator = HubTranslator(str(save_model_folder("t5", tmp_path)))
    found = translator.translate(["the capital", "born in"], 3)
    assert [len(one) for one in found] == [3, 3]
    for translations in found:
        scores = [one.log_prob for one in translations]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] < 0


@pytest.fixture(scope="module")
def refiller(tiny_model: Callable[..., Any]) -> Refiller:
    return Refiller(tiny_model("bert-uncased"), FACTS)


def test_a_refilled_words_probability_is_the_mean_over_the_pairs(
    tiny_model: Callable[..., Any],
) -> None:
    model = tiny_model("bert-uncased")
    both = Refiller(model, FACTS).log_probs(TEMPLATE, 1)
    each = [Refiller(model, [fact]).log_probs(TEMPLATE, 1) for fact in FACTS]
    np.testing.assert_allclose(np.exp(both), np.mean(np.exp(each), axis=0), rtol=1e-4)


LIKED = {
    "[X] _ capital in [Y] .": "is",
    "[X] is _ in [Y] .": "born",
    "[X] is born _ [Y] .": "in",
    "[X] _ born in [Y] .": "was",
    "[X] was _ in [Y] .": "born",
    "[X] was born _ [Y] .": "in",
    "[X] , _ in [Y] .": "born",
    "[X] , born _ [Y] .": "of",
    "[X] , _ of [Y] .": "born",
}


class LikingRefiller(Refiller):
    """Likes one word in each place, by the words around it."""

    def log_probs(self, template: str, place: int) -> np.ndarray:
        words = template.split()
        words[place] = "_"
        scores = np.full(len(self.columns.words), -9.0, np.float32)
        scores[self.columns.index[LIKED[" ".join(words)]]] = -1
        return scores


def test_the_papers_refinement_refills_words_and_signs_between_the_placeholders(
    tiny_model: Callable[..., Any],
) -> None:
    refiller = LikingRefiller(tiny_model("bert-uncased"), FACTS, form="paper")
    refined = refine("[X] , capital in [Y] .", refiller)
    assert refined == (
        "[X] , capital in [Y] .",
        "[X] is capital in [Y] .",
        "[X] is born in [Y] .",
        "[X] was born in [Y] .",  # the second round; the third changes nothing
    )
