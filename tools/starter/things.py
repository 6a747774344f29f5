"""Facts about named things: what kind of thing each is (P31), from WordNet.

Only the commonest sense of a name is used, so that the bare name says what is meant. Kinds, parts
and regions (IsA, P279, PartOf, P361) are written by hand: WordNet's own are too fine for a cloze.
"""

from collections.abc import Iterator

from tools.starter.model import Stated
from tools.starter.wordnet import INSTANCE_OF, ORIGIN, Nouns

# No kind that begins with a vowel: the template says "a".
KIND_OF_LEMMA = {
    "river": "river",
    "lake": "lake",
    "sea": "sea",
    "desert": "desert",
    "volcano": "volcano",
    "mountain peak": "mountain",
    "city": "city",
    "constellation": "constellation",
    "pitched battle": "battle",
    "peninsula": "peninsula",
    "waterfall": "waterfall",
    "strait": "strait",
    "street": "street",
    "star": "star",
    "European country": "country",
    "African country": "country",
    "Asian country": "country",
    "South American country": "country",
    "American state": "state",
    "continent": "continent",
}
# Many share a name: only unique ones are kept.
SETTLEMENTS = {"city"}
# Renamed, redrawn or gone since WordNet 3.0, or ambiguous alone.
LEFT_OUT = {
    "Communism Peak",
    "Baffin Bay",
    "Lenin Peak",
    "Baikal",
    "Holy See",
    "Pobeda Peak",
    "Sudan",
    "Bowery",
    "Mobile",
    "Burma",
    "Yugoslavia",
    "Serbia and Montenegro",
    "Montenegro",
    "Ceylon",
    "Sea of Azov",
    "Nuptse",
    "Caspian",
    "sun",
    "Bonete",
    "Gondwanaland",
    "Laurasia",
    "Congo",
}


def facts(nouns: Nouns) -> Iterator[Stated]:
    """P31 facts of named places, battles and stars; not yet limited in number."""
    for synset in nouns.synsets.values():
        kinds = {kind.words[0] for kind in nouns.targets(synset, INSTANCE_OF)}
        objects = {KIND_OF_LEMMA[kind] for kind in kinds if kind in KIND_OF_LEMMA}
        name = synset.words[0]
        if not nouns.is_first_sense(name, synset) or name in LEFT_OUT:
            continue
        if objects & SETTLEMENTS and not nouns.is_only_sense(name, synset):
            continue
        for obj in sorted(objects):
            if obj not in name.lower():
                yield Stated("P31", name, obj, ORIGIN)
