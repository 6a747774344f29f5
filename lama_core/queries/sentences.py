"""Comparison of whole sentences, such as minimal pairs, by log-likelihood and token by token.

    sum_i log P(w_i | ...)     and the mean over the scored tokens

Sentences are ranked by their sums, or by their means if their numbers of words differ: each word
lowers the sum. The words that differ are the words between the beginning and the end that all
sentences share.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Annotated, Any

import numpy as np

from lama_core.errors import UserError
from lama_core.models.protocols import Statement, StatementScores
from lama_core.queries.answers import score_statements, tokens_json
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.requests import argument
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import MAX_CHARACTERS
from lama_core.scoring.limits import Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.scoring.statement_scores import (
    Aggregate,
    Scoring,
    StatementModel,
    scored_tokens,
    statement_score,
    tokens_line,
)
from lama_core.tables import Column, FirstAnswer, FirstAnswers, Table, decimals, make_table

MAX_SENTENCES = 20
# Reasons why a sentence has no score.
UNWRITTEN = "can't be written by this model"
UNSCORED = "has no token that this model scores"
SCORE = decimals(3, none="-")
WORD = re.compile(r"\S+")


@dataclass(frozen=True, kw_only=True)
class SentencesRequest(shared_fields.ModelSettings, command="sentences", python="sentences"):
    """The fields of `sentences`: two or more sentences to compare."""

    texts: Annotated[Sequence[str], argument("Two or more whole sentences.")] = field(kw_only=False)
    hiding: shared_fields.Hiding = "within-word"
    start_token: shared_fields.StartToken = "needed"

    def check(self) -> None:
        super().check()
        self.sentences()

    def sentences(self) -> tuple[str, ...]:
        """Return the sentences with spaces normalised. Raises UserError if they are invalid."""
        sentences = tuple(" ".join(text.split()) for text in self.texts)
        if not 2 <= len(sentences) <= MAX_SENTENCES:
            raise UserError(
                f"The number of sentences is {len(sentences)}: enter 2 to {MAX_SENTENCES}."
            )
        for number, text in enumerate(sentences, start=1):
            if not text:
                raise UserError(f"Sentence {number} is empty: remove it.")
            if len(text) > MAX_CHARACTERS:
                raise UserError(
                    f"Sentence {number} has {len(text):,} characters; the maximum is "
                    f"{MAX_CHARACTERS:,}. Shorten it."
                )
            if text in sentences[: number - 1]:
                raise UserError(f"The sentence {text[:60]!r} occurs twice: remove one.")
        return sentences


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """One model's scores of one sentence; None if it can't write the words that differ.

    They are also None if the model scores no token of the sentence.
    """

    text: Annotated[str, Column("The sentence.", "sentence")]
    total: Annotated[
        float | None,
        Column(
            "Sum of the scored tokens' log-probabilities.",
            "total log-prob.",
            SCORE,
            name="sum",
        ),
    ]
    mean: Annotated[float | None, Column("Mean of these log-probabilities.", format=SCORE)]
    difference: Annotated[
        float | None,
        Column(
            "The sum minus the first sentence's sum.",
            "minus first sentence",
            decimals(3, none="-", signed=True),
        ),
    ]
    mean_difference: Annotated[
        float | None, Column("The mean minus the first sentence's mean.", format=decimals(3))
    ]
    n_tokens: Annotated[int, Column("Number of scored tokens.", "tokens")]
    tokens: Annotated[
        StatementScores,
        Column(
            "The tokens' log-probabilities; `differs` is true in the words that differ.",
            format=tokens_line,
            json=partial(tokens_json, inside="differs"),
        ),
    ]

    @property
    def fault(self) -> str:
        """Why the sentence has no score; empty if it has one."""
        return "" if self.total is not None else UNWRITTEN if self.tokens.unknown else UNSCORED


@dataclass(frozen=True, slots=True)
class ModelSentences(AboutModel):
    """One model's scores; the time limit excluded the last `n_left_out` sentences."""

    sentences: tuple[ScoredSentence, ...]
    n_left_out: int

    @property
    def ranked_by(self) -> Aggregate:
        """`sum` if all sentences have the same number of words, else `mean`."""
        return "sum" if len({len(one.text.split()) for one in self.sentences}) == 1 else "mean"

    def ranked(self) -> list[tuple[float, ScoredSentence]]:
        """Return the sentences that have a score, each after its sum or mean, best first."""
        by_sum = self.ranked_by == "sum"
        scores = [(one.total if by_sum else one.mean, one) for one in self.sentences]
        return sorted(
            [(value, one) for value, one in scores if value is not None], key=lambda each: -each[0]
        )

    def notes(self) -> list[str]:
        """Return notes on sentences that have no score, one sentence each."""
        notes = []
        if self.n_left_out:
            notes.append(
                f"Time limit reached: the last {self.n_left_out} sentences were not scored."
            )
        faults = [sentence.fault for sentence in self.sentences]
        if n := faults.count(UNWRITTEN):
            contain = "contain" if n > 1 else "contains"
            notes.append(f"{n} of the sentences {contain} characters that this model can't write.")
        if n := faults.count(UNSCORED):
            have = "have" if n > 1 else "has"
            notes.append(
                f"{n} of the sentences {have} only one token, which this model can't score without "
                "a token before it."
            )
        return notes


