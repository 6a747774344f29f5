"""Facts about what named things are instances of (P31), from WordNet.

Only the most common sense of a name is used, so that the name alone is clear. Kinds, parts and
regions (IsA, P279, PartOf, P361) are written by hand: WordNet's are too specific for cloze queries.
"""

from collections.abc import Iterator

from tools.starter.model import StarterFact
from tools.starter.wordnet import INSTANCE_OF, ORIGIN, Nouns

# No kind begins with a vowel, because the template has "a".
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
# Changed since WordNet 3.0, or ambiguous without context.
_EXCLUDED_TEXT = """
    Communism Peak, Baffin Bay, Lenin Peak, Baikal, Holy See, Pobeda Peak, Sudan, Bowery, Mobile,
    Burma, Yugoslavia, Serbia and Montenegro, Montenegro, Ceylon, Sea of Azov, Nuptse, Caspian,
    sun, Bonete, Gondwanaland, Laurasia, Congo
"""
EXCLUDED = frozenset(name.strip() for name in _EXCLUDED_TEXT.split(","))


def facts(nouns: Nouns) -> Iterator[StarterFact]:
    """Yield all P31 facts of named places, battles and stars."""
    for synset in nouns.synsets.values():
        kinds = {kind.lemmas[0] for kind in nouns.targets(synset, INSTANCE_OF)}
        objects = {KIND_OF_LEMMA[kind] for kind in kinds if kind in KIND_OF_LEMMA}
        name = synset.lemmas[0]
        if not nouns.is_first_sense(name, synset) or name in EXCLUDED:
            continue
        # Names of cities are often shared: only names with a single sense are kept.
        if "city" in objects and len(nouns.senses[name.lower()]) > 1:
            continue
        for obj in sorted(objects):
            if obj not in name.lower():
                yield StarterFact("P31", name, obj, ORIGIN)
