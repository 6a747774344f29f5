"""Answers that somebody thought of, ranked at a blank: by the likelihood of the sentence with each.

    P(a) = exp(score(a)) / sum_b exp(score(b))

over the answers b that the model can write; see `scoring` for the score.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from lama_core.errors import UserError
from lama_core.models.protocols import (
    KINDS,
    Hiding,
    Scored,
    Statement,
    StatementScores,
)
from lama_core.probes.model_info import OfModel, model_fields
from lama_core.probes.statements.answer_spaces import check_answers
from lama_core.probes.statements.scoring import (
    TOKENS_OF,
    AggregateChoice,
    PartChoice,
    Scoring,
    StatementModel,
    log_softmax,
    scored_tokens,
    shown_tokens,
    state,
    total,
)
from lama_core.requests import argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.types import Query

MAX_RANKED = 200


@dataclass(frozen=True, kw_only=True)
class RankRequest(shared_fields.ModelSettings):
    """A text with one blank, and the answers to rank there: the fields of `rank`."""

    command: ClassVar[tuple[str, ...]] = ("rank",)
    python: ClassVar[str] = "rank"

    text: Annotated[str, argument("A text with one blank: [MASK], <mask>, [Y], or ___.")] = field(
        kw_only=False
    )
    answers: Annotated[
        Sequence[str],
        option("A word or phrase of any length to rank; repeat for several.", name="--answer"),
    ] = field(kw_only=False)
    gold: Annotated[str | None, option("The gold (right) answer, one of the answers.")] = None
    part: PartChoice = "statement"
    aggregate: AggregateChoice = "sum"
    hiding: shared_fields.Hiding = "within-word"

    def check(self) -> None:
        """Raise UserError if the choice can't be asked."""
        super().check()
        self.asked()

    @property
    def scoring(self) -> Scoring:
        """How the statements are scored."""
        return Scoring(self.aggregate, self.part, self.hiding)

    def asked(self) -> tuple[Query, tuple[str, ...], str | None]:
        """The text cut at its blank, and the answers and gold without needless spaces."""
        query = parse_query(self.text)
        if query.n_blanks > 1:
            raise UserError(
                f"The text has {query.n_blanks} blanks: answers are ranked at one, so write words "
                "in the place of the others."
            )
        answers = check_answers(" ".join(answer.split()) for answer in self.answers)
        if len(answers) > MAX_RANKED:
            raise UserError(
                f"{len(answers):,} answers are too many to rank at a blank: give at most "
                f"{MAX_RANKED}."
            )
        gold = " ".join((self.gold or "").split()) or None
        if gold is not None and gold not in answers:
            raise UserError(
                f"The gold {gold[:60]!r} is none of the answers: add it to them, or leave it out."
            )
        return query, answers, gold


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """One answer. rank, score, log_prob (over the answers): None if the model can't write it."""

    answer: str
    statement: str
    rank: int | None
    score: float | None
    log_prob: float | None
    tokens: StatementScores

    @property
    def prob(self) -> float:
        """Between 0 and 1, over the answers."""
        return 0.0 if self.log_prob is None else float(np.exp(self.log_prob))


