"""The protocols that model backends implement, and their inputs and results.

Backends return log-probabilities as numpy arrays, with the natural logarithm.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lama_core.candidates.columns import Columns
from lama_core.candidates.spelling import Place, Vocabulary
from lama_core.types import Query

Kind = Literal["masked", "causal", "seq2seq", "bidirectional"]
Context = Literal["left", "both"]
Pooling = Literal["mean", "first", "last"]
# Which tokens are hidden together with the scored token in a model that sees both sides (in
# parentheses: source; name in lm-pub-quiz):
#   within-word:       the later tokens of its word (Kauf and Ivanova 2023; within_word_l2r)
#   original:          none (Salazar et al. 2020; original)
#   rest-of-sentence:  all later tokens (Kauf and Ivanova 2023; sentence_l2r)
#   rest-of-answer:    for a token of the answer, the answer's later tokens; for other tokens as
#                      within-word (answer_l2r+word_l2r)
Hiding = Literal["within-word", "original", "rest-of-sentence", "rest-of-answer"]
ScoredPart = Literal["statement", "answer"]
# When a start token precedes the text of a causal model whose tokenizer adds none by itself:
#   needed:  only where the text would begin with the scored word, which would have no score without
#   always:  before every text that contains an answer (Wiland et al. 2024; lm-pub-quiz)
StartToken = Literal["needed", "always"]
START_TOKENS: tuple[StartToken, ...] = get_args(StartToken)
# What causal tracing restores: the hidden state after a layer, or the outputs of attention or MLPs.
TracedPart = Literal["states", "attention", "mlp"]
HIDINGS: tuple[Hiding, ...] = get_args(Hiding)
RESCORED = 250
FIRST_RESCORED = 24  # words in the first of the passes that rescore words
BLANK = "___"
# With an automatic number of steps, integrated gradients stop after MAX_POINTS points, or when the
# estimated error is at most MIN_ERROR (natural log) or MAX_ERROR_SHARE of the difference between
# the word's log-probability and its baseline.
MAX_ERROR_SHARE, MIN_ERROR, MAX_POINTS = 0.01, 0.001, 2_000


@dataclass(frozen=True, slots=True)
class ModelKind:
    """The abilities of a kind of model.

    title: the name that users see.
    contexts: supported contexts of a blank; the papers' choice is first.
    fills_together: whether all blanks of a text are predicted at once; else they are filled in
        turn, each with the first answers in the blanks before it.
    measure: the name of its score for a whole sentence.
    """

    title: str
    contexts: tuple[Context, ...]
    fills_together: bool
    measure: str

    @property
    def sees_both(self) -> bool:
        """Whether they always see both sides of a blank; scoring a text then takes many passes."""
        return self.contexts == ("both",)

    @property
    def total(self) -> str:
        """The name of the sum of a sentence's log-probabilities, token by token."""
        return "pseudo-log-likelihood" if self.sees_both else "total log-prob."


KINDS: dict[Kind, ModelKind] = {
    "masked": ModelKind("masked", ("both",), True, "pseudo-perplexity"),
    "causal": ModelKind("causal", ("left", "both"), False, "perplexity"),
    "seq2seq": ModelKind("encoder-decoder", ("both",), False, "pseudo-perplexity"),
    "bidirectional": ModelKind("bidirectional", ("both",), True, "pseudo-perplexity"),
}


@dataclass(frozen=True, slots=True)
class Encoded:
    """A query as one model's tokens.

    token_ids: including the model's special tokens.
    positions: the position that each blank is predicted from; in an encoder-decoder model, the
        position of the blank that its decoder fills.
    places: for each blank, the text that touches it, which decides on a word's tokens.
    suffix: the text right of the blank, which a causal model with context `both` scores after each
        word; empty for others.
    n_suffix: number of tokens of the suffix.
    turned: the tokens of `proposals.turned_text`, after which a causal model with context `both`
        also proposes words; empty for others.
    proposed: columns of words that are proposed from elsewhere.
    n_rescored: how many of the proposed words are rescored with the suffix.
    until: time (`time.monotonic`) after which rescoring is given up.
    gold: column of the gold answer, which is scored even if it isn't proposed or listed.
    """

    token_ids: tuple[int, ...]
    positions: tuple[int, ...]
    places: tuple[Place, ...]
    suffix: str = ""
    n_rescored: int = RESCORED
    turned: tuple[int, ...] = ()
    proposed: tuple[int, ...] = ()
    gold: int | None = None
    n_suffix: int = 0
    until: float = math.inf


