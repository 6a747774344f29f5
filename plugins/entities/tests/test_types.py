"""Types of entities, and the relations that fit them."""

import pytest

from lama_core.datasets import load_dataset
from lama_entities.types import (
    find_entity,
    relation_types,
    relations_of,
    similar_name,
    templates_of,
    type_words,
)

KINDS = {
    "single": 0,
    "symmetric": 0,
    "irreflexive": 0,
    "inverse": 1,
    "same": 1,
    "within": 1,
    "contains": 1,
}
LAMA = (
    "P17 P19 P20 P27 P30 P31 P36 P37 P39 P47 P101 P103 P106 P108 P127 P131 P136 P138 P140 P159 "
    "P176 P178 P190 P264 P276 P279 P361 P364 P407 P413 P449 P463 P495 P527 P530 P740 P937 P1001 "
    "P1303 P1376 P1412 place_of_birth date_of_birth place_of_death"
)


def test_each_relation_has_known_types_and_constraints_on_known_relations() -> None:
    rows = relation_types()
    starter = {one.name for one in load_dataset("starter").relations if one.templates}
    assert rows.keys() >= {*starter, *LAMA.split()}
    for row in rows.values():
        assert row.subjects and row.objects
        assert {*row.subjects, *row.objects} <= type_words().keys()
        for one in row.constraints:
            assert bool(one.relation) == KINDS[one.kind]
            assert not one.relation or one.relation in rows
    inverses = {name: row.constraint("inverse") for name, row in rows.items()}
    for name, inverse in inverses.items():
        back = inverse and inverses[inverse.relation]
        assert inverse is None or (back is not None and back.relation == name)


def test_no_two_relations_of_a_card_ask_with_the_same_sentence() -> None:
    starter = load_dataset("starter")
    templates = templates_of(starter)
    for kind in type_words():
        asked = [templates[one.name] for one in relations_of(starter, kind)]
        assert len({*asked}) == len(asked), kind
    assert templates["P17"] == "[X] is located in [Y]."
    assert templates["P30"] == starter.relation("P30").templates[1]


@pytest.mark.parametrize(
    ("name", "spelled", "kind"),
    [
        ("marie curie", "Marie Curie", "person"),
        ("Bahamas", "the Bahamas", "country"),
        ("Mount Elbert", "Mount Elbert", "place"),
        ("Texas", "Texas", "region"),
        ("Queen", "Queen", "organisation"),
        ("queen", "a queen", "thing"),
        ("jazz", "jazz", "genre"),
        ("1867", "1867", "year"),
    ],
)
def test_names_are_spelled_as_in_the_data_and_facts_tell_the_type(
    name: str, spelled: str, kind: str
) -> None:
    found = find_entity(load_dataset("starter"), name)
    assert found is not None
    assert (found.name, found.types[0]) == (spelled, kind)


def test_an_answers_type_chooses_among_spellings() -> None:
    starter = load_dataset("starter")
    band = find_entity(starter, "queen", ["organisation"])
    assert band is not None and band.name == "Queen"
    curie = find_entity(starter, "Marie Curie")
    assert curie is not None
    # A fact of Google-RE, which is a fact of T-REx under another name.
    assert curie.objects["P19"] == curie.objects["place_of_birth"] == ("Warsaw",)
    assert find_entity(starter, "Nobody Atall") is None


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("Mozart", "Wolfgang Amadeus Mozart"),
        ("Norwy", "Norway"),
        ("New Yrok", "New York"),
        ("beatles", "The Beatles"),
        ("Zorblax Quux", ""),
    ],
)
def test_a_name_that_nearly_fits_is_found(name: str, similar: str) -> None:
    assert similar_name(load_dataset("starter"), name) == similar
