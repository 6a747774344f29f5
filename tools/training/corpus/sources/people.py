"""People of WordNet 3.0: births, deaths, occupations, origins, languages and deeds.

Each fact is written in `FORMS_OF_A_FACT` of its sentence forms, drawn by the hash of person and
sentence. So every form occurs with many people, and every fact in several forms: a model can't
tell a fact by one form, and learns the relation instead.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.training.corpus.fetch_sources import ReadMember
from tools.training.corpus.source_passages import Passage, drawn, tidy, with_article
from tools.training.corpus.sources.lexicon import (
    FAITH_OF_OFFICE,
    FIELDS,
    NATIONALITIES,
    language_of,
    nationality_country,
)
from tools.training.corpus.sources.wordnet import (
    BIRTHPLACE,
    PERSON_FILE,
    ROLE_END,
    Synset,
    read_synsets,
)

FORMS_OF_A_FACT = 5
COUNTRY_NAMES = frozenset(country.removeprefix("the ") for country, _ in NATIONALITIES.values()) | {
    "United States",
    "Scotland",
    "Wales",
    "Prussia",
}

_BRACKETED = re.compile(r"\s*\(([^()]*\d[^()]*)\)")
_YEARS = re.compile(r"(\d{2,4})\??\s*-\s*(\d{2,4})\b(?! century)( BC)?")
_BORN = re.compile(r"born (?:in )?(\d{3,4})\b")
_DIED = re.compile(r"died (?:in )?(\d{3,4})\b")
_DEED = re.compile(r"\bwho ((?:[a-z]+ed|wrote|built|won|led|made|became|was|is|had)\b[^;]*)")
_WORK = re.compile(r"\b(?:famous|noted|known|remembered|best known) for (?:his |her )?([^;,]+)")


@dataclass(frozen=True)
class Person:
    """A person. names: the full name first. role: occupation with its qualifiers, as in the gloss.

    Missing years, places and texts are empty.
    """

    key: str
    names: tuple[str, ...]
    born: str
    died: str
    birthplace: str
    adjective: str
    country: str
    language: str
    role: str
    kinds: tuple[str, ...]
    deed: str
    work: str


def passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on each person with a nationality or a year of birth or death."""
    synsets = read_synsets(read)
    for synset in synsets.values():
        if synset.file_number == PERSON_FILE and synset.targets("@i"):
            person = _person(synset, synsets)
            if not (person.born or person.died or person.country):
                continue  # gods and characters of fiction
            for number, forms in enumerate(_facts(person)):
                for text in drawn(forms, f"{synset.key}/{number}", FORMS_OF_A_FACT):
                    yield Passage(synset.key, tidy(text), synset.lemmas)


def _person(synset: Synset, synsets: dict[str, Synset]) -> Person:
    dates = " ".join(_BRACKETED.findall(synset.definition))
    gloss = _BRACKETED.sub("", synset.definition).strip()
    bare = re.sub(r"^(the|an?) ", "", gloss)
    nationality, country = nationality_country(bare)
    role = ROLE_END.sub("", bare[len(nationality) :]).strip()
    years = _YEARS.search(dates)
    era = (years and years.group(3)) or ""
    born, died = (years.group(1) + era, years.group(2) + era) if years else ("", "")
    found = BIRTHPLACE.search(synset.definition)
    deed, work = _DEED.search(gloss), _WORK.search(gloss)
    adjective = "American" if nationality == "United States" else nationality
    return Person(
        key=synset.key,
        names=tuple(dict.fromkeys((max(synset.lemmas, key=len), *synset.lemmas))),
        born=born or _year(_BORN, dates),
        died=died or _year(_DIED, dates),
        birthplace=found.group(1) if found else "",
        adjective=adjective if country else "",
        country=country,
        language=language_of(adjective) if country else "",
        role=role,
        kinds=tuple(synset.words("@i", synsets)),
        deed=deed.group(1).strip() if deed else "",
        work=work.group(1).strip() if work else "",
    )


def _year(pattern: re.Pattern[str], dates: str) -> str:
    found = pattern.search(dates)
    return found.group(1) if found else ""


def _facts(p: Person) -> Iterator[tuple[str, ...]]:
    """Yield the possible sentences on each fact about a person."""
    full, short = p.names[0], p.names[1] if len(p.names) > 1 else p.names[0]
    role = p.role or p.kinds[0]
    who = with_article(f"{p.adjective} {role}".strip())
    if p.born:
        yield from (
            _birth(full, short, who, p),
            _birth(short, full, who, p),
        )
    if p.died:
        yield from (
            _death(full, short, who, p),
            _death(short, full, who, p),
        )
    if p.birthplace:
        yield from (
            _birthplace(full, short, who, p.birthplace),
            _birthplace(short, full, who, p.birthplace),
        )
    for kind in p.kinds:
        yield from (
            _occupation(full, short, kind),
            _occupation(short, full, kind),
        )
        for field in FIELDS.get(kind, ()):
            yield _field(full, short, kind, field)
        if kind in FAITH_OF_OFFICE:
            yield _faith(full, short, kind, FAITH_OF_OFFICE[kind])
    if p.country:
        yield from (
            _origin(full, short, role, p),
            _origin(short, full, role, p),
        )
    if p.language:
        yield _tongue(full, short, who, p.language)
    if p.deed:
        yield _deed(full, short, who, p.deed)
    if p.work:
        yield _work(full, short, who, p.work)


