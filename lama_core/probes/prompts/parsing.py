"""Dependency parses and parts of speech, by spaCy where it is installed (an optional extra)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lama_core.errors import UserError

PIPELINE = "en_core_web_sm"


@dataclass(frozen=True, slots=True)
class Word:
    """A parsed word. head: what it hangs on, itself for the root. tag: Penn Treebank's, as NN."""

    text: str
    head: int
    tag: str


class Parser(Protocol):
    """Parses sentences that are cut into words already."""

    def parse(self, words: Sequence[str]) -> tuple[Word, ...]:
        """One `Word` a word, in order."""
        ...


class SpacyParser:
    """spaCy's parser of an installed pipeline."""

    def __init__(self, pipeline: str = PIPELINE) -> None:
        """Load the pipeline. Raises UserError, with the remedy, if it or spaCy isn't installed."""
        try:
            import spacy
        except ImportError as error:
            raise UserError(
                "Dependency paths and parts of speech need spaCy, which is not installed: "
                f"`pip install spacy`, then `python -m spacy download {pipeline}`. Middle-word "
                "prompts need neither."
            ) from error
        try:
            self._pipeline: Any = spacy.load(pipeline)
        except OSError as error:
            raise UserError(
                f"spaCy is here, but not its pipeline {pipeline!r}: "
                f"`python -m spacy download {pipeline}`, or name one that is installed."
            ) from error

    def parse(self, words: Sequence[str]) -> tuple[Word, ...]:
        """One `Word` a word, in order."""
        from spacy.tokens import Doc

        document = self._pipeline(Doc(self._pipeline.vocab, words=list(words)))
        return tuple(Word(token.text, token.head.i, token.tag_) for token in document)


def shortest_path(words: Sequence[Word], start: int, stop: int) -> tuple[int, ...]:
    """The words on the shortest dependency path, both ends included; empty if there is none."""
    ways = []
    for at in (start, stop):
        way = [at]
        while words[way[-1]].head not in way:
            way.append(words[way[-1]].head)
        ways.append(way)
    up, down = ways
    meeting = next((at for at in up if at in down), None)
    if meeting is None:
        return ()
    return (*up[: up.index(meeting)], *reversed(down[: down.index(meeting) + 1]))
