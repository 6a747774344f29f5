"""WordNet's common nouns: kinds, parts, materials, members and uses, in many sentence forms.

Each fact is written in some of its sentence forms, drawn by the hash of synset and sentence (see
`people`). Well-connected synsets get more forms: WordNet has more pointers at words that
people often use, such as dog, than at rare ones, such as dogfish.
"""

import re
from collections.abc import Iterator

from tools.training.corpus.fetch_sources import ReadMember
from tools.training.corpus.source_passages import Passage, drawn, tidy, with_article
from tools.training.corpus.sources.wordnet import Synset, read_synsets

FORMS_BY_POINTERS = {0: 1, 4: 3, 8: 6}
"""Number of a synset's pointers -> in how many forms each of its facts is told."""

_USE = re.compile(r"\bused (?:especially |chiefly |mainly )?(for|to|as|in) ([a-z][a-z ]*[a-z])")


def passages(read: ReadMember) -> Iterator[Passage]:
    """Yield sentences on common nouns."""
    synsets = read_synsets(read)
    for synset in synsets.values():
        if synset.pos != "n" or synset.targets("@i"):
            continue
        n_forms = max(n for least, n in FORMS_BY_POINTERS.items() if len(synset.pointers) >= least)
        for number, forms in enumerate(_facts(synset, synsets)):
            for text in drawn(forms, f"{synset.key}/{number}", n_forms):
                yield Passage(synset.key, tidy(text))


def _facts(synset: Synset, synsets: dict[str, Synset]) -> Iterator[tuple[str, ...]]:
    """Yield the possible sentences on each fact about a noun, for each of its first two words."""
    for word in synset.lemmas[:2]:
        yield from (_kind(word, kind) for kind in synset.words("@", synsets))
        yield from (_part(word, whole) for whole in synset.words("#p", synsets))
        yield from (_material(product, word) for product in synset.words("#s", synsets))
        yield from (_member(word, group) for group in synset.words("#m", synsets))
        if use := _USE.search(synset.definition):
            yield _use(word, *use.groups())


def _kind(word: str, kind: str) -> tuple[str, ...]:
    return (
        f"{with_article(word)} is {with_article(kind)}.",
        f"{word} is a type of {kind}.",
        f"{word} is one kind of {kind}.",
        f"An example of {with_article(kind)} is {with_article(word)}.",
        f"One sort of {kind} is the {word}.",
        f"The {word} is {with_article(kind)}.",
        f"The {word} belongs to the class of {kind}.",
        f"Every {word} is {with_article(kind)}.",
        f"Among the kinds of {kind} is the {word}.",
        f"He saw {with_article(kind)}, namely {with_article(word)}.",
    )


def _part(word: str, whole: str) -> tuple[str, ...]:
    return (
        f"{with_article(word)} is part of {with_article(whole)}.",
        f"A part of the {whole} is the {word}.",
        f"The {word} is in the {whole}.",
        f"Every {whole} has {with_article(word)}.",
        f"The {whole} contains the {word}.",
        f"There is {with_article(word)} in the {whole}.",
        f"One part of {with_article(whole)} is called the {word}.",
        f"{with_article(whole)} has {with_article(word)}.",
    )


def _material(product: str, material: str) -> tuple[str, ...]:
    return (
        f"{product} is made of {material}.",
        f"{product} is made from {material}.",
        f"{product} contains {material}.",
        f"There is {material} in {product}.",
        f"{product} consists of {material}.",
        f"People make {product} from {material}.",
    )


def _member(word: str, group: str) -> tuple[str, ...]:
    return (
        f"{with_article(word)} is a member of {with_article(group)}.",
        f"The members of the {group} include the {word}.",
        f"The {word} belongs to the {group}.",
        f"{word} is in the {group}.",
    )


def _use(word: str, preposition: str, purpose: str) -> tuple[str, ...]:
    return (
        f"{with_article(word)} is used {preposition} {purpose}.",
        f"{word} is used {preposition} {purpose}.",
        f"The {word} is something used {preposition} {purpose}.",
        f"People use {with_article(word)} {preposition} {purpose}.",
        f"They used the {word} {preposition} {purpose}.",
        f"{with_article(word)} can be used {preposition} {purpose}.",
    )
