"""Static word vectors from a text file: word2vec's, fastText's or GloVe's, one word a line.

The relation of a pair is the difference of its words' vectors; two relations are compared by
cosine. Source: Rezaee and Camacho-Collados, section 3.1 (after Vylomova et al. 2016).
Only the wanted words are kept, so a file of any size can be read.
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
from functools import lru_cache
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.files import given_path, open_file

PACKAGE = "package:"
MAX_LINE = 1 << 20  # bytes
OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# What reading a damaged file may raise.
BROKEN: tuple[type[Exception], ...] = (
    *(OSError, EOFError, BadZipFile, LookupError, ValueError, RuntimeError, OverflowError),
    *(lzma.LZMAError, zlib.error, struct.error),
)


class WordVectors:
    """Vectors of the words that a file has. identity: SHA-256 of words and vectors."""

    device = "cpu"

    def __init__(self, name: str, vectors: dict[str, NDArray[np.float32]]) -> None:
        self.name = name
        self._vectors = vectors
        digest = hashlib.sha256()
        for word in sorted(vectors):
            digest.update(word.encode() + b"\0" + vectors[word].tobytes())
        self.identity = digest.hexdigest()

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """The vector of a word, float32 [dim]: as written, else lower-cased, else None."""
        found = self._vectors.get(word)
        return self._vectors.get(word.lower()) if found is None else found

    def missing(self, words: Iterable[str]) -> tuple[str, ...]:
        """The words that have no vector, each once, in their order."""
        return tuple(word for word in dict.fromkeys(words) if self.vector(word) is None)

    def pair_vectors(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Tail - head of each pair, float32 [pair, dim]; NaN where a word has no vector."""
        dim = len(next(iter(self._vectors.values()))) if self._vectors else 1
        rows = np.full((len(pairs), dim), np.nan, np.float32)
        for number, (head, tail) in enumerate(pairs):
            first, second = self.vector(head), self.vector(tail)
            if first is not None and second is not None:
                rows[number] = second - first
        return rows


def load_vectors(source: str, words: Iterable[str]) -> WordVectors:
    """The vectors of the wanted words, and of their lower-cased forms.

    source: a text file, plain or compressed (.gz, .bz2, .xz); a file in a zip or wheel, as
    `archive.whl!inner/vectors.txt`; or a file of an installed package, as
    `package:name/inner/vectors.txt`. A first line of two numbers (word2vec, fastText) is skipped.
    Raises UserError if it can't be read, a line is no vector, or none of the words is there.
    """
    # A run plans by the vectors before it asks them; a file of gigabytes is read once for both.
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
                raise UserError(f"{source}, line {number}: longer than any vector.")
            fields = line.rstrip("\n").rstrip(" ").split(" ")
            if number == 1 and len(fields) == 2:
                continue
            # A word may hold spaces (GloVe 840B): the numbers are counted from the right.
            if dim is None:
                dim = len(fields) - 1
                if dim < 2:
                    raise UserError(
                        f"{source}, line {number}: no vector: a word and its numbers, set apart by "
                        "spaces, are expected (word2vec or fastText text format)."
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
                raise UserError(
                    f"{source}, line {number}: the vector holds a value that is not a number."
                )
    if not vectors:
        raise UserError(f"{source}: none of the {len(wanted):,} words has a vector in this file.")
    return WordVectors(Path(source.partition("!")[2] or source).name, vectors)


@contextmanager
def _open(source: str) -> Iterator[Iterator[str]]:
    """The lines of a source, decoded as UTF-8; bytes that are none are replaced."""
    path, inner = _outer(source), source.partition("!")[2]
    try:
        with ExitStack() as opened:
            file: Any = opened.enter_context(open_file(path))
            if inner:
                file = opened.enter_context(opened.enter_context(ZipFile(file)).open(inner))
            if opener := OPENERS.get(Path(inner or path.name).suffix):
                file = opened.enter_context(opener(file, "rb"))
            yield _decode(file)
    except BROKEN as error:
        raise UserError(f"{source}: the word vectors can't be read: {error}.") from error


def _outer(source: str) -> Path:
    """The file of a source, or the archive that it is in."""
    outer = source.partition("!")[0]
    return _package_file(outer) if outer.startswith(PACKAGE) else given_path(outer)


def _decode(stream: IO[bytes]) -> Iterator[str]:
    while line := stream.readline(MAX_LINE):
        yield line.decode("utf-8", errors="replace")


def _package_file(source: str) -> Path:
    name, _, inner = source.removeprefix(PACKAGE).partition("/")
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        raise UserError(f"{source}: there is no installed package {name!r}.")
    return Path(next(iter(found.submodule_search_locations))) / inner
