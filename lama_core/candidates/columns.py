"""Candidates, the words that are ranked at a blank, and their columns in a model's distribution.

A word's probability is the sum of the probabilities of the single tokens that write it. With
`fold_case`, the words are lower-cased, and the probabilities of a cased model's `Paris`, `paris`
and `PARIS` are summed, for a fair comparison with an uncased model. Source: Petroni et al. 2019,
section 4.5 (common vocabulary), which doesn't describe case folding.

Departure: The common vocabulary
"""

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.spelling import (
    AFTER_SPACE,
    OpenVocabulary,
    Place,
    Spelling,
    Vocabulary,
)
from lama_core.errors import UserError

NOT_ONE_TOKEN = "object is not one token of the model"
NOT_A_CANDIDATE = "object is not among the candidates"
NO_COLUMN = -1


def pad_columns(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Return rows of columns as an array, int64 [row, longest row], padded with -1."""
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    table = np.full((len(rows), lengths.max(initial=0)), NO_COLUMN, dtype=np.int64)
    filled = np.arange(table.shape[1]) < lengths[:, None]
    table[filled] = np.fromiter(chain.from_iterable(rows), dtype=np.int64)
    return table


# Number of candidates whose tokens in a text are compared with those at the text's kind of place.
SAMPLE = 8
MAX_PLACES = 256


@dataclass(frozen=True)
class TokenTable:
    """The tokens of each candidate at a place.

    ids: int64 [candidate, form], padded with -1; a candidate that isn't one token there has only
    -1.
    """

    ids: NDArray[np.int64]

    @cached_property
    def by_token(self) -> dict[int, int]:
        """Token -> the first candidate that it writes."""
        tokens, places = np.unique(self.ids.T, return_index=True)  # the first place of each
        columns = places % max(1, len(self.ids))
        found: dict[int, int] = dict(zip(tokens.tolist(), columns.tolist(), strict=True))
        found.pop(NO_COLUMN, None)
        return found


@dataclass(frozen=True)
class Columns:
    """The columns of a candidate list in one model's distribution.

    Attributes:
        words: The candidates that are one token of the model, in candidate order.
        spelling: How the model writes the candidates.
        all_ids: If every token of the model is a candidate: the id of each, int64 [candidate];
            else None.
        tables: The tokens at the places that were looked up so far.
    """

    words: Sequence[str]
    spelling: Spelling
    all_ids: NDArray[np.int64] | None = None
    tables: dict[Place, TokenTable] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_full(self) -> bool:
        """Whether every token of the model is a column."""
        return self.all_ids is not None

    @cached_property
    def index(self) -> dict[str, int]:
        """Word -> column."""
        return {word: column for column, word in enumerate(self.words)}

    def table(self, place: Place) -> TokenTable:
        """Return the candidates' tokens at a place.

        Places of the same kind share a table, unless a sample of the candidates has other tokens.
        """
        place = Place(place.left)
        table = self.tables.get(place)
        if table is None:
            kind = place.kind
            if self.all_ids is not None:
                table = next(iter(self.tables.values()), TokenTable(self.all_ids.reshape(-1, 1)))
            elif place == kind:
                table = self._make_table(place)
            else:
                table = self.table(kind)
                written = np.flatnonzero((table.ids >= 0).any(axis=1))
                sample = written[:: max(1, len(written) // SAMPLE)][:SAMPLE].tolist()
                found = self.spelling.tokens_of([self.words[column] for column in sample], place)
                if found != [_without_padding(table.ids[column]) for column in sample]:
                    table = self._make_table(place)
            self._keep(place, table)
        return table

    def _make_table(self, place: Place) -> TokenTable:
        """Return the candidates' tokens after all of the text on the left of a place."""
        return TokenTable(pad_columns(self.spelling.tokens_of(self.words, Place(place.left))))

    def _keep(self, place: Place, table: TokenTable) -> TokenTable:
        if len(self.tables) >= MAX_PLACES:
            self.tables.pop(next(iter(self.tables)), None)
        self.tables[place] = table
        return table

    def tokens_of(self, column: int, place: Place) -> tuple[int, ...]:
        """Return the ids of the tokens that write a candidate."""
        return _without_padding(self.table(place).ids[column])

    def find(self, word: str, place: Place = AFTER_SPACE) -> int | str:
        """Return the word's column, or the reason why it can't be ranked."""
        return self.find_all([word], place)[0]

    def find_all(self, words: Sequence[str], place: Place) -> list[int | str]:
        """Return `find` of each word."""
        found: list[int | str] = []
        for word, tokens in zip(words, self.spelling.tokens_of(words, place), strict=True):
            known = map(self.table(place).by_token.get, tokens) if tokens else ()
            column = next((column for column in known if column is not None), None)
            is_other = bool(tokens) and column is None and place.left != place.kind.left
            if is_other and self.spelling.key(word) in self.index:
                exact = self._keep(Place(place.left), self._make_table(place))
                column = exact.by_token.get(tokens[0])
            fault = NOT_A_CANDIDATE if tokens else NOT_ONE_TOKEN
            found.append(fault if column is None else column)
        return found

    def candidate(self, word: str) -> str:
        """Return the candidate that a word is written like; if there is none, the word's key."""
        key = self.spelling.key(word)
        column = key if key in self.index else self.find(word)
        return self.words[column] if isinstance(column, int) else key


def _without_padding(row: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(form for form in row.tolist() if form != NO_COLUMN)


_GROWING = threading.Lock()


@dataclass(frozen=True)
class OpenColumns(Columns):
    """The whole, unknown vocabulary of a server model: a word gets a column when it is looked up.

    Attributes:
        words: The words that were looked up so far, a list.
        excluded: Words, in lower case, that get no column.
        keep: Returns whether a word gets a column; None for all.
    """

    excluded: frozenset[str] = frozenset()
    keep: Callable[[str], bool] | None = None

    @property
    def is_full(self) -> bool:
        """Always True: every word can become a column."""
        return True

    def find_all(self, words: Sequence[str], place: Place) -> list[int | str]:
        """Return `find` of each word; add a column for a new word."""
        return [self._found(word) for word in words]

    def _found(self, word: str) -> int | str:
        if word.lower() in self.excluded or (self.keep is not None and not self.keep(word)):
            return NOT_A_CANDIDATE
        with _GROWING:
            if word not in self.index and isinstance(self.words, list):
                self.index[word] = len(self.words)
                self.words.append(word)
        return self.index[word]

    def candidate(self, word: str) -> str:
        """Return the word."""
        return word

    def tokens_of(self, column: int, place: Place) -> tuple[int, ...]:
        """Return the id of the word, which counts as a single token."""
        return self.spelling.tokens(self.words[column], place)


# Maximum number of lists whose columns are stored with a vocabulary.
MAX_CACHED = 64


@dataclass(frozen=True)
class Candidates:
    """The words to rank, independent of a model.

    Attributes:
        name: Name in `lists.CANDIDATE_LISTS`, or `file:PATH`.
        words: The words in candidate order, which breaks ties; None means each model's whole
            vocabulary, or with `keep` its own words.
        fold_case: Whether the words are lower-cased, and the probabilities of a cased model's case
            variants are summed.
        per_relation: Whether each relation's objects are ranked; `of_relation` then sets the words.
        keep: If each model ranks its own words, those that are one token of it after a space:
            returns whether to include a word; else None.
        excluded: Words, in lower case, that aren't candidates.
        lacking: Word that isn't a candidate because not all compared models write it with one
            token -> the models that don't.
    """

    name: str
    words: tuple[str, ...] | None
    fold_case: bool = False
    per_relation: bool = False
    keep: Callable[[str], bool] | None = None
    excluded: frozenset[str] = frozenset()
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the words in order and of `fold_case`; the name isn't included."""
        own = f"\0{self.name}" if self.keep else "\0full"
        text = "\n".join((own,) if self.words is None else self.words)
        return hashlib.sha256(f"{self.fold_case}\n{text}".encode()).hexdigest()

    def described(self, n: int) -> str:
        """Return the number of candidates of one model, and the list's name, as text."""
        own = "words of this model" if self.keep else "candidates"
        return f"{n:,} {own} ({self.name})"

    def folded(self) -> "Candidates":
        """Return the candidates lower-cased, without duplicates, and with `fold_case` set."""
        if self.words is None:
            return self
        lower = dict.fromkeys(word.lower() for word in self.words)
        return replace(self, words=tuple(lower), fold_case=True)

    def fitting(self, vocabularies: Sequence[Vocabulary]) -> "Candidates":
        """Return the candidates for some models, folded to lower case if any model is uncased."""
        return self if all(vocabulary.cased for vocabulary in vocabularies) else self.folded()

    def of_relation(self, objects: Sequence[str]) -> "Candidates":
        """Return one relation's objects as candidates, with this list's name and case rule."""
        words = Candidates(self.name, tuple(dict.fromkeys(objects)))
        return words.folded() if self.fold_case else words

    def columns(self, vocabulary: Vocabulary, places: Iterable[Place] = (AFTER_SPACE,)) -> Columns:
        """Return the candidates' columns in a model's distribution; cached without `excluded`.

        places: The places of the blanks; a candidate is one token at one of them, or after a space.

        Raises:
            UserError: If none of the words is a single token of the model, or all are excluded.
        """
        kinds = tuple(sorted({AFTER_SPACE, *(place.kind for place in places)}))
        cache = vocabulary.columns
        columns: Columns | None = cache.get((self.digest, kinds))
        if columns is None:
            columns = self._find_columns(vocabulary, kinds)
            if not isinstance(columns, OpenColumns):  # these grow, and belong to one query
                if len(cache) >= MAX_CACHED:
                    cache.pop(next(iter(cache)), None)
                cache[self.digest, kinds] = columns
        if not self.excluded:
            return columns
        if isinstance(columns, OpenColumns):
            return replace(columns, excluded=self.excluded)
        keep = np.array([word.lower() not in self.excluded for word in columns.words], dtype=bool)
        if not keep.any():
            raise UserError(
                f"The candidates '{self.name}' contain only words of the query. Allow them as "
                "answers (--keep-query-words), or choose other candidates."
            )
        return replace(
            columns,
            words=tuple(word for word, kept in zip(columns.words, keep, strict=True) if kept),
            all_ids=None if columns.all_ids is None else columns.all_ids[keep],
            tables={},
        )

    def _find_columns(self, vocabulary: Vocabulary, places: Sequence[Place]) -> Columns:
        spelling = Spelling(vocabulary, folded=self.fold_case)
        if self.words is None and isinstance(vocabulary, OpenVocabulary):
            return OpenColumns([], spelling, keep=self.keep)
        listed = self.words
        if self.keep is not None:
            listed = tuple(sorted(filter(self.keep, vocabulary.single_words())))
        if listed is None:
            tokens = vocabulary.tokens()
            return Columns(
                tuple(tokens.values()),
                spelling,
                np.fromiter(tokens, dtype=np.int64, count=len(tokens)),
            )
        words = tuple(dict.fromkeys(map(spelling.key, listed)))
        found = list(zip(*(spelling.tokens_of(words, place) for place in places), strict=True))
        # Words that the tokenizer writes alike, such as Bogotá and bogota, are one candidate.
        first: dict[tuple[tuple[int, ...], ...], int] = {}
        for column, written in enumerate(found):
            if any(written):
                first.setdefault(written, column)
        if not first:
            raise UserError(
                f"None of the {len(words):,} words of the candidates '{self.name}' is a single "
                "token of the model: choose another candidate list."
            )
        kept = list(first.values())
        columns = Columns(tuple(words[column] for column in kept), spelling)
        for number, place in enumerate(places):
            rows = [found[column][number] for column in kept]
            columns.tables[place] = TokenTable(pad_columns(rows))
        return columns
