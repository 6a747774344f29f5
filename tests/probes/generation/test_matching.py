"""Matching with right answers: values by hand, and the published rules."""

import pytest

from lama_core.probes.generation.matching import is_no_answer, match, normalised, token_f1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Beatles!", "beatles"),
        ("a U.S. city", "us city"),
        ("an apple; the pear", "apple pear"),
        ("Athens", "athens"),  # no article inside a word
    ],
)
def test_texts_are_normalised_as_for_squad(text: str, expected: str) -> None:
    assert normalised(text) == expected


def test_exact_match_takes_the_best_answer() -> None:
    assert match("the United States.", ["America", "United States"]).exact_match
    assert not match("It is the United States.", ["America", "United States"]).exact_match


@pytest.mark.parametrize(
    ("text", "answer", "is_right"),
    [
        ("The capital is Paris.", "Paris", True),
        ("it is paris", "Paris", True),  # in lower case
        ("Rock music", "rock", True),  # capitalised
        ("ROCK music", "rock", False),  # the rule tries no other case
        ("Parisian", "Paris", True),  # and no word boundary
        ("London", "Paris", False),
    ],
)
def test_an_answer_that_is_part_of_the_text_counts(text: str, answer: str, is_right: bool) -> None:
    assert match(text, [answer]).contains is is_right


def test_token_f1_is_by_common_words() -> None:
    # Without the article: one common word of three and of one.
    assert token_f1("The capital is Paris", "Paris") == pytest.approx(2 * 1 / (3 + 1))
    assert token_f1("New York City", "New York") == pytest.approx(2 * 2 / (3 + 2))
    assert token_f1("York York", "York") == pytest.approx(2 * 1 / (2 + 1))
    assert token_f1("London", "Paris") == token_f1("", "Paris") == 0


def test_no_answer_is_empty_or_a_refusal() -> None:
    assert is_no_answer("") and is_no_answer("  ") and is_no_answer("I don’t know that.")
    assert not is_no_answer("Paris")
    assert match("I'm sorry, I cannot answer.", ["Paris"]).verdict == "no answer"
    assert match("I don't know, maybe Paris.", ["Paris"]).verdict == "match"
    assert match("London", ["Paris"]).verdict == "no match"