@dataclass(frozen=True, slots=True)
class Scores:
    """Log-probabilities of the candidates at some blanks.

    log_probs: float32 [blank, candidate], natural log, normalised over the model's whole
        vocabulary; for causal models with context `both`, normalised over the proposed words, and
        -inf for other words.
    gold: float32 [blank], the score of the query's gold answer (`Encoded.gold`), on the scale of
        `log_probs`, if that has -inf for it because it wasn't proposed or listed; else NaN. None if
        no query has one.
    order: float32 [blank, candidate], ranks the candidates whose log-probability is -inf (higher is
        better); None if they aren't ranked.
    normaliser: float32 [blank], log of the summed sentence probabilities of the proposed words, to
        normalise another word's sentence score; NaN for a blank, and None if for all, whose
        `log_probs` are over the vocabulary.
    first, first_log_probs: int64 and float32 [blank], the most likely token of the whole vocabulary
        (causal models: after the left context); None if the backend doesn't report it.
    n_listed: int64 [blank], number of tokens that a server returned if it returns only the most
        likely ones, else None. Other candidates have -inf.
    floor: float32 [blank], log-probability of the last returned token; None if `n_listed` is None.
    prefix: the text left of the blank as a causal model has read it, to continue from there; None
        if the texts differ.
    """

    log_probs: NDArray[np.float32]
    gold: NDArray[np.float32] | None = None
    order: NDArray[np.float32] | None = None
    normaliser: NDArray[np.float32] | None = None
    first: NDArray[np.int64] | None = None
    first_log_probs: NDArray[np.float32] | None = None
    n_listed: NDArray[np.int64] | None = None
    floor: NDArray[np.float32] | None = None
    prefix: Any = None

    def gold_log_probs(self) -> NDArray[np.float32]:
        """Return the log-probability of each gold answer in `gold`, float32 [blank]; else NaN.

        With context `both`, it is over the proposed words and the gold answer.
        """
        if self.gold is None:
            return np.full(len(self.log_probs), np.nan, np.float32)
        if self.normaliser is None:
            return self.gold
        with np.errstate(invalid="ignore"):  # NaN where no gold answer was scored apart
            among = self.gold - np.logaddexp(self.gold, np.float32(0))
        return np.where(np.isnan(self.normaliser), self.gold, among)


OnScores = Callable[[Scores], object]


@dataclass(frozen=True, slots=True)
class WordScore:
    """The log-probability of one word at a blank.

    pieces: the word's subword tokens. log_prob: -inf for a word that the model can't write, because
    its subword tokens include the unknown token.
    """

    pieces: tuple[str, ...]
    log_prob: float


@dataclass(frozen=True, slots=True)
class TokenScores:
    """The log-probability of each token of a text.

    tokens: as displayed, without special tokens. log_probs: float32 [token], natural log; NaN for
    a causal model's first token if no start token precedes it, because it has no context.
    """

    tokens: tuple[str, ...]
    log_probs: NDArray[np.float32] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with an answer in it. start, end: the answer's character offsets, end excluded."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StatementScores:
    """The log-probability of each token of a statement.

    tokens: as displayed, without special tokens. log_probs: float32 [token], natural log; NaN for
    tokens that weren't requested, and for a causal model's first token if no start token precedes
    it.
    in_answer: whether a token is part of the answer, bool [token]. unknown: whether the answer has
    no tokens, or includes text that the model can't write.
    """

    tokens: tuple[str, ...]
    log_probs: NDArray[np.float32] = field(repr=False)
    in_answer: NDArray[np.bool_] = field(repr=False)
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class LayerScores:
    """Log-probabilities at a blank after each layer; the first row is for the embeddings.

    log_probs: of the candidates, float32 [layer, candidate]. words: of the requested words, float32
    [layer, word]. Both are natural logs, over the model's whole vocabulary.
    """

    log_probs: NDArray[np.float32] = field(repr=False)
    words: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Attribution:
    """Contribution of each token of a text to the log-probability of a word at its blank.

    tokens: as displayed; `BLANK` marks a blank. values: float32 [token], natural log; NaN for a
    blank, and for tokens that weren't computed in time. log_prob: log-probability of the word given
    the whole text. baseline: its log-probability with all tokens of the text hidden; None if not
    computed. n_points: number of points of integrated gradients; None for erasure.
    """

    tokens: tuple[str, ...]
    values: NDArray[np.float32]
    log_prob: float
    baseline: float | None = None
    n_points: int | None = None


