"""How a model writes a word: the tokens that its tokenizer makes of it at a place in a text.

    tokens of a word at a blank = those that the tokenizer writes when the word is there

A word has separate tokens at a place if no token covers the word and its neighbours together.
Use a `Spelling` to find a word among a model's tokens; `Columns` contain one.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple, Protocol, runtime_checkable

from lama_core.types import Query

# Longest text next to a blank that decides on a word's tokens.
MAX_NEXT = 32


class Place(NamedTuple):
    """The text that touches a blank.

    Attributes:
        left: The characters up to the last space, with that space; only a space if the blank
            follows one; empty at the start of a text.
        right: The characters up to the next space.
    """

    left: str
    right: str = ""

    @property
    def kind(self) -> "Place":
        """The place with the last character on its left only: one for many texts."""
        return Place(self.left[-1:])


AFTER_SPACE = Place(" ")
START = Place("")


def place_of(left: str, right: str = "") -> Place:
    """Return the place of a blank between two texts."""
    if not left or left.isspace():
        return Place("", _touching(right))
    if left[-1].isspace():
        return Place(" ", _touching(right))
    last = left.split()[-1]
    space = " " if len(left.split(maxsplit=1)) > 1 or left[0].isspace() else ""
    return Place((space + last)[-MAX_NEXT:], _touching(right))


def places_of(query: Query) -> tuple[Place, ...]:
    """Return the place of each blank of a query; a blank next to another follows a space."""
    first, *others = pairwise(query.parts)
    return (
        place_of(*first),
        *(place_of(left if left.strip() else "a ", right) for left, right in others),
    )


def _touching(right: str) -> str:
    return right[: MAX_NEXT + 1].split()[0][:MAX_NEXT] if right and not right[0].isspace() else ""


@runtime_checkable
class Vocabulary(Protocol):
    """A model's tokens as words: the part of a tokenizer that candidates need.

    columns: the columns of candidate lists in this vocabulary that `Candidates.columns` found, so
    that they are forgotten with it.
    """

    columns: dict[Any, Any]

    @property
    def cased(self) -> bool:
        """Whether `Paris` and `paris` are different tokens."""

    @property
    def size(self) -> int:
        """Number of entries of the model's output distribution."""

    def single_words(self) -> Iterable[str]:
        """Return the words that are one token after a space, in the order of their ids."""

    def case_variants(self, word: str, place: Place) -> Sequence[str]:
        """Return the spellings among the tokens that are this word in lower case."""

    def own_tokens(self, words: Sequence[str], place: Place) -> list[tuple[int, ...]]:
        """Return each word's tokens at this place; () if a token is shared with a neighbour."""

    def pieces(self, word: str, place: Place = AFTER_SPACE) -> tuple[int, ...]:
        """Return the ids of a word's subword tokens at this place.

        If it shares a token with a neighbour, they are those that it has without the neighbour.
        """

    def can_write(self, word: str) -> bool:
        """Return whether the word has subword tokens and none of them is the unknown token."""

    def can_predict(self, token_id: int) -> bool:
        """Return whether a token is a word or a part of one, and in the model's output."""

    def show_text(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        """Return the tokens of a text as shown to users."""

    def tokens(self) -> dict[int, str]:
        """Return all tokens except special ones, as shown to users: id -> text."""


def token_text(vocabulary: Vocabulary, token: int) -> str:
    """Return a token as displayed, with the mark of one that continues a word."""
    return vocabulary.show_text((token, token))[1]  # the first of a text has no mark


class OpenVocabulary:
    """The vocabulary of a model that doesn't list its tokens, such as a server's.

    Any text counts as one token. A word's id is a hash of the word, so it is the same in every
    process. size is 0, because it is unknown.
    """

    cased = True
    size = 0

    def __init__(self) -> None:
        self.columns: dict[Any, Any] = {}
        self.words: dict[int, str] = {}

    def number(self, word: str) -> int:
        """Return the id of a word."""
        digest = hashlib.blake2b(word.encode(errors="surrogatepass"), digest_size=7).digest()
        number = int.from_bytes(digest, "big")
        self.words[number] = word
        return number

    def single_words(self) -> Iterable[str]:
        """Return the words that were looked up so far."""
        return list(self.words.values())

    def case_variants(self, word: str, place: Place) -> Sequence[str]:
        """Return the word only: its other spellings are tried on the server."""
        return (word,)

    def own_tokens(self, words: Sequence[str], place: Place) -> list[tuple[int, ...]]:
        """Return the id of each whole word, because its subword tokens are unknown."""
        return [(self.number(word),) for word in words]

    def pieces(self, word: str, place: Place = AFTER_SPACE) -> tuple[int, ...]:
        """Return the id of the whole word, because its subword tokens are unknown."""
        return (self.number(word),)

    def can_write(self, word: str) -> bool:
        """Return True, because the model's tokens are unknown."""
        return True

    def can_predict(self, token_id: int) -> bool:
        """Return True, because the model's tokens are unknown."""
        return True

    def show_text(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        """Return the word of each id; raise KeyError for an id that isn't from `number`."""
        return tuple(self.words[number] for number in token_ids)

    def tokens(self) -> dict[int, str]:
        """Return the words that were looked up so far: id -> word."""
        return dict(self.words)


@dataclass(frozen=True)
class Spelling:
    """How the words of a candidate list are written in one model's tokens.

    Attributes:
        vocabulary: The model's vocabulary.
        folded: Whether the list is lower-cased, so that a cased model's `Paris`, `paris` and
            `PARIS` count together.
    """

    vocabulary: Vocabulary
    folded: bool = False

    def key(self, word: str) -> str:
        """Return the word as the list writes it."""
        return word.lower() if self.folded or not self.vocabulary.cased else word

    def tokens(self, word: str, place: Place = AFTER_SPACE) -> tuple[int, ...]:
        """Return the ids of the single tokens that write the word at this place; () if none."""
        return self.tokens_of([word], place)[0]

    def tokens_of(self, words: Sequence[str], place: Place) -> list[tuple[int, ...]]:
        """Return `tokens` of each word."""
        if not self.folded:
            return self._single(words, place)
        # The spellings of each word that count together, in the order of their ids.
        variants = [
            tuple(dict.fromkeys((*self.vocabulary.case_variants(key, place), key, word)))
            for key, word in zip(map(self.key, words), words, strict=True)
        ]
        ids = iter(self._single(list(chain.from_iterable(variants)), place))
        found = [tuple(islice(ids, len(spellings))) for spellings in variants]
        return [
            forms[0] if len(forms) == 1 else tuple(dict.fromkeys(chain.from_iterable(forms)))
            for forms in found
        ]

    def _single(self, words: Sequence[str], place: Place) -> list[tuple[int, ...]]:
        """Return the token of each word as it is written; () if it isn't one token."""
        can_predict = self.vocabulary.can_predict
        return [
            ids if len(ids) == 1 and can_predict(ids[0]) else ()
            for ids in self.vocabulary.own_tokens(words, place)
        ]
