"""Whole sentences are compared by the log-probability of their tokens."""

import json
from typing import Any

import pytest
from asking import ask_loaded
from written_statements import ByWord

from lama_core.errors import UserError
from lama_core.queries.sentences import SentencesRequest, differences, sentences
from lama_core.scoring.limits import UNLIMITED, Limits

PAIR = ("The keys are on Oslo.", "The keys are on New York.")


def scored(model: Any, *texts: str, limits: Limits = UNLIMITED) -> Any:
    return ask_loaded(sentences, [model], texts or PAIR, limits=limits).models[0]


def test_sums_means_and_differences_are_of_the_tokens() -> None:
    first, second = scored(ByWord()).sentences
    assert (first.total, first.mean, first.n_tokens) == (4 * -0.5 - 1, (4 * -0.5 - 1) / 5, 5)
    assert (second.total, second.mean) == (4 * -0.5 - 5, (4 * -0.5 - 5) / 6)
    assert (first.difference, first.mean_difference) == (0, 0)
    assert second.difference == -7 - -3
    assert second.mean_difference == pytest.approx(-7 / 6 - -3 / 5)
    assert second.tokens.in_answer.tolist() == [False] * 4 + [True] * 2


def test_what_differs_is_the_words_between_the_shared_ends() -> None:
    for texts, parts in (
        (("The keys are here.", "The keys is here."), ("are", "is")),
        (("a b c", "a c"), ("b", "")),
        (("a a", "a a a"), ("", "a")),
        (("One day.", "Two days."), ("One day.", "Two days.")),
        (("a b z", "a c z", "a b c z"), ("b", "c", "b c")),
    ):
        found = differences(texts)
        assert tuple(one.text for one in found) == texts
        assert tuple(one.text[one.start : one.end] for one in found) == parts


def test_what_cannot_be_written_or_has_no_scored_token_has_no_sum() -> None:
    lost = scored(ByWord(lost="Oslo"))
    assert (lost.sentences[0].total, lost.sentences[1].difference) == (None, None)
    assert lost.notes() == ["1 of the sentences contains characters that this model can't write."]
    bare = scored(ByWord(scores_first=False), "Oslo", "In Oslo")
    first, second = bare.sentences
    assert (first.total, first.mean, first.n_tokens) == (None, None, 0)
    assert (second.total, second.difference) == (-1.0, None)
    assert bare.notes()[0].startswith("1 of the sentences has only one token")


def test_what_cannot_be_compared_is_refused_in_a_sentence() -> None:
    for texts, said in (
        (("One.",), "number of sentences is 1: enter 2 to 20"),
        (("One.", " "), "Sentence 2 is empty"),
        (("One  day.", "One day."), "'One day.' occurs twice"),
        (("One.", "x" * 20_001), "Sentence 2 has 20,001 characters"),
    ):
        with pytest.raises(UserError, match=said):
            SentencesRequest(texts=texts).check()


def test_a_visitors_limits_hold() -> None:
    with pytest.raises(UserError, match="the maximum here is 4"):
        scored(ByWord(), limits=Limits(tokens=4))
    long = tuple(f"{word} " * 3000 for word in ("a", "b", "c", "d"))
    cut = scored(ByWord(kind="masked"), *long, limits=Limits(seconds=0.0))
    assert (len(cut.sentences), cut.n_left_out) == (1, 3)
    assert "the last 3 sentences were not scored" in cut.notes()[0]


def test_json_is_what_scripts_rely_on() -> None:
    answer = ask_loaded(sentences, [ByWord(lost="York")], PAIR)
    told = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    (model,) = told["models"]
    first, second = model["sentences"]
    assert (first["text"], first["sum"], first["difference"]) == (PAIR[0], -3.0, 0.0)
    assert (second["sum"], second["mean"], second["difference"]) == (None, None, None)
    assert second["tokens"][-1] == {"token": "York", "log_prob": -3.0, "differs": True}