@dataclass(frozen=True, slots=True)
class LogitPart:
    """The contribution of one part of a model to a logit.

    layer: 0 for the embedding, None for parts that belong to no layer. part: `embedding`,
    `attention`, `mlp`, `remainder` (the biases on the way to the logit, and rounding) or `bias`.
    """

    layer: int | None
    part: str
    value: float


@dataclass(frozen=True, slots=True)
class HeadPart:
    """The contribution of an attention head to a logit; layers and heads count from 1."""

    layer: int
    head: int
    value: float


@dataclass(frozen=True, slots=True)
class NeuronPart:
    """The contribution of a neuron of an MLP to a logit; layers and neurons count from 1.

    promoted: the tokens whose logits the neuron raises most.
    """

    layer: int
    neuron: int
    activation: float
    value: float
    promoted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogitParts:
    """The parts of an answer's logit at a blank, or of the difference of two answers' logits.

    logit: the logit or the difference. parts: their values add up to `logit`. heads: the attention
    heads of all layers; the attention parts include their values. neurons: the neurons with the
    largest absolute values; the MLP parts include them. tokens: the token of each answer whose
    logit is used, as displayed.
    """

    logit: float
    parts: tuple[LogitPart, ...]
    heads: tuple[HeadPart, ...]
    neurons: tuple[NeuronPart, ...]
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """The probability of a word at a blank when the subject is corrupted and a part is restored.

    prob: the probability without noise. corrupted: with noise, mean over the draws. restored: with
    noise and the part restored, mean over the draws, float32 [layer, token]; NaN if not computed in
    time. noise: standard deviation of the noise. window: number of layers restored together. draws:
    number of draws that the means are over; fewer than wanted if the time was over.
    """

    prob: float
    corrupted: float
    restored: NDArray[np.float32]
    noise: float
    window: int
    draws: int


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat. role: `system`, `user` or `assistant`."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation that the model answers next."""

    messages: tuple[Message, ...]

    def sent(self) -> list[dict[str, str]]:
        """Return the messages as servers and chat templates expect them."""
        return [{"role": one.role, "content": one.text} for one in self.messages]


Ending = Literal["whole", "cut", "in reasoning"]


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """A generated answer: the first line with text, without reasoning.

    Attributes:
        text: The answer, without a line break.
        tokens: The answer's tokens as they are shown, without special tokens.
        log_probs: float32 [token], natural log, over the model's whole vocabulary; NaN where
            a server returns none.
        in_time: False if the text is incomplete because a time limit ended it.
        ending: Whether the answer is whole, was cut at the maximum number of tokens, or is empty
            because the text ends within the model's reasoning.
        made: When a server gave the answer, such as `2026-11-25 09:30` (UTC); empty for a local
            model.
        is_stored: Whether the answer was stored by an earlier request.
        mark: The mark before the answer, such as `<think>`; empty if there is none.
    """

    text: str
    tokens: tuple[str, ...]
    log_probs: NDArray[np.float32] = field(repr=False)
    in_time: bool = True
    ending: Ending = "whole"
    made: str = ""
    is_stored: bool = False
    mark: str = ""


class Scorer(Protocol):
    """Common attributes of all models that score. precision: `fp32`, `bf16` etc."""

    name: str
    kind: Kind
    precision: str

    @property
    def device(self) -> str:
        """The model's device, such as `cpu` or `cuda:0`."""


