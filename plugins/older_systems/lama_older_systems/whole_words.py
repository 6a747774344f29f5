"""A vocabulary of whole words, for models older than subword tokens.

A text is split at spaces; signs that LAMA separated for a model (brackets, commas) are separate
words. A word that isn't in the vocabulary and ends in a punctuation mark is split before the mark
if the vocabulary has both parts; LAMA's texts have a space there. Other words that aren't in the
vocabulary are replaced by the release's unknown word.
Departure: Words of the older models
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lama_core.candidates.spelling import AFTER_SPACE, Place
from lama_core.models.protocols import Statement
from lama_core.models.vocabulary import TextTokens, by_lower_case

ENDS = frozenset(".,;:!?)]'\"")


@dataclass(frozen=True, slots=True)
class Signs:
    """A release's control words, and the signs that are separated from words in a text.

    unknown: replaces words that aren't in the vocabulary. begin: the first word of every text. end:
    the last word, for models that read in both directions. others: further control words of the
    vocabulary. apart: the separated signs.
    """

    unknown: str
    begin: str
    end: str = ""
    others: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text. start, end: character offsets, end excluded."""

    text: str
    start: int
    end: int


class WordVocabulary:
    """A model's words, with the methods that backends call on a tokenizer.

    words: in the order of the output distribution; of duplicates, the first is used.
    """

    is_fast = True
    cased = True  # no text is lower-cased
    style = "suffix"  # a token always ends its word
    pad_token_id = 0
    mask_token_id = None
    sentinels = ()

    def __init__(self, words: Sequence[str], signs: Signs, *, max_tokens: int) -> None:
        self.columns: dict[Any, Any] = {}
        self.words = tuple(words)
        self.signs = signs
        self.size = len(self.words)
        self.model_max_length = max_tokens
        self.index: dict[str, int] = {}
        for number, word in enumerate(self.words):
            self.index.setdefault(word, number)
        self.unk_token_id = self.index[signs.unknown]
        self.bos_token_id = self.index[signs.begin]
        control = (signs.unknown, signs.begin, signs.end, *signs.others)
        self.special_texts = tuple(sorted({word for word in control if word}))
        self.frame = ([self.bos_token_id], [self.index[signs.end]] if signs.end else [])
        apart = sorted(map(re.escape, filter(None, signs.apart)), key=len, reverse=True)
        sign = "|".join(apart)
        self._parts = re.compile(rf"{sign}|(?:(?!{sign})\S)+" if apart else r"\S+")

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of control words, including duplicates."""
        control = set(self.special_texts)
        return frozenset(n for n, word in enumerate(self.words) if word in control)

    def split(self, text: str) -> list[Word]:
        """Split a text into words with character offsets."""
        return [
            word
            for part in self._parts.finditer(text)
            for word in self._without_end(Word(part[0], *part.span()))
        ]

    def _without_end(self, word: Word) -> tuple[Word, ...]:
        """Split off a punctuation mark from an unknown word, if both parts are known."""
        rest, mark = word.text[:-1], word.text[-1]
        if word.text in self.index or mark not in ENDS:
            return (word,)
        if not (self.knows(rest) and self.knows(mark)):
            return (word,)
        return Word(rest, word.start, word.end - 1), Word(mark, word.end - 1, word.end)

    def knows(self, word: str) -> bool:
        """Whether a word is in the vocabulary and isn't a control word."""
        return word in self.index and word not in self.special_texts

    def number(self, word: str) -> int:
        """Return a word's id; the unknown word's id for control words and words not in the list."""
        return self.index[word] if self.knows(word) else self.unk_token_id

    def entry(self, token_id: int) -> tuple[str, bool]:
        return ("" if token_id in self.special_ids else self.words[token_id], True)

    def tokens(self) -> dict[int, str]:
        special = self.special_ids
        return {n: word for n, word in enumerate(self.words) if n not in special}

    def show(self, token_id: int) -> str:
        word = self.words[token_id]
        return word if word.isprintable() else word.encode("unicode_escape").decode("ascii")

    def show_text(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        return tuple(map(self.show, token_ids))

    def single_words(self) -> Iterator[str]:
        """Yield the words, without duplicates and control words."""
        return (word for word in self.index if self.knows(word))

    def case_variants(self, word: str, place: Place) -> tuple[str, ...]:
        """Return the words that are this word in lower case."""
        return self._variants.get(word, ())

    @cached_property
    def _variants(self) -> dict[str, tuple[str, ...]]:
        return by_lower_case(self.single_words())

    def own_tokens(self, words: Sequence[str], place: Place) -> list[tuple[int, ...]]:
        """Return each word's ids: a text is split at a blank, so that no neighbour matters."""
        return [self.pieces(word) for word in words]

    def pieces(self, word: str, place: Place = AFTER_SPACE) -> tuple[int, ...]:
        """Return a word's ids; several for a name such as `New York`."""
        return tuple(self.encode(word))

    def can_predict(self, token_id: int) -> bool:
        """Whether an id is a word's, and not a control word's."""
        return token_id not in self.special_ids

    def can_write(self, word: str) -> bool:
        pieces = self.pieces(word)
        return bool(pieces) and self.unk_token_id not in pieces

    def encode(self, text: str) -> list[int]:
        return [self.number(word.text) for word in self.split(text)]

    def encode_after(self, text: str) -> list[int]:
        return self.encode(text)

    def read(self, statements: Sequence[Statement]) -> list[TextTokens]:
        """Return each statement's words as ids, and whether each word is in the answer."""
        found = []
        for statement in statements:
            words = self.split(statement.text)
            ids = [self.number(word.text) for word in words]
            spans = [(word.start, word.end) for word in words]
            numbers = list(range(len(ids)))
            found.append(TextTokens.of(ids, numbers, spans, statement.start, statement.end))
        return found
