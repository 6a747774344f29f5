"""The passage of a corpus that is nearest to a query: what stands before it with the open book.

    weight(term, text)  = (1 + ln count) * (ln((1 + n) / (1 + n_with)) + 1), each text of length 1
    score(query, text)  = sum over the query's terms of weight(term, query) * weight(term, text)

Terms are words in lower case and pairs of neighbouring words, without stop words, hashed into 2^24
bins as in DrQA; n_with of n passages hold a term. A query's words are the template's and the
subject's: the answer is not looked for, and a passage that holds it is not preferred. Terms that no
passage holds don't count. Ties: the earlier passage.
Source: Chen et al. 2017, section 3.1; weights as in scikit-learn's TfidfTransformer.

An index is made once and kept in the cache folder under the corpus's digest. It is read from the
disk where it is asked, so that it takes no memory of its own.
Departure: The open book
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.lists import STOP_WORDS
from lama_core.datasets.passages import Corpus
from lama_core.errors import UserError
from lama_core.files import read_file, work_folder, write_text_whole
from lama_core.paths import cache_dir
from lama_core.progress import OnProgress, Progress, silent
from lama_core.types import Query

N_BINS = 1 << 24
# Raised by one whenever the same query would find another passage.
FORM = 1
ABOUT, PASSAGES = "index.json", "passages.txt"
WORD = re.compile(r"\w+")
REPORTED = 20_000  # passages between two steps of the bar


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that was found. number: its place in the corpus. score: between 0 and 1."""

    passage: str
    number: int
    score: float


@dataclass(frozen=True)
class Index:
    """The passages of a corpus, found by their words. folder: where it is kept."""

    folder: Path
    name: str
    digest: str
    n_passages: int

    def __getstate__(self) -> dict[str, Any]:
        """Without what was read: another process reads it itself."""
        return {name: value for name, value in vars(self).items() if name != "_arrays"}

    def search(self, query: Query, k: int = 1) -> list[Found]:
        """The k passages nearest to a query's words, best first; fewer where fewer share a word.

        Raises UserError if the index is damaged.
        """
        scores = np.zeros(self.n_passages, dtype=np.float32)
        for at, weight in self._weights(query):
            first, last = self._arrays["starts"][at : at + 2]
            weights = np.float32(weight) * self._arrays["weights"][first:last]
            scores[self._arrays["passages"][first:last]] += weights
        some = np.flatnonzero(scores > 0)
        best = some[np.lexsort((some, -scores[some]))[:k]]
        return [Found(self.passage(int(one)), int(one), float(scores[one])) for one in best]

    def passage(self, number: int) -> str:
        """The passage of that number."""
        first, last = map(int, self._arrays["offsets"][number : number + 2])
        with (self.folder / PASSAGES).open("rb") as file:
            file.seek(first)
            return file.read(last - first).decode().rstrip("\n")

    def _weights(self, query: Query) -> list[tuple[int, float]]:
        """The places of the query's terms in the index, with their weights."""
        counts = _vectorizer().transform([[term for part in query.parts for term in terms(part)]])
        bins = self._arrays["bins"]
        places = np.searchsorted(bins, counts.indices)
        known = places < len(bins)
        known[known] &= bins[places[known]] == counts.indices[known]
        places = places[known]
        weights = (1 + np.log(counts.data[known].astype(np.float64))) * self._arrays["idf"][places]
        length = float(np.sqrt((weights**2).sum()))
        return sorted(zip(places.tolist(), (weights / length).tolist(), strict=True))

    @cached_property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        names = ("bins", "starts", "passages", "weights", "idf", "offsets")
        try:
            return {name: np.load(self.folder / f"{name}.npy", mmap_mode="r") for name in names}
        except (OSError, ValueError) as error:
            raise _damaged(self.folder, error) from error


def terms(text: str) -> list[str]:
    """Words of a text in lower case, then pairs of neighbours, without stop words."""
    words = [word.casefold() for word in WORD.findall(text)]
    pairs = (pair for pair in pairwise(words) if STOP_WORDS.isdisjoint(pair))
    return [word for word in words if word not in STOP_WORDS] + [" ".join(pair) for pair in pairs]


