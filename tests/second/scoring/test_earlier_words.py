"""Runs whose words may have other tokens than in earlier versions have another identity."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from lama_core.candidates.columns import Candidates
from lama_core.datasets.dataset import ReadReport, make_dataset
from lama_core.scoring.earlier_words import may_have_other_tokens
from lama_core.scoring.prompt_choice import PromptSet
from lama_core.types import Fact, Relation

WORDS = Candidates("common", ("Paris",))


@pytest.mark.parametrize(
    ("family", "template", "obj", "words", "changes"),
    [
        ("bert-uncased", "[X] is [Y].", "Paris", WORDS, False),
        ("bert-uncased", "[X] ([Y])", "Paris", WORDS, False),
        ("bert-uncased", "[X] is [Y].", "Bogotá", WORDS, True),
        ("bert-uncased", "[X] is [Y]s.", "Paris", WORDS, True),
        ("bert-uncased", "[X] is [Y].", "Paris", Candidates("mine", ("São",)), True),
        ("gpt2", "[X] is [Y].", "Paris", WORDS, False),
        ("gpt2", "[X] costs $[Y].", "Paris", WORDS, True),
        ("gpt2", "[Y] is [X].", "Paris", WORDS, True),
        ("deberta-v3", "[X] is [Y] .", "Paris", WORDS, False),
        ("deberta-v3", "[X] is [Y].", "Paris", WORDS, True),
    ],
)
def test_a_run_is_marked_if_its_words_may_have_other_tokens(
    tiny_model: Callable[..., Any],
    family: str,
    template: str,
    obj: str,
    words: Candidates,
    changes: bool,
) -> None:
    prompts = PromptSet("mine", templates=(("P1", (template,)),))
    facts = [Fact("1", "France", "P1", obj, "x")]
    dataset = make_dataset("x", [Relation("P1", "x")], facts, ReadReport())
    model = tiny_model(family)
    assert may_have_other_tokens(dataset, ["P1"], prompts, words, model) is changes
    server = SimpleNamespace(vocabulary=object(), kind=model.kind)
    assert not may_have_other_tokens(dataset, ["P1"], prompts, words, server)
