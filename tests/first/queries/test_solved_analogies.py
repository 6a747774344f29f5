"""Solving gives what the Cloze page gives, less the query's own words, beside vector arithmetic."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lama_core.candidates.columns import Candidates
from lama_core.candidates.lists import common_vocabulary
from lama_core.candidates.spelling import AFTER_SPACE
from lama_core.errors import UserError
from lama_core.queries.analogy import (
    Solution,
    SolveRequest,
    arithmetic_scores,
    note_on,
    solve,
    vector_answer,
)
from lama_core.queries.analogy_templates import make_analogy_question, parse_analogy
from lama_core.queries.blank_answers import query_model

Models = Callable[..., Any]
QUESTION = make_analogy_question(("Paris", "France", "Rome", "___"), "to-as")
FAMILIES = ("bert-cased", "bert-uncased", "roberta", "gpt2", "llama")


def solved(model: Any, question: Any, candidates: Candidates, **options: Any) -> Solution:
    return solve(model, question, candidates, SolveRequest((), **options))


def words_of(answer: Any) -> list[str]:
    return [item.token for item in answer.blanks[0].predictions]


@pytest.mark.parametrize("family", FAMILIES)
def test_kept_query_words_give_the_cloze_answer(family: str, tiny_model: Models) -> None:
    model = tiny_model(family)
    candidates = common_vocabulary([model.vocabulary])
    solution = solved(model, QUESTION, candidates, keep_query_words=True, gold="Italy")
    assert solution.answer == query_model(model, QUESTION.query, candidates, gold="Italy")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["common", "full"])
def test_removed_query_words_are_gone_and_the_others_keep_their_order(
    family: str, name: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    candidates = (
        common_vocabulary([model.vocabulary]) if name == "common" else Candidates("full", None)
    )
    kept, removed = (
        words_of(solved(model, QUESTION, candidates, keep_query_words=keep, top_k=50).answer)
        for keep in (True, False)
    )
    query = {"paris", "france", "rome"}
    assert not {word.lower() for word in removed} & query
    left = [word for word in kept if word.lower() not in query]
    assert removed[: len(left)] == left


def test_the_gold_moves_up_by_the_words_that_are_removed(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    candidates = Candidates("list", ("Paris", "France", "Rome", "Italy", "Oslo", "Peru"))
    ranks = {}
    for keep in (True, False):
        answer = solved(model, QUESTION, candidates, keep_query_words=keep, gold="Italy")
        gold = answer.answer.blanks[0].gold
        assert gold is not None
        ranks[keep] = gold.rank
        every = words_of(answer.answer)
        if keep:
            above = every[: every.index("Italy")] if "Italy" in every else every
            n_query = len({"Paris", "France", "Rome"} & set(above))
    assert ranks[False] == ranks[True] - n_query


def test_candidates_of_query_words_only_are_refused(tiny_model: Models) -> None:
    with pytest.raises(UserError, match="contain only words of the query"):
        solved(tiny_model("bert-cased"), QUESTION, Candidates("list", ("Paris", "Rome")))


def test_3cosmul_is_the_published_formula() -> None:
    unit = np.eye(3, dtype=np.float32)
    vectors = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    # Cosines of the first candidate: 1, 0, 0, moved to [0, 1]: 1, 1/2, 1/2.
    expected = [1 * 0.5 / 0.501, 0.5 * 1 / 0.501, 0.5 * 0.5 / 1.001]
    np.testing.assert_allclose(arithmetic_scores(unit, vectors, "3CosMul"), expected, rtol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_arithmetic_equals_its_formula_on_the_models_own_embeddings(
    family: str, tiny_model: Models
) -> None:
    model = tiny_model(family)
    columns = common_vocabulary([model.vocabulary]).columns(model.vocabulary)
    found = vector_answer(model, QUESTION, columns, "3CosAdd", top_k=3, gold=columns.words[0])
    table = model.model.get_input_embeddings().weight.detach().numpy()

    def unit(rows: list[int]) -> np.ndarray:
        mean = table[rows].mean(0)
        return mean / np.linalg.norm(mean)

    a, b, c = (unit(list(model.vocabulary.pieces(word))) for word in ("Paris", "France", "Rome"))
    aim = b - a + c
    ids = columns.table(AFTER_SPACE).ids[:, 0]
    scores = [float(unit([int(number)]) @ aim / np.linalg.norm(aim)) for number in ids]
    order = np.argsort(-np.array(scores), kind="stable")
    assert [item.token for item in found.predictions] == [columns.words[i] for i in order[:3]]
    assert found.predictions[0].score == pytest.approx(max(scores), abs=1e-5)
    assert found.gold_rank == 1 + list(order).index(0)


def test_a_free_sentence_is_answered_without_arithmetic(tiny_model: Models) -> None:
    model = tiny_model("bert-cased")
    question = parse_analogy("Paris belongs to France just like Rome belongs to ___.")
    solution = solved(model, question, common_vocabulary([model.vocabulary]))
    assert len(solution.answer.blanks[0].predictions) == 5
    assert solution.baselines == ()
    assert "none of the six templates" in note_on(question)
