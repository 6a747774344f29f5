"""How a model writes a word: its case, the space before it, and its tokens.

Use a `Spelling` to find a word among a model's tokens; `Columns` contain one.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Place = Literal["after space", "open"]
PLACES: tuple[Place, ...] = ("after space", "open")
OPENING = frozenset("([{<\"'“‘«-–—/")

Forms = Mapping[str, tuple[int, ...]]


class Vocabulary(Protocol):
    """A model's tokens as words: the part of a tokenizer that candidates need."""

    @property
    def cased(self) -> bool:
        """Whether `Paris` and `paris` are different tokens."""

    @property
    def size(self) -> int:
        """Number of entries of the model's output distribution."""

    def forms(self, place: Place) -> Forms:
        """Return the words that are one token at this place: word -> ids of tokens that write it.

        `after space`: in running text. `open`: at the start of a text or after a bracket, where a
        tokenizer that includes spaces in its tokens may write the word with or without a space.
        """

    def pieces(self, word: str, place: Place = "after space") -> tuple[int, ...]:
        """Return the ids of a word's subword tokens at this place."""

    def can_write(self, word: str) -> bool:
        """Return whether the word has subword tokens and none of them is the unknown token."""

    def show_text(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        """Return the tokens of a text as shown to users."""

    def tokens(self) -> dict[int, str]:
        """Return all tokens except special ones, as shown to users: id -> text."""


class OpenVocabulary:
    """The vocabulary of a model that doesn't list its tokens, such as a server's.

    Any text counts as one token. A word's id is a hash of the word, so it is the same in every
    process. size is 0, because it is unknown.
    """

    cased = True
    size = 0

    def __init__(self) -> None:
        self.words: dict[int, str] = {}

    def number(self, word: str) -> int:
        """Return the id of a word."""
        digest = hashlib.blake2b(word.encode(errors="surrogatepass"), digest_size=7).digest()
        number = int.from_bytes(digest, "big")
        self.words[number] = word
        return number

    def forms(self, place: Place) -> Forms:
        """Return a mapping in which every word is one token."""
        return _AnyWord(self)

    def pieces(self, word: str, place: Place = "after space") -> tuple[int, ...]:
        """Return the id of the whole word, because its subword tokens are unknown."""
        return (self.number(word),)

    def can_write(self, word: str) -> bool:
        """Return True, because the model's tokens are unknown."""
        return True

    def show_text(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        """Return the word of each id; raise KeyError for an id that isn't from `number`."""
        return tuple(self.words[number] for number in token_ids)

    def tokens(self) -> dict[int, str]:
        """Return the words that were looked up so far: id -> word."""
        return dict(self.words)


@dataclass(frozen=True)
class _AnyWord(Mapping[str, tuple[int, ...]]):
    """Word -> its id, for any word; iterates over the words that were looked up so far."""

    vocabulary: OpenVocabulary

    def __getitem__(self, word: str) -> tuple[int, ...]:
        return (self.vocabulary.number(word),)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.vocabulary.words.values()))

    def __len__(self) -> int:
        return len(self.vocabulary.words)


def place_of(left: str) -> Place:
    """Return the place of a blank, by the text on its left."""
    return "open" if not left.strip() or left[-1] in OPENING else "after space"


@dataclass(frozen=True)
class Spelling:
    """How the words of a candidate list are written in one model's tokens.

    Attributes:
        cased: Whether the model distinguishes `Paris` from `paris`.
        folded: Whether the list is lower-cased, so that a cased model's `Paris`, `paris` and
            `PARIS` count together.
        forms: Place -> word as in the list -> ids of the single tokens that write it.
    """

    cased: bool
    folded: bool
    forms: Mapping[Place, Forms]

    def key(self, word: str) -> str:
        """Return the word as the list writes it."""
        return word.lower() if self.folded or not self.cased else word

    def written(self, word: str) -> str:
        """Return the word as the input of the model's tokenizer."""
        return word if self.cased else word.lower()

    def tokens(self, word: str, place: Place = "after space") -> tuple[int, ...]:
        """Return the ids of the single tokens that write the word at this place; () if none."""
        key = self.key(word)
        return self.forms[place].get(key) or self.forms["after space"].get(key) or ()


def spell(vocabulary: Vocabulary, *, folded: bool = False) -> Spelling:
    """Return how a model writes the words of a list; folded: whether the list is lower-cased."""
    forms = {place: vocabulary.forms(place) for place in PLACES}
    if folded and not isinstance(vocabulary, OpenVocabulary):
        forms = {place: _fold(found) for place, found in forms.items()}
    return Spelling(vocabulary.cased, folded, forms)


def _fold(forms: Forms) -> dict[str, tuple[int, ...]]:
    folded: dict[str, tuple[int, ...]] = {}
    for word, ids in forms.items():
        folded[word.lower()] = folded.get(word.lower(), ()) + ids
    return folded
