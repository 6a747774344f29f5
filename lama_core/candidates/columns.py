"""Candidates, the words that are ranked at a blank, and their columns in a model's distribution.

A word's probability is the sum of the probabilities of the single tokens that write it. With
`fold_case`, the words are lower-cased, and the probabilities of a cased model's `Paris`, `paris`
and `PARIS` are summed, for a fair comparison with an uncased model. Source: Petroni et al. 2019,
section 4.5 (common vocabulary), which doesn't describe case folding.

Departure: The common vocabulary
"""

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.spelling import (
    PLACES,
    OpenVocabulary,
    Place,
    Spelling,
    Vocabulary,
    spell,
)
from lama_core.errors import UserError

NOT_ONE_TOKEN = "object is not one token of the model"
NOT_A_CANDIDATE = "object is not among the candidates"
NO_COLUMN = -1


def pad_columns(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Return rows of columns as an array, int64 [row, longest row], padded with -1."""
    width = max(map(len, rows), default=0)
    table = np.full((len(rows), width), NO_COLUMN, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


@dataclass(frozen=True)
class Columns:
    """The columns of a candidate list in one model's distribution.

    Attributes:
        words: The candidates that are one token of the model, in candidate order.
        token_ids: Place -> ids of each candidate's tokens, int64 [candidate, form], padded with -1.
        spelling: How the model writes the candidates.
        is_full: Whether every token of the model is a column.
    """

    words: Sequence[str]
    token_ids: dict[Place, NDArray[np.int64]]
    spelling: Spelling
    is_full: bool = False

    @cached_property
    def index(self) -> dict[str, int]:
        """Word -> column."""
        return {word: column for column, word in enumerate(self.words)}

    def tokens_of(self, column: int, place: Place) -> tuple[int, ...]:
        """Return the ids of the tokens that write a candidate."""
        return tuple(form for form in self.token_ids[place][column].tolist() if form >= 0)

    @cached_property
    def _by_token(self) -> dict[int, int]:
        ids = self.token_ids["after space"][:, 0].tolist()
        return {token: column for column, token in enumerate(ids)}

    def find(self, word: str, place: Place = "after space") -> int | str:
        """Return the word's column, or the reason why it can't be ranked."""
        tokens = self.spelling.tokens(word, place)
        if not tokens:
            return NOT_ONE_TOKEN
        if self.is_full:
            column = self._by_token.get(tokens[0])
        else:
            column = self.index.get(self.spelling.key(word))
        return NOT_A_CANDIDATE if column is None else column


_GROWING = threading.Lock()


@dataclass(frozen=True)
class OpenColumns(Columns):
    """The whole, unknown vocabulary of a server model: a word gets a column when it is looked up.

    Attributes:
        words: The words that were looked up so far, a list.
        left_out: Excluded words, in lower case; they get no column.
    """

    left_out: frozenset[str] = frozenset()

    def find(self, word: str, place: Place = "after space") -> int | str:
        """Return the word's column; add a column for a new word."""
        if word.lower() in self.left_out:
            return NOT_A_CANDIDATE
        with _GROWING:
            if word not in self.index and isinstance(self.words, list):
                self.index[word] = len(self.words)
                self.words.append(word)
        return self.index[word]

    def tokens_of(self, column: int, place: Place) -> tuple[int, ...]:
        """Return the id of the word, which counts as a single token."""
        return self.spelling.tokens(self.words[column], place)


# Vocabulary -> candidates' digest -> columns, because finding tens of thousands of words takes
# longer than a query.
_CACHE: WeakKeyDictionary[Vocabulary, dict[str, Columns]] = WeakKeyDictionary()
MAX_CACHED = 64


@dataclass(frozen=True)
class Candidates:
    """The words to rank, independent of a model.

    Attributes:
        name: Name in `lists.CANDIDATE_LISTS`, or `file:PATH`.
        words: The words in candidate order, which breaks ties; None means each model's whole
            vocabulary.
        fold_case: Whether the words are lower-cased, and the probabilities of a cased model's case
            variants are summed.
        per_relation: Whether each relation's objects are ranked; `of_relation` then sets the words.
    """

    name: str
    words: tuple[str, ...] | None
    fold_case: bool = False
    per_relation: bool = False

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the words in order and of `fold_case`; the name isn't included."""
        text = "\n".join(("\0full",) if self.words is None else self.words)
        return hashlib.sha256(f"{self.fold_case}\n{text}".encode()).hexdigest()

    def folded(self) -> "Candidates":
        """Return the candidates lower-cased, without duplicates, and with `fold_case` set."""
        if self.words is None:
            return self
        words = tuple(dict.fromkeys(word.lower() for word in self.words))
        return Candidates(self.name, words, True, self.per_relation)

    def fitting(self, vocabularies: Sequence[Vocabulary]) -> "Candidates":
        """Return the candidates for some models, folded to lower case if any model is uncased."""
        return self if all(vocabulary.cased for vocabulary in vocabularies) else self.folded()

    def of_relation(self, objects: Sequence[str]) -> "Candidates":
        """Return one relation's objects as candidates, with this list's name and case rule."""
        words = Candidates(self.name, tuple(dict.fromkeys(objects)))
        return words.folded() if self.fold_case else words

    def columns(self, vocabulary: Vocabulary) -> Columns:
        """Return the candidates' columns in a model's distribution; cached.

        Raises:
            UserError: If none of the words is a single token of the model.
        """
        cache = _CACHE.setdefault(vocabulary, {})
        columns = cache.get(self.digest)
        if columns is None:
            columns = self._find_columns(vocabulary)
            if isinstance(columns, OpenColumns):
                return columns  # not cached: it grows, and belongs to one query
            if len(cache) >= MAX_CACHED:
                cache.pop(next(iter(cache)), None)
            cache[self.digest] = columns
        return columns

    def _find_columns(self, vocabulary: Vocabulary) -> Columns:
        spelling = spell(vocabulary, folded=self.fold_case)
        if self.words is None and isinstance(vocabulary, OpenVocabulary):
            return OpenColumns([], {}, spelling, is_full=True)
        if self.words is None:
            tokens = vocabulary.tokens()
            ids = np.fromiter(tokens, dtype=np.int64, count=len(tokens)).reshape(-1, 1)
            return Columns(
                tuple(tokens.values()), dict.fromkeys(PLACES, ids), spelling, is_full=True
            )
        words = tuple(dict.fromkeys(map(spelling.key, self.words)))
        known = tuple(word for word in words if word in spelling.forms["after space"])
        if not known:
            raise UserError(
                f"None of the {len(words):,} words of the candidates '{self.name}' is a single "
                "token of the model: choose another candidate list."
            )
        token_ids = {
            place: pad_columns([spelling.tokens(word, place) for word in known]) for place in PLACES
        }
        return Columns(known, token_ids, spelling)