@runtime_checkable
class BlankFiller(Scorer, Protocol):
    """A model that returns log-probabilities of words at a blank.

    max_tokens: Maximum number of tokens of a text.
    """

    max_tokens: int

    @property
    def n_bytes(self) -> int:
        """Bytes of its weights in memory; 0 if they are elsewhere."""

    @property
    def notes(self) -> Sequence[str]:
        """Remarks for users on how this model is scored, one sentence each."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The model's vocabulary as words."""

    @property
    def identity(self) -> str:
        """A text that is equal each time a model is loaded: the weights' digest, precision etc."""

    def encode(self, query: Query, context: Context) -> Encoded:
        """Encode a query; raise UserError if it doesn't fit the model's window."""

    def encode_all(self, queries: Sequence[Query], context: Context) -> list[Encoded]:
        """Encode queries; the results have the same order."""

    def blank_log_probs(self, batch: Sequence[Encoded], columns: Columns) -> Scores:
        """Score the candidates; one row per blank, in the order of the queries.

        The log-softmax is over the whole vocabulary, before the candidates are selected.
        """

    def word_log_prob(
        self, query: Query, blank: int, word: str, context: Context, normaliser: float = 0.0
    ) -> WordScore:
        """Return the log-probability of any word at one blank, even if it has several tokens.

        Masked models use as many masks as subword tokens, filled left to right; others use the
        chain rule. normaliser: the same blank's `Scores.normaliser`, if it has one.
        """


@runtime_checkable
class WordMasker(Protocol):
    """A model that masks all subword tokens of a word at once."""

    def masked_word_log_probs(self, asked: Sequence[tuple[Query, str]]) -> list[WordScore]:
        """Return the log-probability of each word at its query's first blank.

        It is the sum over the word's subword tokens, each predicted with all of them masked.
        """


@runtime_checkable
class WordContinuer(Protocol):
    """A model that completes words from the first token of an answer."""

    def continue_words(
        self, encoded: Sequence[Encoded], firsts: Sequence[Sequence[int]], prefix: Any = None
    ) -> list[str | None]:
        """Return each answer's whole word or name; None if its first token is the whole word.

        firsts: for each text, the tokens that can write its answer; the most likely one is used.
        prefix: `Scores.prefix` of the texts, if they are the same.
        """


@runtime_checkable
class WordRescorer(Protocol):
    """A causal model that rescores words with the text right of the blank, the best ones first."""

    def rescored_log_probs(
        self, batch: Sequence[Encoded], columns: Columns, on_first: OnScores | None = None
    ) -> Scores:
        """Return `blank_log_probs`, and report preliminary scores if there is more than one pass.

        on_first: Called after the first pass, with the scores of its `FIRST_RESCORED` words; other
        words, and blanks with another text on their left, have -inf. An exception from it ends the
        computation.
        """
        ...


@runtime_checkable
class SentenceScorer(Scorer, Protocol):
    """A model that returns the log-probability of each token of a text."""

    def token_log_probs(self, texts: Sequence[str], *, begins: bool = False) -> list[TokenScores]:
        """Return the log-probability of each token of each text.

        Masked: each token in turn is replaced by the mask (Wang and Cho 2019). Causal: given the
        tokens on its left; NaN for the first token if no start token precedes it.
        Encoder-decoder: each token in turn is replaced by a sentinel and predicted by the decoder.

        begins: Whether the texts begin with the word that is scored (see `StartToken`).
        """


@runtime_checkable
class StatementScorer(Scorer, Protocol):
    """A model that returns token log-probabilities of statements that contain an answer."""

    @property
    def takes_start_token(self) -> bool:
        """Whether the scores can depend on the start token.

        Only a causal model's whose tokenizer adds no tokens before a text by itself.
        """

    def scores_first(self, start_token: StartToken = "needed") -> bool:
        """Whether the first token of a text has a log-probability where it is part of the answer.

        It has one if the model sees both sides, or a start token can precede the text.
        """

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: ScoredPart = "statement",
        start_token: StartToken = "needed",
    ) -> list[StatementScores]:
        """Return the log-probability of each token of each statement, or only of its answer.

        Causal models score the first token only after a start token. Shared prefixes are computed
        once.

        Args:
            statements: Sentences with the answer's character offsets.
            hiding: Tokens to hide with the scored one; only for models that see both sides.
            scored: Score the whole statement, or the answer's tokens only.
            start_token: When a start token is added; only for causal models.

        Raises:
            UserError: If a statement doesn't fit the model's window.
        """


