"""Corpora for retrieval, cut into passages: the embedded model's training text or a user's text.

    starter     the training text of minilm-mlm, if it has been built
    FOLDER      its text files and tables, sorted by name
    FILE.txt    UTF-8, one paragraph per line
    FILE.jsonl  or another table (CSV, Parquet, ...) with a paragraph under "text" in each row

A passage has successive sentences of a paragraph, at most 60 words; a longer sentence is cut.
Characters that a model could take for a blank or a special token are replaced: [MASK] becomes
(MASK), and three or more underscores become "…".
"""

import hashlib
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path

from lama_core.datasets.line_reader import Reading
from lama_core.datasets.records import FileForm, has_table_name, read_records
from lama_core.errors import UserError, reason_of
from lama_core.files import open_file, user_path
from lama_core.paths import corpus_files

STARTER = "starter"
MAX_WORDS = 60  # of a passage
MAX_LINE = 20_000  # characters of a paragraph; the rest is ignored
MAX_READ = 16 << 20  # characters of a line that are held in memory
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"“(])")
SIGNS = str.maketrans("[]<>", "()()")
UNDERSCORES = re.compile(r"_{3,}")
LINES = ".txt"
TEXT = "text"  # column of a table
FORM_OF_SUFFIX: dict[str, FileForm] = {".jsonl": "jsonl"}  # others are recognised by content
CUT = 1  # version of the cutting rules; increase it when a change to them changes the passages


@dataclass(frozen=True)
class Corpus:
    """A corpus of text files, in reading order. name: for display."""

    name: str
    files: tuple[Path, ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the files' content, without names, and the version of the cutting rules."""
        parts = [str(CUT)]
        for path in self.files:
            with open_file(path) as file:  # refuses what isn't a regular file
                now = os.fstat(file.fileno())
            parts += [path.suffix.lower(), _digest(path, now.st_size, now.st_mtime_ns)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def sentences(self) -> Iterator[str]:
        """Yield the sentences. Raises UserError if there are none or a file can't be read."""
        paragraphs = chain.from_iterable(map(paragraphs_of, self.files))
        return self._nonempty(chain.from_iterable(map(_sentences, paragraphs)))

    def passages(self) -> Iterator[str]:
        """Yield the passages, each on one line. Raises as `sentences`."""
        paragraphs = chain.from_iterable(map(paragraphs_of, self.files))
        return self._nonempty(chain.from_iterable(map(_passages, paragraphs)))

    def _nonempty(self, texts: Iterator[str]) -> Iterator[str]:
        is_empty = True
        for text in texts:
            is_empty = False
            yield text
        if is_empty:
            raise UserError(f"The corpus {self.name} has no text: give files with words in them.")


def paragraphs_of(path: Path) -> Iterator[str]:
    """Return the paragraphs of a file of a corpus. Raises UserError as `read_lines`."""
    return _read_table(path) if has_table_name(path.name) else read_lines(path)


def load_corpus(reference: str) -> Corpus:
    """Return the corpus of a user's reference: `starter`, a folder, a text file or a table.

    Raises UserError if it doesn't exist or has no text file or table.
    """
    if reference == STARTER:
        return Corpus(STARTER, tuple(starter_files()))
    path = user_path(reference)
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if _is_text(file))
        if not found:
            raise UserError(f"{path} has no {LINES} file or table: add text files to this folder.")
        return Corpus(path.name or str(path), tuple(found))
    if not path.exists():
        raise UserError(
            f"Unknown corpus {reference[:200]!r}: give {STARTER}, a folder of texts, or a {LINES} "
            "file or table."
        )
    if not _is_text(path):
        raise UserError(f"{path} can't be a corpus: give a folder, a {LINES} file or a table.")
    return Corpus(path.name, (path,))


def _is_text(path: Path) -> bool:
    return path.suffix.lower() == LINES or has_table_name(path.name)


def starter_files() -> list[Path]:
    """Return the files of the embedded model's training text. Raises UserError if not built."""
    files = corpus_files()
    if not files:
        raise UserError(
            "MiniLM-MLM's corpus isn't built on this computer: build it in a checkout of the "
            "project with `python -m tools.training.corpus`, or give another text."
        )
    return files


def read_sentences(path: Path) -> Iterator[str]:
    """Yield the sentences of a text file. Raises UserError as `read_lines`."""
    return chain.from_iterable(map(_sentences, read_lines(path)))


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, each cut to MAX_LINE characters.

    Raises UserError if the file can't be read, isn't UTF-8 text or has null bytes.
    """
    try:
        with io.TextIOWrapper(open_file(path), encoding="utf-8-sig") as file:
            while line := file.readline(MAX_READ):
                if "\0" in line:
                    raise UserError(f"{path} is not a text file: it has null bytes.")
                yield line[:MAX_LINE]
    except OSError as error:
        raise UserError(f"{path} can't be read: {reason_of(error)}.") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8."
        ) from error


def _read_table(path: Path) -> Iterator[str]:
    reading = Reading(path)
    form = FORM_OF_SUFFIX.get(path.suffix.lower())
    table = read_records(reading, form, lambda names: TEXT in names, alone=True)
    for number, row in table.rows:
        text = row.get(TEXT)
        if not isinstance(text, str):
            reading.drop(path, number, 'write the paragraph as {"text": "..."}')
        if reading.dropped:
            break
        yield " ".join(str(text).split())[:MAX_LINE]
    for dropped in reading.dropped:
        raise UserError(f"{path}, line {dropped.line}: {dropped.reason}.")


def _sentences(paragraph: str) -> Iterator[str]:
    return filter(None, map(str.strip, SENTENCE_END.split(paragraph)))


def _passages(paragraph: str) -> Iterator[str]:
    kept: list[str] = []
    for sentence in _sentences(UNDERSCORES.sub("…", paragraph.translate(SIGNS))):
        words = sentence.split()
        if len(kept) + len(words) > MAX_WORDS and kept:
            yield " ".join(kept)
            kept = []
        while len(words) > MAX_WORDS:
            yield " ".join(words[:MAX_WORDS])
            words = words[MAX_WORDS:]
        kept += words
    if kept:
        yield " ".join(kept)


@cache
def _digest(path: Path, size: int, changed: int) -> str:
    """Return the SHA-256 of a file, cached by size and date. Raises as `open_file`."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