def with_passage(query: Query, found: Found | None, *, segments: bool = False) -> Query:
    """The query with a passage before it; None leaves it as it is.

    segments: The passage is a first segment, the query a second one; see `models.masked`.
    """
    if found is None:
        return query
    parts = (f"{found.passage} {query.parts[0]}", *query.parts[1:])
    return Query(parts, (0, len(found.passage) + 1) if segments else None)


@dataclass(frozen=True)
class OpenBook:
    """What stands before each query: a corpus's nearest passage. It is part of a run's identity.

    segments: Passage and query are two segments.
    """

    corpus: Corpus
    segments: bool = False

    @property
    def identity(self) -> list[Any]:
        """What the passages depend on."""
        return [self.corpus.digest, FORM, *(["segments"] if self.segments else [])]

    @cached_property
    def index(self) -> Index:
        """The index, made where it isn't there."""
        return open_index(self.corpus)

    def look_up(self, query: Query) -> Found | None:
        """The nearest passage; None where no passage shares a word with the query."""
        found = self.index.search(query)
        return found[0] if found else None

    def before(self, query: Query) -> Query:
        """The query behind the nearest passage; as it is where there is none."""
        return with_passage(query, self.look_up(query), segments=self.segments)


def open_index(corpus: Corpus, on_progress: OnProgress = silent) -> Index:
    """The index of a corpus, made where it isn't there.

    Raises UserError for a corpus that can't be read or holds nothing, and a full disk.
    """
    folder = _folder(corpus)
    if not folder.is_dir():
        try:
            with work_folder(folder.parent) as work:
                made = work / "made"
                made.mkdir()
                _make(corpus, made, on_progress)
                if not folder.is_dir():  # another process may have been faster
                    made.rename(folder)
        except OSError as error:
            raise UserError(
                f"{folder}: the index of {corpus.name} can't be written: {error.strerror}."
            ) from error
    try:
        about = json.loads(read_file(folder / ABOUT))
        return Index(folder, corpus.name, about["digest"], int(about["n_passages"]))
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, error) from error


def is_indexed(corpus: Corpus) -> bool:
    """Whether the index of a corpus is there."""
    return _folder(corpus).is_dir()


def _folder(corpus: Corpus) -> Path:
    return cache_dir() / "retrieval" / f"{corpus.digest[:20]}-{FORM}"


def _damaged(folder: Path, error: Exception) -> UserError:
    return UserError(f"{folder}: the index is damaged ({error}): delete the folder.")


def _vectorizer() -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(
        analyzer=list, n_features=N_BINS, alternate_sign=False, norm=None, dtype=np.float32
    )


def _make(corpus: Corpus, folder: Path, on_progress: OnProgress) -> None:
    """Write a corpus's passages and the postings of their terms."""
    from sklearn.feature_extraction.text import TfidfTransformer

    sizes: list[int] = []

    def texts() -> Iterator[list[str]]:
        with (folder / PASSAGES).open("wb") as file:
            for number, passage in enumerate(corpus.passages()):
                if number % REPORTED == 0:
                    on_progress(Progress(f"Index of {corpus.name}", number, None, "passages"))
                sizes.append(file.write(f"{passage}\n".encode()))
                yield terms(passage)

    counts = _vectorizer().transform(texts())
    weigh = TfidfTransformer(sublinear_tf=True)
    table = weigh.fit(counts).transform(counts, copy=False).tocsc()
    per_bin = np.diff(table.indptr)
    bins = np.flatnonzero(per_bin)
    arrays = {
        "bins": bins.astype(np.int32),
        "starts": np.concatenate([[0], np.cumsum(per_bin[bins])]).astype(np.int64),
        "passages": table.indices.astype(np.int32),
        "weights": table.data.astype(np.float32),
        "idf": np.asarray(weigh.idf_)[bins].astype(np.float32),
        "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    }
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values, allow_pickle=False)
    about = {"name": corpus.name, "digest": corpus.digest, "n_passages": len(sizes)}
    write_text_whole(folder / ABOUT, json.dumps(about, ensure_ascii=False, indent=1) + "\n")
