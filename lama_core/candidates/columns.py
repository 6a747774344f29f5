"""Candidates: the words that are ranked at a blank, and where they stand in a model's distribution.

A word's probability is the sum over the model's single tokens that write it. With `fold_case`
the words are lower-cased and a cased model's `Paris`, `paris` and `PARIS` count together: the only
fair comparison with an uncased model. Source: Petroni et al. 2019, section 4.5 (common
vocabulary); the case folding is ours.

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
    """Rows of columns as one table: int64 [row, widest row], -1 where a row is shorter."""
    width = max(map(len, rows), default=0)
    table = np.full((len(rows), width), NO_COLUMN, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


@dataclass(frozen=True)
class Columns:
    """A candidate list as columns of one model's distribution.

    words: the candidates that the model has, in candidate order.
    token_ids: place -> int64 [candidate, form]; -1 where a word has fewer forms than the widest.
    missing: the wanted words that are not one token of the model.
    is_full: every token of the model is a column.
    """

    words: Sequence[str]
    token_ids: dict[Place, NDArray[np.int64]]
    spelling: Spelling
    missing: tuple[str, ...] = ()
    is_full: bool = False

    @cached_property
    def index(self) -> dict[str, int]:
        """Word -> column."""
        return {word: column for column, word in enumerate(self.words)}

    def tokens_of(self, column: int, place: Place) -> tuple[int, ...]:
        """The tokens that write a candidate."""
        return tuple(form for form in self.token_ids[place][column].tolist() if form >= 0)

    @cached_property
    def _by_token(self) -> dict[int, int]:
        ids = self.token_ids["after space"][:, 0].tolist()
        return {token: column for column, token in enumerate(ids)}

    def find(self, word: str, place: Place = "after space") -> int | str:
        """The word's column, or the reason why it can't be ranked."""
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
    """The whole vocabulary of a model whose tokens nobody says: a word that comes has a column.

    words: those that came so far, a list. left_out: words, in lower case, that get no column.
    """

    left_out: frozenset[str] = frozenset()

    def find(self, word: str, place: Place = "after space") -> int | str:
        """The word's column; a new one for a new word."""
        if word.lower() in self.left_out:
            return NOT_A_CANDIDATE
        with _GROWING:
            if word not in self.index and isinstance(self.words, list):
                self.index[word] = len(self.words)
                self.words.append(word)
        return self.index[word]

    def tokens_of(self, column: int, place: Place) -> tuple[int, ...]:
        """The word's id."""
        return self.spelling.tokens(self.words[column], place)


# The columns found last in each vocabulary that is still in use, by the candidates' digest: finding
# tens of thousands of words takes longer than a query.
_KEPT: WeakKeyDictionary[Vocabulary, dict[str, Columns]] = WeakKeyDictionary()
MAX_KEPT = 64


@dataclass(frozen=True)
class Candidates:
    """The words to rank, before any model's tokens are known.

    name: as the user chose them: a name of `lists.CANDIDATE_LISTS`, or `file:PATH`.
    words: in candidate order, which breaks ties; None stands for each model's whole vocabulary.
    fold_case: the words are lower-cased and a cased model's case variants are summed.
    per_relation: the words are yet to come: each relation's own objects.
    """

    name: str
    words: tuple[str, ...] | None
    fold_case: bool = False
    per_relation: bool = False

    @cached_property
    def digest(self) -> str:
        """SHA-256 of name-independent content: the words in order, and the case rule."""
        text = "\n".join(("\0full",) if self.words is None else self.words)
        return hashlib.sha256(f"{self.fold_case}\n{text}".encode()).hexdigest()

    def folded(self) -> "Candidates":
        """The same words lower-cased, doubles dropped, with case variants summed."""
        if self.words is None:
            return self
        words = tuple(dict.fromkeys(word.lower() for word in self.words))
        return Candidates(self.name, words, True, self.per_relation)

    def fitting(self, vocabularies: Sequence[Vocabulary]) -> "Candidates":
        """The same, folded to lower case as soon as one model is uncased."""
        return self if all(one.cased for one in vocabularies) else self.folded()

    def of_relation(self, objects: Sequence[str]) -> "Candidates":
        """A list of one relation's objects, with this list's name and case rule."""
        words = Candidates(self.name, tuple(dict.fromkeys(objects)))
        return words.folded() if self.fold_case else words

    def columns(self, vocabulary: Vocabulary) -> Columns:
        """Where each candidate stands in a model's distribution; kept for the next query.

        Raises UserError if the model has none of the words as a single token.
        """
        kept = _KEPT.setdefault(vocabulary, {})
        columns = kept.get(self.digest)
        if columns is None:
            columns = self._find_columns(vocabulary)
            if isinstance(columns, OpenColumns):
                return columns  # it is of one question
            if len(kept) >= MAX_KEPT:
                kept.pop(next(iter(kept)), None)
            kept[self.digest] = columns
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
        missing = tuple(word for word in words if word not in spelling.forms["after space"])
        return Columns(known, token_ids, spelling, missing)
