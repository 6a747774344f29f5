"""Prompts found in a text: between a subject and its object, or along the path that joins them.

    middle words   "Barack Obama was born in Hawaii"   -> "[X] was born in [Y] ."
    dependency     "The capital of France is Paris"    -> "capital of [X] is [Y] ."

A sentence counts for a pair when it holds both as whole words (distant supervision). Prompts of
only stop words or punctuation, or longer than ten words, are dropped; the most frequent T = 40 are
kept, ties in the order in which they were found. With both ways, these are the 30 most frequent of
middle words and then the 10 most frequent that the path alone gives (`is_of_path`).
Source: Jiang et al. 2020, sections 3.1 and 5.1, and its released scripts.

The released prompts end in " ." and so do ours. Words are counted without [X] and [Y].

Departure: Which mined prompts are kept
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from lama_core.candidates.lists import STOP_WORDS
from lama_core.datasets.prompt_sets import normalise_template
from lama_core.errors import UserError
from lama_core.progress import silent
from lama_core.types import Fact, Prompt

Method = Literal["middle", "dependency"]

PIPELINE = "en_core_web_sm"  # of spaCy, which is an optional extra
MAX_WORDS = 10
N_KEPT = 40
N_OF_PATH = 10
WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")
BRACKETS = str.maketrans("[]", "()")  # text must never bring a placeholder of its own


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


@dataclass(frozen=True, slots=True)
class Mined:
    """A prompt, in how many (sentence, pair) it was found, and how."""

    prompt: Prompt
    count: int
    methods: tuple[Method, ...]


@dataclass(frozen=True)
class Mining:
    """What mining gave. n_matches: (sentence, pair) that counted; n_dropped: by reason."""

    kept: tuple[Mined, ...]
    n_sentences: int
    n_matches: int
    n_dropped: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A pair in a sentence: words [start, stop) of the subject and of the object."""

    words: tuple[str, ...]
    subject: tuple[int, int]
    object: tuple[int, int]


def mine(
    sentences: Iterable[str],
    pairs: Sequence[Fact],
    *,
    parser: Parser | None = None,
    n_kept: int = N_KEPT,
    n_of_path: int | None = N_OF_PATH,
    on_sentence: Callable[[int], None] = silent,
) -> Mining:
    """Return the most frequent prompts of one relation's pairs in these sentences.

    parser: None mines middle words only. n_of_path: how many of those kept only the dependency path
    gives; None keeps the most frequent of both (ours). Raises UserError if there is nothing.
    """
    if not pairs:
        raise UserError("There are no pairs to look for: give facts of one relation.")
    if parser is not None and n_of_path is not None and n_of_path > n_kept:
        raise UserError(
            f"{n_of_path} dependency prompts can't be among {n_kept}: keep more, or ask for fewer."
        )
    finder = PairFinder(pairs)
    found = _Found()
    n_sentences = n_matches = 0
    for n_sentences, sentence in enumerate(sentences, start=1):
        on_sentence(n_sentences)
        for match in finder.matches(sentence):
            n_matches += 1
            ways: dict[Method, str | None] = {"middle": middle_words(match)}
            if parser is not None:
                ways["dependency"] = dependency_span(match, parser)
            found.add(ways)
    if not n_matches:
        raise UserError(
            f"None of the {n_sentences:,} sentences holds a subject and its object: give a larger "
            "text, or pairs that it speaks of."
        )
    if parser is None or n_of_path is None:
        kept = found.most_common(n_kept)
    else:
        middle = found.most_common(n_kept - n_of_path, "middle")
        kept = middle + found.most_common(n_of_path, "dependency")
    return Mining(tuple(kept), n_sentences, n_matches, tuple(sorted(found.dropped.items())))


