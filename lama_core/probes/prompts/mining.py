"""Mine prompts from text: words between subject and object, or along their dependency path.

    middle words   "Barack Obama was born in Hawaii"   -> "[X] was born in [Y] ."
    dependency     "The capital of France is Paris"    -> "capital of [X] is [Y] ."

A sentence matches a pair if it contains both as whole words (distant supervision). Prompts that
have only stop words or punctuation, or more than ten words without [X] and [Y], are dropped. The
T = 40 most frequent prompts are kept; ties keep the order in which they were found. With both
methods, these are the 30 most frequent middle-word prompts, then the 10 most frequent that only the
dependency path gives (`is_dependency_only`). All prompts end in " .", as the released ones do.
Source: Jiang et al. 2020, sections 3.1 and 5.1, and its released scripts.

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
from lama_core.progress import ignore
from lama_core.types import Fact, Prompt

MiningMethod = Literal["middle", "dependency"]

PIPELINE = "en_core_web_sm"  # of spaCy, which is an optional extra
MAX_WORDS = 10
N_KEPT = 40
N_OF_PATH = 10
WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")
BRACKETS = str.maketrans("[]", "()")  # so that "[X]" in the text is not read as a placeholder


@dataclass(frozen=True, slots=True)
class ParsedWord:
    """A parsed word.

    head: Position of its syntactic head; the root is its own head. tag: Penn Treebank tag, as `NN`.
    """

    text: str
    head: int
    tag: str


class Parser(Protocol):
    """A dependency parser and part-of-speech tagger for tokenized sentences."""

    def parse(self, words: Sequence[str]) -> tuple[ParsedWord, ...]:
        """Return one `ParsedWord` per word, in order."""


class SpacyParser:
    """The parser of an installed spaCy pipeline."""

    def __init__(self, pipeline: str = PIPELINE) -> None:
        """Load the pipeline. Raises UserError if it or spaCy is not installed."""
        try:
            import spacy
        except ImportError as error:
            raise UserError(
                "Dependency paths and parts of speech need spaCy, which is not installed. Run "
                f"`pip install spacy`, then `python -m spacy download {pipeline}`. Middle-word "
                "prompts work without it."
            ) from error
        try:
            self._pipeline: Any = spacy.load(pipeline)
        except OSError as error:
            raise UserError(
                f"The spaCy pipeline {pipeline!r} is not installed. Run "
                f"`python -m spacy download {pipeline}`, or choose an installed pipeline."
            ) from error

    def parse(self, words: Sequence[str]) -> tuple[ParsedWord, ...]:
        from spacy.tokens import Doc

        document = self._pipeline(Doc(self._pipeline.vocab, words=list(words)))
        return tuple(ParsedWord(token.text, token.head.i, token.tag_) for token in document)


def shortest_path(words: Sequence[ParsedWord], start: int, stop: int) -> tuple[int, ...]:
    """Return the word positions on the shortest dependency path from `start` to `stop`.

    Both ends are included; () without a path.
    """
    chains = []
    for at in (start, stop):
        chain = [at]
        while words[chain[-1]].head not in chain:
            chain.append(words[chain[-1]].head)
        chains.append(chain)
    up, down = chains
    meeting = next((at for at in up if at in down), None)
    if meeting is None:
        return ()
    return (*up[: up.index(meeting)], *reversed(down[: down.index(meeting) + 1]))


@dataclass(frozen=True, slots=True)
class MinedPrompt:
    """A mined prompt. count: Number of matches (pair in a sentence) that give it.

    methods: The methods that found it.
    """

    prompt: Prompt
    count: int
    methods: tuple[MiningMethod, ...]


@dataclass(frozen=True)
class MiningResult:
    """The result of mining. n_dropped: (Reason, how often a prompt was dropped)."""

    kept: tuple[MinedPrompt, ...]
    n_sentences: int
    n_matches: int
    n_dropped: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PairMatch:
    """A pair in a sentence, as word ranges [start, stop) of the subject and of the object."""

    words: tuple[str, ...]
    subject: tuple[int, int]
    object: tuple[int, int]


def mine_from_text(
    sentences: Iterable[str],
    pairs: Sequence[Fact],
    *,
    parser: Parser | None = None,
    n_kept: int = N_KEPT,
    n_of_path: int = N_OF_PATH,
    on_sentence: Callable[[int], None] = ignore,
) -> MiningResult:
    """Return the most frequent prompts of one relation's pairs in these sentences.

    Args:
        sentences: The text.
        pairs: Facts of one relation.
        parser: Finds dependency paths; None mines middle words only.
        n_kept: Number of prompts to keep.
        n_of_path: With a parser, how many of the kept prompts must come from the dependency path
            alone.
        on_sentence: Called with the number of each sentence, from 1.

    Raises:
        UserError: Without pairs, if no sentence matches a pair, or if n_of_path exceeds n_kept.
    """
    if not pairs:
        raise UserError("Cannot mine prompts without pairs. Give facts of one relation.")
    if parser is not None and n_of_path > n_kept:
        raise UserError(
            f"Cannot keep {n_of_path} dependency prompts among {n_kept} prompts. Keep more prompts "
            "in total, or fewer dependency prompts."
        )
    finder = PairFinder(pairs)
    counts = _Counts()
    n_sentences = n_matches = 0
    for n_sentences, sentence in enumerate(sentences, start=1):
        on_sentence(n_sentences)
        for match in finder.matches(sentence):
            n_matches += 1
            templates: dict[MiningMethod, str | None] = {"middle": middle_words(match)}
            if parser is not None:
                templates["dependency"] = dependency_span(match, parser)
            counts.add(templates)
    if not n_matches:
        raise UserError(
            f"None of the {n_sentences:,} sentences contains a subject and its object. Give a "
            "larger text, or pairs that it mentions."
        )
    n_middle = n_kept if parser is None else n_kept - n_of_path
    kept = counts.most_common(n_middle, "middle")
    kept += counts.most_common(n_kept - n_middle, "dependency")
    return MiningResult(tuple(kept), n_sentences, n_matches, tuple(sorted(counts.dropped.items())))


class _Counts:
    """Counts of the prompts found so far."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.by: dict[MiningMethod, Counter[str]] = {"middle": Counter(), "dependency": Counter()}
        self.dropped: Counter[str] = Counter()

    def add(self, templates: dict[MiningMethod, str | None]) -> None:
        """Count the templates of one match; a text that both methods give counts once."""
        for template in dict.fromkeys(text for text in templates.values() if text is not None):
            reason = drop_reason(template)
            if reason:
                self.dropped[reason] += 1
                continue
            key = normalise_template(template)
            self.texts.setdefault(key, template)
            for method, text in templates.items():
                self.by[method][key] += text == template

    def most_common(self, n: int, method: MiningMethod) -> list[MinedPrompt]:
        """Return the n most frequent prompts of one method.

        `dependency` returns only prompts that the dependency path alone gives.
        """
        ordered = [
            (key, count)
            for key, count in self.by[method].most_common()
            if count and (method != "dependency" or is_dependency_only(self.texts[key]))
        ]
        return [
            MinedPrompt(
                Prompt(self.texts[key], "mined"),
                count,
                tuple(name for name, found in self.by.items() if found[key]),
            )
            for key, count in ordered[:n]
        ]


