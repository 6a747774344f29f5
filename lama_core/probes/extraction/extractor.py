"""A relation extractor: it reads sentences that state facts, and keeps what it read as a graph.

    corpus + training pairs --distant supervision--> examples --fit--> classifier
    sentences of the tested facts --classifier--> triples (subject, relation, object), confidence

A sentence of the corpus that holds a training pair is an example of the pair's relation. Two names
that are no pair of the data are one of no relation, wherever they stand together. The classifier is
a logistic regression over `describe`. A triple is extracted where a relation is the
likeliest class, and its confidence is that probability; the best of a triple's sentences counts.

A mention is a name that stands in the sentence letter for letter, as whole words; the first letter
of a sentence may be a capital. The longest name at a place counts, and names don't overlap.

    "Dante was born in the city of Florence ."  (Dante, Florence)
    >, >between=was, >pair=was born, >middle=was born in the city of, >right1=. ...

`>` where the subject stands first, else `<`. The names themselves are never features: the
classifier reads what is said of two names, and can't remember them.

RE_n links names by exact string. RE_o has an oracle as well: a sentence of the fact (s, r, o) from
which any triple of the relation r was extracted, whatever its names, gives (s, r, o).

A pair is never answered by what was trained on it: the facts of each relation fall into two halves
by a hash of subject and object (`training_pairs.halve`), and the extractor of one half answers the
facts of the other.
Source: Petroni et al. 2019, section 4.3.

Departure: The relation extractor
"""

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lama_core.datasets import Dataset
from lama_core.datasets.passages import Corpus
from lama_core.metrics.score_tables import CONCEPTNET
from lama_core.probes.prompts.mining import MAX_WORDS, Match, PairFinder, split_words
from lama_core.probes.prompts.training_pairs import halve
from lama_core.progress import OnProgress, Progress, silent
from lama_core.scoring.queries import BLANK, SQUAD
from lama_core.types import Fact

Linking = Literal["naive", "oracle"]
LINKINGS: tuple[Linking, ...] = ("naive", "oracle")
NAMES: dict[Linking, str] = {"naive": "RE_n", "oracle": "RE_o"}
# Raised by one whenever the same texts and facts would give other triples.
VERSION = 1
NONE = ""  # the class of two names of which no relation is said
MAX_EXAMPLES = 500  # of a relation in one half, drawn by a hash of the sentence and the pair
NONE_EXAMPLES = 5000
MAX_FOUND = 10  # sentences of the corpus for a fact that brings none
TOLERANCE = 1e-3  # of the fit
CHUNK = 4096  # pairs that are classified at once
REPORTED = 20_000
MAX_MENTIONS = 12  # of a sentence: each two of them are a pair, twice
AROUND = 2  # words that are read left of the first name, and right of the second
EDGE = "·"  # stands for the beginning, the end, and the names

Graph = dict[tuple[str, str], dict[str, float]]
"""(relation, subject) -> object -> confidence."""
Example = tuple[list[str], str]
"""What a sentence says of two names (see `describe`), and the relation."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a sentence. span: its words, [start, stop)."""

    name: str
    span: tuple[int, int]


class NameFinder:
    """Finds names in sentences, by runs of words. names: as the data writes them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names: dict[tuple[str, ...], str] = {}
        for name in names:
            words = split_words(name)
            if words:
                self._names.setdefault(words, name)
        self._lengths: dict[str, list[int]] = {}
        for words in sorted(self._names, key=len, reverse=True):
            lengths = self._lengths.setdefault(words[0], [])
            if len(words) not in lengths:
                lengths.append(len(words))

    def mentions(self, words: tuple[str, ...]) -> list[Mention]:
        """The first MAX_MENTIONS names of a sentence, from left to right."""
        found: list[Mention] = []
        at = 0
        while at < len(words) and len(found) < MAX_MENTIONS:
            mention = self._at(words, at) if not at or words[at] in self._lengths else None
            if mention is not None:
                found.append(mention)
            at = mention.span[1] if mention else at + 1
        return found

    def _at(self, words: tuple[str, ...], at: int) -> Mention | None:
        firsts = [words[at]]
        if at == 0:  # a sentence begins with a capital, whatever the name does
            firsts.append(words[0][:1].lower() + words[0][1:])
        for first in firsts:
            for length in self._lengths.get(first, ()):
                name = self._names.get((first, *words[at + 1 : at + length]))
                if name is not None:
                    return Mention(name, (at, at + length))
        return None


def pairs_of(
    words: tuple[str, ...], mentions: Iterable[Mention]
) -> Iterator[tuple[str, str, Match]]:
    """Each two names of a sentence, in both directions: subject, object, and where they stand."""
    for subject, obj in permutations(mentions, 2):
        if subject.name != obj.name:
            yield subject.name, obj.name, Match(words, subject.span, obj.span)


def describe(match: Match) -> list[str]:
    """What a sentence says between and around two names, as the classifier's features."""
    ahead = match.subject < match.object
    way = ">" if ahead else "<"
    first, second = sorted((match.subject, match.object))
    words = [word.lower() for word in match.words]
    between = words[first[1] : second[0]]
    found = [way, *(f"{way}between={word}" for word in between)]
    found += [f"{way}pair={left} {right}" for left, right in pairwise([EDGE, *between, EDGE])]
    if len(between) <= MAX_WORDS:
        found.append(f"{way}middle={' '.join(between)}")
    for away in range(1, AROUND + 1):
        at = first[0] - away
        found.append(f"{way}left{away}={words[at] if at >= 0 else EDGE}")
        at = second[1] - 1 + away
        found.append(f"{way}right{away}={words[at] if at < len(words) else EDGE}")
    return found


