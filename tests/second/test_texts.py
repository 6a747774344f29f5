"""When texts are equal and when one contains the other: cases after public reports."""

from unicodedata import normalize

import pytest

from lama_core.texts import answer_key, contains_answer, word_key, written_key


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Bogotá", "Bogota\u0301"),
        ("한국", normalize("NFD", "한국")),
        ("New York", " New\u00a0\n York\u200b"),
        ("Zürich", "Zü\u00adrich"),  # soft hyphen
        ("Paris", "\u202bPa\u200dris\u202c"),  # marks of direction, zero-width joiner
        ("❤", "❤\ufe0f"),
    ],
)
def test_texts_that_look_the_same_are_equal_as_written(a: str, b: str) -> None:
    assert written_key(a) == written_key(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Straße", "STRASSE"),
        ("Οδυσσέας", "ΟΔΥΣΣΈΑΣ"),  # sigma at a word's end
        ("İstanbul", "istanbul"),
        ("Finland", "ﬁnland"),  # ligature
        ("Paris 12", "Ｐａｒｉｓ　１２"),  # full width
        ("محمد", "مُحَمَّد"),  # vowel points
        ("١٢", "12"),
        ("H2O", "H₂O"),
    ],
)
def test_the_same_word_in_another_spelling_is_equal(a: str, b: str) -> None:
    assert word_key(a) == word_key(b) != ""
    assert written_key(a) != written_key(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("C", "C++"),
        ("Diyarbakır", "Diyarbakir"),
        ("أب", "اب"),  # hamza is a letter
        (
            "🏴\U000e0067\U000e0062\U000e0065\U000e007f",
            "🏴\U000e0067\U000e0062\U000e0073\U000e007f",
        ),
        ("3.14", "314"),
        ("-5", "5"),
        ("vitamin A", "vitamin C"),
    ],
)
def test_other_words_and_numbers_are_not_equal(a: str, b: str) -> None:
    assert answer_key(a) != answer_key(b)
    assert not contains_answer(f"It is {b}.", a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("U.S.", "us"),
        ("1,000", "1000"),
        ("1\u202f000 000", "1,000,000"),
        ("−5", "–5"),
        ("《红楼梦》", "红楼梦"),
        ("The University of the Arts", "university of Arts"),
    ],
)
def test_answers_are_equal_without_punctuation_and_articles(a: str, b: str) -> None:
    assert answer_key(a) == answer_key(b)
    assert contains_answer(a, b) and contains_answer(b, a)


@pytest.mark.parametrize(
    ("text", "answer", "is_in"),
    [
        ("It has 1.5 million inhabitants.", "5", False),
        ("1,000", "000", False),
        ("over 1,000 people", "1000", True),
        ("1½", "1", False),
        ("٣٫١٤", "14", False),
        ("It is −5 °C.", "5", False),
        ("It is −5 °C.", "-5", True),
        ("The war of 1914 – 1918 was long", "1914–1918", True),
        ("COVID-19", "19", True),
        ("It costs $5, or 5%.", "5", True),
        ("C++, of course", "C", False),
        ("答案是北京", "北京", True),
        ("as an Air Traffic controller", "as an AI", False),
        ("十三", "三", False),
        ("ปารีส", "ปาร", False),  # a vowel sign belongs to its letter
        ("scan and others", "sc d", False),  # articles are words, not letters
        ("take vitamin a daily", "Vitamin A", True),
    ],
)
def test_an_answer_is_in_a_text_in_whole_words_and_numbers(
    text: str, answer: str, is_in: bool
) -> None:
    assert contains_answer(text, answer) is is_in
