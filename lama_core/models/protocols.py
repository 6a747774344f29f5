"""What a model must be able to do to be asked: the protocols that backends implement.

Only natural-log log-probabilities cross this seam, as numpy arrays.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import Place, Vocabulary
from lama_core.types import Query

Kind = Literal["masked", "causal", "seq2seq", "bidirectional"]
Context = Literal["left", "both"]
Pooling = Literal["mean", "first", "last"]
# What is hidden with a token from a model that sees both sides: the later tokens of its word (Kauf
# and Ivanova 2023), nothing (Salazar et al. 2020), all later tokens, or the later tokens of the
# answer, and outside the answer those of the word. In lm-pub-quiz: within_word_l2r, original,
# sentence_l2r, answer_l2r+word_l2r.
Hiding = Literal["within-word", "original", "rest-of-sentence", "rest-of-answer"]
Scored = Literal["statement", "answer"]
HIDINGS: tuple[Hiding, ...] = get_args(Hiding)
RESCORED = 200
BLANK = "___"
# Integrated gradients without a number of steps end when they are in doubt by at most this share of
# the whole difference, but no less than that much (natural log), or when so many points are used.
MISSED, LEAST_MISSED, MOST_POINTS = 0.01, 0.001, 2_000


@dataclass(frozen=True, slots=True)
class ModelKind:
    """What a kind of model can do. title: for people.

    contexts: what it can be shown of a blank, the papers' choice first. fills_together: it reads
    all the blanks of a text at once; else they are asked in turn, with the first answers in those
    before. measure: what its score of a whole sentence is called.
    """

    title: str
    contexts: tuple[Context, ...]
    fills_together: bool
    measure: str

    @property
    def sees_both(self) -> bool:
        """Whether it is always shown both sides of a blank; a sentence then takes many passes."""
        return self.contexts == ("both",)


KINDS: dict[Kind, ModelKind] = {
    "masked": ModelKind("masked", ("both",), True, "pseudo-perplexity"),
    "causal": ModelKind("left to right", ("left", "both"), False, "perplexity"),
    "seq2seq": ModelKind("encoder-decoder", ("both",), False, "pseudo-perplexity"),
    "bidirectional": ModelKind("both directions", ("both",), True, "pseudo-perplexity"),
}


@dataclass(frozen=True, slots=True)
class Encoded:
    """A query as one model's tokens.

    token_ids: with the model's special tokens. positions: where each blank's distribution is read;
        of an encoder-decoder model, where the blank is that its decoder fills.
    places: whether each blank is after a space, or open (start of text, after a bracket).
    suffix, n_suffix: causal models with context `both`: the text right of the blank, rescored with
        each word, and its tokens. n_rescored: how many of the best words by the left context are
        rescored, until the time `until` (`time.monotonic`).
    rescored: columns that are scored whatever their rank: the gold, the other valid objects.
    """

    token_ids: tuple[int, ...]
    positions: tuple[int, ...]
    places: tuple[Place, ...]
    suffix: str = ""
    n_rescored: int = RESCORED
    rescored: tuple[int, ...] = ()
    n_suffix: int = 0
    until: float = math.inf


@dataclass(frozen=True, slots=True)
class Scores:
    """Log-probabilities of the candidates at some blanks.

    log_probs: float32 [blank, candidate], natural log, over the model's whole vocabulary; with
        context `both` of a causal model, over the rescored words, -inf for the others.
    order: float32 [blank, candidate], the order of candidates of log-probability -inf (higher
        first). normaliser: float32 [blank], the log of the sum over the rescored words, which turns
        another word's sentence score into a log-probability; None if that is the vocabulary.
    first, first_log_probs: int64 and float32 [blank], the likeliest token of the whole vocabulary
        (of a causal model, after the left context); None of a backend that doesn't say.
    n_listed: int64 [blank], of a model that gives its likeliest tokens only: how many; others have
        -inf, unless in `Encoded.rescored`. floor: float32 [blank], log-probability of the last one.
    """

    log_probs: NDArray[np.float32]
    order: NDArray[np.float32] | None = None
    normaliser: NDArray[np.float32] | None = None
    first: NDArray[np.int64] | None = None
    first_log_probs: NDArray[np.float32] | None = None
    n_listed: NDArray[np.int64] | None = None
    floor: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class WordScore:
    """The log-probability of one word at a blank, however many pieces it has.

    log_prob: -inf for a word that the model can't write: its pieces hold the unknown token.
    """

    pieces: tuple[str, ...]
    log_prob: float


@dataclass(frozen=True, slots=True)
class TokenScores:
    """The log-probability of each token of a text.

    tokens: as they are shown, without special tokens. log_probs: float32 [token], natural log; of
    a causal model without a start token, the first is NaN: nothing stands before it.
    """

    tokens: tuple[str, ...]
    log_probs: NDArray[np.float32] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with an answer in it. start, end: the answer's first character, and behind it."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StatementScores:
    """The log-probability of each token of a statement.

    tokens: as they are shown, without special tokens. log_probs: float32 [token], natural log, NaN
    of a token that wasn't asked for, and of the first of a model that has no token to begin with.
    in_answer: bool [token]. unknown: whether the answer holds what the model can't write, or has no
    token at all.
    """

    tokens: tuple[str, ...]
    log_probs: NDArray[np.float32] = field(repr=False)
    in_answer: NDArray[np.bool_] = field(repr=False)
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class LayerScores:
    """What a model would answer at a blank after each layer; a row a layer, the embeddings first.

    log_probs: float32 [layer, candidate]. words: float32 [layer, word], of the words that were
    asked for. Natural logs, over the model's whole vocabulary.
    """

    log_probs: NDArray[np.float32] = field(repr=False)
    words: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Attribution:
    """What each token of a text adds to the log-probability of a word at its blank.

    tokens: of the text as they are shown, `BLANK` in the place of a blank. values: float32 [token],
    natural log; NaN of a blank, and of a token that there was no time for. log_prob: of the word,
    given the whole text. baseline: given none of its tokens; None where that isn't asked. n_points:
    of integrated gradients, where gradients were computed; None of erasure.
    """

    tokens: tuple[str, ...]
    values: NDArray[np.float32]
    log_prob: float
    baseline: float | None = None
    n_points: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat. role: `system`, `user` or `assistant`."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation that the model answers next."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """A generated answer: the text up to its first line break.

    Attributes:
        text: What the tokens add to the prompt, without a line break.
        tokens: The generated tokens as they are shown, without the one that ended the text.
        log_probs: float32 [token], natural log, over the model's whole vocabulary; NaN of a server
            that doesn't return them.
    """

    text: str
    tokens: tuple[str, ...]
    log_probs: NDArray[np.float32] = field(repr=False)


class Scorer(Protocol):
    """What every model that scores has. precision: `fp32` or `bf16`."""

    name: str
    kind: Kind
    precision: str

    @property
    def device(self) -> str:
        """Where it computes, such as `cpu` or `cuda:0`."""
        ...


@runtime_checkable
class BlankFiller(Scorer, Protocol):
    """Gives log-probabilities of words at a blank."""

    max_tokens: int

    @property
    def notes(self) -> Sequence[str]:
        """What a user should know of how it is asked, a sentence each."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """The model's tokens as words."""
        ...

    @property
    def identity(self) -> str:
        """What makes two loads the same model: digest of the weights, and the precision."""
        ...

    def encode(self, query: Query, context: Context) -> Encoded:
        """The query as tokens. Raises UserError if it doesn't fit the model's window."""
        ...

    def encode_all(self, queries: Sequence[Query], context: Context) -> list[Encoded]:
        """Many queries, in their order."""
        ...

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        """Scores of the candidates, a row for each blank of each query in turn.

        The log-softmax is over the whole vocabulary, before the candidates are picked.
        """
        ...

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Log-probability of any word at one blank, as several pieces if it has several.

        Masked: as many masks as pieces, filled left to right. Others: by the chain rule.
        normaliser: of the same blank's `Scores`, where they have one.
        """
        ...


@runtime_checkable
class WordMasker(Protocol):
    """Masks all pieces of a word at once."""

    def masked_word_log_probs(self, asked: Sequence[tuple[Query, str]]) -> list[WordScore]:
        """Log-probability of each word at its query's first blank: the sum over its pieces.

        No piece is given the others of its word.
        """
        ...


@runtime_checkable
class WordContinuer(Protocol):
    """Goes on from the first token of an answer to the end of the word."""

    def continue_words(
        self, encoded: Sequence[Encoded], firsts: Sequence[Sequence[int]]
    ) -> list[str | None]:
        """The longer word or name that each first token begins behind its text; None: it is whole.

        firsts: of each text, the tokens that can write its answer; the likeliest is taken.
        """
        ...


@runtime_checkable
class SentenceScorer(Scorer, Protocol):
    """Gives the log-probability of each token of a text."""

    def token_log_probs(self, texts: Sequence[str]) -> list[TokenScores]:
        """The log-probability of each token of each text.

        Masked: each token in turn replaced by the mask (Wang and Cho 2019). Causal: given what
        stands left of it; NaN of the first token of a model without a start token.
        Encoder-decoder: each token in turn replaced by a sentinel, and said by the decoder.
        """
        ...


@runtime_checkable
class StatementScorer(Scorer, Protocol):
    """Gives the log-probability of each token of statements with an answer in them."""

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: Scored = "statement",
    ) -> list[StatementScores]:
        """The log-probability of each token of each statement, or of its answer's alone.

        hiding: of models that see both sides. Causal models begin with their start token, so that
        the first token is scored, too. What statements share is computed once.
        Raises UserError for a statement that doesn't fit the model's window.
        """
        ...


@runtime_checkable
class LayerReader(Protocol):
    """Gives its answer after each of its layers."""

    def layer_log_probs(
        self, encoded: Encoded, columns: Columns, words: Sequence[Sequence[int]]
    ) -> LayerScores:
        """Scores at the first blank of a text, after each layer.

        words: of each, the tokens that write it. Of a causal model, given what stands left.
        Raises UserError for a model whose layers can't be read so: they aren't as many as it says,
        or its answer takes more than what the last of them gives.
        """
        ...


@runtime_checkable
class Attributor(Protocol):
    """Attributes an answer to the tokens of the text."""

    def erased(
        self, encoded: Encoded, word: Sequence[int], *, until: float = math.inf
    ) -> Attribution:
        """By how much the first blank's word is likelier with a token than without it.

        word: the tokens that write it. Of a model with a mask the token is masked, else left out.
        until: after this time (`time.monotonic`) no more tokens are tried; the others are NaN.
        """
        ...

    def integrated_gradients(
        self,
        encoded: Encoded,
        word: Sequence[int],
        *,
        steps: int | None = None,
        until: float = math.inf,
    ) -> Attribution:
        """Integrated gradients of the word's log-probability over the tokens' embeddings.

        The baseline has a hidden token in the place of each token of the text; special tokens and
        blanks keep their own embeddings.

        Args:
            steps: Points of the Gauss-Legendre rule, exactly. None: as many as the sum needs to
                come within `MISSED` of the difference, at most `MOST_POINTS`.
            until: No more points are taken after this time (`time.monotonic`).

        Raises:
            UserError: For a model without gradients, and where the time is over before all steps.
        """
        ...
