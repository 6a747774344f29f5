"""(Pseudo-)perplexities are those of a plain reference, and the pairs are ranked by them."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from asking import ask_loaded

from lama_core.errors import UserError
from lama_core.models.protocols import TokenScores
from lama_core.queries.pairs import (
    parse_pair,
    rank_pairs,
    score_analogies,
)

Models = Callable[..., Any]
QUERY = ("Paris", "France")
PAIRS = (("Rome", "Italy"), ("Italy", "Rome"), ("tokenization", "unhappily"))


def score_pairs(model: Any, query: Any, pairs: Any, **options: Any) -> Any:
    words = tuple(map(":".join, pairs))
    return ask_loaded(score_analogies, [model], ":".join(query), words, **options)


@pytest.mark.parametrize("family", ["bert-cased", "gpt2", "t5"])
@pytest.mark.parametrize("normalise", ["sum", "mean"])
def test_perplexities_are_of_the_log_probs_of_a_sentences_tokens(
    family: str, normalise: Any, tiny_model: Models
) -> None:
    model = tiny_model(family)
    pairs = score_pairs(model, QUERY, PAIRS, normalise=normalise).models[0]
    for pair in pairs.pairs:
        values = model.token_log_probs([pair.sentence])[0].log_probs
        known = values[~np.isnan(values)].astype(float)
        total, count = known.sum(), len(known)
        expected = -total if normalise == "sum" else -total / count
        assert pair.log_perplexity == pytest.approx(expected, abs=1e-4, rel=1e-6)  # of float32
        assert pair.perplexity == pytest.approx(math.exp(expected), rel=2e-4)
        assert pair.n_tokens == count
        assert pair.log_prob == pytest.approx(total, abs=1e-4, rel=1e-6)
        assert pair.mean_perplexity == pytest.approx(math.exp(-total / count), rel=2e-4)
    assert pairs.ranked[0].pair == PAIRS[np.argmin([pair.log_perplexity for pair in pairs.pairs])]
    (she, *_) = score_pairs(model, QUERY, PAIRS[:2], template="she-as").models[0].pairs
    assert she.sentence == "She explained to him that Paris is to France as Rome is to Italy."


def test_ties_keep_the_order_given() -> None:
    tokens = [TokenScores(("a",), np.array([value], np.float32)) for value in (-1, -2, -1)]
    ranked = rank_pairs([("a", "b"), ("c", "d"), ("e", "f")], ["", "", ""], tokens, "sum")
    assert [pair.rank for pair in ranked] == [1, 3, 2]


def test_a_perplexity_too_large_for_a_float_is_null_in_json(tiny_model: Models) -> None:
    long = " ".join(["teacher"] * 12)
    answer = score_pairs(tiny_model("gpt2"), (long, long), ((long, "b"), ("b", long)))
    printed = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    for pair in printed["models"][0]["pairs"]:
        assert pair["log_perplexity"] > 0
        assert pair["perplexity"] is None or pair["perplexity"] > 1
        assert pair["tokens"][0]["log_prob"] is None  # GPT-2 has no start token
        assert len(pair["tokens"]) == pair["n_tokens"] + 1


def test_bad_pairs_are_refused_in_one_sentence(tiny_model: Models) -> None:
    for pairs, message in (
        (PAIRS[:1], "Got 1 candidate pair"),
        ((PAIRS[0], PAIRS[1], PAIRS[0]), "Rome:Italy is given twice"),
        ((PAIRS[0], ("x" * 1000, "y")), "has 1,000 characters"),
        ((PAIRS[0], (" ", "y")), "Not a pair"),
    ):
        with pytest.raises(UserError, match=message):
            score_pairs(tiny_model("bert-cased"), QUERY, pairs)
    assert parse_pair(" New  York : United States ") == ("New York", "United States")


def test_the_right_pair_is_one_of_the_candidates_and_its_rank_is_said(tiny_model: Models) -> None:
    found = score_pairs(tiny_model("bert-cased"), QUERY, PAIRS, gold="Rome : Italy")
    rank = found.models[0].pairs[0].rank
    assert found.kind.gold(found.asked, found.models[0]) == f"Right pair Rome:Italy: rank {rank}"
    assert found.to_json()["gold"] == ["Rome", "Italy"]
    with pytest.raises(UserError, match="Rome:Peru is not one of the candidate pairs"):
        score_pairs(tiny_model("bert-cased"), QUERY, PAIRS, gold="Rome:Peru")
