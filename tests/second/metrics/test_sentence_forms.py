"""Sentence forms: what counts as the same wording, and where probe sentences occur."""

from lama_core.metrics.sentence_forms import (
    SentenceForms,
    SentenceIndex,
    query_template,
    template_form,
)

FORMS = SentenceForms(
    {
        "cities": frozenset(("* lies on continent of *", "* belongs to *", "* is in *")),
        "artists": frozenset(("genre of * is *", "* is on list of * from *")),
        "people": frozenset(("* is citizen of *",)),
    }
)


def sources_of(template: str) -> tuple[str, ...]:
    return FORMS.sources_of(template_form(template))


def test_a_form_has_a_slot_for_each_name_and_no_articles_case_or_punctuation() -> None:
    assert template_form("On the map, [X] is in [Y].") == "on map * is in *"
    assert template_form("[X]'s capital is [Y] .") == "* s capital is *"
    assert template_form("[Y] ([X]) was AN actor") == "* is actor", "slots side by side are one"


def test_the_words_between_the_slots_are_the_form() -> None:
    assert sources_of("[X] lies on the continent of [Y].") == ("cities",)
    assert sources_of("Today, [Y] lies on a continent of the [X]!") == ("cities",)
    assert sources_of("[X] belongs to the [Y] party.") == ("cities",)
    assert sources_of("[X] is on the list of [Y].") == ("artists",)
    assert sources_of("[X] lies in the continent of [Y].") == ()
    assert sources_of("[X] belongs to the country of [Y].") == ()


def test_the_tense_of_be_does_not_make_another_form() -> None:
    assert sources_of("[X] was a citizen of [Y].") == sources_of("[X] is a citizen of [Y].")
    assert sources_of("[X] was a citizen of [Y].") == ("people",)


def test_where_only_function_words_are_between_the_whole_form_must_be_the_same() -> None:
    assert sources_of("[X] is in [Y].") == ("cities",)
    assert sources_of("On the map, [X] is in [Y].") == ()
    assert sources_of("The genre of [X] is [Y].") == ("artists",)
    assert sources_of("The capital of [X] is [Y].") == ()
    assert sources_of("[X] comes from [Y].") == ()


def test_the_template_of_a_query_has_slots_for_subject_and_blank() -> None:
    asked = "The Nile is in [MASK]."
    assert query_template(asked, "Nile") == "The [X] is in [Y]."
    assert query_template(asked, "the Nile") == "[X] is in [Y]."
    assert query_template(asked, "Cairo") == query_template(asked, "") == ""


def test_sentences_are_found_verbatim_and_almost_verbatim() -> None:
    same, article, inside, longer, absent = sentences = (
        "Oslo is in Norway.",
        "The Nile is in Africa.",
        "Oman is in Asia.",
        "Oslo is a city in Norway.",
        "Rome is in Italy.",
    )
    passages = ("He said: Oslo is in Norway. So it is.", "nile is in AFRICA", "Roman is in Asia.",
                "Oslo is, in Norway, the city.")  # fmt: skip
    verbatim, almost = SentenceIndex((*sentences, "", "Rome")).find(passages)
    assert verbatim == {same}
    assert almost == {same, article}
    assert not {inside, longer, absent} & almost
    assert SentenceIndex([inside]).find(["Roman is in Asia. Oman is in Asia."])[0] == {inside}
