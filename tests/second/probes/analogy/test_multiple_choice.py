"""Multiple-choice questions are answered as `analogy score` ranks the choices of each."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import ask_loaded
from calling import told

import lama_core as lama
from lama_core.datasets.dataset import ChoiceQuestion, ReadReport, make_questions
from lama_core.models.protocols import TokenScores
from lama_core.probes.analogy.multiple_choice import (
    QuestionsRequest,
    Share,
    answer_questions,
    most_frequent,
)
from lama_core.queries.pairs import score_analogies

PAIRS = (
    ("Paris", "France"), ("Rome", "Italy"), ("teacher", "painters"), ("Tokyo", "Japan"),
    ("painter", "singers"), ("Oslo", "Norway"), ("Italy", "Rome"),
)  # fmt: skip
QUESTIONS = tuple(  # with 3, 4, 5, 3, 4, ... choices
    ChoiceQuestion(
        stem, (*PAIRS[n + 1 :], *PAIRS[:n])[: 3 + n % 3], n % 3, "odd" if n % 2 else "even"
    )
    for n, stem in enumerate(PAIRS)
)
DATA = make_questions("made-up", QUESTIONS, ReadReport())


@pytest.mark.parametrize("family", ["bert-cased", "gpt2", "t5"])
@pytest.mark.parametrize("normalise", ["sum", "mean"])
def test_the_share_right_is_that_of_scoring_each_question_alone(
    family: str, normalise: Any, tiny_model: Callable[..., Any]
) -> None:
    model = tiny_model(family)
    request = QuestionsRequest("", template="to-as", normalise=normalise)
    (found,) = answer_questions([model], DATA, request).models
    n_right = 0
    for question, answer in zip(QUESTIONS, found.answers, strict=True):
        stem, choices = ":".join(question.stem), tuple(map(":".join, question.choices))
        options = {"template": "to-as", "normalise": normalise}
        alone = ask_loaded(score_analogies, [model], stem, choices, **options).models[0]
        assert answer.chosen.pair == alone.ranked[0].pair
        assert answer.rank == alone.pairs[question.answer].rank
        n_right += alone.ranked[0].pair == question.choices[question.answer]
    assert found.shares[None] == Share(n_right, len(QUESTIONS))
    assert found.shares["even"].n_right + found.shares["odd"].n_right == n_right
    assert (found.shares["even"].n, found.shares["odd"].n) == (4, 3)


class Indifferent:
    """A model to which all sentences are equally likely."""

    name, kind, precision, device = "indifferent", "causal", "fp32", "cpu"

    def token_log_probs(self, texts: Sequence[str], *, begins: bool = False) -> list[TokenScores]:
        return [TokenScores(("a",), np.array([-1], np.float32)) for _ in texts]


def test_the_earlier_choice_wins_a_tie() -> None:
    answer = answer_questions([Indifferent()], DATA, QuestionsRequest(""))  # type: ignore[list-item]
    (found,) = answer.models
    assert [one.rank for one in found.answers] == [question.answer + 1 for question in QUESTIONS]
    assert found.shares[None].n_right == sum(question.answer == 0 for question in QUESTIONS)
    limited = QuestionsRequest("", limit=2)
    assert answer_questions([Indifferent()], DATA, limited).models[0].shares[None] == Share(1, 2)  # type: ignore[list-item]


def test_the_baselines_are_random_and_the_most_frequent_words() -> None:
    answer = answer_questions([], DATA, QuestionsRequest(""))
    assert answer.random == pytest.approx(np.mean([1 / (3 + n % 3) for n in range(7)]))
    rare, common = ("potter", "statue"), ("man", "time")
    assert most_frequent(ChoiceQuestion(("a", "b"), (rare, common), 0)) == 1
    assert most_frequent(ChoiceQuestion(("a", "b"), (("the", "xqzzv"), rare), 0)) == 1
    assert most_frequent(ChoiceQuestion(("a", "b"), (("xqzzv", "a"), ("xqzzw", "a")), 1)) == 0
    right = [most_frequent(question) == question.answer for question in QUESTIONS]
    assert answer.frequent[None] == Share(sum(right), 7)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "made-up.jsonl"
    rows = [
        {"stem": one.stem, "choice": one.choices, "answer": one.answer, "prefix": one.group}
        for one in QUESTIONS
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"stem": ["a", "b"]}]))
    return path


@pytest.mark.usefixtures("home")
def test_command_and_function_give_the_same_answers(file: Path) -> None:
    words = ("analogy", "questions", "--dataset", str(file), "--limit", "5")
    found = told(*words)
    assert found["n_excluded"] == 1
    assert found["random"] == pytest.approx((1 / 3 + 1 / 4 + 1 / 5 + 1 / 3 + 1 / 4) / 5)
    (model,) = found["models"]
    assert model["n_questions"] == len(model["questions"]) == 5
    assert model["low"] < model["share"] < model["high"]
    assert [group["group"] for group in model["groups"]] == ["even", "odd"]
    frame = lama.analogy_questions(str(file), limit=5)
    assert frame["is_right"].sum() == model["n_right"] == round(model["share"] * 5)
    assert frame["rank"].tolist() == [one["rank"] for one in model["questions"]]
    assert frame["frequent_is_right"].sum() == found["frequency"]["n_right"]
    for one in model["questions"]:
        ranked = sorted(one["choices"], key=lambda choice: choice["log_perplexity"])
        assert [choice["rank"] for choice in ranked] == [*range(1, len(ranked) + 1)]
        assert ranked[0]["pair"] == one["chosen"]
