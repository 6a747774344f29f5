"""Texts to read from: the embedded model's training text or the user's own, as passages.

    starter     the training text of minilm-mlm, where it is built
    FOLDER      its .txt and .jsonl files, in the order of their names
    FILE.txt    UTF-8, one paragraph a line
    FILE.jsonl  one object a line, with the paragraph under "text"

A passage is as many of a paragraph's sentences, one after the other, as have at most 60 words
together; a longer sentence is cut. Signs that a model could take for a blank or for a token of its
own are written otherwise: (MASK) for [MASK].
"""

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from lama_core.errors import UserError
from lama_core.files import open_file, user_path
from lama_core.paths import corpus_files

STARTER = "starter"
MAX_WORDS = 60  # of a passage
MAX_LINE = 20_000  # characters of a paragraph: the rest is not read
MAX_READ = 16 << 20  # characters of a line that are held at once
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"“(])")
SIGNS = str.maketrans("[]<>", "()()")
UNDERSCORES = re.compile(r"_{3,}")
LINES, JSONL = ".txt", ".jsonl"
CUT = 1  # of how passages are cut; raised when the same text would give others


@dataclass(frozen=True)
class Corpus:
    """Texts to read from. name: for people. files: in the order in which they are read."""

    name: str
    files: tuple[Path, ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the files' bytes and of how they are cut; not of their names."""
        parts = [str(CUT)]
        for path in self.files:
            with open_file(path) as file:  # says what is no plain file
                now = os.fstat(file.fileno())
            parts += [path.suffix.lower(), _digest(path, now.st_size, now.st_mtime_ns)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def sentences(self) -> Iterator[str]:
        """The sentences. Raises UserError for a file that can't be read, and if there are none."""
        return self._some(
            sentence for paragraph in self._paragraphs() for sentence in _sentences(paragraph)
        )

    def passages(self) -> Iterator[str]:
        """The passages, each a line. Raises as `sentences`."""
        return self._some(
            passage for paragraph in self._paragraphs() for passage in _passages(paragraph)
        )

    def _some(self, texts: Iterator[str]) -> Iterator[str]:
        n = 0
        for text in texts:
            n += 1
            yield text
        if not n:
            raise UserError(f"The corpus {self.name} holds no text: give files with words in them.")

    def _paragraphs(self) -> Iterator[str]:
        for path in self.files:
            yield from _read_jsonl(path) if path.suffix.lower() == JSONL else read_lines(path)


def load_corpus(reference: str) -> Corpus:
    """The corpus that a user means: `starter`, a folder, a text file or a JSONL file.

    Raises UserError if it isn't here, or has no file of these kinds.
    """
    if reference == STARTER:
        return Corpus(STARTER, tuple(starter_files()))
    path = user_path(reference)
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.suffix.lower() in (LINES, JSONL))
        if not found:
            raise UserError(f"{path}: the folder has no {LINES} or {JSONL} file: put texts there.")
        return Corpus(path.name or str(path), tuple(found))
    if not path.exists():
        raise UserError(
            f"There is no corpus {reference[:200]!r}: give {STARTER}, a folder of texts, or a "
            f"{JSONL} file."
        )
    if path.suffix.lower() not in (LINES, JSONL):
        raise UserError(f"{path}: a corpus is a folder, or a {LINES} or {JSONL} file.")
    return Corpus(path.name, (path,))


def starter_files() -> list[Path]:
    """The files of the embedded model's training text. Raises UserError if it isn't built here."""
    files = corpus_files()
    if not files:
        raise UserError(
            "MiniLM-MLM's corpus is not built here: `lama-explorer data "
            "build-corpus` fetches its sources and builds it, or give a text of your own."
        )
    return files


def read_sentences(path: Path) -> Iterator[str]:
    """The sentences of a text file, line by line. Raises UserError as `read_lines`."""
    for line in read_lines(path):
        yield from _sentences(line)


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, each of at most MAX_LINE characters.

    Raises UserError if the file is missing, not UTF-8 text, or holds zero bytes.
    """
    for line in _whole_lines(path):
        yield line[:MAX_LINE]


def _whole_lines(path: Path) -> Iterator[str]:
    try:
        with io.TextIOWrapper(open_file(path), encoding="utf-8-sig") as file:
            while line := file.readline(MAX_READ):
                if "\0" in line:
                    raise UserError(f"{path}: the text holds zero bytes: it is no text file.")
                yield line
    except OSError as error:
        raise UserError(f"{path}: the text can't be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start}).") from error


def _read_jsonl(path: Path) -> Iterator[str]:
    for number, line in enumerate(_whole_lines(path), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: no JSON object.") from error
        text = entry.get("text") if isinstance(entry, dict) else None
        if not isinstance(text, str):
            raise UserError(f'{path}, line {number}: write the paragraph as {{"text": "..."}}.')
        yield " ".join(text.split())[:MAX_LINE]


def _sentences(paragraph: str) -> Iterator[str]:
    for sentence in SENTENCE_END.split(paragraph):
        if sentence.strip():
            yield sentence.strip()


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
    """SHA-256 of a file's bytes, known while its size and date stay. Raises as `open_file`."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
