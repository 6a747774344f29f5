"""Pair scorers: language models, static word vectors and relation embeddings (RelBERT).

In the unsupervised setting a scorer compares two candidate pairs with the query pair. In the
supervised setting it returns the features of a query pair with a candidate pair, for a classifier.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.spelling import OpenVocabulary
from lama_core.datasets.dataset import Pair
from lama_core.errors import TextRefusedError, UserError
from lama_core.models.protocols import SentenceScorer
from lama_core.probes.analogy.instances import Instance, ProbeOptions
from lama_core.probes.analogy.vectors import WordVectors, load_vectors
from lama_core.progress import ignore
from lama_core.queries.analogy_templates import (
    begins_with_candidate,
    fill_template,
    resolve_template,
)
from lama_core.queries.pairs import Normalise, log_perplexity, total_log_prob
from lama_core.scoring.refusals import score_accepted

if TYPE_CHECKING:
    from lama_core.models.auxiliary.relbert import RelBert

PairScorerKind = Literal["model", "vectors", "relbert"]
# Called with the number of instances or feature rows done since the last call.
OnDone = Callable[[int], None]
# Sentences per call of a model; progress is reported between the calls.
CHUNK = 240
UNKNOWN = "a word has no vector"


class PairScorer(ABC):
    """A scorer of pairs. identity: Digest of everything that its scores and features depend on."""

    def __init__(
        self, method: PairScorerKind, source: "ScoringModel | WordVectors | RelBert"
    ) -> None:
        self.method = method
        self.name, self.identity, self.device = source.name, source.identity, source.device

    def missing(self, words: Iterable[str]) -> tuple[str, ...]:
        """Return the distinct words without a vector, in order; always () for language models."""
        return ()

    def why_unscored(self, instance: Instance) -> str:
        """Return why an instance has no scores."""
        return UNKNOWN

    @abstractmethod
    def prefer(self, instances: Sequence[Instance], on_done: OnDone) -> NDArray[np.float64]:
        """Return the scores of positive and negative, [instance, 2]; higher is better.

        NaN for a pair without a score (`why_unscored`). All instances must have a negative.
        """

    @abstractmethod
    def features(self, rows: Sequence[tuple[Pair, Pair]], on_done: OnDone) -> NDArray[np.float32]:
        """Return the features of each query pair with a candidate pair, float32 [row, dim].

        NaN if a word has no vector.
        """


class ScoringModel(SentenceScorer, Protocol):
    """A language model with an identity."""

    identity: str


# Returns the hidden states of words, float32 [text, word, dim], given texts and character ranges.
Embed = Callable[[Sequence[str], Sequence[Sequence[tuple[int, int]]]], NDArray[np.float32]]


class ModelPairScorer(PairScorer):
    """A language model: scores are perplexities of sentences, features are word embeddings.

    Scores positives and negatives separately, in batches that depend only on the list of sentences.
    So the same list gives bit-identical numbers in any run, and the scores of the positives, which
    all probes of a relation share, are reused.
    """

    def __init__(
        self, model: ScoringModel, embed: Embed, *, template: str, normalise: Normalise
    ) -> None:
        super().__init__("model", model)
        self._model, self._embed = model, embed
        self._template, self._normalise = template, normalise
        self._scored: tuple[list[str], NDArray[np.float64]] = ([], np.zeros(0))
        self._refusals: dict[str, str] = {}  # sentence -> why a server refuses it
        self._described: tuple[list[tuple[Pair, Pair]], NDArray[np.float32]]
        self._described = ([], np.zeros((0, 0), np.float32))

    def prefer(
        self, instances: Sequence[Instance], on_done: OnDone = ignore
    ) -> NDArray[np.float64]:
        """Return minus the log-perplexity of the positive and negative sentence."""
        positives = [self._sentence(one.query, one.positive) for one in instances]
        negatives = [self._sentence(one.query, one.negative or one.positive) for one in instances]
        half = len(instances) // 2
        if positives != self._scored[0]:
            self._scored = positives, self._scores(positives, on_done, half)
        else:
            on_done(half)
        return np.stack(
            [self._scored[1], self._scores(negatives, on_done, len(instances) - half)], axis=1
        )

    def why_unscored(self, instance: Instance) -> str:
        """Return why the server refuses one of the instance's two sentences."""
        positive = self._sentence(instance.query, instance.positive)
        negative = self._sentence(instance.query, instance.negative or instance.positive)
        return self._refusals.get(positive) or self._refusals[negative]

    def _sentence(self, query: Pair, pair: Pair) -> str:
        return fill_template(self._template, (*query, *pair)).text

    def _scores(self, sentences: Sequence[str], on_done: OnDone, n: int) -> NDArray[np.float64]:
        """Return minus the log-perplexity of each sentence; report progress that adds up to `n`."""
        # Sorting places sentences with the same query next to each other.
        distinct = sorted(set(sentences))
        score = partial(self._model.token_log_probs, begins=begins_with_candidate(self._template))
        values: dict[str, float] = {}
        reported = 0
        for first in range(0, len(distinct), CHUNK):
            for texts, scores in score_accepted(score, distinct[first : first + CHUNK]):
                if isinstance(scores, TextRefusedError):
                    values[texts[0]] = math.nan
                    self._refusals[texts[0]] = scores.excluded
                    continue
                for text, tokens in zip(texts, scores, strict=True):
                    values[text] = -log_perplexity(*total_log_prob(tokens), self._normalise)
            done = round(len(values) / len(distinct) * n)
            on_done(done - reported)
            reported = done
        return np.array([values[text] for text in sentences])

    def features(
        self, rows: Sequence[tuple[Pair, Pair]], on_done: OnDone = ignore
    ) -> NDArray[np.float32]:
        """Return the concatenated embeddings of the four words in the template."""
        if list(rows) == self._described[0]:
            on_done(len(rows))
            return self._described[1]
        parts = []
        for first in range(0, len(rows), CHUNK):
            chunk = rows[first : first + CHUNK]
            filled = [fill_template(self._template, (*query, *pair)) for query, pair in chunk]
            states = self._embed([one.text for one in filled], [one.spans for one in filled])
            parts.append(states.reshape(len(chunk), -1))
            on_done(len(chunk))
        self._described = list(rows), np.concatenate(parts)
        return self._described[1]


