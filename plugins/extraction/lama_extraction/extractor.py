"""A relation extractor: it extracts triples from the sentences of facts, as a graph.

    corpus + training pairs --distant supervision--> examples --fit--> classifier
    sentences of the tested facts --classifier--> triples (subject, relation, object), confidence

A sentence of the corpus that contains a training pair is an example of the pair's relation. Two
names that co-occur but are not a pair of the dataset are an example of no relation. The classifier
is a logistic regression over the features of `describe`. A triple is extracted if a relation is the
likeliest class of two names; its confidence is the probability of this class, the maximum over the
sentences that give the same triple.

A mention is a name that occurs in the sentence as whole words. Case must match, except that the
sentence's first letter may be a capital. The longest name at a position counts, and mentions don't
overlap.

    "Dante was born in the city of Florence ."  (Dante, Florence)
    >, >between=was, >pair=was born, >middle=was born in the city of, >right1=. ...

`>` means that the subject comes first, `<` that the object does. The names are not features, so the
classifier can't memorise pairs.

RE_n links names by exact string. RE_o adds an oracle: if any triple of relation r is extracted from
a sentence of the fact (s, r, o), even with other names, (s, r, o) is added to the graph.

No pair is answered by an extractor that was trained on it: the facts of each relation are split
into two halves by a hash of subject and object (`training_pairs.halve`), and the extractor trained
on one half answers the facts of the other.
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
from lama_core.probes.prompts.mining import MAX_WORDS, PairFinder, PairMatch, split_words
from lama_core.probes.prompts.training_pairs import halve
from lama_core.progress import OnProgress, Progress, ignore
from lama_core.scoring.queries import BLANK, SQUAD
from lama_core.types import Fact

Linking = Literal["naive", "oracle"]
LINKINGS: tuple[Linking, ...] = ("naive", "oracle")
NAMES: dict[Linking, str] = {"naive": "RE_n", "oracle": "RE_o"}
# Incremented whenever the same texts and facts give other triples.
VERSION = 1
NONE = ""  # the class of two names without a relation
MAX_EXAMPLES = 500  # per relation and half, drawn by a hash of the sentence and the pair
NONE_EXAMPLES = 5000
MAX_FOUND = 10  # corpus sentences for a fact that has none in the dataset
TOLERANCE = 1e-3  # of the fit
CHUNK = 4096  # pairs that are classified in one call
PROGRESS_INTERVAL = 20_000  # sentences between two progress reports
MAX_MENTIONS = 12  # per sentence, because n mentions are n * (n - 1) pairs
AROUND = 2  # context words before the first name, and after the second
EDGE = "·"  # replaces the sentence's start and end, and the names

Graph = dict[tuple[str, str], dict[str, float]]
"""(relation, subject) -> object -> confidence."""
TrainingExample = tuple[list[str], str]
"""The features of two names in a sentence (see `describe`), and the relation."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a sentence; span: its words, [start, stop)."""

    name: str
    span: tuple[int, int]


class NameFinder:
    """Finds names in sentences by their words."""

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
        """Return the first MAX_MENTIONS names of a sentence, from left to right."""
        found: list[Mention] = []
        start = 0
        while start < len(words) and len(found) < MAX_MENTIONS:
            possible = start == 0 or words[start] in self._lengths
            mention = self._mention(words, start) if possible else None
            if mention is not None:
                found.append(mention)
            start = mention.span[1] if mention else start + 1
        return found

    def _mention(self, words: tuple[str, ...], start: int) -> Mention | None:
        """Return the longest name that starts at a word, if there is one."""
        firsts = [words[start]]
        if start == 0:  # a capital may mark the start of the sentence, not a name
            firsts.append(words[0][:1].lower() + words[0][1:])
        for first in firsts:
            for length in self._lengths.get(first, ()):
                name = self._names.get((first, *words[start + 1 : start + length]))
                if name is not None:
                    return Mention(name, (start, start + length))
        return None


def pairs_of(
    words: tuple[str, ...], mentions: Iterable[Mention]
) -> Iterator[tuple[str, str, PairMatch]]:
    """Yield each ordered pair of different names in a sentence: subject, object and positions."""
    for subject, obj in permutations(mentions, 2):
        if subject.name != obj.name:
            yield subject.name, obj.name, PairMatch(words, subject.span, obj.span)


