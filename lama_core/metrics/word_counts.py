"""How often each word and each entity occurs in the text that the embedded model was trained on.

The file is tab-separated text in gzip: a kind (`word` or `entity`), the lower-cased word or
phrase, its count. Needs no torch. The paper's Figure 3 correlates such counts with P@1
(Petroni et al. 2019, section 5.1).
"""

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lama_core.errors import UserError
from lama_core.files import read_gzip_lines, write_gzip_lines

COUNTS_FILE = "corpus_counts.tsv.gz"
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


@dataclass(frozen=True)
class CorpusCounts:
    """words: count of each lower-cased word. entities: passages on each lower-cased name."""

    words: Mapping[str, int]
    entities: Mapping[str, int]

    def mentions(self, phrase: str) -> int:
        """Mentions of a phrase: a word's own count, an entity's passages, else 0.

        A phrase of several words that is no entity counts as never mentioned, which
        underestimates it.
        """
        key = " ".join(phrase.lower().split())
        return max(self.words.get(key, 0), self.entities.get(key, 0))


def count_corpus(passages: Iterable[tuple[str, tuple[str, ...]]]) -> CorpusCounts:
    """Counts over pairs of a text and the entities that it is about."""
    words: Counter[str] = Counter()
    entities: Counter[str] = Counter()
    for text, about in passages:
        words.update(words_of(text))
        entities.update(" ".join(name.lower().split()) for name in about)
    return CorpusCounts(words, entities)


def words_of(text: str) -> list[str]:
    """The lower-cased words of a text: runs of letters and digits, with an inner apostrophe."""
    return _WORD.findall(text.lower())


def save_corpus_counts(counts: CorpusCounts, path: Path, *, least_entity_count: int = 2) -> None:
    """Write the counts; the same counts give the same bytes. Entities below the least are left out.

    Words are all kept.
    """
    lines = [f"word\t{w}\t{n}" for w, n in sorted(counts.words.items())]
    lines += [
        f"entity\t{name}\t{n}"
        for name, n in sorted(counts.entities.items())
        if n >= least_entity_count and name
    ]
    write_gzip_lines(path, lines)


def load_corpus_counts(path: Path) -> CorpusCounts:
    """The counts in a file, or in a model's folder that holds one.

    Raises UserError when there is none, or it isn't one of ours.
    """
    file = path / COUNTS_FILE if path.is_dir() else path
    if not file.exists():
        raise UserError(f"there are no corpus counts at {file}")
    tables: dict[str, dict[str, int]] = {"word": {}, "entity": {}}
    for kind, name, count in read_counts(file, "corpus counts", kinds=tuple(tables)):
        tables[kind][name] = count
    return CorpusCounts(tables["word"], tables["entity"])


def read_counts(
    path: Path, what: str, *, kinds: tuple[str, ...] = ()
) -> list[tuple[str, str, int]]:
    """The rows of a packed file: two texts and a whole number, with tabs between them.

    kinds: what the first text may be; () is anything. Raises UserError for another file: that it
    isn't a file of `what`.
    """
    rows = []
    try:
        for line in read_gzip_lines(path):
            first, second, count = line.split("\t")
            if kinds and first not in kinds:
                raise ValueError(first)
            rows.append((first, second, int(count)))
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise UserError(f"{path} isn't a file of {what}.") from error
    return rows
