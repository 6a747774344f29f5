"""Names in a sentence, and what stands between and around two of them.

A mention is a name that stands in the sentence letter for letter, as whole words; the first letter
of a sentence may be a capital. The longest name at a place counts, and names don't overlap.

    "Dante was born in the city of Florence ."  (Dante, Florence)
    >, >between=was, >pair=was born, >middle=was born in the city of, >right1=. ...

`>` where the subject stands first, else `<`. The names themselves are never features: the
classifier reads what is said of two names, and can't remember them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations

from lama_core.probes.prompts.mining import MAX_WORDS, Match, split_words

MAX_MENTIONS = 12  # of a sentence: each two of them are a pair, twice
AROUND = 2  # words that are read left of the first name, and right of the second
EDGE = "·"  # stands for the beginning, the end, and the names


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a sentence. span: its words, [start, stop)."""

    name: str
    span: tuple[int, int]


class NameFinder:
    """Finds names in sentences, by runs of words. names: as the data writes them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names: dict[tuple[str, ...], str] = {}
        for name in names:
            words = split_words(name)
            if words:
                self._names.setdefault(words, name)
        self._lengths: dict[str, list[int]] = {}
        for words in sorted(self._names, key=len, reverse=True):
            lengths = self._lengths.setdefault(words[0], [])
            if len(words) not in lengths:
                lengths.append(len(words))

    def mentions(self, words: tuple[str, ...]) -> list[Mention]:
        """The first MAX_MENTIONS names of a sentence, from left to right."""
        found: list[Mention] = []
        at = 0
        while at < len(words) and len(found) < MAX_MENTIONS:
            mention = self._at(words, at) if not at or words[at] in self._lengths else None
            if mention is not None:
                found.append(mention)
            at = mention.span[1] if mention else at + 1
        return found

    def _at(self, words: tuple[str, ...], at: int) -> Mention | None:
        firsts = [words[at]]
        if at == 0:  # a sentence begins with a capital, whatever the name does
            firsts.append(words[0][:1].lower() + words[0][1:])
        for first in firsts:
            for length in self._lengths.get(first, ()):
                name = self._names.get((first, *words[at + 1 : at + length]))
                if name is not None:
                    return Mention(name, (at, at + length))
        return None


def pairs_of(
    words: tuple[str, ...], mentions: Iterable[Mention]
) -> Iterator[tuple[str, str, Match]]:
    """Each two names of a sentence, in both directions: subject, object, and where they stand."""
    for subject, obj in permutations(mentions, 2):
        if subject.name != obj.name:
            yield subject.name, obj.name, Match(words, subject.span, obj.span)


def describe(match: Match) -> list[str]:
    """What a sentence says between and around two names, as the classifier's features."""
    ahead = match.subject < match.object
    way = ">" if ahead else "<"
    first, second = sorted((match.subject, match.object))
    words = [word.lower() for word in match.words]
    between = words[first[1] : second[0]]
    found = [way, *(f"{way}between={word}" for word in between)]
    found += [f"{way}pair={left} {right}" for left, right in pairwise([EDGE, *between, EDGE])]
    if len(between) <= MAX_WORDS:
        found.append(f"{way}middle={' '.join(between)}")
    for away in range(1, AROUND + 1):
        at = first[0] - away
        found.append(f"{way}left{away}={words[at] if at >= 0 else EDGE}")
        at = second[1] - 1 + away
        found.append(f"{way}right{away}={words[at] if at < len(words) else EDGE}")
    return found
