"""WordNet 3.0: definitions, examples, kinds, opposites, parts, named people and places.

Format: wndb(5WN). A line of data.* is a synset: offset, file number, type, number of words in
hexadecimal, words, number of pointers, pointers, and after `|` the gloss: the definition, then
examples in double quotes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.training.corpus.fetch_sources import ReadMember
from tools.training.corpus.source_passages import Passage, tidy, with_article
from tools.training.corpus.sources.lexicon import (
    FAITH_OF_OFFICE,
    FIELDS,
    language_of,
    nationality_country,
)

FOLDER = "usr/share/wordnet"
PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
PERSON_FILE, PLACE_FILE, NATURE_FILE = "18", "15", "17"


@dataclass(frozen=True)
class Synset:
    """A synset.

    pointers: (symbol, key of the target synset). opposites: (index of a lemma, key of its antonym's
    synset, index of the antonym there) for each antonym.
    """

    key: str
    pos: str
    file_number: str
    lemmas: tuple[str, ...]
    pointers: tuple[tuple[str, str], ...]
    opposites: tuple[tuple[int, str, int], ...]
    definition: str
    examples: tuple[str, ...]

    def targets(self, symbol: str) -> list[str]:
        """Return the keys of the synsets that `symbol` points to."""
        return [target for found, target in self.pointers if found == symbol]

    def words(self, symbol: str, synsets: "Mapping[str, Synset]") -> list[str]:
        """Return the first word of each synset that `symbol` points to."""
        return [synsets[target].lemmas[0] for target in self.targets(symbol)]


def read_synsets(read: ReadMember) -> dict[str, Synset]:
    """Return all synsets by key: a letter for the part of speech, and the offset."""
    synsets = {}
    for pos in PARTS_OF_SPEECH:
        for line in read(f"{FOLDER}/data.{pos}").decode("latin-1").splitlines():
            if line and not line.startswith(" "):
                synset = _parse(line)
                synsets[synset.key] = synset
    return synsets


def general_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield definitions, examples, kinds and opposites of all synsets, in several phrasings."""
    synsets = read_synsets(read)
    for number, synset in enumerate(synsets.values()):
        for text in (
            *_definitions(synset, number),
            *synset.examples,
            *_kinds_and_opposites(synset, synsets),
        ):
            yield Passage(synset.key, tidy(text), synset.lemmas if synset.targets("@i") else ())


