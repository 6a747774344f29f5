"""Matching with right answers: values by hand, and the published rules."""

import pytest

from lama_core.queries.answer_matching import is_no_answer, match, token_f1


def test_exact_match_takes_the_best_answer() -> None:
    assert match("the United States.", ["America", "United States"]).exact_match
    assert not match("It is the United States.", ["America", "United States"]).exact_match


@pytest.mark.parametrize(
    ("text", "answer", "is_right"),
    [
        ("The capital is Paris.", "Paris", True),
        ("it is paris", "Paris", True),  # in lower case
        ("ROCK music", "rock", False),  # the rule tries no other case
        ("Parisian", "Paris", True),  # and no word boundary
        ("London", "Paris", False),
    ],
)
def test_an_answer_that_is_part_of_the_text_counts(text: str, answer: str, is_right: bool) -> None:
    assert match(text, [answer]).contains is is_right


@pytest.mark.parametrize(
    ("text", "answer", "is_right"),
    [
        ("The capital is Paris.", "Paris", True),
        ("ROCK music", "rock", True),  # in any case
        ("Parisian", "Paris", False),  # inside a longer word
        ("a Paris-born painter", "Paris", True),
        ("It is in the US", "U.S.", True),
        ("It is New-York", "New York", True),
        ("in Newer York", "New York", False),
        ("blood of type A", "A", True),  # an answer that is only an article
        ("blood of type O", "A", False),
        ("中国的首都是北京。", "北京", True),  # no spaces between words
        ("首都はParisです", "Paris", True),
        ("파리는 수도이다", "파리", True),  # a particle belongs to the word
        ("Москвадағы", "Москва", False),
        ("", "Paris", False),
        ("Paris", "", False),
    ],
)
def test_an_answer_is_right_in_whole_words(text: str, answer: str, is_right: bool) -> None:
    assert match(text, [answer]).right is is_right


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("The Nike brand is named after Nike.", False),
        ("nike.", True),  # the whole text
    ],
)
def test_an_answer_of_the_question_counts_only_as_the_whole_text(text: str, is_right: bool) -> None:
    question = "Who or what is the brand Nike named after?"
    assert match(text, ["Nike"], question).right is is_right
    assert match(text, ["Nike", "goddess"], question).right is (is_right or "goddess" in text)


def test_an_answer_inside_a_word_of_the_question_does_not_stand_in_it() -> None:
    assert match("It is Thor.", ["Thor"], "Who is thorium named after?").right
    assert not match("It is thorium.", ["Thor"], "Who is thorium named after?").right


def test_every_measure_compares_numbers_names_and_accents_as_texts() -> None:
    for text, answer in (("3.14", "314"), ("-5", "5"), ("C#", "C++"), ("10:30", "1030")):
        found = match(text, [answer])
        assert (found.right, found.exact_match, found.token_f1) == (False, False, 0.0)
    found = match("Bogota\u0301\u200b.", ["Bogotá"], "What is the capital of Colombia?")
    assert (found.right, found.exact_match, found.contains, found.token_f1) == (
        True,
        True,
        True,
        1.0,
    )
    assert match("C# or C", ["C#"], "C or C++?").right, "C# isn't in the question"


def test_token_f1_is_by_common_words() -> None:
    # Without the article: one common word of three and of one.
    assert token_f1("The capital is Paris", "Paris") == pytest.approx(2 * 1 / (3 + 1))
    assert token_f1("New York City", "New York") == pytest.approx(2 * 2 / (3 + 2))
    assert token_f1("York York", "York") == pytest.approx(2 * 1 / (2 + 1))
    assert token_f1("London", "Paris") == token_f1("", "Paris") == 0
    assert token_f1("It is 1.5", "5") == 0, "a number is one word"


def test_no_answer_is_empty_or_a_refusal() -> None:
    assert is_no_answer("") and is_no_answer("  ") and is_no_answer("I don’t know that.")
    assert not is_no_answer("Paris") and not is_no_answer("He was an aide.")
    assert match("I'm sorry, I cannot answer.", ["Paris"]).verdict == "no answer"
    assert match("I don't know, maybe Paris.", ["Paris"]).verdict == "match"
    assert match("London", ["Paris"]).verdict == "no match"