AskedSentences = Asked[SentencesRequest, tuple[str, ...]]


class SentencesKind(QueryKind[SentencesRequest, tuple[str, ...], ModelSentences]):
    """Whole sentences, compared by the log-probabilities of their tokens."""

    name = "sentences"
    example = 'sentences "The keys to the cabinet are here." "The keys to the cabinet is here."'
    row = ScoredSentence
    items = "sentences"
    answer_field = "text"

    def prepare(self, request: SentencesRequest, limits: Limits) -> tuple[str, ...]:
        """Return the sentences with spaces normalised. Raises UserError if they are invalid."""
        return request.sentences()

    def answer(
        self,
        model: StatementModel,
        asked: AskedSentences,
        calls: Calls,
    ) -> ModelSentences:
        """Return one model's scores of the first sentences, as many as the time limit allows."""
        texts, request = asked.shared, asked.request
        scoring = Scoring(hiding=request.hiding, start_token=request.start_token)
        scores = score_statements(model, differences(texts), scoring, calls.limits)
        # If no words of a sentence differ, its unknown tokens are in the words that all sentences
        # share and don't affect the comparison.
        tokens = [one if one.in_answer.any() else replace(one, unknown=False) for one in scores]
        return ModelSentences(
            sentences=compare_sentences(texts, tokens),
            n_left_out=len(texts) - len(tokens),
            **model_fields(model),
        )

    def rows(self, asked: AskedSentences, one: ModelSentences) -> Sequence[ScoredSentence]:
        """Return the sentences, in the given order."""
        return one.sentences

    def first_answers(self, asked: AskedSentences, one: ModelSentences, n: int) -> FirstAnswers:
        """Return the best sentences with their sums or means, for pins."""
        best = enumerate(one.ranked()[:n], start=1)
        return tuple(FirstAnswer(rank, each.text, value) for rank, (value, each) in best)

    def settings(self, asked: AskedSentences, one: ModelSentences) -> dict[str, str]:
        """Return whether the log-probabilities are sums or means."""
        return {"log-probabilities": f"{one.ranked_by} over the tokens of a sentence"}

    def tables(self, asked: AskedSentences, one: ModelSentences) -> Iterator[Table | str]:
        """Yield the sentences, the log-probabilities of each one's tokens, and the notes."""
        shown = "total difference mean n_tokens text"
        yield make_table(ScoredSentence, one.sentences, shown, title=one.name + one.computed)
        for sentence in one.sentences:
            yield f"  {tokens_line(sentence.tokens)}"
        yield from one.notes()

    def title(self, request: SentencesRequest) -> str:
        """Return the sentences."""
        return " / ".join(request.texts)

    def head(
        self, answer: Answer[SentencesRequest, tuple[str, ...], ModelSentences]
    ) -> dict[str, Any]:
        """Return which tokens were hidden together, and when a start token was added."""
        request = answer.asked.request
        return {"hiding": request.hiding, "start_token": request.start_token}

    def details(self, asked: AskedSentences, one: ModelSentences) -> dict[str, Any]:
        """Return how many sentences were not scored, if any."""
        return {"n_left_out": one.n_left_out} if one.n_left_out else {}


def compare_sentences(
    texts: Sequence[str], tokens: Sequence[StatementScores]
) -> tuple[ScoredSentence, ...]:
    """Return the sentences with their scores, and the differences from the first sentence's."""
    scored: list[ScoredSentence] = []
    for text, each in zip(texts, tokens, strict=False):
        scores = (statement_score(each, "sum"), statement_score(each, "mean"))
        total, mean = (None if np.isneginf(value) else value for value in scores)
        first_total, first_mean = (scored[0].total, scored[0].mean) if scored else (total, mean)
        scored.append(
            ScoredSentence(
                text,
                total,
                mean,
                difference=_difference(total, first_total),
                mean_difference=_difference(mean, first_mean),
                n_tokens=len(scored_tokens(each)),
                tokens=each,
            )
        )
    return tuple(scored)


def _difference(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def differences(texts: Sequence[str]) -> list[Statement]:
    """Return the sentences as statements, with the words that differ as the answer."""
    words = list(map(WORD.findall, texts))
    n_left = n_shared(words)
    n_right = n_shared([each[n_left:][::-1] for each in words])
    found = []
    for text in texts:
        spans = [match.span() for match in WORD.finditer(text)]
        end = len(spans) - n_right
        start = spans[n_left][0] if n_left < len(spans) else len(text)
        found.append(Statement(text, start, start if n_left == end else spans[end - 1][1]))
    return found


def n_shared(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of words that all rows share at their beginning."""
    return sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, zip(*rows, strict=False)))


sentences = QueryFunction(
    SentencesRequest,
    SentencesKind(),
    """Compare whole sentences, such as minimal pairs, by the log-probabilities of their tokens.

    Returns:
        A DataFrame with a row for each model and sentence.

    Raises:
        UserError: If a sentence is empty or too long, or a model is unknown.

    >>> import lama_core as lama
    >>> found = lama.sentences(["The keys are here.", "The keys is here."])
    >>> bool(found["sum"].is_monotonic_decreasing)
    True
    """,
)
