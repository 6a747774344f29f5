"""Facts about people: from the hand-written list and from WordNet's entries on people.

A WordNet gloss is like "French novelist who ... (1804-1876)" or "United States physicist (born in
Germany) (1879-1955)". Nationality and years come from the gloss, the profession from the synset's
class; facts that these leave unclear are excluded. Places of birth are written by hand: WordNet has
the country, but the relation needs the city.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.starter import hand, wordnet
from tools.starter.model import StarterFact, order_key
from tools.starter.wordnet import INSTANCE_OF, Nouns, NounSynset

PEOPLE = "18"
INFERRED = f"{wordnet.ORIGIN}, inferred from nationality"

COUNTRY_OF_ADJECTIVE = {
    "French": "France",
    "German": "Germany",
    "Italian": "Italy",
    "Russian": "Russia",
    "Spanish": "Spain",
    "Swedish": "Sweden",
    "Danish": "Denmark",
    "Norwegian": "Norway",
    "Swiss": "Switzerland",
    "Canadian": "Canada",
    "Japanese": "Japan",
    "Australian": "Australia",
    "Chinese": "China",
    "Belgian": "Belgium",
    "Hungarian": "Hungary",
    "Israeli": "Israel",
    "Mexican": "Mexico",
    "Finnish": "Finland",
    "Cuban": "Cuba",
    "Portuguese": "Portugal",
    "Dutch": "Netherlands",
    "Egyptian": "Egypt",
    "Brazilian": "Brazil",
    "Chilean": "Chile",
    "Austrian": "Austria",
    "Indonesian": "Indonesia",
}
# People born earlier were citizens of states that differ too much from today's namesakes.
FIRST_YEAR_OF_CITIZENS = 1830
# Russians who died later were citizens of the Soviet Union or of their country of exile.
LAST_YEAR_OF_RUSSIA = 1922

LANGUAGE_OF_ADJECTIVE = {
    "English": "English",
    "British": "English",
    "Scottish": "English",
    "United States": "English",
    "American": "English",
    "French": "French",
    "German": "German",
    "Italian": "Italian",
    "Russian": "Russian",
    "Spanish": "Spanish",
    "Roman": "Latin",
    "Greek": "Greek",
    "Athenian": "Greek",
    "Japanese": "Japanese",
    "Polish": "Polish",
    "Danish": "Danish",
    "Norwegian": "Norwegian",
    "Swedish": "Swedish",
    "Portuguese": "Portuguese",
    "Mexican": "Spanish",
    "Chilean": "Spanish",
    "Cuban": "Spanish",
    "Brazilian": "Portuguese",
    "Chinese": "Chinese",
    "Austrian": "German",
    "Hungarian": "Hungarian",
    "Dutch": "Dutch",
}
WRITERS = {"writer", "poet", "dramatist", "novelist", "journalist", "essayist", "historian"}
# Of writers born earlier, many wrote in Latin.
FIRST_YEAR_OF_WRITERS = 1550
ANCIENT_ADJECTIVES = {"Roman", "Greek", "Athenian"}

FIELD_OF_PROFESSION = {
    "physicist": "physics",
    "nuclear physicist": "physics",
    "chemist": "chemistry",
    "mathematician": "mathematics",
    "astronomer": "astronomy",
    "botanist": "botany",
    "economist": "economics",
    "philosopher": "philosophy",
    "psychologist": "psychology",
    "anthropologist": "anthropology",
    "linguist": "linguistics",
    "biologist": "biology",
    "geologist": "geology",
    "sociologist": "sociology",
    "theologian": "theology",
    "archaeologist": "archaeology",
    "architect": "architecture",
    "sculptor": "sculpture",
    "geneticist": "genetics",
    "physiologist": "physiology",
    "surgeon": "surgery",
    "historian": "history",
    "biochemist": "biochemistry",
}

_PROFESSIONS_TEXT = """
    writer poet composer statesman philosopher painter physicist chemist actor architect
    mathematician actress theologian inventor astronomer historian explorer singer sculptor
    economist dancer industrialist politician educator choreographer navigator psychologist
    diplomat pianist comedian engineer anthropologist conductor journalist naturalist publisher
    philanthropist businessman novelist songwriter botanist violinist linguist missionary
    sociologist cartoonist biologist aviator lawyer surgeon golfer organist photographer astronaut
    archaeologist psychiatrist geologist jurist illustrator lyricist general guitarist soprano
    tenor swimmer librarian banker critic physician physiologist
"""
PROFESSIONS = frozenset(_PROFESSIONS_TEXT.split())
PROFESSION_OF_LEMMA = {
    "film maker": "director",
    "dramatist": "playwright",
    "doctor": "physician",
    "tennis player": "",
    "nuclear physicist": "physicist",
    "ballplayer": "",
}
POSITION_OF_LEMMA = {
    "President of the United States": "president",
    "pope": "pope",
    "King of England": "king",
    "King of France": "king",
    "king": "king",
    "queen": "queen",
    "Roman Emperor": "emperor",
    "Holy Roman Emperor": "emperor",
    "emperor": "emperor",
    "bishop": "bishop",
    "tsar": "tsar",
    "czar": "tsar",
    "archbishop": "archbishop",
    "pharaoh": "pharaoh",
    "sultan": "sultan",
    "cardinal": "cardinal",
    "senator": "senator",
    "ambassador": "ambassador",
    "Pharaoh": "pharaoh",
    "Prime Minister": "",
    "dictator": "dictator",
    "King of Great Britain": "king",
    "general": "general",
    "admiral": "admiral",
    "saint": "",
    "chief justice": "judge",
}

_TITLES_TEXT = """
    Sir Lord Saint St. Count Baron Baroness Dr. President Dame Mother