@dataclass(frozen=True, slots=True)
class Stated:
    """A sentence that states a fact."""

    fact: Fact
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Triple:
    """What a sentence says of two names. confidence: between 0 and 1."""

    subject: str
    relation: str
    object: str
    confidence: float


class Classifier:
    """Says which relation a sentence states between two names, if any.

    Fitted on examples: features and relation, NONE for none. Features of one example alone don't
    count. Without two classes, or a feature that counts, nothing is ever extracted.
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression

        self.relations = tuple(sorted({relation for _, relation in examples} - {NONE}))
        self._fitted: tuple[Any, Any] | None = None
        labels = [relation for _, relation in examples]
        counts = Counter(name for features, _ in examples for name in set(features))
        kept = sorted(name for name, count in counts.items() if count > 1)
        if kept and len(set(labels)) > 1:
            reader = CountVectorizer(analyzer=list, binary=True, vocabulary=kept, dtype=np.float32)
            table = reader.transform([features for features, _ in examples])
            model = LogisticRegression(tol=TOLERANCE, max_iter=300)
            self._fitted = reader, model.fit(table, labels)

    def classify(self, features: Sequence[list[str]]) -> list[tuple[str, float]]:
        """The likeliest class of each pair, and its probability."""
        if self._fitted is None or not features:
            return [(NONE, 1.0)] * len(features)
        reader, model = self._fitted
        shares: NDArray[np.float64] = model.predict_proba(reader.transform(features))
        best = shares.argmax(axis=1)
        return [
            (str(model.classes_[at]), float(share))
            for at, share in zip(best, shares[np.arange(len(best)), best], strict=True)
        ]


def link(stated: Sequence[Stated], triples: Sequence[Sequence[Triple]], linking: Linking) -> Graph:
    """The graph of what was extracted. triples: of each sentence."""
    graph: Graph = defaultdict(dict)

    def add(relation: str, subject: str, obj: str, confidence: float) -> None:
        known = graph[relation, subject]
        known[obj] = max(confidence, known.get(obj, 0.0))

    for one, found in zip(stated, triples, strict=True):
        for triple in found:
            add(triple.relation, triple.subject, triple.object, triple.confidence)
            if linking == "oracle" and triple.relation == one.fact.relation:
                add(one.fact.relation, one.fact.subject, one.fact.object, triple.confidence)
    return dict(graph)


def extractable(dataset: Dataset) -> tuple[str, ...]:
    """The relations that hold between two names, with facts; the paper has none of ConceptNet."""
    return tuple(
        one.name
        for one in dataset.relations
        if one.prompts and one.source not in (CONCEPTNET, SQUAD) and dataset.facts_of(one.name)
    )


@dataclass
class Extraction:
    """Two extractors, one a half of the facts, and what they read; made when first asked."""

    dataset: Dataset
    corpus: Corpus
    relations: tuple[str, ...]
    limit: int | None = None
    on_progress: OnProgress = field(default=silent, repr=False)

    def graph(self, linking: Linking, fact: Fact) -> Graph:
        """What the extractor that wasn't trained on a fact's pair has read."""
        return self._graphs[1 - self._half_of[fact.id]][linking]

    @cached_property
    def untrained(self) -> tuple[str, ...]:
        """The tested relations of which the corpus states no training pair, in either half."""
        known = {name for one in self._classifiers for name in one.relations}
        return tuple(name for name in self.relations if name not in known)

    @cached_property
    def _facts(self) -> dict[str, tuple[Fact, ...]]:
        """All facts of every relation that can be trained on."""
        return {name: self.dataset.facts_of(name) for name in extractable(self.dataset)}

    @cached_property
    def _half_of(self) -> dict[str, int]:
        """Fact -> the half that it trains."""
        return {
            fact.id: number
            for known in self._facts.values()
            for number, facts in enumerate(halve(known))
            for fact in facts
        }

    @cached_property
    def _every_fact(self) -> list[Fact]:
        return [fact for known in self._facts.values() for fact in known]

    @cached_property
    def _names(self) -> NameFinder:
        return NameFinder(name for fact in self._every_fact for name in (fact.subject, fact.object))

    @cached_property
    def _tested(self) -> list[Fact]:
        return [fact for name in self.relations for fact in self._facts[name][: self.limit]]

    @cached_property
    def _read(self) -> "CorpusReading":
        return read_corpus(
            _watched(self.corpus, self.on_progress),
            self._every_fact,
            self._half_of,
            self._names,
            wanted={fact.id for fact in self._tested if not fact.sentences},
        )

    @cached_property
    def _classifiers(self) -> tuple[Classifier, Classifier]:
        """The extractor of each half."""
        self.on_progress(Progress("Training the relation extractor"))
        first, second = self._read.examples
        return Classifier(first), Classifier(second)

    @cached_property
    def _graphs(self) -> list[dict[Linking, Graph]]:
        stated = [
            Stated(fact, split_words(text.replace(BLANK, fact.object)))
            for fact in self._tested
            for text in fact.sentences or self._read.sentences.get(fact.id, ())
        ]
        found = []
        for classifier in self._classifiers:
            triples = extract([one.words for one in stated], self._names, classifier)
            found.append({linking: link(stated, triples, linking) for linking in LINKINGS})
        return found


def extract(
    sentences: Sequence[tuple[str, ...]], names: NameFinder, classifier: Classifier
) -> list[list[Triple]]:
    """The triples of each sentence."""
    found: list[list[Triple]] = [[] for _ in sentences]
    pairs = [
        (at, subject, obj, match)
        for at, words in enumerate(sentences)
        for subject, obj, match in pairs_of(words, names.mentions(words))
    ]
    for first in range(0, len(pairs), CHUNK):
        chunk = pairs[first : first + CHUNK]
        classes = classifier.classify([describe(match) for *_, match in chunk])
        for (at, subject, obj, _), (relation, confidence) in zip(chunk, classes, strict=True):
            if relation != NONE:
                found[at].append(Triple(subject, relation, obj, confidence))
    return found


@dataclass(frozen=True)
class CorpusReading:
    """What a corpus gave: the examples of each half, and sentences of facts that bring none."""

    examples: tuple[list[Example], list[Example]]
    sentences: Mapping[str, tuple[str, ...]]


def read_corpus(
    sentences: Iterable[str],
    facts: Sequence[Fact],
    half_of: Mapping[str, int],
    names: NameFinder,
    *,
    wanted: Collection[str] = (),
) -> CorpusReading:
    """The training examples of both halves. wanted: facts to find sentences for that hold them."""

    def span(match: Match, words: tuple[int, int]) -> tuple[str, ...]:
        return match.words[slice(*words)]

    finder = PairFinder(facts)
    by_pair: defaultdict[tuple[tuple[str, ...], tuple[str, ...]], list[Fact]] = defaultdict(list)
    for fact in facts:
        by_pair[split_words(fact.subject), split_words(fact.object)].append(fact)
    drawn: tuple[dict[str, _Draw], ...] = tuple(
        defaultdict(lambda: _Draw(MAX_EXAMPLES)) for _ in range(2)
    )
    nothing = _Draw(NONE_EXAMPLES)
    stating: defaultdict[str, list[str]] = defaultdict(list)
    for sentence in sentences:
        for match in finder.matches(sentence):
            for fact in by_pair[span(match, match.subject), span(match, match.object)]:
                half = half_of[fact.id]
                drawn[half][fact.relation].add(sentence, fact.id, match)
                if fact.id in wanted and len(stating[fact.id]) < MAX_FOUND:
                    stating[fact.id].append(sentence)
        words = split_words(sentence)
        for subject, obj, match in pairs_of(words, names.mentions(words)):
            if (split_words(subject), split_words(obj)) not in by_pair:
                nothing.add(sentence, f"{subject}\0{obj}", match)
    first, second = (
        [
            (describe(match), relation)
            for relation, draw in [*sorted(own.items()), (NONE, nothing)]
            for match in draw.kept()
        ]
        for own in drawn
    )
    texts = {name: tuple(found) for name, found in stating.items()}
    return CorpusReading((first, second), texts)


class _Draw:
    """So many of the examples that come, at random by a hash of each: the same in any order."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._matches: dict[int, Match] = {}
        self._largest: list[int] = []  # a heap of the hashes, negative

    def add(self, sentence: str, pair: str, match: Match) -> None:
        text = f"{sentence}\0{pair}"
        digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        if number in self._matches:  # the corpus says the same twice
            return
        if len(self._matches) < self._size:
            heapq.heappush(self._largest, -number)
        elif number < -self._largest[0]:
            del self._matches[-heapq.heapreplace(self._largest, -number)]
        else:
            return
        self._matches[number] = match

    def kept(self) -> list[Match]:
        return [self._matches[number] for number in sorted(self._matches)]


def _watched(corpus: Corpus, on_progress: OnProgress) -> Iterator[str]:
    for number, sentence in enumerate(corpus.sentences()):
        if number % REPORTED == 0:
            on_progress(Progress(f"Reading {corpus.name}", number, None, "sentences"))
        yield sentence
