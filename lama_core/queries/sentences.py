"""Comparison of whole sentences, such as minimal pairs, by log-likelihood and token by token.

    sum_i log P(w_i | ...)     and the mean over the scored tokens

The words that differ are the words between the beginning and the end that all sentences share.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Annotated, Any, ClassVar

import numpy as np

from lama_core.errors import UserError
from lama_core.models.protocols import Statement, StatementScores
from lama_core.queries.answers import score_statements, tokens_json
from lama_core.requests import argument
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import MAX_CHARACTERS
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.scoring.statement_scores import StatementModel, scored_tokens, statement_score

MAX_SENTENCES = 20
# Reasons why a sentence has no score.
UNWRITTEN = "can't be written by this model"
UNSCORED = "has no token that this model scores"
WORD = re.compile(r"\S+")


@dataclass(frozen=True, kw_only=True)
class SentencesRequest(shared_fields.ModelSettings):
    """The fields of `sentences`: two or more sentences to compare."""

    command: ClassVar[tuple[str, ...]] = ("sentences",)
    python: ClassVar[str] = "sentences"

    texts: Annotated[Sequence[str], argument("Two or more whole sentences.")] = field(kw_only=False)
    hiding: shared_fields.Hiding = "within-word"

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
    """One model's scores of one sentence.

    Attributes:
        text: The sentence.
        total: Sum of the log-probabilities of the scored tokens; None if the model can't write the
            words that differ, or scores no token.
        mean: Mean of these log-probabilities; None like `total`.
        n_scored: Number of scored tokens.
        difference: `total` minus the first sentence's `total`; None if one of them is None.
        mean_difference: `mean` minus the first sentence's `mean`; None if one of them is None.
        tokens: The tokens' log-probabilities; `in_answer` is true in the words that differ.
    """

    text: str
    total: float | None
    mean: float | None
    n_scored: int
    difference: float | None
    mean_difference: float | None
    tokens: StatementScores

    @property
    def fault(self) -> str:
        """Why the sentence has no score; empty if it has one."""
        if self.total is not None:
            return ""
        return UNWRITTEN if self.tokens.unknown else UNSCORED


@dataclass(frozen=True, slots=True)
class ModelSentences(AboutModel):
    """One model's scores; the time limit excluded the last `n_left_out` sentences."""

    sentences: tuple[ScoredSentence, ...]
    n_left_out: int

    def likeliest(self) -> ScoredSentence | None:
        """Return the sentence with the highest sum; the first wins a tie; None without a sum."""
        scored = [sentence for sentence in self.sentences if sentence.total is not None]
        return max(scored, key=lambda sentence: sentence.total or 0.0, default=None)

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


@dataclass(frozen=True, slots=True)
class SentencesAnswer:
    """All models' scores of the same sentences."""

    request: SentencesRequest
    models: tuple[ModelSentences, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the object that `sentences --json` prints; unknown values are null."""
        return {
            "hiding": self.request.hiding,
            "models": [
                {
                    **model.model_json(),
                    **({"n_left_out": model.n_left_out} if model.n_left_out else {}),
                    "sentences": [_sentence_json(one) for one in model.sentences],
                }
                for model in self.models
            ],
        }


def _sentence_json(one: ScoredSentence) -> dict[str, Any]:
    names = ("mean", "difference", "mean_difference")
    return {
        "text": one.text,
        "sum": one.total,
        **{name: getattr(one, name) for name in names},
        "n_tokens": one.n_scored,
        "tokens": tokens_json(one.tokens, inside="differs"),
    }


def score_sentences(
    model: StatementModel, request: SentencesRequest, limits: Limits = UNLIMITED
) -> ModelSentences:
    """Return one model's scores of the first sentences, as many as the time limit allows."""
    texts = request.sentences()
    scores = score_statements(model, differences(texts), request.hiding, "statement", limits)
    # If no words of a sentence differ, its unknown tokens are in the words that all sentences share
    # and don't affect the comparison.
    tokens = [each if each.in_answer.any() else replace(each, unknown=False) for each in scores]
    scored: list[ScoredSentence] = []
    for text, each in zip(texts, tokens, strict=False):
        score, mean = (
            None if np.isneginf(value) else value
            for value in (statement_score(each, "sum"), statement_score(each, "mean"))
        )
        first_score, first_mean = (scored[0].total, scored[0].mean) if scored else (score, mean)
        scored.append(
            ScoredSentence(
                text,
                score,
                mean,
                n_scored=len(scored_tokens(each)),
                difference=_difference(score, first_score),
                mean_difference=_difference(mean, first_mean),
                tokens=each,
            )
        )
    return ModelSentences(
        sentences=tuple(scored), n_left_out=len(texts) - len(tokens), **model_fields(model)
    )


def _difference(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def differences(texts: Sequence[str]) -> list[Statement]:
    """Return the sentences as statements, with the words that differ as the answer."""
    words = [[match.group() for match in WORD.finditer(text)] for text in texts]
    n_left = n_shared(words)
    n_right = n_shared([each[n_left:][::-1] for each in words])
    return [
        Statement(text, *_span(text, n_left, len(each) - n_right))
        for text, each in zip(texts, words, strict=True)
    ]


def n_shared(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of words that all rows share at their beginning."""
    return sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, zip(*rows, strict=False)))


def _span(text: str, first: int, end: int) -> tuple[int, int]:
    """Return the characters [start, stop) of the words [first, end) of a text."""
    spans = [match.span() for match in WORD.finditer(text)]
    if first == end:
        at = spans[first][0] if first < len(spans) else len(text)
        return at, at
    return spans[first][0], spans[end - 1][1]