def describe(match: PairMatch) -> list[str]:
    """Return the words between and around two names, as the classifier's features."""
    order = ">" if match.subject < match.object else "<"
    first, second = sorted((match.subject, match.object))
    words = [word.lower() for word in match.words]
    between = words[first[1] : second[0]]
    features = [order, *(f"{order}between={word}" for word in between)]
    features += [f"{order}pair={left} {right}" for left, right in pairwise([EDGE, *between, EDGE])]
    if len(between) <= MAX_WORDS:
        features.append(f"{order}middle={' '.join(between)}")
    for distance in range(1, AROUND + 1):
        index = first[0] - distance
        features.append(f"{order}left{distance}={words[index] if index >= 0 else EDGE}")
        index = second[1] - 1 + distance
        features.append(f"{order}right{distance}={words[index] if index < len(words) else EDGE}")
    return features


@dataclass(frozen=True, slots=True)
class FactSentence:
    """A sentence that contains a fact's subject and object."""

    fact: Fact
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple extracted from a sentence, with a confidence between 0 and 1."""

    subject: str
    relation: str
    object: str
    confidence: float


class Classifier:
    """Predicts the relation of two names in a sentence; NONE if they have no relation.

    Features that occur in only one training example are ignored. With fewer than two classes, or
    without features, the result is always NONE.
    """

    def __init__(self, examples: Sequence[TrainingExample]) -> None:
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
        """Return the likeliest class of each pair, and its probability."""
        if self._fitted is None or not features:
            return [(NONE, 1.0)] * len(features)
        vectorizer, model = self._fitted
        probs: NDArray[np.float64] = model.predict_proba(vectorizer.transform(features))
        best = probs.argmax(axis=1)
        return [
            (str(model.classes_[column]), float(prob))
            for column, prob in zip(best, probs.max(axis=1), strict=True)
        ]


def link(
    stated: Sequence[FactSentence], triples: Sequence[Sequence[Triple]], linking: Linking
) -> Graph:
    """Return the graph of the triples of all sentences, each with its highest confidence."""
    graph: Graph = defaultdict(dict)

    def add(relation: str, subject: str, obj: str, confidence: float) -> None:
        objects = graph[relation, subject]
        objects[obj] = max(confidence, objects.get(obj, 0.0))

    for sentence, extracted in zip(stated, triples, strict=True):
        fact = sentence.fact
        for triple in extracted:
            add(triple.relation, triple.subject, triple.object, triple.confidence)
            if linking == "oracle" and triple.relation == fact.relation:
                add(fact.relation, fact.subject, fact.object, triple.confidence)
    return dict(graph)


def extractable(dataset: Dataset) -> tuple[str, ...]:
    """Return the relations that can be extracted: with a template and facts.

    Relations of ConceptNet (as in the paper) and SQuAD are excluded.
    """
    return tuple(
        relation.name
        for relation in dataset.relations
        if relation.templates
        and relation.source not in (CONCEPTNET, SQUAD)
        and dataset.facts_of(relation.name)
    )


@dataclass
class Extraction:
    """Two extractors, each trained on one half of the facts, and their graphs; made lazily."""

    dataset: Dataset
    corpus: Corpus
    relations: tuple[str, ...]
    limit: int | None = None
    on_progress: OnProgress = field(default=ignore, repr=False)

    def graph(self, linking: Linking, fact: Fact) -> Graph:
        """Return the graph of the extractor that wasn't trained on a fact's pair."""
        return self._graphs[1 - self._half_of[fact.id]][linking]

    @cached_property
    def untrained(self) -> tuple[str, ...]:
        """The tested relations without a training pair that co-occurs in the corpus."""
        trained = {name for one in self._trained[1] for name in one.relations}
        return tuple(name for name in self.relations if name not in trained)

    @cached_property
    def _half_of(self) -> dict[str, int]:
        """Id of each fact that can be trained on -> the half whose extractor is trained on it."""
        return {
            fact.id: number
            for name in extractable(self.dataset)
            for number, half in enumerate(halve(self.dataset.facts_of(name)))
            for fact in half
        }

    @cached_property
    def _trained(self) -> tuple[NameFinder, list[Classifier], list[FactSentence]]:
        """Names of all facts, the classifier of each half, and sentences of the tested facts."""
        facts = [fact for n in extractable(self.dataset) for fact in self.dataset.facts_of(n)]
        names = NameFinder(name for fact in facts for name in (fact.subject, fact.object))
        tested = [
            fact for name in self.relations for fact in self.dataset.facts_of(name)[: self.limit]
        ]
        examples, found = read_corpus(
            self._sentences(),
            facts,
            self._half_of,
            names,
            wanted={fact.id for fact in tested if not fact.sentences},
        )
        self.on_progress(Progress("Training the relation extractor"))
        stated = [
            FactSentence(fact, split_words(text.replace(BLANK, fact.object)))
            for fact in tested
            for text in fact.sentences or found.get(fact.id, ())
        ]
        return names, list(map(Classifier, examples)), stated

    def _sentences(self) -> Iterator[str]:
        """Yield the sentences of the corpus and report the progress."""
        for number, sentence in enumerate(self.corpus.sentences()):
            if number % PROGRESS_INTERVAL == 0:
                self.on_progress(Progress(f"Reading {self.corpus.name}", number, None, "sentences"))
            yield sentence

    @cached_property
    def _graphs(self) -> list[dict[Linking, Graph]]:
        """The graphs of each half's extractor, one for each way of linking."""
        names, classifiers, stated = self._trained
        words = [sentence.words for sentence in stated]
        triples = [extract(words, names, classifier) for classifier in classifiers]
        return [{linking: link(stated, one, linking) for linking in LINKINGS} for one in triples]


