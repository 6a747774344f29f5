"""WordNet 3.0's nouns, read from the files of Debian's `wordnet-base`.

Format: wndb(5). `data.noun` has one synset per line; `index.noun` has one lemma per line with its
senses, the most common first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lama_core.errors import UserError

FOLDER = Path("/usr/share/wordnet")
ORIGIN = "WordNet 3.0"

INSTANCE_OF, PART_OF = "@i", "#p"


@dataclass(frozen=True, slots=True)
class NounSynset:
    """A synset; category is its lexicographer file (18 is people)."""

    offset: str
    category: str
    words: tuple[str, ...]
    pointers: tuple[tuple[str, str], ...]
    gloss: str


@dataclass(frozen=True)
class Nouns:
    """WordNet's nouns: offset -> synset, and lower-cased lemma -> offsets of its senses."""

    synsets: dict[str, NounSynset]
    senses: dict[str, tuple[str, ...]]

    def targets(self, synset: NounSynset, pointer: str) -> list[NounSynset]:
        """Return the synsets that pointers of this type lead to, such as the hypernyms."""
        return [self.synsets[offset] for kind, offset in synset.pointers if kind == pointer]

    def is_first_sense(self, word: str, synset: NounSynset) -> bool:
        """Whether this is the word's most common sense, so that the word alone isn't misread."""
        return self.senses.get(word.lower(), ("",))[0] == synset.offset

    def is_only_sense(self, word: str, synset: NounSynset) -> bool:
        """Whether the word has no other sense as a noun."""
        return self.senses.get(word.lower()) == (synset.offset,)


def load(folder: Path = FOLDER) -> Nouns:
    """Return WordNet's nouns. Raises UserError if they aren't installed."""
    if not (folder / "data.noun").is_file():
        raise UserError(f"WordNet is not in {folder}: install Debian's package wordnet-base")
    synsets = {}
    for line in _lines(folder / "data.noun"):
        head, gloss = line.split(" | ", 1)
        synset = _synset(head.split(), gloss.strip())
        synsets[synset.offset] = synset
    senses = {}
    for line in _lines(folder / "index.noun"):
        cells = line.split()
        n_senses = int(cells[2])
        senses[cells[0].replace("_", " ")] = tuple(cells[-n_senses:])
    return Nouns(synsets, senses)


def _lines(path: Path) -> Iterator[str]:
    # The licence at the top is indented by two spaces.
    for line in path.read_text("latin-1").splitlines():
        if not line.startswith("  "):
            yield line.rstrip()


def _synset(cells: list[str], gloss: str) -> NounSynset:
    n_words = int(cells[3], 16)
    words = tuple(cells[4 + 2 * i].replace("_", " ") for i in range(n_words))
    at = 4 + 2 * n_words
    n_pointers = int(cells[at])
    pointers = tuple((cells[at + 1 + 4 * i], cells[at + 2 + 4 * i]) for i in range(n_pointers))
    return NounSynset(cells[0], cells[1], words, pointers, gloss)
