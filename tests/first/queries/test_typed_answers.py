"""Answers that somebody thought of are ranked by the likelihood of the text with each."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from asking import ask_loaded
from written_statements import ByWord

from lama_core.errors import UserError
from lama_core.queries.answers import RankRequest, rank, rank_answers
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.statement_scores import make_statement

FIELDS: dict[str, Any] = {
    "text": "The capital of Norway is ___, they say.", "answers": ("Oslo", "New York", "Rome"),
}  # fmt: skip


def ranked(model: Any = None, limits: Limits = UNLIMITED, **changes: Any) -> Any:
    return ask_loaded(rank, [model or ByWord()], limits=limits, **FIELDS | changes).models[0]


def test_answers_are_ranked_by_the_sum_or_mean_with_probabilities_over_them_alone() -> None:
    found = ranked(part="answer")
    assert [(one.rank, one.answer, one.score) for one in found.answers] == [
        (1, "Oslo", -1.0), (2, "Rome", -2.0), (3, "New York", -2.0 - 3.0),
    ]  # fmt: skip
    weights = [math.exp(-1), math.exp(-2), math.exp(-5)]
    probs = [one.prob for one in found.answers]
    assert probs == pytest.approx([weight / sum(weights) for weight in weights], rel=1e-5)
    assert found.margin == -1.0 - -2.0
    mean = ranked(part="answer", aggregate="mean")
    assert [one.answer for one in mean.answers] == ["Oslo", "Rome", "New York"]
    assert [one.score for one in mean.answers] == [-1.0, -2.0, (-2.0 - 3.0) / 2]
    assert ranked(part="answer", gold="Rome").margin == -2.0 - -1.0, "behind the first"
    assert ranked(part="answer", gold="Oslo").margin == -1.0 - -2.0
    alone = ranked(answers=("Oslo",))
    assert alone.margin is None and alone.answers[0].prob == 1.0


def test_the_whole_statement_counts_all_tokens_and_conditional_cuts_the_end() -> None:
    whole = ranked().answers[0]
    assert whole.score == 5 * -0.5 + -1.0 + 2 * -0.5
    assert whole.statement == "The capital of Norway is Oslo, they say."
    assert whole.tokens.in_answer.sum() == 1
    cut = ranked(part="conditional").answers[0]
    assert (cut.score, cut.statement) == (-1.0, "The capital of Norway is Oslo")


def test_equal_scores_share_a_rank_and_are_named() -> None:
    changes: Any = {"part": "answer", "answers": ("Rome", "New", "Oslo"), "gold": "New"}
    answer = ask_loaded(rank, [ByWord()], **FIELDS | changes)
    (found,) = answer.models
    ranks = [(one.answer, one.rank, one.worst_rank) for one in found.answers]
    assert ranks == [("Oslo", 1, 1), ("Rome", 2, 3), ("New", 2, 3)], "in the order given"
    assert found.notes() == ["Equal scores share the ranks 2–3: Rome, New."]
    assert rank.kind.gold(answer.asked, found) == "Right answer New: rank 2–3"
    assert [one["worst_rank"] for one in answer.to_json()["models"][0]["answers"]] == [1, 3, 3]
    assert answer.frame()["worst_rank"].tolist() == [1, 3, 3]


def test_scores_that_differ_in_last_digits_are_equal_and_in_the_order_given() -> None:
    asked = RankRequest(**FIELDS | {"part": "answer", "answers": ("Rome", "Cairo", "Oslo")})
    query, answers, _ = asked.asked()
    statements = [make_statement(query, one, "answer") for one in answers]
    (one,) = ByWord().statement_log_probs(statements[:1], hiding="", scored="answer")
    tokens = [
        replace(one, log_probs=one.log_probs + np.float32(delta)) for delta in (0, 2e-6, 1e-2)
    ]
    found = rank_answers(answers, None, statements, tokens, asked.scoring)
    assert [(row.answer, row.ranks) for row in found] == [
        ("Oslo", "1"), ("Rome", "2–3"), ("Cairo", "2–3"),
    ]  # fmt: skip


def test_the_gold_answer_is_one_of_the_answers_as_written() -> None:
    changes: Any = {"answers": ("Kraków", "kraków"), "gold": "Krako\u0301w\u200b"}
    assert RankRequest(**FIELDS | changes).asked()[2] == "Kraków"
    with pytest.raises(UserError, match="not one of the answers"):
        RankRequest(**FIELDS | changes | {"gold": "KRAKÓW"}).check()
    with pytest.raises(UserError, match="occurs twice"):
        RankRequest(**FIELDS | {"answers": ("Kraków", "Krako\u0301w")}).check()


def test_an_answer_that_cannot_be_written_stands_last_and_takes_no_probability() -> None:
    found = ranked(ByWord(lost="Oslo"), gold="Oslo")
    last = found.answers[-1]
    assert (last.answer, last.rank, last.score, last.log_prob, last.prob) == (
        "Oslo", None, None, None, 0.0,
    )  # fmt: skip
    assert sum(one.prob for one in found.answers) == pytest.approx(1)
    assert found.margin is None, "the gold has no score"
    assert found.notes() == ["1 of the answers contains characters that this model can't write."]
    nothing = ranked(ByWord(lost=""))
    assert [one.rank for one in nothing.answers] == [None] * 3
    assert nothing.margin is None


def test_what_the_time_doesnt_allow_is_left_out_and_said() -> None:
    asked = {"text": "x " + "word " * 3000 + "is ___.", "answers": ("Oslo", "Rome", "Cairo")}
    # Of a model that reads a text once for each token, one of these is scored before a look.
    found = ranked(ByWord(kind="masked"), Limits(seconds=0.0), **asked, gold="Cairo")
    assert ([one.answer for one in found.answers], found.n_left_out) == (["Oslo"], 2)
    assert found.notes()[0].endswith("not scored, including the right one.")
    assert ranked(ByWord(kind="masked"), **asked).n_left_out == 0


def test_what_cannot_be_ranked_is_refused_in_a_sentence() -> None:
    changes: Any
    for changes, said in (
        ({"text": "The capital."}, "has no blank"),
        ({"text": "___ is in ___."}, "has 2 blanks, but answers are ranked at one"),
        ({"answers": ()}, "Answers are missing"),
        ({"answers": ("Oslo", "  ")}, "Answer 2 is empty"),
        ({"answers": ("New  York", " New York")}, "'New York' occurs twice"),
        ({"answers": tuple(map(str, range(201)))}, "There are 201 answers; the maximum is 200"),
        ({"answers": ("x" * 301,)}, "longer than 300 letters"),
        ({"gold": "Paris"}, "'Paris' is not one of the answers"),
    ):
        with pytest.raises(UserError, match=said):
            ranked(**changes)
    with pytest.raises(UserError, match="has 8 tokens for fake; the maximum here is 7"):
        ranked(limits=Limits(tokens=7), answers=("Oslo",))
    assert ranked(limits=Limits(tokens=8), answers=("Oslo",)).answers


def test_a_first_word_that_nothing_stands_before_is_refused() -> None:
    model = ByWord(scores_first=False)
    with pytest.raises(UserError, match="fake has no start token"):
        ranked(model, text="___ is the capital of Norway.")
    assert ranked(model).answers


def test_json_is_what_scripts_rely_on() -> None:
    changes = {"gold": "Rome", "part": "answer", "answers": ("Oslo", "Rome", "Cairo")}
    answer = ask_loaded(rank, [ByWord(lost="Cairo")], **FIELDS | changes)
    told = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    assert told["text"] == "The capital of Norway is [MASK], they say."
    assert told["answers"] == ["Oslo", "Rome", "Cairo"]
    assert (told["gold"], told["part"], told["aggregate"]) == ("Rome", "answer", "sum")
    (model,) = told["models"]
    assert (model["name"], model["kind"], model["margin"]) == ("fake", "causal", -1.0)
    assert "n_left_out" not in model and "precision" not in model
    assert [one["rank"] for one in model["answers"]] == [1, 2, None]
    assert model["answers"][0]["n_tokens"] == 1
    assert model["answers"][0]["tokens"][5] == {
        "token": "Oslo", "log_prob": -1.0, "in_answer": True,
    }  # fmt: skip
    assert model["answers"][0]["tokens"][0] == {
        "token": "The", "log_prob": None, "in_answer": False,
    }  # fmt: skip