def extract(
    sentences: Sequence[tuple[str, ...]], names: NameFinder, classifier: Classifier
) -> list[list[Triple]]:
    """Return the triples of each sentence."""
    found: list[list[Triple]] = [[] for _ in sentences]
    pairs = [
        (number, subject, obj, match)
        for number, words in enumerate(sentences)
        for subject, obj, match in pairs_of(words, names.mentions(words))
    ]
    for first in range(0, len(pairs), CHUNK):
        chunk = pairs[first : first + CHUNK]
        classes = classifier.classify([describe(match) for *_, match in chunk])
        for (number, subject, obj, _), (relation, confidence) in zip(chunk, classes, strict=True):
            if relation != NONE:
                found[number].append(Triple(subject, relation, obj, confidence))
    return found


def read_corpus(
    sentences: Iterable[str],
    facts: Sequence[Fact],
    half_of: Mapping[str, int],
    names: NameFinder,
    *,
    wanted: Collection[str] = (),
) -> tuple[list[list[TrainingExample]], Mapping[str, Sequence[str]]]:
    """Return the training examples of each half, and sentences of the wanted facts by their id.

    Args:
        sentences: The sentences of the corpus.
        facts: The facts.
        half_of: Fact id -> the half (0 or 1) that the fact belongs to.
        names: Finds the names of all facts.
        wanted: Ids of the facts to find sentences for.
    """
    finder = PairFinder(facts)
    by_pair: defaultdict[tuple[tuple[str, ...], tuple[str, ...]], list[Fact]] = defaultdict(list)
    for fact in facts:
        by_pair[split_words(fact.subject), split_words(fact.object)].append(fact)
    drawn: tuple[dict[str, _Draw], ...] = tuple(
        defaultdict(lambda: _Draw(MAX_EXAMPLES)) for _ in range(2)
    )
    no_relation = _Draw(NONE_EXAMPLES)
    sentences_of: defaultdict[str, list[str]] = defaultdict(list)
    for sentence in sentences:
        for match in finder.matches(sentence):
            pair = match.words[slice(*match.subject)], match.words[slice(*match.object)]
            for fact in by_pair[pair]:
                drawn[half_of[fact.id]][fact.relation].add(sentence, fact.id, match)
                if fact.id in wanted and len(sentences_of[fact.id]) < MAX_FOUND:
                    sentences_of[fact.id].append(sentence)
        words = split_words(sentence)
        for subject, obj, match in pairs_of(words, names.mentions(words)):
            if (split_words(subject), split_words(obj)) not in by_pair:
                no_relation.add(sentence, f"{subject}\0{obj}", match)
    examples = [
        [
            (describe(match), relation)
            for relation, draw in [*sorted(of_half.items()), (NONE, no_relation)]
            for match in draw.kept()
        ]
        for of_half in drawn
    ]
    return examples, sentences_of


class _Draw:
    """A sample of at most `size` examples, chosen by hash, in whatever order they are added."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._matches: dict[int, PairMatch] = {}
        self._largest: list[int] = []  # a heap of negated hashes, so the largest hash is first

    def add(self, sentence: str, pair: str, match: PairMatch) -> None:
        text = f"{sentence}\0{pair}"
        digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        if number in self._matches:  # the corpus contains the sentence twice
            return
        if len(self._matches) < self._size:
            heapq.heappush(self._largest, -number)
        elif number < -self._largest[0]:
            del self._matches[-heapq.heapreplace(self._largest, -number)]
        else:
            return
        self._matches[number] = match

    def kept(self) -> list[PairMatch]:
        return [self._matches[number] for number in sorted(self._matches)]
