"""Counts of words and entities in a model's training text.

The file is gzipped tab-separated text: a kind (`word` or `entity`), the lower-cased word or phrase,
and its count. Figure 3 correlates such counts with P@1 (Petroni et al. 2019, section 5.1).
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
    """Counts in a training text.

    words: Lower-cased word -> number of occurrences. entities: Lower-cased name -> number of
    passages about the entity.
    """

    words: Mapping[str, int]
    entities: Mapping[str, int]

    def mentions(self, phrase: str) -> int:
        """Return the mentions of a phrase: the larger of its counts as a word and as an entity.

        A phrase of several words that isn't an entity has the count 0, even if it occurs.
        """
        key = " ".join(phrase.lower().split())
        return max(self.words.get(key, 0), self.entities.get(key, 0))


def count_corpus(passages: Iterable[tuple[str, tuple[str, ...]]]) -> CorpusCounts:
    """Count words and entities. passages: pairs of a text and the entities that it is about."""
    words: Counter[str] = Counter()
    entities: Counter[str] = Counter()
    for text, about in passages:
        words.update(words_of(text))
        entities.update(" ".join(name.lower().split()) for name in about)
    return CorpusCounts(words, entities)


def words_of(text: str) -> list[str]:
    """Return the lower-cased words of a text: letters and digits, and an inner apostrophe."""
    return _WORD.findall(text.lower())


def save_corpus_counts(counts: CorpusCounts, path: Path) -> None:
    """Write all words, and entities that occur at least twice; equal counts give equal bytes."""
    lines = [f"word\t{w}\t{n}" for w, n in sorted(counts.words.items())]
    lines += [
        f"entity\t{name}\t{n}" for name, n in sorted(counts.entities.items()) if n >= 2 and name
    ]
    write_gzip_lines(path, lines)


def load_corpus_counts(path: Path) -> CorpusCounts:
    """Load the counts from a file, or from a model's folder.

    Raises:
        UserError: If the file is missing or isn't a file of corpus counts.
    """
    file = path / COUNTS_FILE if path.is_dir() else path
    if not file.exists():
        raise UserError(f"Corpus counts not found: {file}")
    tables: dict[str, dict[str, int]] = {"word": {}, "entity": {}}
    for kind, name, count in read_counts(file, "corpus counts", kinds=tuple(tables)):
        tables[kind][name] = count
    return CorpusCounts(tables["word"], tables["entity"])


def read_counts(
    path: Path, what: str, *, kinds: tuple[str, ...] = ()
) -> list[tuple[str, str, int]]:
    """Return the rows of a gzipped tab-separated file: two texts and an integer.

    Args:
        path: The file.
        what: Name of the content for the error message.
        kinds: Allowed values of the first text; () allows any.

    Raises:
        UserError: If the file has other content.
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
