"""WordNet 3.0's nouns, read from the files of Debian's `wordnet-base`.

Format: wndb(5). `data.noun` has the synsets; `index.noun` has one lemma per line with its senses,
the most common first.
"""

from dataclasses import dataclass
from pathlib import Path

from lama_core.errors import UserError
from tools.training.corpus.sources.wordnet import FOLDER as INSIDE
from tools.training.corpus.sources.wordnet import Synset, read_synsets

FOLDER = Path("/", INSIDE)
ORIGIN = "WordNet 3.0"

INSTANCE_OF, PART_OF = "@i", "#p"


@dataclass(frozen=True)
class Nouns:
    """WordNet's nouns: key -> synset, and lower-cased lemma -> keys of its senses."""

    synsets: dict[str, Synset]
    senses: dict[str, list[str]]

    def targets(self, synset: Synset, pointer: str) -> list[Synset]:
        """Return the synsets that pointers of this type lead to, such as the hypernyms."""
        return [self.synsets[key] for key in synset.targets(pointer)]

    def is_first_sense(self, word: str, synset: Synset) -> bool:
        """Whether this is the word's most common sense, so that the word alone isn't misread."""
        return self.senses.get(word.lower(), [""])[0] == synset.key


def load() -> Nouns:
    """Return WordNet's nouns. Raises UserError if they aren't installed."""
    if not (FOLDER / "data.noun").is_file():
        raise UserError(f"WordNet is not in {FOLDER}: install Debian's package wordnet-base")
    synsets = read_synsets(lambda member: (FOLDER / Path(member).name).read_bytes())
    senses = {}
    for line in (FOLDER / "index.noun").read_text("latin-1").splitlines():
        if not line.startswith("  "):  # the licence at the top is indented
            lemma, _, n_senses, *cells = line.split()
            senses[lemma.replace("_", " ")] = [f"n{offset}" for offset in cells[-int(n_senses) :]]
    return Nouns({key: one for key, one in synsets.items() if one.pos == "n"}, senses)
