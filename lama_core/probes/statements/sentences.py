"""Whole sentences compared token by token, such as minimal pairs: which one is likelier?

    sum_i log P(w_i | ...)     and the mean over the tokens that are scored

What the sentences don't share is marked: from the first word in which they differ to the last.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Annotated, Any, ClassVar

import numpy as np

from lama_core.errors import UserError
from lama_core.models.protocols import Statement, StatementScores
from lama_core.probes.model_info import OfModel, model_fields
from lama_core.probes.statements.scoring import StatementModel, scored_tokens, total
from lama_core.probes.statements.typed_answers import score_statements, tokens_json
from lama_core.requests import argument
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import MAX_CHARACTERS
from lama_core.scoring.limits import UNLIMITED, Limits

MAX_SENTENCES = 20
# Why a sentence has no sum.
UNWRITTEN = "can't be written by this model"
UNSCORED = "has no token that this model scores"
WORD = re.compile(r"\S+")


@dataclass(frozen=True, kw_only=True)
class SentencesRequest(shared_fields.ModelSettings):
    """Two or more sentences to compare: the fields of `sentences`."""

    command: ClassVar[tuple[str, ...]] = ("sentences",)
    python: ClassVar[str] = "sentences"

    texts: Annotated[Sequence[str], argument("Two or more whole sentences.")] = field(kw_only=False)
    hiding: shared_fields.Hiding = "within-word"

    def check(self) -> None:
        """Raise UserError if the choice can't be asked."""
        super().check()
        self.sentences()

    def sentences(self) -> tuple[str, ...]:
        """The sentences without needless spaces. Raises UserError for what can't be compared."""
        found = tuple(" ".join(text.split()) for text in self.texts)
        if not 2 <= len(found) <= MAX_SENTENCES:
            raise UserError(
                f"{len(found)} {'sentence is' if len(found) == 1 else 'sentences are'} given: give "
                f"from 2 to {MAX_SENTENCES}, to compare them."
            )
        for number, text in enumerate(found, start=1):
            if not text:
                raise UserError(f"Sentence {number} is empty: leave it out.")
            if len(text) > MAX_CHARACTERS:
                raise UserError(
                    f"Sentence {number} has {len(text):,} characters; at most "
                    f"{MAX_CHARACTERS:,} are taken: shorten it."
                )
            if text in found[: number - 1]:
                raise UserError(f"The sentence {text[:60]!r} is there twice: leave one out.")
        return found


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """One sentence, as one model sees it.

    total, mean: of the log-probabilities of the `n_scored` tokens; None where the model can't write
    what tells the sentence from the others, or scores none of its tokens. difference,
    mean_difference: less those of the first sentence; None where either isn't there. tokens:
    `in_answer` marks what isn't shared.
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
        """Why it has no sum, in words; empty where it has one."""
        if self.total is not None:
            return ""
        return UNWRITTEN if self.tokens.unknown else UNSCORED


@dataclass(frozen=True, slots=True)
class ModelSentences(OfModel):
    """The sentences as one model sees them; the last `n_left_out` had no time."""

    sentences: tuple[ScoredSentence, ...]
    n_left_out: int

    def likeliest(self) -> ScoredSentence | None:
        """The sentence with the highest sum, the first of equal ones; None where none has one."""
        sums = [-np.inf if one.total is None else one.total for one in self.sentences]
        best = int(np.argmax(sums))
        return None if np.isneginf(sums[best]) else self.sentences[best]

    def notes(self) -> list[str]:
        """In words what the numbers alone don't say, a sentence each."""
        said = []
        if self.n_left_out:
            said.append(
                f"The time for a question was over: the last {self.n_left_out} sentences were not "
                "scored."
            )
        faults = [one.fault for one in self.sentences]
        if n := faults.count(UNWRITTEN):
            said.append(
                f"{n} of the sentences {'hold' if n > 1 else 'holds'} what this model can't write."
            )
        if n := faults.count(UNSCORED):
            said.append(
                f"{n} of the sentences {'have' if n > 1 else 'has'} a first token alone, which "
                "this model can't score: nothing stands before it."
            )
        return said


@dataclass(frozen=True, slots=True)
class SentencesAnswer:
    """All models' scores of the same sentences."""

    request: SentencesRequest
    models: tuple[ModelSentences, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that `sentences --json` prints; what isn't known is null."""
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
    """Return the sentences as one model sees them; those without time are left out."""
    texts = request.sentences()
    scores = score_statements(model, differences(texts), request.hiding, "statement", limits)
    # Where a sentence has nothing that the others haven't, there is nothing that can't be written.
    tokens = [one if one.in_answer.any() else replace(one, unknown=False) for one in scores]
    scored: list[ScoredSentence] = []
    for text, one in zip(texts, tokens, strict=False):
        known = total(one, "sum"), total(one, "mean")
        both = [None if np.isneginf(value) else value for value in known]
        firsts = (scored[0].total, scored[0].mean) if scored else both
        less = [
            None if value is None or first is None else value - first
            for value, first in zip(both, firsts, strict=True)
        ]
        n_scored = len(scored_tokens(one))
        scored.append(ScoredSentence(text, both[0], both[1], n_scored, less[0], less[1], one))
    left_out = len(texts) - len(tokens)
    about = model_fields(model)
    return ModelSentences(sentences=tuple(scored), n_left_out=left_out, **about)


def differences(texts: Sequence[str]) -> list[Statement]:
    """The sentences, each with what it doesn't share with all the others, in whole words."""
    words = [[match.group() for match in WORD.finditer(text)] for text in texts]
    n_left = n_shared(words)
    n_right = n_shared([each[n_left:][::-1] for each in words])
    return [
        Statement(text, *_span(text, n_left, len(each) - n_right))
        for text, each in zip(texts, words, strict=True)
    ]


def n_shared(rows: Sequence[Sequence[str]]) -> int:
    """How many words all rows have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, zip(*rows, strict=False)))


def _span(text: str, first: int, end: int) -> tuple[int, int]:
    """The characters of some of a text's words; nothing, where the first of them would begin."""
    spans = [match.span() for match in WORD.finditer(text)]
    if first == end:
        at = spans[first][0] if first < len(spans) else len(text)
        return at, at
    return spans[first][0], spans[end - 1][1]
