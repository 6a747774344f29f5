"""Sources of the corpus, and the passages that they yield."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tools.training.corpus.fetch_sources import Package, ReadMember

MAX_WORDS = 45  # of a passage


@dataclass(frozen=True)
class Passage:
    """A short text.

    key: identifies the text it was made from; passages with the same key are held out together.
    entities: names and phrases that it is about; they are counted in addition to its words.
    """

    key: str
    text: str
    entities: tuple[str, ...] = ()


@dataclass(frozen=True)
class CorpusSource:
    """A source of the corpus.

    share: proportion of the training tokens that come from it; the shares add up to 1.
    held_out: whether some of its texts are held out from training, for evaluation.
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
    """Return the text on one line, with single spaces."""
    return _SPACES.sub(" ", text).strip()


def with_article(noun: str) -> str:
    """Return the noun with its article: `a poet`, `an actor`."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def split_sentences(text: str) -> list[str]:
    """Return successive sentences, joined up to MAX_WORDS words; a longer sentence is cut."""
    runs: list[list[str]] = []
    for sentence in re.split(r"(?<=[.!?;])\s+", text):
        words = sentence.split()
        while words:
            head, words = words[:MAX_WORDS], words[MAX_WORDS:]
            if runs and len(runs[-1]) + len(head) <= MAX_WORDS:
                runs[-1].extend(head)
            else:
                runs.append(head)
    return [" ".join(run) for run in runs]


def drawn(texts: Iterable[str], key: str, n: int) -> list[str]:
    """Return `n` of the texts, drawn by the hash of key and text, which is the same everywhere."""

    def number(text: str) -> bytes:
        return hashlib.blake2b(f"{key}\t{text}".encode(), digest_size=8).digest()

    return sorted(dict.fromkeys(texts), key=number)[:n]
