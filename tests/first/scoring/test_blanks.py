"""Texts with blanks, as users type them and as templates make them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lama_core.errors import UserError
from lama_core.scoring.blanks import (
    MAX_BLANKS,
    MAX_CHARACTERS,
    fill,
    follows_only_punctuation,
    parse_query,
)
from lama_core.types import Prompt, Query

BLANKS = ("[MASK]", "<mask>", "[Y]", "___", "________", "[mask]")
words = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8)
texts = st.lists(words, min_size=1, max_size=6).map(" ".join)


@pytest.mark.parametrize("blank", BLANKS)
def test_every_way_to_write_a_blank_is_read(blank: str) -> None:
    assert parse_query(f"Paris is in {blank}.") == Query(("Paris is in ", "."))


@given(texts, st.sampled_from(("\t", "\n", "\r\n", "  ", " \u2003 ")))
def test_runs_of_white_space_are_one_space(text: str, space: str) -> None:
    typed = f"{text} [MASK] {text}"
    assert parse_query(typed.replace(" ", space)) == parse_query(typed)


@pytest.mark.parametrize("text", ("", " ", "\n\t"))
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="The text is empty"):
        parse_query(text)


@pytest.mark.parametrize("text", ("Paris is in France.", "Paris is in __.", "[ MASK ]"))
def test_a_text_without_a_blank_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="has no blank"):
        parse_query(text)


@pytest.mark.parametrize(
    "template", ("[X]의 수도는 [Y]이다.", "[X]的首都是[Y]。", "[X] est l’[Y]", "[X] is Fran[Y]ce.")
)
def test_a_typed_text_is_the_query_of_the_same_template(template: str) -> None:
    assert parse_query(template.replace("[X]", "Peru")) == fill(template, "Peru")


def test_a_text_of_a_megabyte_is_refused_by_its_length() -> None:
    text = "x " * 500_000 + "[MASK]"
    with pytest.raises(UserError, match=f"1,000,006 characters; the maximum is {MAX_CHARACTERS:,}"):
        parse_query(text)


def test_too_many_blanks_are_refused() -> None:
    with pytest.raises(UserError, match=f"9 blanks; the maximum is {MAX_BLANKS}"):
        parse_query("[MASK] " * 9)


@pytest.mark.parametrize("text", ("([MASK])", '"[MASK]"', "-[MASK]-", "🙂[MASK]🙂", "שלום [MASK]!"))
def test_punctuation_and_emoji_may_touch_a_blank(text: str) -> None:
    assert parse_query(text).n_blanks == 1


@pytest.mark.parametrize("subject", ("[Y]", "[MASK]", "___", "[X]", r"\1 {0} %s"))
def test_only_the_templates_own_blank_counts(subject: str) -> None:
    query = fill(Prompt("[Y] is the capital of [X] ."), subject)
    assert query == Query(("", f" is the capital of {subject} ."))


@pytest.mark.parametrize(
    "template", ("X was born", "[X] was born", "was born in [Y]", "[X] [X] [Y]", "[X] [Y] [Y]")
)
def test_a_template_without_exactly_one_of_each_is_refused(template: str) -> None:
    with pytest.raises(UserError, match=r"^The template"):
        fill(template, "Dante")


@pytest.mark.parametrize(
    ("text", "expected"),
    (("Paris is in [MASK].", True), ("Is it [MASK]?!)", True), ("In [MASK], 1912.", False)),
)
def test_what_follows_a_blank_is_punctuation_or_not(text: str, expected: bool) -> None:
    assert follows_only_punctuation(parse_query(text)) is expected
