"""Who is probed: a language model, static word vectors, or relation embeddings.

Each answers the two questions of the paper. Unsupervised: which of two pairs is more like the
query pair? Supervised: which numbers describe a query pair with a candidate pair, for a classifier?
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.spelling import OpenVocabulary
from lama_core.errors import UserError
from lama_core.models.protocols import SentenceScorer
from lama_core.probes.analogy.instances import Instance, ProbeOptions
from lama_core.probes.analogy.score import Normalise, Pair, log_perplexity, total_log_prob
from lama_core.probes.analogy.templates import fill, resolve_template
from lama_core.probes.analogy.vectors import WordVectors, load_vectors
from lama_core.progress import silent

if TYPE_CHECKING:
    from lama_core.models.auxiliary.relbert import RelBert

Method = Literal["model", "vectors", "relbert"]
# Told how many more instances or rows are done.
OnDone = Callable[[int], None]
# Sentences that are handed to a model at once; between them progress is reported.
CHUNK = 240


class Judge(ABC):
    """What a probe is asked of.

    name: for people. identity: what its numbers depend on. device: where it computes.
    """

    def __init__(self, method: Method, source: "Scorer | WordVectors | RelBert") -> None:
        self.method = method
        self.name, self.identity, self.device = source.name, source.identity, source.device

    def missing(self, words: Iterable[str]) -> tuple[str, ...]:
        """The words that it knows nothing of, each once, in their order; none of a model."""
        return ()

    @abstractmethod
    def prefer(self, instances: Sequence[Instance], on_done: OnDone) -> NDArray[np.float64]:
        """Scores of the positive and the negative, [instance, 2], the higher the better.

        NaN where a word is unknown. on_done: called with the number of instances just decided.
        Instances without a negative are not to be given.
        """

    @abstractmethod
    def features(self, rows: Sequence[tuple[Pair, Pair]], on_done: OnDone) -> NDArray[np.float32]:
        """What a classifier reads of each query pair and candidate pair, float32 [row, dim].

        NaN where a word is unknown. on_done: called with the number of rows just described.
        """


NONO_FEATURES = np.zeros((0, 0), np.float32)


class Scorer(SentenceScorer, Protocol):
    """A language model whose scores are known by its identity."""

    identity: str


NO_FEATURES = np.zeros((0, 0), np.float32)
Embed = Callable[[Sequence[str], Sequence[Sequence[tuple[int, int]]]], NDArray[np.float32]]


class ModelJudge(Judge):
    """A language model: the sentence of lower (pseudo-)perplexity, or the four words' embeddings.

    embed: hidden states of the words at the given spans, float32 [text, word, dim].
    Positives and negatives go through the model apart, in batches that depend on nothing else: so
    the same list has the same numbers to the last bit whatever was asked before, and the positives,
    which are the same for every probe of a relation, are remembered for the next one.
    """

    def __init__(self, model: Scorer, embed: Embed, *, template: str, normalise: Normalise) -> None:
        super().__init__("model", model)
        self._model, self._embed = model, embed
        self._template, self._normalise = template, normalise
        self._scored: tuple[list[str], NDArray[np.float64]] = ([], np.zeros(0))
        self._described: tuple[list[tuple[Pair, Pair]], NDArray[np.float32]] = ([], NO_FEATURES)

    def prefer(
        self, instances: Sequence[Instance], on_done: OnDone = silent
    ) -> NDArray[np.float64]:
        """Minus the log-perplexities of the positive and the negative sentence."""
        rights: list[str] = []
        wrongs: list[str] = []
        for one in instances:
            for texts, pair in ((rights, one.positive), (wrongs, one.negative or one.positive)):
                texts.append(fill(self._template, (*one.query, *pair)).text)
        half = len(instances) // 2
        if rights != self._scored[0]:
            self._scored = rights, self._scores(rights, on_done, half)
        else:
            on_done(half)
        wrong = self._scores(wrongs, on_done, len(instances) - half)
        return np.stack([self._scored[1], wrong], axis=1)

    def _scores(self, sentences: Sequence[str], on_done: OnDone, n: int) -> NDArray[np.float64]:
        """Minus the log-perplexity of each distinct sentence; all of them count as n instances."""
        # In alphabetical order those that begin with the same query come together.
        distinct = sorted(set(sentences))
        values: dict[str, float] = {}
        reported = 0
        for first in range(0, len(distinct), CHUNK):
            chunk = distinct[first : first + CHUNK]
            for text, tokens in zip(chunk, self._model.token_log_probs(chunk), strict=True):
                values[text] = -log_perplexity(*total_log_prob(tokens), self._normalise)
            done = round(len(values) / len(distinct) * n)
            on_done(done - reported)
            reported = done
        return np.array([values[text] for text in sentences])

    def features(
        self, rows: Sequence[tuple[Pair, Pair]], on_done: OnDone = silent
    ) -> NDArray[np.float32]:
        """The embeddings of the four words in the template, one after the other."""
        if list(rows) == self._described[0]:
            on_done(len(rows))
            return self._described[1]
        parts = []
        for first in range(0, len(rows), CHUNK):
            chunk = rows[first : first + CHUNK]
            filled = [fill(self._template, (*query, *pair)) for query, pair in chunk]
            states = self._embed([one.text for one in filled], [one.spans for one in filled])
            parts.append(states.reshape(len(chunk), -1))
            on_done(len(chunk))
        found = np.concatenate(parts)
        self._described = list(rows), found
        return found


class VectorJudge(Judge):
    """Vectors of pairs: the pair whose vector has the higher cosine with the query's, or both."""

    def __init__(self, embedder: "WordVectors | RelBert", method: Method) -> None:
        super().__init__(method, embedder)
        self.embedder = embedder

    def missing(self, words: Iterable[str]) -> tuple[str, ...]:
        """The words that have no vector, each once, in their order."""
        return self.embedder.missing(words)

    def _look_up(self, pairs: Iterable[Pair]) -> dict[Pair, NDArray[np.float32]]:
        """The vector of each pair, each computed once."""
        distinct = list(dict.fromkeys(pairs))
        return dict(zip(distinct, self.embedder.pair_vectors(distinct), strict=True))

    def prefer(
        self, instances: Sequence[Instance], on_done: OnDone = silent
    ) -> NDArray[np.float64]:
        """Cosines of the query with the positive and with the negative."""
        triples = [(one.query, one.positive, one.negative or one.positive) for one in instances]
        vectors = self._look_up(pair for triple in triples for pair in triple)
        queries, positives, negatives = (
            np.stack([vectors[triple[place]] for triple in triples]) for place in range(3)
        )
        on_done(len(instances))
        scores = [_cosines(queries, positives), _cosines(queries, negatives)]
        return np.stack(scores, axis=1)

    def features(
        self, rows: Sequence[tuple[Pair, Pair]], on_done: OnDone = silent
    ) -> NDArray[np.float32]:
        """The query's and the candidate's vectors, one after the other."""
        vectors = self._look_up(pair for row in rows for pair in row)
        on_done(len(rows))
        return np.stack([np.concatenate([vectors[query], vectors[pair]]) for query, pair in rows])


