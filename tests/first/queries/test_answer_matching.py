"""Matching with right answers: values by hand, and the published rules."""

import pytest

from lama_core.queries.answer_matching import is_no_answer, match, token_f1


@pytest.mark.parametrize(
    ("text", "answer", "contains", "right"),
    [
        ("The capital is Paris.", "Paris", True, True),
        ("it is paris", "Paris", True, True),  # contained: also in lower case or capitalised
        ("Rock music", "rock", True, True),
        ("ROCK music", "rock", False, True),  # right: in any case
        ("Parisian", "Paris", True, False),  # inside a longer word
        ("in Newer York", "New York", False, False),
        ("blood of type A", "A", True, True),  # an answer that is only an article
        ("中国的首都是北京。", "北京", True, True),  # no spaces between words
        ("파리는 수도이다", "파리", True, True),  # a particle belongs to the word
        ("Москвадағы", "Москва", True, False),
        ("", "Paris", False, False),
    ],
)
def test_an_answer_is_contained_or_right_in_whole_words(
    text: str, answer: str, contains: bool, right: bool
) -> None:
    found = match(text, [answer])
    assert (found.contains, found.right) == (contains, right)
    assert not match(text, [""]).right


def test_an_answer_of_the_question_counts_only_as_the_whole_text() -> None:
    question = "Who or what is the brand Nike named after?"
    for text, is_right in (("The Nike brand is named after Nike.", False), ("nike.", True)):
        assert match(text, ["Nike"], question).right is is_right
    assert match("The goddess of victory", ["Nike", "goddess"], question).right
    thorium = "Who is thorium named after?"
    assert match("It is Thor.", ["Thor"], thorium).right, "it is only inside a word of the question"
    assert not match("It is thorium.", ["Thor"], thorium).right


def test_every_measure_compares_numbers_names_and_accents_as_texts() -> None:
    for text, answer in (("3.14", "314"), ("-5", "5"), ("C#", "C++"), ("10:30", "1030")):
        found = match(text, [answer])
        assert (found.right, found.exact_match, found.token_f1) == (False, False, 0.0)
    found = match("Bogota\u0301\u200b.", ["Bogotá"], "What is the capital of Colombia?")
    assert (found.right, found.exact_match, found.contains, found.token_f1) == (True, True, True, 1)
    united = [match(t, ["America", "United States"]) for t in ("the United States.", "It is it.")]
    assert [one.exact_match for one in united] == [True, False], "of the best answer"
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
