"""(Pseudo-)perplexities are those of a plain reference, and the pairs are ranked by them."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, sentinel_of

from lama_core.errors import UserError
from lama_core.models.protocols import TokenScores
from lama_core.probes.analogy.plan import AnalogyRequest
from lama_core.probes.analogy.score import (
    log_perplexity,
    parse_pair,
    rank_pairs,
    score_pairs,
    total_log_prob,
)

Models = Callable[..., Any]
QUERY = ("Paris", "France")
PAIRS = (("Rome", "Italy"), ("Italy", "Rome"), ("tokenization", "unhappily"))


def reference(plain: tuple[Any, Any], kind: str, text: str) -> tuple[float, int]:
    """Sum of the log-probabilities and their number: one text, one token at a time."""
    model, tokenizer = plain
    body = tokenizer(text, add_special_tokens=False)["input_ids"]
    ids = tokenizer(text)["input_ids"]
    start = next(n for n in range(len(ids)) if ids[n : n + len(body)] == body)
    total, count = 0.0, 0
    for number in range(start, start + len(body)):
        if kind == "causal" and number == 0:
            continue
        row = list(ids)
        inputs: dict[str, Any] = {}
        at = number
        if kind == "masked":
            row[number] = tokenizer.mask_token_id
        elif kind == "seq2seq":
            row[number] = sentinel_of(tokenizer)
            inputs, at = {"labels": torch.tensor([[row[number], ids[number]]])}, 1
        else:
            row, at = row[:number], number - 1
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([row]), **inputs).logits[0]
        total += float(logits[at].log_softmax(-1)[ids[number]])
        count += 1
    return total, count


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("normalise", ["sum", "mean"])
def test_perplexities_equal_a_plain_unbatched_reference(
    family: str, normalise: Any, tiny_model: Models, plain_model: Models
) -> None:
    kind = FAMILIES[family].kind
    answer = score_pairs([tiny_model(family)], QUERY, PAIRS, normalise=normalise)
    logs = []
    for pair in answer.models[0].pairs:
        total, count = reference(plain_model(family), kind, pair.sentence)
        expected = -total if normalise == "sum" else -total / count
        assert pair.log_perplexity == pytest.approx(expected, abs=1e-4, rel=1e-6)  # of float32
        assert pair.perplexity == pytest.approx(math.exp(expected), rel=2e-4)
        assert pair.n_scored == count
        assert pair.total == pytest.approx(total, abs=1e-4, rel=1e-6)
        assert pair.mean_perplexity == pytest.approx(math.exp(-total / count), rel=2e-4)
        logs.append(expected)
    best = answer.models[0].ranked[0]
    assert best.log_perplexity == min(pair.log_perplexity for pair in answer.models[0].pairs)
    assert best.pair == PAIRS[int(np.argmin(logs))]


def test_the_sentences_are_the_template_filled(tiny_model: Models) -> None:
    answer = score_pairs([tiny_model("bert-cased")], QUERY, PAIRS[:2], template="she-as")
    assert [pair.sentence for pair in answer.models[0].pairs] == [
        "She explained to him that Paris is to France as Rome is to Italy.",
        "She explained to him that Paris is to France as Italy is to Rome.",
    ]


def test_ties_keep_the_order_given() -> None:
    tokens = [TokenScores(("a",), np.array([value], np.float32)) for value in (-1, -2, -1)]
    ranked = rank_pairs([("a", "b"), ("c", "d"), ("e", "f")], ["", "", ""], tokens, "sum")
    assert [pair.rank for pair in ranked] == [1, 3, 2]


def test_a_token_that_nothing_stands_before_is_not_scored() -> None:
    scores = TokenScores(("a", "b", "c"), np.array([np.nan, -1, -3], np.float32))
    assert total_log_prob(scores) == (-4.0, 2)
    assert log_perplexity(-4.0, 2, "sum") == 4.0
    assert log_perplexity(-4.0, 2, "mean") == 2.0


def test_a_perplexity_too_large_for_a_float_is_null_in_json(tiny_model: Models) -> None:
    long = " ".join(["teacher"] * 12)
    answer = score_pairs([tiny_model("gpt2")], (long, long), ((long, "b"), ("b", long)))
    printed = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    for pair in printed["models"][0]["pairs"]:
        assert pair["log_perplexity"] > 0
        assert pair["perplexity"] is None or pair["perplexity"] > 1
        assert pair["tokens"][0]["log_prob"] is None  # GPT-2 has no start token
        assert len(pair["tokens"]) == pair["n_tokens"] + 1


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (PAIRS[:1], "Got 1 candidate pair"),
        ((), "Got 0 candidate pairs"),
        ((PAIRS[0], PAIRS[1], PAIRS[0]), "Rome:Italy is given twice"),
        ((PAIRS[0], ("x" * 1000, "y")), "has 1,000 characters"),
        ((PAIRS[0], (" ", "y")), "A word is empty"),
    ],
)
def test_bad_pairs_are_refused_in_one_sentence(
    pairs: Any, message: str, tiny_model: Models
) -> None:
    with pytest.raises(UserError, match=message):
        score_pairs([tiny_model("bert-cased")], QUERY, pairs)


@pytest.mark.parametrize("text", ["Paris", "Paris:", ":France", " : "])
def test_a_pair_without_two_words_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="Not a pair"):
        parse_pair(text)


def test_pairs_and_normalisations_are_read() -> None:
    assert parse_pair(" New  York : United States ") == ("New York", "United States")
    assert AnalogyRequest(dataset="", normalise="mean").options.normalise == "mean"
    with pytest.raises(UserError, match="did you mean 'mean'"):
        _ = AnalogyRequest(dataset="", normalise="meen").options
