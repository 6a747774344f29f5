"""Templates are filled as they are worded, and typed analogies are understood."""

import pytest

from lama_core.errors import UserError
from lama_core.queries.analogy_templates import (
    TEMPLATES,
    fill_template,
    make_analogy_question,
    parse_analogy,
    resolve_template,
)

WORDS = ("Paris", "France", "Rome", "Italy")


def test_the_six_templates_read_as_published() -> None:
    texts = {name: fill_template(TEMPLATES[name], WORDS).text for name in TEMPLATES}
    assert texts == {
        "to-what": "Paris is to France what Rome is to Italy",
        "to-as": "Paris is to France as Rome is to Italy",
        "rel-same": "The relation between Paris and France is the same as the relation between "
        "Rome and Italy",
        "what-to": "What Paris is to France, Rome is to Italy.",
        "she-as": "She explained to him that Paris is to France as Rome is to Italy.",
        "as-what": "As I explained earlier, what Paris is to France is essentially the same as "
        "what Rome is to Italy.",
    }


@pytest.mark.parametrize("blank", range(4))
@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_a_typed_sentence_gives_back_its_words_wherever_the_blank_is(name: str, blank: int) -> None:
    words = [*WORDS]
    words[blank] = "___"
    question = parse_analogy(fill_template(TEMPLATES[name], words).text)
    assert question.template == name
    assert question.blank == blank
    assert question.given == tuple(word for word in words if word != "___")
    assert question == make_analogy_question(words, name)


def test_words_and_sentences_are_taken_as_they_are() -> None:
    question = parse_analogy("Just as Paris belongs to France, Rome belongs to [MASK], he said.")
    assert (question.words, question.given) == (None, ()), "it follows no template"
    assert question.query.text("___").endswith("belongs to ___, he said.")
    assert parse_analogy("Paris is to France as Rome is to ___").query.parts[-1] == "."
    assert make_analogy_question(("Paris", "France", "Rome", None), "to-as").query.parts[-1] == "."
    question = make_analogy_question(("a[MASK]b", "France", "Rome", "___"))
    assert question.query.n_blanks == 1 and question.given[0] == "a[MASK]b"
    sentence = fill_template("[D]: [A] [B] [C]", ("[B]", "x", "[D]", "y"))
    assert sentence.text == "y: [B] x [D]" and sentence.spans[0] == (3, 6)


def test_bad_words_templates_and_sentences_are_refused() -> None:
    for words, message in (
        (("Paris", "France", "___"), "three words and a blank, but got 2"),
        (("Paris", "", "Rome", "___"), "A word is empty"),
        (("Paris", "France", "Rome", "Italy"), "All four words are given"),
        (("x" * 1000, "France", "Rome", "___"), "has 1,000 characters. Use at most 100"),
    ):
        with pytest.raises(UserError, match=message):
            make_analogy_question(words)
    for template, message in (
        ("[A] is to [B]", r"has no \[C\]"),
        ("[A] [A] [B] [C] [D]", r"more than one \[A\]"),
        ("to-whit", "Unknown template 'to-whit' .did you mean 'to-what'"),
        ("[A] [B] [C] [D]" + "x" * 600, "at most 500"),
    ):
        with pytest.raises(UserError, match=message):
            resolve_template(template)
    for text in ("a b ___ c ___", "", "no blank at all here"):
        with pytest.raises(UserError):
            parse_analogy(text)


def test_a_long_repetitive_sentence_is_read_at_once() -> None:
    assert parse_analogy("is to " * 3000 + "___").words is None
    assert parse_analogy("is to as " * 60 + "___").words is None
