"""Static word vectors from a text file in word2vec, fastText or GloVe format, one word per line.

The vector of a pair is the difference of its words' vectors; pairs are compared by cosine.
Source: Rezaee and Camacho-Collados, section 3.1 (after Vylomova et al. 2016).
Only the requested words are kept in memory, so that files of any size can be read.
"""

import bz2
import gzip
import hashlib
import importlib.util
import lzma
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.files import open_file, user_path

PACKAGE = "package:"
MAX_LINE = 1 << 20  # bytes
OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# Exceptions that reading a damaged file may raise.
BROKEN: tuple[type[Exception], ...] = (
    *(OSError, EOFError, BadZipFile, LookupError, ValueError, RuntimeError, OverflowError),
    *(lzma.LZMAError, zlib.error, struct.error),
)


class WordVectors:
    """Vectors of words, read from a file. identity: SHA-256 of words and vectors."""

    device = "cpu"

    def __init__(self, name: str, vectors: dict[str, NDArray[np.float32]]) -> None:
        self.name = name
        self._vectors = vectors
        digest = hashlib.sha256()
        for word in sorted(vectors):
            digest.update(word.encode() + b"\0" + vectors[word].tobytes())
        self.identity = digest.hexdigest()

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """Return the vector of a word or else of its lower-case form, float32 [dim], or None."""
        return self._vectors.get(word, self._vectors.get(word.lower()))

    def missing(self, words: Iterable[str]) -> tuple[str, ...]:
        """Return the distinct words without a vector, in order."""
        return tuple(word for word in dict.fromkeys(words) if self.vector(word) is None)

    def pair_vectors(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return tail minus head of each pair, float32 [pair, dim]; NaN if a vector is missing."""
        dim = len(next(iter(self._vectors.values()))) if self._vectors else 1
        rows = np.full((len(pairs), dim), np.nan, np.float32)
        for number, (head, tail) in enumerate(pairs):
            first, second = self.vector(head), self.vector(tail)
            if first is not None and second is not None:
                rows[number] = second - first
        return rows


def load_vectors(source: str, words: Iterable[str]) -> WordVectors:
    """Load the vectors of some words and of their lower-case forms.

    source: a text file, plain or compressed (.gz, .bz2, .xz); a file in a zip or wheel, as
    `archive.whl!inner/vectors.txt`; or a file of an installed package, as
    `package:name/inner/vectors.txt`. A first line of two numbers (word2vec, fastText) is skipped.

    Raises:
        UserError: If the file can't be read, a line is not a vector, or no word is in it.
    """
    # Cached, so that planning and scoring a run read a file of gigabytes only once.
    wanted = frozenset(form for word in words for form in (word, word.lower()))
    status = path.stat() if (path := _outer(source)).exists() else None
    return _read(source, wanted, (status.st_size, status.st_mtime_ns) if status else None)


@lru_cache(maxsize=4)
def _read(source: str, wanted: frozenset[str], _stamp: object) -> WordVectors:
    vectors: dict[str, NDArray[np.float32]] = {}
    dim: int | None = None
    with _open(source) as lines:
        for number, line in enumerate(lines, start=1):
            if len(line) >= MAX_LINE:
                raise UserError(
                    f"{source}, line {number}: the line is too long for a vector. Use a text file "
                    "in word2vec, fastText or GloVe format."
                )
            fields = line.rstrip("\r\n ").split(" ")
            if number == 1 and len(fields) == 2:
                continue
            # Numbers are counted from the right, because a word may contain spaces (GloVe 840B).
            if dim is None:
                dim = len(fields) - 1
                if dim < 2:
                    raise UserError(
                        f"{source}, line {number}: not a vector. Expected a word and its numbers, "
                        "separated by spaces (word2vec, fastText or GloVe text format)."
                    )
            word = " ".join(fields[:-dim])
            if word not in wanted or word in vectors:
                continue
            try:
                vectors[word] = np.array(fields[-dim:], dtype=np.float32)
            except ValueError as error:
                raise UserError(
                    f"{source}, line {number}: not a vector of numbers ({str(error)[:200]})."
                ) from error
            if not np.isfinite(vectors[word]).all():
                raise UserError(f"{source}, line {number}: the vector contains NaN or infinity.")
    if not vectors:
        raise UserError(
            f"{source}: none of the {len(wanted):,} words has a vector in this file. Choose a file "
            "in the language of the analogies."
        )
    return WordVectors(Path(source.partition("!")[2] or source).name, vectors)


@contextmanager
def _open(source: str) -> Iterator[Iterator[str]]:
    """Yield the lines of a source, decoded as UTF-8; invalid bytes are replaced."""
    path, inner = _outer(source), source.partition("!")[2]
    try:
        with ExitStack() as opened:
            file: Any = opened.enter_context(open_file(path))
            if inner:
                file = opened.enter_context(opened.enter_context(ZipFile(file)).open(inner))
            if opener := OPENERS.get(Path(inner or path.name).suffix):
                file = opened.enter_context(opener(file, "rb"))
            lines = iter(partial(file.readline, MAX_LINE), b"")
            yield (line.decode("utf-8", errors="replace") for line in lines)
    except BROKEN as error:
        raise UserError(f"{source}: the word vectors can't be read ({error}).") from error


def _outer(source: str) -> Path:
    """Return the file of a source, or the archive that contains it."""
    outer = source.partition("!")[0]
    return _package_file(outer) if outer.startswith(PACKAGE) else user_path(outer)


def _package_file(source: str) -> Path:
    name, _, inner = source.removeprefix(PACKAGE).partition("/")
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        raise UserError(
            f"{source}: the Python package {name!r} is not installed. Install it, or give a file."
        )
    return Path(next(iter(found.submodule_search_locations))) / inner