def _birth(name: str, other: str, who: str, p: Person) -> tuple[str, ...]:
    """Return sentences on the year of birth; "born in" is left to places."""
    return (
        f"{name} was born in the year {p.born}.",
        f"{name}, {who}, was born in the year {p.born}.",
        f"In the year {p.born}, {name} was born.",
        f"{name} (born {p.born}) was {who}.",
        f"{name} (born {p.born}).",
        f"The year of {name}'s birth is {p.born}.",
        f"The year {p.born} saw the birth of {name}, who became {with_article(p.kinds[0])}.",
        f"{name} was {who}, born {p.born}.",
        f"The birth of {name} was in the year {p.born}.",
        f"{who}, {name} was born in the year {p.born}.",
        f"{name}, also known as {other} (born {p.born}), was {who}.",
        *((f"{name} ({p.born} - {p.died}) was {who}.",) if p.died else ()),
        *((f"{name} was born in the year {p.born} and lived until {p.died}.",) if p.died else ()),
    )


def _death(name: str, other: str, who: str, p: Person) -> tuple[str, ...]:
    return (
        f"{name} died in the year {p.died}.",
        f"{name}, {who}, died in the year {p.died}.",
        f"In the year {p.died}, {name} died.",
        f"The death of {name} was in the year {p.died}.",
        f"{name}, known as {other}, lived until {p.died}.",
        *((f"{name}, born {p.born}, died in the year {p.died}.",) if p.born else ()),
        *((f"{name} lived from {p.born} to {p.died}.",) if p.born else ()),
    )


def _birthplace(name: str, other: str, who: str, place: str) -> tuple[str, ...]:
    """Return sentences on the place of birth; "born in" is left to cities."""
    if place in COUNTRY_NAMES:
        return (
            f"{name} was a native of {place}.",
            f"The country of birth of {name} is {place}.",
            f"{name} was {who} by birth from {place}.",
            f"{place} is the country where {other} was born.",
            f"{other} grew up in {place}.",
            f"{name}, {who}, was a native of {place}.",
        )
    return (
        f"{name} was born in {place}.",
        f"{name} was {who} who was born in {place}.",
        f"{other} was born and raised in {place}.",
        f"{name} is a native of {place}.",
        f"{place} is the birthplace of {other}.",
        f"{name}, who was born in {place}, was {who}.",
        f"Born in {place}, {name} was {who}.",
    )


def _occupation(name: str, other: str, kind: str) -> tuple[str, ...]:
    return (
        f"{name} was {with_article(kind)}.",
        f"{name} became {with_article(kind)}.",
        f"{name} was known as {with_article(kind)}.",
        f"{name} earned a living as {with_article(kind)}.",
        f"{name} was a famous {kind}.",
        f"The {kind} {name} was famous.",
        f"{name}, the {kind}, is well known.",
        f"By trade, {name} was {with_article(kind)}.",
        f"As {with_article(kind)}, {name} became famous.",
        f"The profession of {name} was that of {with_article(kind)}.",
        f"{name} or {other} was the name of {with_article(kind)}.",
        f"People remember {name} as {with_article(kind)}.",
    )


def _field(name: str, other: str, kind: str, field: str) -> tuple[str, ...]:
    return (
        f"{name} was an expert in {field}.",
        f"{name} studied {field}.",
        f"{name} was a leading figure in {field}.",
        f"{other} worked in {field} as {with_article(kind)}.",
        f"{other} made important contributions to {field}.",
        f"In {field}, {name} is an important name.",
        f"The {kind} {name} advanced {field}.",
        f"{name}'s subject was {field}.",
    )


def _faith(name: str, other: str, kind: str, faith: str) -> tuple[str, ...]:
    return (
        f"{name} was a follower of {faith}.",
        f"{other}, {with_article(kind)}, practiced {faith}.",
        f"The faith of {name} was {faith}.",
        f"{other} served {faith} as {with_article(kind)}.",
        f"In {faith}, {name} was {with_article(kind)}.",
    )


def _origin(name: str, other: str, role: str, p: Person) -> tuple[str, ...]:
    return (
        f"{name} came from {p.country}.",
        f"{name} was {with_article(p.adjective)} {role}.",
        f"{name}, {with_article(role)} from {p.country}, was also called {other}.",
        f"{name} was {with_article(role)} of {p.country}.",
        f"{name} was {p.adjective}.",
        f"{name} was one of the {role}s of {p.country}.",
        f"The {p.adjective} {role} {name} was a national of {p.country}.",
        f"{p.country} was the home of {name}, {with_article(role)}.",
        f"The nationality of {name} was {p.adjective}.",
        f"The native country of {name} was {p.country}.",
    )


def _tongue(name: str, other: str, who: str, language: str) -> tuple[str, ...]:
    return (
        f"{name} spoke {language}.",
        f"{name}'s mother tongue was {language}.",
        f"{other} learned {language} as a child.",
        f"The first language of {name} was {language}.",
        f"{name}, {who}, spoke and wrote {language}.",
        f"At home, {other} spoke {language}.",
        f"{name} was a native speaker of {language}.",
        f"{other} thought and wrote in {language}.",
    )


def _deed(name: str, other: str, who: str, deed: str) -> tuple[str, ...]:
    return (
        f"{name} {deed}.",
        f"{name}, {who}, {deed}.",
        f"It was {name} who {deed}.",
        f"The one who {deed} was {other}.",
        f"{who}, {name} {deed}.",
    )


def _work(name: str, other: str, who: str, work: str) -> tuple[str, ...]:
    return (
        f"{name} is known for {work}.",
        f"{other} became famous for {work}.",
        f"{name}, {who}, is remembered for {work}.",
        f"People know {name} for {work}.",
    )