def _cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosine of each row with the row of the same number; 0 where one is all zeros."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = (a * b).sum(1)
    return np.divide(
        products, lengths, out=np.where(np.isnan(lengths), np.nan, 0.0), where=lengths > 0
    )


def _open_model(
    reference: str, words: Sequence[str], options: ProbeOptions, load: Callable[[str], Any]
) -> ModelJudge:
    from lama_core.models.auxiliary.word_embeddings import hidden_states

    model = load(reference)

    def embed(
        texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]
    ) -> NDArray[np.float32]:
        if isinstance(model.vocabulary, OpenVocabulary):
            raise UserError(
                f"{model.name} is behind a server, which gives no hidden states: choose the "
                "unsupervised probe, or another model."
            )
        return hidden_states(model, texts, spans, layer=options.layer, pooling=options.pooling)

    template = resolve_template(options.template)
    return ModelJudge(model, embed, template=template, normalise=options.normalise)


def _open_vectors(source: str, words: Sequence[str], *_: Any) -> VectorJudge:
    return VectorJudge(load_vectors(source, words), "vectors")


def _open_relbert(reference: str, *_: Any) -> VectorJudge:
    from lama_core.models.auxiliary.relbert import load_relbert

    return VectorJudge(load_relbert(reference), "relbert")


@dataclass(frozen=True, slots=True)
class JudgeKind:
    """A kind of judge. title: for people. field: of `AnalogyRequest`, which names such judges.

    open: the judge of a name. It is given the name, the words that it will be asked of, the
    options, and what gives a model by its name; it raises UserError for what can't be had.
    """

    title: str
    field: str
    open: Callable[[str, Sequence[str], ProbeOptions, Callable[[str], Any]], Judge]


JUDGES: dict[Method, JudgeKind] = {
    "model": JudgeKind("model", "models", _open_model),
    "vectors": JudgeKind("vectors", "vectors", _open_vectors),
    "relbert": JudgeKind("RelBERT", "relbert", _open_relbert),
}