class _Found:
    """The prompts that were found so far, and how often."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.matches: Counter[str] = Counter()  # found in a match, in whichever way
        self.by: dict[Method, Counter[str]] = {"middle": Counter(), "dependency": Counter()}
        self.dropped: Counter[str] = Counter()

    def add(self, ways: dict[Method, str | None]) -> None:
        """Count what each way gave for one match; the same text counts once for the match."""
        for template in dict.fromkeys(text for text in ways.values() if text is not None):
            reason = why_dropped(template)
            if reason:
                self.dropped[reason] += 1
                continue
            key = normalise_template(template)
            self.texts.setdefault(key, template)
            self.matches[key] += 1
            for way, text in ways.items():
                self.by[way][key] += text == template

    def most_common(self, n: int, way: Method | None = None) -> list[Mined]:
        """The n most frequent in whichever way, or in one: of the path those it alone gives."""
        counts = self.matches if way is None else self.by[way]
        ordered = [
            (key, count)
            for key, count in counts.most_common()
            if count and (way != "dependency" or is_of_path(self.texts[key]))
        ]
        kept = []
        for key, count in ordered[:n]:
            methods = tuple(method for method, found in self.by.items() if found[key])
            kept.append(Mined(Prompt(self.texts[key], "mined"), count, methods))
        return kept


def is_of_path(template: str) -> bool:
    """Whether only a dependency path gives a prompt: it has words before or behind both blanks.

    As in the released scripts, one with a capital letter, a name of its sentence, is none.
    """
    words = template.removesuffix(".").split()
    ends = {words[0], words[-1]} <= {"[X]", "[Y]"}
    return not ends and not any(word[0].isupper() for word in words)


def middle_words(match: Match) -> str | None:
    """The words between subject and object as a template; None if nothing stands between."""
    (first, second), marks = _in_order(match)
    between = match.words[first[1] : second[0]]
    return _template([marks[0], *between, marks[1]]) if between else None


def dependency_span(match: Match, parser: Parser) -> str | None:
    """The words that the shortest dependency path spans, as a template; None without a path."""
    parsed = parser.parse(match.words)
    start, stop = _head_of(parsed, match.subject), _head_of(parsed, match.object)
    path = shortest_path(parsed, start, stop)
    if not path:
        return None
    (first, second), marks = _in_order(match)
    leftmost, rightmost = min(path), max(path)
    if first[0] <= leftmost < first[1]:
        leftmost = first[0]
    if second[0] <= rightmost < second[1]:
        rightmost = second[1] - 1
    marked = {first[0]: marks[0], second[0]: marks[1]}
    inside = {*range(*first), *range(*second)} - set(marked)
    places = (at for at in range(leftmost, rightmost + 1) if at not in inside)
    words = [marked.get(at, match.words[at]) for at in places]
    if words.count("[X]") != 1 or words.count("[Y]") != 1:
        return None
    return _template(words)


def why_dropped(template: str) -> str | None:
    """The paper's filters: why a prompt is dropped, None if it is kept."""
    words = WORD.findall(template.replace("[X]", " ").replace("[Y]", " "))
    spoken = [word for word in words if word[0].isalnum()]
    if all(word.lower() in STOP_WORDS for word in spoken):
        return "only stop words or punctuation"
    if len(spoken) > MAX_WORDS:
        return f"longer than {MAX_WORDS} words"
    return None


class PairFinder:
    """Finds pairs in sentences by looking each run of words up among the subjects."""

    def __init__(self, pairs: Sequence[Fact]) -> None:
        self.objects: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
        for fact in pairs:
            subject, obj = split_words(fact.subject), split_words(fact.object)
            if subject and obj and subject != obj:
                self.objects.setdefault(subject, {})[obj] = None
        self.lengths = sorted({len(subject) for subject in self.objects}, reverse=True)
        self.firsts = {subject[0] for subject in self.objects}

    def matches(self, sentence: str) -> Iterator[Match]:
        """Each pair that the sentence holds, once; the longest subject at a place counts."""
        words = split_words(sentence)
        seen: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
        for start, word in enumerate(words):
            if word not in self.firsts:
                continue
            for length in self.lengths:
                subject = words[start : start + length]
                objects = self.objects.get(subject)
                if objects is None:
                    continue
                for obj in objects:
                    at = _nearest(words, obj, start, start + length)
                    if at is not None and (subject, obj) not in seen:
                        seen.add((subject, obj))
                        yield Match(words, (start, start + length), (at, at + len(obj)))
                break


def _nearest(words: tuple[str, ...], wanted: tuple[str, ...], start: int, stop: int) -> int | None:
    """Where `wanted` stands nearest to the words [start, stop), outside of them."""
    places = [
        at
        for at in range(len(words) - len(wanted) + 1)
        if words[at : at + len(wanted)] == wanted and (at >= stop or at + len(wanted) <= start)
    ]
    if not places:
        return None
    return min(places, key=lambda at: at - stop if at >= stop else start - at - len(wanted))


def split_words(text: str) -> tuple[str, ...]:
    """The words and signs of a text, with round brackets for square ones."""
    return tuple(WORD.findall(text.translate(BRACKETS)))


def _in_order(match: Match) -> tuple[tuple[tuple[int, int], tuple[int, int]], tuple[str, str]]:
    if match.subject < match.object:
        return (match.subject, match.object), ("[X]", "[Y]")
    return (match.object, match.subject), ("[Y]", "[X]")


def _head_of(parsed: Sequence[Word], span: tuple[int, int]) -> int:
    """The word of a span whose head lies outside of it: what the span hangs on."""
    within = range(*span)
    heads = (at for at in within if parsed[at].head == at or parsed[at].head not in within)
    return next(heads, span[1] - 1)


def _template(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if text.endswith(".") else f"{text} ."