@dataclass(frozen=True, slots=True)
class ModelRanking(OfModel):
    """The answers as one model ranks them, best first; those that it can't write stand last.

    margin: the score of the gold, or the best one's, less the best score of the others, if any.
    n_left_out: how many of the last answers given had no time.
    """

    answers: tuple[RankedAnswer, ...]
    margin: float | None
    n_left_out: int

    def notes(self, gold: str | None) -> list[str]:
        """In words what the list alone doesn't say, a sentence each."""
        said = []
        if self.n_left_out:
            more = ", the gold among them" * (gold is not None and self.find(gold) is None)
            said.append(
                f"The time for a question was over: the last {self.n_left_out} answers were not "
                f"scored{more}."
            )
        if n := sum(one.rank is None for one in self.answers):
            said.append(
                f"{n} of the answers {'hold' if n > 1 else 'holds'} what this model can't write."
            )
        if any(np.isnan(one.tokens.log_probs[one.tokens.in_answer]).any() for one in self.answers):
            said.append(
                "The first token of an answer is not scored: nothing stands before it for this "
                "model."
            )
        return said

    def find(self, answer: str) -> RankedAnswer | None:
        """The answer as it is ranked; None if it was left out."""
        return next((one for one in self.answers if one.answer == answer), None)


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """All models' rankings of the answers to one text."""

    request: RankRequest
    models: tuple[ModelRanking, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that `rank --json` prints. margin, null where there is none."""
        query, answers, gold = self.request.asked()
        return {
            "text": query.text(),
            "answers": list(answers),
            "gold": gold,
            **{name: getattr(self.request, name) for name in ("part", "aggregate", "hiding")},
            "models": [
                {
                    **model.model_json(),
                    "margin": model.margin,
                    **({"n_left_out": model.n_left_out} if model.n_left_out else {}),
                    "answers": [_answer_json(one) for one in model.answers],
                }
                for model in self.models
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row a model and an answer, best first, as plain values."""
        query, _, gold = self.request.asked()
        asked = self.request
        return [
            {
                "model": model.name,
                "rank": one.rank,
                "answer": one.answer,
                "is_gold": one.answer == gold if gold else None,
                "prob": one.prob,
                "log_prob": one.log_prob,
                "prob_of": f"{sum(each.rank is not None for each in model.answers)} answers",
                "score": one.score,
                "score_is": f"{asked.aggregate} of log-probabilities, {TOKENS_OF[asked.part]}",
                "n_tokens": len(scored_tokens(one.tokens)),
                "tokens": "  ".join(shown_tokens(one.tokens)),
                "margin": model.margin,
                "precision": model.precision,
                "device": model.device,
                "text": query.text(),
            }
            for model in self.models
            for one in model.answers
        ]


def _answer_json(one: RankedAnswer) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "answer": one.answer,
        "score": one.score,
        "log_prob": one.log_prob,
        "prob": one.prob,
        "n_tokens": len(scored_tokens(one.tokens)),
        "tokens": tokens_json(one.tokens),
    }


def tokens_json(scores: StatementScores, inside: str = "in_answer") -> list[dict[str, Any]]:
    """Each token, its log-probability, and under `inside` whether it is marked."""
    values = [None if np.isnan(value) else float(value) for value in scores.log_probs]
    names = ("token", "log_prob", inside)
    rows = zip(scores.tokens, values, scores.in_answer.tolist(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def rank_answers(
    model: StatementModel, request: RankRequest, limits: Limits = UNLIMITED
) -> ModelRanking:
    """Return the answers as one model ranks them; those without time are left out."""
    query, answers, gold = request.asked()
    if not query.parts[0].strip() and not model.scores_first:
        raise UserError(
            f"{model.name} has no token to begin a text with, so that it can't score a first word: "
            "write something before the blank."
        )
    statements = [state(query, answer, request.part) for answer in answers]
    tokens = score_statements(model, statements, request.hiding, request.scoring.scored, limits)
    scores = np.array([total(one, request.aggregate) for one in tokens])
    written = np.flatnonzero(~np.isneginf(scores))
    order = written[np.argsort(-scores[written], kind="stable")]
    log_probs = log_softmax(scores[None, order])[0] if len(order) else np.zeros(0)
    ranked = [
        RankedAnswer(answers[at], statements[at].text, rank, float(scores[at]), value, tokens[at])
        for rank, (at, value) in enumerate(zip(order, log_probs.tolist(), strict=True), start=1)
    ]
    ranked += [
        RankedAnswer(answers[at], statements[at].text, None, None, None, tokens[at])
        for at in np.flatnonzero(np.isneginf(scores))
    ]
    margin = None  # see `ModelRanking`
    names = [answers[at] for at in order]
    if len(names) > 1 and (gold is None or gold in names):
        at = 0 if gold is None else names.index(gold)
        sums = scores[order].tolist()
        margin = sums.pop(at) - max(sums)
    left_out = len(answers) - len(tokens)
    about = model_fields(model)
    return ModelRanking(answers=tuple(ranked), margin=margin, n_left_out=left_out, **about)


def score_statements(
    model: StatementModel,
    statements: Sequence[Statement],
    hiding: Hiding,
    scored: Scored,
    limits: Limits,
) -> list[StatementScores]:
    """Score the first statements, as many as the time allows; one at least."""
    for one in statements:
        query = Query((f"{one.text} ", ""))
        n_tokens = len(model.encode(query, KINDS[model.kind].contexts[0]).token_ids)
        limits.check_tokens(n_tokens, model.name)
    return limits.score_in_time(
        [one.text for one in statements],
        lambda some: model.statement_log_probs(
            statements[some.start : some.stop], hiding=hiding, scored=scored
        ),
        sees_both=KINDS[model.kind].sees_both,
    )