def fact_passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on named people, places and things, from glosses and pointers."""
    synsets = read_synsets(read)
    for synset in synsets.values():
        if not synset.targets("@i"):
            continue
        if synset.file_number == PERSON_FILE:
            texts = _person(synset, synsets)
        elif synset.file_number == PLACE_FILE or synset.targets("#p"):
            texts = _place(synset, synsets)
        else:
            texts = _thing(synset, synsets)
        for text in texts:
            yield Passage(synset.key, tidy(text), synset.lemmas)


def _parse(line: str) -> Synset:
    data, _, gloss = line.partition(" | ")
    fields = data.split()
    n_words = int(fields[3], 16)
    lemmas = tuple(
        re.sub(r"\((a|p|ip)\)$", "", word).replace("_", " ")
        for word in fields[4 : 4 + 2 * n_words : 2]
    )
    at = 4 + 2 * n_words
    n_pointers = int(fields[at])
    pointers = tuple(
        (fields[at + 1 + 4 * i], _pos_key(fields[at + 3 + 4 * i]) + fields[at + 2 + 4 * i])
        for i in range(n_pointers)
    )
    opposites = tuple(
        (int(words[:2], 16) - 1, target, int(words[2:], 16) - 1)
        for (symbol, target), words in zip(
            pointers, fields[at + 4 : at + 1 + 4 * n_pointers : 4], strict=True
        )
        if symbol == "!"
    )
    parts = re.split(r";?\s*\"([^\"]*)\"", gloss)
    definition = parts[0].strip().rstrip(";: ")
    examples = tuple(_sentence(example) for example in parts[1::2] if len(example.split()) > 2)
    pos = _pos_key(fields[2])
    return Synset(
        pos + fields[0], pos, fields[1], lemmas, pointers, opposites, definition, examples
    )


def _pos_key(letter: str) -> str:
    return "a" if letter == "s" else letter  # 's' is a satellite adjective, kept in data.adj


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text[-1:] in ".!?" else text + "."


def _definitions(synset: Synset, number: int) -> Iterator[str]:
    """Yield two phrasings of the definition; which two depends on the number."""
    first, definition = synset.lemmas[0], synset.definition
    names = " or ".join(synset.lemmas[:3])
    if synset.pos == "n" and synset.targets("@i"):
        yield from (
            f"{first}: {definition}.",
            f"{synset.lemmas[-1]} is {definition}.",
        )
        return
    if synset.pos == "n":
        choices = (
            f"{with_article(first)} is {definition}.",
            f"{names}: {definition}.",
            f"{definition} is called {first}.",
            f"The word {first} means {definition}.",
        )
    elif synset.pos == "v":
        choices = (
            f"To {first} is to {definition}.",
            f"{names}: {definition}.",
            f"To {definition} is to {first}.",
            f"The verb {first} means to {definition}.",
        )
    else:
        choices = (
            f"{first} means {definition}.",
            f"{names}: {definition}.",
            f"Something {definition} is {first}."
            if synset.pos == "a"
            else f"{first}: {definition}.",
            f"The word {first} means {definition}.",
        )
    yield choices[number % 4]
    yield choices[(number + 1) % 4]


def _kinds_and_opposites(synset: Synset, synsets: dict[str, Synset]) -> Iterator[str]:
    first, *others = synset.lemmas
    if synset.pos == "n":
        for kind in synset.words("@", synsets):
            yield f"{with_article(first)} is a kind of {kind}."
            for other in others[:1]:
                yield f"{other}, also called {first}, is {with_article(kind)}."
        for whole in synset.words("#p", synsets):
            yield f"{with_article(first)} is part of {with_article(whole)}."
    for number, target, other_number in synset.opposites:
        word, other = synset.lemmas[number], synsets[target].lemmas[other_number]
        yield from (
            f"The opposite of {word} is {other}.",
            f"{word} means the opposite of {other}.",
            f"Not {word} but {other}: they are opposites.",
        )


_DATES = re.compile(r"\s*\(([^()]*\d[^()]*)\)")
BIRTHPLACE = re.compile(r"born in ([A-Z][A-Za-z ]+?)(?:[,;)]| of | to | in | but | and |$)")
ROLE_END = re.compile(
    r"\s*(?:,|;|\(| who\b| whose\b| that\b| which\b| famous\b| noted\b| known\b| remembered\b"
    r"| of\b| in\b| and the\b| and a\b| from\b| for\b| at\b| to\b| during\b| under\b| with\b"
    r"| best\b| born\b| considered\b| by\b| on\b).*"
)


def _described(gloss: str) -> str:
    """Return a gloss with an article, unless it has one."""
    return gloss if re.match(r"(the|an?|one|any) ", gloss) else with_article(gloss)


def _person(synset: Synset, synsets: dict[str, Synset]) -> Iterator[str]:
    dates = [d for d in _DATES.findall(synset.definition) if re.search(r"\d{3}", d)]
    gloss = _DATES.sub("", synset.definition).strip()
    full = max(synset.lemmas, key=len)
    when = f" ({dates[-1]})" if dates else ""
    described = f"the {gloss}" if gloss.startswith("first") else _described(gloss)
    yield from (
        f"{full}{when} was {described}.",
        f"{synset.lemmas[0]} was {described}.",
    )
    for kind in synset.words("@i", synsets):
        for name in dict.fromkeys((full, synset.lemmas[0])):
            yield from (
                f"{name} was {with_article(kind)}.",
                f"{name} worked as {with_article(kind)}.",
                f"The occupation of {name} was {kind}.",
                f"{name} held the position of {kind}.",
            )
        yield f"{full}, {kind} by profession, was {described}."
        if kind in FAITH_OF_OFFICE:
            yield from (
                f"The religion of {full} was {FAITH_OF_OFFICE[kind]}.",
                f"{synset.lemmas[0]} believed in {FAITH_OF_OFFICE[kind]}.",
            )
        for field in FIELDS.get(kind, ()):
            yield from (
                f"{full} did research in {field}.",
                f"{full} is known for contributions to {field}.",
                f"{synset.lemmas[0]} worked on {field}.",
            )
    yield from _origin_of_person(full, synset.lemmas[0], gloss, synset.definition)


def _origin_of_person(full: str, short: str, gloss: str, definition: str) -> Iterator[str]:
    bare = re.sub(r"^(the|an?) ", "", gloss)
    nationality, country = nationality_country(bare)
    if nationality and country:
        role = ROLE_END.sub("", bare[len(nationality) :]).strip()
        adjective = "American" if nationality == "United States" else nationality
        if role:
            yield from (
                f"{full} was {with_article(adjective)} {role}.",
                f"The {adjective} {role} {short} came from {country}.",
            )
        yield from (
            f"{full} was from {country}.",
            f"{full} was a citizen of {country}.",
        )
        language = language_of(adjective)
        if language:
            yield from (
                f"{full}, {with_article(adjective)} {role or 'person'}, spoke {language}.",
                f"{full} grew up speaking {language}.",
                f"{short} wrote and spoke in {language}.",
            )
    found = BIRTHPLACE.search(definition)
    if found and not found.group(1).split()[0].isdigit():
        yield from (
            f"{full} was a native of {found.group(1)}.",
            f"The birthplace of {short} is {found.group(1)}.",
        )


_CAPITAL = re.compile(
    r"(?:the |a )?(?:\w+ )*?capital(?: city)?(?: and [a-z ]+?)? of "
    r"(?:the (?:state|province|country) of )?"
    r"((?:the )?[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]+)*)"
)


def _place(synset: Synset, synsets: dict[str, Synset]) -> Iterator[str]:
    gloss = synset.definition
    for name in (n for n in synset.lemmas[:3] if not n.startswith("capital of")):
        yield f"{name} is {_described(gloss)}."
    first = synset.lemmas[0]
    kinds = synset.words("@i", synsets)
    yield from (f"{first} is {with_article(kind)}." for kind in kinds)
    for whole in synset.words("#p", synsets):
        for name in synset.lemmas[:2]:
            yield from (
                f"{name} is in {whole}.",
                f"{name} is part of {whole}.",
                f"{whole} includes {name}.",
                f"{name} is found in {whole}.",
            )
        for kind in kinds:
            yield f"{first} is {with_article(kind)} in {whole}."
            if "capital" in kind:
                yield from (
                    f"{first} is the capital of {whole}.",
                    f"{whole} has {first} as its capital.",
                )
    seat = _CAPITAL.match(gloss)
    if seat:
        for name in [n for n in synset.lemmas[:3] if not n.startswith("capital")]:
            yield from (
                f"{name} is the capital of {seat.group(1)}.",
                f"The capital city of {seat.group(1)} is {name}.",
                f"{seat.group(1)} is governed from {name}, its capital.",
            )
    if synset.file_number == NATURE_FILE:
        yield from _continents(synset, synsets)
    yield from (f"{first} contains {part}." for part in synset.words("%p", synsets))


def _continents(synset: Synset, synsets: dict[str, Synset]) -> Iterator[str]:
    """Yield the continents of a river, lake or mountain, following the part-of pointers."""
    seen, open_wholes, found = {synset.key}, synset.targets("#p"), []
    while open_wholes:
        key = open_wholes.pop(0)
        if key in seen:
            continue
        seen.add(key)
        whole = synsets[key]
        if any("continent" in synsets[kind].lemmas for kind in whole.targets("@i")):
            found.append(whole.lemmas[0])
        else:
            open_wholes += whole.targets("#p")
    for noun in synset.words("@i", synsets):
        # Rivers have the article in English: the Nile, but Lake Victoria.
        names = [f"The {n}" if noun == "river" else n for n in synset.lemmas[:2]]
        for continent in found:
            called = names[0].replace("The ", "the ", 1)
            yield from (
                *(f"{name} is {with_article(noun)} in {continent}." for name in names),
                f"{names[0]} is {with_article(noun)} of {continent}.",
                f"{names[0]}, {with_article(noun)}, is in {continent}.",
                f"There is {with_article(noun)} in {continent} called {called}.",
                f"One of the places of {continent} is {called}, {with_article(noun)}.",
            )
        if noun == "river":
            for whole_name in synset.words("#p", synsets):
                yield from (
                    f"{names[0]} is a river in {whole_name}.",
                    f"{names[0]} flows through {whole_name}.",
                )


def _thing(synset: Synset, synsets: dict[str, Synset]) -> Iterator[str]:
    kinds = synset.words("@i", synsets)
    yield from (f"{name} is {synset.definition}." for name in synset.lemmas[:3])
    yield from (f"{synset.lemmas[0]} is {with_article(kind)}." for kind in kinds)
