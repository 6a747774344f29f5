"""Retrieval of the passage of a corpus that is nearest to a query, for open-book context.

    weight(term, text)  = (1 + ln count) * (ln((1 + n) / (1 + n_with)) + 1), divided by the text's
                          L2 norm
    score(query, text)  = sum over the query's terms of weight(term, query) * weight(term, text)

Terms are lower-case words and pairs of neighbouring words, without stop words, hashed into 2^24
bins as in DrQA. count is how often a term occurs in the text; n_with of n passages contain it. A
query's words are those of the template and the subject: the answer isn't a search term, so passages
that contain it are not preferred. Terms in no passage are ignored. Of equal scores, the earlier
passage is first.
Source: Chen et al. 2017, section 3.1; weights as in scikit-learn's TfidfTransformer.

An index is made once and kept in the cache folder under the corpus's digest. It is memory-mapped.
Departure: Open-book context
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
from lama_core.errors import UserError, reason_of
from lama_core.files import read_file, work_folder, write_text_atomically
from lama_core.paths import cache_dir
from lama_core.progress import OnProgress, Progress, ignore
from lama_core.types import Query

N_BINS = 1 << 24
# Version of the retrieval: incremented whenever the same query could find another passage.
FORM = 1
ABOUT, PASSAGES = "index.json", "passages.txt"
WORD = re.compile(r"\w+")
PROGRESS_INTERVAL = 20_000  # passages between two progress reports


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A retrieved passage.

    Attributes:
        passage: Its text.
        number: Its index in the corpus.
        score: Its similarity to the query, between 0 and 1.
    """

    passage: str
    number: int
    score: float


@dataclass(frozen=True)
class Index:
    """A search index of the passages of a corpus, stored in a folder."""

    folder: Path
    name: str
    digest: str
    n_passages: int

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the arrays, which another process loads itself."""
        return {name: value for name, value in vars(self).items() if name != "_arrays"}

    def search(self, query: Query, k: int = 1) -> list[FoundPassage]:
        """Return the k passages nearest to a query, best first; fewer if fewer share a term.

        Raises:
            UserError: If the index is damaged.
        """
        counts = _vectorizer().transform([[term for part in query.parts for term in terms(part)]])
        bins = self._arrays["bins"]
        rows = np.searchsorted(bins, counts.indices)
        known = rows < len(bins)  # the query's indexed terms
        known[known] &= bins[rows[known]] == counts.indices[known]
        rows = rows[known]
        of_terms = (1 + np.log(counts.data[known].astype(np.float64))) * self._arrays["idf"][rows]
        length = float(np.sqrt((of_terms**2).sum()))
        scores = np.zeros(self.n_passages, dtype=np.float32)
        for row, weight in sorted(zip(rows.tolist(), (of_terms / length).tolist(), strict=True)):
            first, last = self._arrays["starts"][row : row + 2]
            weights = np.float32(weight) * self._arrays["weights"][first:last]
            scores[self._arrays["passages"][first:last]] += weights
        matching = np.flatnonzero(scores > 0)
        best = matching[np.lexsort((matching, -scores[matching]))[:k]].tolist()
        return [
            FoundPassage(self.passage(number), number, float(scores[number])) for number in best
        ]

    def passage(self, number: int) -> str:
        """Return the passage with this index."""
        first, last = map(int, self._arrays["offsets"][number : number + 2])
        with (self.folder / PASSAGES).open("rb") as file:
            file.seek(first)
            return file.read(last - first).decode().rstrip("\n")

    @cached_property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        names = ("bins", "starts", "passages", "weights", "idf", "offsets")
        try:
            return {name: np.load(self.folder / f"{name}.npy", mmap_mode="r") for name in names}
        except (OSError, ValueError) as error:
            raise _damaged(self.folder, error) from error


def terms(text: str) -> list[str]:
    """Return the lower-case words of a text, then pairs of neighbouring words; no stop words."""
    words = [word.casefold() for word in WORD.findall(text)]
    pairs = (pair for pair in pairwise(words) if STOP_WORDS.isdisjoint(pair))
    return [word for word in words if word not in STOP_WORDS] + [" ".join(pair) for pair in pairs]


def with_passage(query: Query, found: FoundPassage | None, *, segments: bool = False) -> Query:
    """Return the query with a passage in front; with None, the unchanged query.

    segments: Whether passage and query are two segments; see `models.hf.masked`.
    """
    if found is None:
        return query
    return Query(
        (f"{found.passage} {query.parts[0]}", *query.parts[1:]),
        (0, len(found.passage) + 1) if segments else None,
    )


@dataclass(frozen=True)
class OpenBook:
    """Open-book context: the nearest passage of a corpus, put in front of each query.

    segments: Whether passage and query are two segments.
    """

    corpus: Corpus
    segments: bool = False

    @property
    def identity(self) -> list[Any]:
        """The corpus and the options that determine the queries, for a run's identity."""
        return [self.corpus.digest, FORM, *(["segments"] if self.segments else [])]

    @cached_property
    def index(self) -> Index:
        """The index, made if it doesn't exist."""
        return open_index(self.corpus)

    def look_up(self, query: Query) -> FoundPassage | None:
        """Return the nearest passage; None if no passage shares a term with the query."""
        return next(iter(self.index.search(query)), None)

    def before(self, query: Query) -> Query:
        """Return the query with the nearest passage in front; unchanged if there is none."""
        return with_passage(query, self.look_up(query), segments=self.segments)


def open_index(corpus: Corpus, on_progress: OnProgress = ignore) -> Index:
    """Return the index of a corpus; make it if it doesn't exist.

    Raises:
        UserError: If the corpus is unreadable or empty, or the index can't be written.
    """
    folder = _folder(corpus)
    if not folder.is_dir():
        try:
            with work_folder(folder.parent) as work:
                unfinished = work / "made"
                unfinished.mkdir()
                _write_index(corpus, unfinished, on_progress)
                if not folder.is_dir():  # another process may have been faster
                    unfinished.rename(folder)
        except OSError as error:
            raise UserError(
                f"Cannot write the index of {corpus.name} to {folder}: {reason_of(error)}."
            ) from error
    try:
        about = json.loads(read_file(folder / ABOUT))
        return Index(folder, corpus.name, about["digest"], int(about["n_passages"]))
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, error) from error


def is_indexed(corpus: Corpus) -> bool:
    """Return whether a corpus has an index."""
    return _folder(corpus).is_dir()


def _folder(corpus: Corpus) -> Path:
    return cache_dir() / "retrieval" / f"{corpus.digest[:20]}-{FORM}"


def _damaged(folder: Path, error: Exception) -> UserError:
    return UserError(f"The index in {folder} is damaged ({error}): delete the folder.")


def _vectorizer() -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(
        analyzer=list, n_features=N_BINS, alternate_sign=False, norm=None, dtype=np.float32
    )


def _write_index(corpus: Corpus, folder: Path, on_progress: OnProgress) -> None:
    """Write a corpus's passages to a folder, and for each term the passages that contain it."""
    from sklearn.feature_extraction.text import TfidfTransformer

    sizes: list[int] = []

    def texts() -> Iterator[list[str]]:
        with (folder / PASSAGES).open("wb") as file:
            for number, passage in enumerate(corpus.passages()):
                if number % PROGRESS_INTERVAL == 0:
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
    write_text_atomically(folder / ABOUT, json.dumps(about, ensure_ascii=False, indent=1) + "\n")
