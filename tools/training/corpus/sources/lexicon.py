"""Small tables of word meanings, such as country and language of an adjective of nationality.

They are in `lexicon.json`, and have no facts about people, places or things.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec


@dataclass(frozen=True)
class _Tables:
    """The tables. nationalities: adjective -> country and main language."""

    nationalities: dict[str, tuple[str, str]]
    fields: dict[str, tuple[str, ...]]
    faith_of_office: dict[str, str]
    language_names: dict[str, str]


_TABLES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Tables)
NATIONALITIES, FIELDS = _TABLES.nationalities, _TABLES.fields
FAITH_OF_OFFICE, LANGUAGE_NAMES = _TABLES.faith_of_office, _TABLES.language_names


def nationality_country(description: str) -> tuple[str, str]:
    """Return the nationality adjective at the start of a text, and its country; empty if none."""
    words = description.split()
    for n_words in (2, 1):
        adjective = " ".join(words[:n_words])
        if adjective in NATIONALITIES:
            return adjective, NATIONALITIES[adjective][0]
    return "", ""


def language_of(adjective: str) -> str:
    """Return the main language for an adjective of nationality; empty if not listed."""
    return NATIONALITIES[adjective][1] if adjective in NATIONALITIES else ""