def is_dependency_only(template: str) -> bool:
    """Return whether only a dependency path gives a prompt: it has words outside "[X] ... [Y]".

    As in the released scripts, prompts with a capitalised word (a name in the sentence) don't
    qualify.
    """
    words = template.removesuffix(".").split()
    ends = {words[0], words[-1]} <= {"[X]", "[Y]"}
    return not ends and not any(word[0].isupper() for word in words)


def middle_words(match: PairMatch) -> str | None:
    """Return the words between subject and object as a template; None if there are none."""
    (first, second), marks = _in_order(match)
    between = match.words[first[1] : second[0]]
    return _template([marks[0], *between, marks[1]]) if between else None


def dependency_span(match: PairMatch, parser: Parser) -> str | None:
    """Return the span of the shortest dependency path as a template; None without a path."""
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
    positions = (at for at in range(leftmost, rightmost + 1) if at not in inside)
    words = [marked.get(at, match.words[at]) for at in positions]
    return None if words.count("[X]") != 1 or words.count("[Y]") != 1 else _template(words)


def drop_reason(template: str) -> str | None:
    """Return the reason why the paper's filters drop a prompt; None if they keep it."""
    tokens = WORD.findall(template.replace("[X]", " ").replace("[Y]", " "))
    words = [token for token in tokens if token[0].isalnum()]
    if all(word.lower() in STOP_WORDS for word in words):
        return "only stop words or punctuation"
    if len(words) > MAX_WORDS:
        return f"longer than {MAX_WORDS} words"
    return None


class PairFinder:
    """Finds pairs in sentences by looking up every word sequence in an index of the subjects."""

    def __init__(self, pairs: Sequence[Fact]) -> None:
        self.objects: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
        for fact in pairs:
            subject, obj = split_words(fact.subject), split_words(fact.object)
            if subject and obj and subject != obj:
                self.objects.setdefault(subject, {})[obj] = None
        self.lengths = sorted({len(subject) for subject in self.objects}, reverse=True)
        self.firsts = {subject[0] for subject in self.objects}

    def matches(self, sentence: str) -> Iterator[PairMatch]:
        """Yield each pair in the sentence once; at each position the longest subject wins."""
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
                        yield PairMatch(words, (start, start + length), (at, at + len(obj)))
                break


def _nearest(words: tuple[str, ...], wanted: tuple[str, ...], start: int, stop: int) -> int | None:
    """Return the start of the occurrence of `wanted` nearest to, and outside, [start, stop)."""
    starts = [
        at
        for at in range(len(words) - len(wanted) + 1)
        if words[at : at + len(wanted)] == wanted and (at >= stop or at + len(wanted) <= start)
    ]
    return min(
        starts, key=lambda at: at - stop if at >= stop else start - at - len(wanted), default=None
    )


def split_words(text: str) -> tuple[str, ...]:
    """Return the words and punctuation marks, with square brackets replaced by round ones."""
    return tuple(WORD.findall(text.translate(BRACKETS)))


def _in_order(match: PairMatch) -> tuple[tuple[tuple[int, int], tuple[int, int]], tuple[str, str]]:
    if match.subject < match.object:
        return (match.subject, match.object), ("[X]", "[Y]")
    return (match.object, match.subject), ("[Y]", "[X]")


def _head_of(parsed: Sequence[ParsedWord], span: tuple[int, int]) -> int:
    """Return the position of a span's head: the word whose syntactic head is outside the span."""
    inside = range(*span)
    heads = (at for at in inside if parsed[at].head == at or parsed[at].head not in inside)
    return next(heads, span[1] - 1)


def _template(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if text.endswith(".") else f"{text} ."
