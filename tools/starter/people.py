"""Facts about people: from the hand-written list and from WordNet's entries on people.

A WordNet gloss is like "French novelist who ... (1804-1876)" or "United States physicist (born in
Germany) (1879-1955)". Nationality and years come from the gloss, the profession from the synset's
class; facts that these leave unclear are excluded. Places of birth are written by hand: WordNet has
the country, but the relation needs the city.
"""

import re
from collections import Counter
from collections.abc import Iterator

from tools.starter import hand, wordnet
from tools.starter.model import StarterFact, order_key
from tools.starter.wordnet import INSTANCE_OF, Nouns
from tools.training.corpus.sources.wordnet import PERSON_FILE, Synset

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


def facts(nouns: Nouns) -> Iterator[StarterFact]:
    """Yield facts about people, of all relations, without a limit on their number."""
    for name, *values in hand.cells("people.txt"):
        # Google-RE and T-REx both have places of birth and death; each gets half of the people.
        is_google_re = int(order_key("person", name)[:8], 16) % 2 == 0
        places = ("place_of_birth", "place_of_death") if is_google_re else ("P19", "P20")
        for relation, value in zip(("date_of_birth", *places), values, strict=True):
            if value != "-":
                yield StarterFact(relation, name, value, hand.ORIGIN)
    named = [
        (name, synset)
        for synset in nouns.synsets.values()
        if synset.file_number == PERSON_FILE and synset.targets(INSTANCE_OF)
        for name in _full_name(nouns, synset)
    ]
    n_people = Counter(name for name, _ in named)
    for name, synset in named:
        if n_people[name] == 1:  # a query can't distinguish two people of the same name
            for relation, obj in _relations(nouns, name, synset):
                origin = INFERRED if relation == "P1412" else wordnet.ORIGIN
                yield StarterFact(relation, name, obj, origin)


def _full_name(nouns: Nouns, synset: Synset) -> list[str]:
    """Return a person's full name, without a title; "van Beethoven" isn't one. [] if there's none.

    A surname alone is a name if it's most often this person's.
    """
    surname, *others = synset.lemmas
    full = [
        name
        for name in others
        if name.endswith(" " + surname) and name.count(" ") <= 3 and name not in NICKNAMES
        if name[0].isupper() and name.split(" ")[0] not in TITLES
    ]
    if not full and (" " in surname or nouns.is_first_sense(surname, synset)):
        return [surname]
    return sorted(full, key=lambda name: name.count(" "))[:1]


def _relations(nouns: Nouns, name: str, synset: Synset) -> Iterator[tuple[str, str]]:
    lemmas = {kind.lemmas[0] for kind in nouns.targets(synset, INSTANCE_OF)}
    for lemma in sorted(lemmas):
        profession = PROFESSION_OF_LEMMA.get(lemma, lemma if lemma in PROFESSIONS else "")
        if profession:
            yield "P106", profession
        if lemma in FIELD_OF_PROFESSION:
            yield "P101", FIELD_OF_PROFESSION[lemma]
        position = POSITION_OF_LEMMA.get(lemma, "")
        if position and position not in name.lower():
            yield "P39", position
    years, found = _YEARS.search(synset.definition), _ADJECTIVE.match(synset.definition)
    adjective = found[1] if found else ""
    born, died = (int(years[1] or years[3]), int(years[2] or 0)) if years else (0, 0)
    if " " not in name:
        return
    if born:
        yield "date_of_birth", str(born)
    if "born in" in re.sub(r"\(born in \d{4}\)", "", synset.definition):
        return  # the country of birth isn't that of the nationality
    country = COUNTRY_OF_ADJECTIVE.get(adjective)
    soviet = country == "Russia" and not 0 < died <= LAST_YEAR_OF_RUSSIA
    if country and born >= FIRST_YEAR_OF_CITIZENS and not soviet:
        yield "P27", country
    dated = born >= FIRST_YEAR_OF_WRITERS or adjective in ANCIENT_ADJECTIVES
    if lemmas & WRITERS and dated and adjective in LANGUAGE_OF_ADJECTIVE:
        yield "P1412", LANGUAGE_OF_ADJECTIVE[adjective]