@runtime_checkable
class LayerReader(Protocol):
    """A model that can return its answer after each of its layers (logit lens)."""

    def layer_log_probs(
        self, encoded: Encoded, columns: Columns, words: Sequence[Sequence[int]]
    ) -> LayerScores:
        """Score the first blank of a text after each layer; causal models see the left side only.

        words: For each further word to score, the ids of the tokens that can write it.

        Raises:
            UserError: If the model's layers can't be read: their number differs from the
                configuration, or the logits don't depend on the last hidden state alone.
        """


@runtime_checkable
class Attributor(Protocol):
    """A model that attributes an answer to the tokens of the text."""

    def erased(
        self, encoded: Encoded, word: Sequence[int], *, until: float = math.inf
    ) -> Attribution:
        """Return how much each token raises the log-probability of a word at the first blank.

        An erased token is masked if the model has a mask, else deleted.

        Args:
            encoded: The text.
            word: Ids of the tokens that can write the word.
            until: No more tokens are erased after this time (`time.monotonic`); tokens that weren't
                erased have NaN.
        """

    def integrated_gradients(
        self,
        encoded: Encoded,
        word: Sequence[int],
        *,
        steps: int | None = None,
        until: float = math.inf,
    ) -> Attribution:
        """Integrated gradients of the word's log-probability over the tokens' embeddings.

        In the baseline, the hidden token (the mask, or else the unknown or padding token) replaces
        each token of the text; special tokens and blanks keep their embeddings.

        Args:
            encoded: The text.
            word: Ids of the tokens that can write the word.
            steps: Number of points of the Gauss-Legendre rule. None adds points until the estimated
                error is small enough (`MAX_ERROR_SHARE`, `MIN_ERROR`), up to `MAX_POINTS`.
            until: No more points are computed after this time (`time.monotonic`).

        Raises:
            UserError: If the model has no gradients, or the time is up before `steps` points.
        """


@runtime_checkable
class PartReader(BlankFiller, Protocol):
    """A model whose attention and MLPs can be read and replaced."""

    def check_parts(self) -> None:
        """Raise UserError if the model's family isn't supported."""

    def read_at(self, encoded: Encoded) -> int:
        """Return the position in the layers' output that the first blank is predicted from."""

    def logit_parts(
        self, encoded: Encoded, answer: Sequence[int], against: Sequence[int] | None = None
    ) -> LogitParts:
        """Return what each attention and MLP adds to an answer's logit at the first blank.

        Args:
            encoded: The text.
            answer: The tokens that can write the answer; the one with the largest logit is used.
            against: The tokens that can write another answer, whose parts are subtracted; or None.

        Raises:
            UserError: If the model's family isn't supported.
        """

    def find_tokens(self, query: Query, encoded: Encoded, words: str) -> tuple[int, ...]:
        """Return the positions of the tokens of some words, where they first occur in a text.

        Raises:
            UserError: If the text that the model sees doesn't contain them.
        """

    def trace(
        self,
        encoded: Encoded,
        subject: Sequence[int],
        word: Sequence[int],
        *,
        part: TracedPart = "states",
        window: int | None = None,
        draws: int = 10,
        seed: int = 1,
        until: float = math.inf,
        tick: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> Trace:
        """Return the probability of a word at the first blank after each restoration.

        Args:
            encoded: The text.
            subject: Positions of the subject's tokens, which get the noise.
            word: Ids of the tokens that can write the word.
            part: What is restored.
            window: Number of layers whose attention or MLPs are restored together; None for the
                paper's share of the layers.
            draws: Number of draws of noise.
            seed: Seed of the noise.
            until: No more restorations are computed after this time (`time.monotonic`). The means
                are over the finished draws; if none is finished, the first draw's values are used.
            tick: Called with the number of finished restorations and their total number.

        Raises:
            UserError: If the model's family isn't supported.
        """
