"""Who is probed: a language model, static word vectors, or relation embeddings.

Each answers the two questions of the paper. Unsupervised: which of two pairs is more like the
query pair? Supervised: which numbers describe a query pair with a candidate pair, for a classifier?
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lama_core.models.base import TokenScores
from lama_core.probes.analogy.probes import Instance
from lama_core.probes.analogy.score import Normalise, Pair, log_perplexity, total_log_prob
from lama_core.probes.analogy.templates import fill

Method = Literal["model", "vectors", "relbert"]
OnDone = Callable[[int], None]
# Sentences that are handed to a model at once; between them progress is reported.
CHUNK = 240


def silent(_: int) -> None:
    """No report."""


class Judge(Protocol):
    """What a probe is asked of. name: for people. identity: what its numbers depend on."""

    name: str
    identity: str
    method: Method

    def prefer(self, instances: Sequence[Instance], on_done: OnDone) -> NDArray[np.float64]:
        """Scores of the positive and the negative, [instance, 2], the higher the better.

        NaN where a word is unknown. on_done: called with the number of instances just decided.
        Instances without a negative are not to be given.
        """
        ...

    def features(self, rows: Sequence[tuple[Pair, Pair]], on_done: OnDone) -> NDArray[np.float32]:
        """What a classifier reads of each query pair and candidate pair, float32 [row, dim].

        NaN where a word is unknown. on_done: called with the number of rows just described.
        """
        ...


class Scorer(Protocol):
    """The part of a language model that the judge needs."""

    name: str
    identity: str

    def token_log_probs(self, texts: Sequence[str]) -> list[TokenScores]:
        """The log-probability of each token of each text."""
        ...


Embed = Callable[[Sequence[str], Sequence[Sequence[tuple[int, int]]]], NDArray[np.float32]]


class ModelJudge:
    """A language model: the sentence of lower (pseudo-)perplexity, or the four words' embeddings.

    embed: hidden states of the words at the given spans, float32 [text, word, dim].
    No sentence is scored twice.
    """

    method: Method = "model"

    def __init__(self, model: Scorer, embed: Embed, *, template: str, normalise: Normalise) -> None:
        self.name = model.name
        self.identity = model.identity
        self._model = model
        self._embed = embed
        self._template = template
        self._normalise = normalise
        self._scores: dict[str, float] = {}

    def _sentence(self, query: Pair, pair: Pair) -> str:
        return fill(self._template, (*query, *pair)).text

    def prefer(
        self, instances: Sequence[Instance], on_done: OnDone = silent
    ) -> NDArray[np.float64]:
        """Minus the log-perplexities of the positive and the negative sentence."""
        sentences = [
            self._sentence(instance.query, pair)
            for instance in instances
            for pair in (instance.positive, instance.negative or instance.positive)
        ]
        # In alphabetical order those that begin with the same query come together.
        new = sorted({text for text in sentences if text not in self._scores})
        reported = 0
        for first in range(0, len(new), CHUNK):
            chunk = new[first : first + CHUNK]
            for text, tokens in zip(chunk, self._model.token_log_probs(chunk), strict=True):
                self._scores[text] = -log_perplexity(*total_log_prob(tokens), self._normalise)
            share = (first + len(chunk)) / len(new)
            on_done(int(share * len(instances)) - reported)
            reported = int(share * len(instances))
        on_done(len(instances) - reported)
        return np.array([self._scores[text] for text in sentences]).reshape(-1, 2)

    def features(
        self, rows: Sequence[tuple[Pair, Pair]], on_done: OnDone = silent
    ) -> NDArray[np.float32]:
        """The embeddings of the four words in the template, one after the other."""
        parts = []
        for first in range(0, len(rows), CHUNK):
            chunk = rows[first : first + CHUNK]
            filled = [fill(self._template, (*query, *pair)) for query, pair in chunk]
            states = self._embed([one.text for one in filled], [one.spans for one in filled])
            parts.append(states.reshape(len(chunk), -1))
            on_done(len(chunk))
        return np.concatenate(parts)


class PairEmbedder(Protocol):
    """Gives one vector for a pair of words."""

    name: str
    identity: str

    def pair_vectors(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The relation of each pair, float32 [pair, dim]; NaN where a word is unknown."""
        ...


class VectorJudge:
    """Vectors of pairs: the pair whose vector has the higher cosine with the query's, or both."""

    def __init__(self, embedder: PairEmbedder, method: Method) -> None:
        self.name = embedder.name
        self.identity = embedder.identity
        self.method: Method = method
        self.embedder = embedder
        self._vectors: dict[Pair, NDArray[np.float32]] = {}

    def _look_up(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._vectors]
        if new:
            found = self.embedder.pair_vectors(new)
            self._vectors |= dict(zip(new, found, strict=True))
        return np.stack([self._vectors[pair] for pair in pairs])

    def prefer(
        self, instances: Sequence[Instance], on_done: OnDone = silent
    ) -> NDArray[np.float64]:
        """Cosines of the query with the positive and with the negative."""
        queries = self._look_up([instance.query for instance in instances])
        scores = np.empty((len(instances), 2))
        for column, pairs in enumerate(
            (
                [instance.positive for instance in instances],
                [instance.negative or instance.positive for instance in instances],
            )
        ):
            scores[:, column] = _cosines(queries, self._look_up(pairs))
        on_done(len(instances))
        return scores

    def features(
        self, rows: Sequence[tuple[Pair, Pair]], on_done: OnDone = silent
    ) -> NDArray[np.float32]:
        """The query's and the candidate's vectors, one after the other."""
        queries = self._look_up([query for query, _ in rows])
        pairs = self._look_up([pair for _, pair in rows])
        on_done(len(rows))
        return np.concatenate([queries, pairs], axis=1)


def _cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosine of each row with the row of the same number; 0 where one is all zeros."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = (a * b).sum(1)
    return np.divide(
        products, lengths, out=np.where(np.isnan(lengths), np.nan, 0.0), where=lengths > 0
    )
