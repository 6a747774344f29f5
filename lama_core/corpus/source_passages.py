"""What every source of the corpus gives: passages, each with the key of the text it belongs to."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lama_core.corpus.fetch_sources import Package, ReadMember

MAX_WORDS = 45  # of a passage


@dataclass(frozen=True)
class Passage:
    """One short text.

    key: names the text that it was made from, so that a whole text is held out or none of it.
    entities: names and phrases that it is about, counted beside its words.
    """

    key: str
    text: str
    entities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A source of the corpus.

    share: part of the training passages' tokens that come from it; the shares add up to 1.
    held_out: whether a part of its texts is kept from training, to measure on.
    """

    name: str
    title: str
    licence: str
    share: float
    origin: Package
    passages: Callable[[ReadMember], Iterator[Passage]]
    held_out: bool = False


_SPACES = re.compile(r"\s+")


def tidy(text: str) -> str:
    """The text on one line, with single spaces."""
    return _SPACES.sub(" ", text).strip()


def with_article(noun: str) -> str:
    """`a poet`, `an actor`."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def split_sentences(text: str, *, max_words: int = MAX_WORDS) -> list[str]:
    """Runs of whole sentences of at most `max_words` words; a longer sentence is cut."""
    pieces: list[list[str]] = []
    for sentence in re.split(r"(?<=[.!?;])\s+", text):
        words = sentence.split()
        while words:
            head, words = words[:max_words], words[max_words:]
            if pieces and len(pieces[-1]) + len(head) <= max_words:
                pieces[-1].extend(head)
            else:
                pieces.append(head)
    return [" ".join(piece) for piece in pieces]