"""
TITLES = frozenset(_TITLES_TEXT.split())
# Incomplete names, and mistakes in WordNet.
NICKNAMES = {"Din Land", "Jaun Gris", "Citizen Genet", "Marshal Saxe", "Herb Simon", "Ray Cattell"}

_YEARS = re.compile(r"\((\d{4})-(\d{4})\)$|\(born in (\d{4})\)$")
_ADJECTIVE = re.compile(r"^(United States|[A-Z][a-z]+) [a-z]")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A person in WordNet: full name, and nationality and years from the gloss."""

    name: str
    synset: NounSynset
    adjective: str
    born: int | None
    died: int | None

    @property
    def has_one_country(self) -> bool:
        """Whether the gloss doesn't name a country of birth in addition to the nationality."""
        return "born in" not in re.sub(r"\(born in \d{4}\)", "", self.synset.gloss)


def facts(nouns: Nouns) -> Iterator[StarterFact]:
    """Yield facts about people, of all relations, without a limit on their number."""
    yield from _from_hand()
    entries = [entry for synset in nouns.synsets.values() if (entry := _entry(nouns, synset))]
    names = [entry.name for entry in entries]
    # A query can't distinguish two people of the same name.
    for entry in entries:
        if names.count(entry.name) == 1:
            for relation, obj in _relations(nouns, entry):
                origin = INFERRED if relation == "P1412" else wordnet.ORIGIN
                yield StarterFact(relation, entry.name, obj, origin)


def _from_hand() -> Iterator[StarterFact]:
    for person in hand.people():
        # Google-RE and T-REx both have places of birth and death; each gets half of the people.
        is_google_re = int(order_key("person", person.name)[:8], 16) % 2 == 0
        if person.born:
            yield StarterFact("date_of_birth", person.name, person.born, hand.ORIGIN)
        if person.birthplace:
            relation = "place_of_birth" if is_google_re else "P19"
            yield StarterFact(relation, person.name, person.birthplace, hand.ORIGIN)
        if person.deathplace:
            relation = "place_of_death" if is_google_re else "P20"
            yield StarterFact(relation, person.name, person.deathplace, hand.ORIGIN)


def _entry(nouns: Nouns, synset: NounSynset) -> _Entry | None:
    if synset.category != PEOPLE or not nouns.targets(synset, INSTANCE_OF):
        return None
    surname, *others = synset.words
    full = [name for name in others if _is_full_name(name, surname)]
    if full:
        name = min(full, key=lambda name: name.count(" "))
    elif " " in surname or nouns.is_first_sense(surname, synset):
        name = surname
    else:
        return None
    years = _YEARS.search(synset.gloss)
    born = int(years[1] or years[3]) if years else None
    died = int(years[2]) if years and years[2] else None
    adjective = _ADJECTIVE.match(synset.gloss)
    return _Entry(name, synset, adjective[1] if adjective else "", born, died)


def _is_full_name(name: str, surname: str) -> bool:
    """Whether `name` is first names and surname without a title; "van Beethoven" isn't."""
    first = name.split(" ")[0]
    usable = first[0].isupper() and first not in TITLES and name not in NICKNAMES
    return usable and name.endswith(" " + surname) and name.count(" ") <= 3


def _relations(nouns: Nouns, entry: _Entry) -> Iterator[tuple[str, str]]:
    lemmas = {kind.words[0] for kind in nouns.targets(entry.synset, INSTANCE_OF)}
    for lemma in sorted(lemmas):
        profession = PROFESSION_OF_LEMMA.get(lemma, lemma if lemma in PROFESSIONS else "")
        if profession:
            yield "P106", profession
        if lemma in FIELD_OF_PROFESSION:
            yield "P101", FIELD_OF_PROFESSION[lemma]
        position = POSITION_OF_LEMMA.get(lemma, "")
        if position and position not in entry.name.lower():
            yield "P39", position
    if " " not in entry.name:
        return
    if entry.born:
        yield "date_of_birth", str(entry.born)
    if entry.has_one_country and entry.born and entry.born >= FIRST_YEAR_OF_CITIZENS:
        country = COUNTRY_OF_ADJECTIVE.get(entry.adjective)
        soviet = country == "Russia" and not (entry.died and entry.died <= LAST_YEAR_OF_RUSSIA)
        if country and not soviet:
            yield "P27", country
    recent = entry.born is not None and entry.born >= FIRST_YEAR_OF_WRITERS
    dated = recent or entry.adjective in ANCIENT_ADJECTIVES
    if lemmas & WRITERS and entry.has_one_country and dated:
        language = LANGUAGE_OF_ADJECTIVE.get(entry.adjective)
        if language:
            yield "P1412", language