class VectorPairScorer(PairScorer):
    """A scorer with one vector per pair.

    A score is the cosine of candidate and query pair; features are the vectors of both.
    """

    def __init__(self, embedder: "WordVectors | RelBert", method: PairScorerKind) -> None:
        super().__init__(method, embedder)
        self.embedder = embedder

    def missing(self, words: Iterable[str]) -> tuple[str, ...]:
        return self.embedder.missing(words)

    def _vectors(self, pairs: Iterable[Pair]) -> dict[Pair, NDArray[np.float32]]:
        distinct = list(dict.fromkeys(pairs))
        return dict(zip(distinct, self.embedder.pair_vectors(distinct), strict=True))

    def prefer(
        self, instances: Sequence[Instance], on_done: OnDone = ignore
    ) -> NDArray[np.float64]:
        """Return the cosines of the query with the positive and with the negative."""
        triples = [(one.query, one.positive, one.negative or one.positive) for one in instances]
        vectors = self._vectors(pair for triple in triples for pair in triple)
        queries, positives, negatives = (
            np.stack([vectors[pair] for pair in pairs]) for pairs in zip(*triples, strict=True)
        )
        on_done(len(instances))
        scores = [_cosines(queries, positives), _cosines(queries, negatives)]
        return np.stack(scores, axis=1)

    def features(
        self, rows: Sequence[tuple[Pair, Pair]], on_done: OnDone = ignore
    ) -> NDArray[np.float32]:
        """Return the concatenated vectors of query pair and candidate pair."""
        vectors = self._vectors(pair for row in rows for pair in row)
        on_done(len(rows))
        return np.stack([np.concatenate([vectors[query], vectors[pair]]) for query, pair in rows])


def _cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine of each row of `left` with the same row of `right`; 0 for zero vectors."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.divide(
        (a * b).sum(1), lengths, out=np.where(np.isnan(lengths), np.nan, 0.0), where=lengths > 0
    )


def _open_model(
    reference: str, words: Sequence[str], options: ProbeOptions, load: Callable[[str], Any]
) -> ModelPairScorer:
    from lama_core.models.auxiliary.word_embeddings import hidden_states

    model = load(reference)

    def embed(
        texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]
    ) -> NDArray[np.float32]:
        if isinstance(model.vocabulary, OpenVocabulary):
            raise UserError(
                f"{model.name} runs on a server, which does not return hidden states. Choose the "
                "unsupervised setting, or another model."
            )
        return hidden_states(model, texts, spans, layer=options.layer, pooling=options.pooling)

    return ModelPairScorer(
        model, embed, template=resolve_template(options.template), normalise=options.normalise
    )


def _open_relbert(reference: str, *_: Any) -> VectorPairScorer:
    from lama_core.models.auxiliary.relbert import load_relbert

    return VectorPairScorer(load_relbert(reference), "relbert")


# Kind of scorer -> function that loads one, given its name, the words to score, the options, and a
# function that loads a language model by name. Raises UserError if the scorer is not available.
PAIR_SCORERS: dict[
    PairScorerKind,
    Callable[[str, Sequence[str], ProbeOptions, Callable[[str], Any]], PairScorer],
] = {
    "model": _open_model,
    "vectors": lambda source, words, *_: VectorPairScorer(load_vectors(source, words), "vectors"),
    "relbert": _open_relbert,
}
