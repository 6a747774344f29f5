"""Answers that a user typed, ranked by the likelihood of the sentence with each answer.

    P(a) = exp(score(a)) / sum_b exp(score(b))

over the answers b that the model can write; `scoring` defines the score.
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
from lama_core.requests import argument, option
from lama_core.rounding import counted
from lama_core.scoring import shared_fields
from lama_core.scoring.answer_spaces import check_answers
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.scoring.statement_scores import (
    TOKENS_OF,
    AggregateChoice,
    PartChoice,
    Scoring,
    StatementModel,
    log_softmax,
    make_statement,
    scored_tokens,
    shown_tokens,
    statement_score,
)
from lama_core.types import Query

MAX_RANKED = 200


@dataclass(frozen=True, kw_only=True)
class RankRequest(shared_fields.ModelSettings):
    """The fields of `rank`: a text with one blank, and the answers to rank there."""

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
        super().check()
        self.asked()

    @property
    def scoring(self) -> Scoring:
        """How the statements are scored."""
        return Scoring(self.aggregate, self.part, self.hiding)

    def asked(self) -> tuple[Query, tuple[str, ...], str | None]:
        """Return the query, the answers and the gold answer, with spaces normalised.

        Raises:
            UserError: If the text, an answer or the gold answer is invalid.
        """
        query = parse_query(self.text)
        if query.n_blanks > 1:
            raise UserError(
                f"The text has {query.n_blanks} blanks, but answers are ranked at one: replace the "
                "others with words."
            )
        answers = check_answers(" ".join(answer.split()) for answer in self.answers)
        if len(answers) > MAX_RANKED:
            raise UserError(
                f"There are {len(answers):,} answers; the maximum is {MAX_RANKED}. Remove some."
            )
        gold = " ".join((self.gold or "").split()) or None
        if gold is not None and gold not in answers:
            raise UserError(
                f"The right answer {gold[:60]!r} is not one of the answers: add it to them, or "
                "remove it."
            )
        return query, answers, gold


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """One answer of a ranking.

    Attributes:
        answer: The answer.
        statement: The text with the answer.
        rank: Its rank, from 1; None if the model can't write it.
        score: Its score; None if the model can't write it.
        log_prob: Its natural log-probability over the answers; None if the model can't write it.
        tokens: The log-probabilities of the statement's tokens.
    """

    answer: str
    statement: str
    rank: int | None
    score: float | None
    log_prob: float | None
    tokens: StatementScores

    @property
    def prob(self) -> float:
        """The probability over the answers."""
        return 0.0 if self.log_prob is None else float(np.exp(self.log_prob))


@dataclass(frozen=True, slots=True)
class ModelRanking(AboutModel):
    """One model's ranking of the answers.

    Attributes:
        answers: The answers, best first; those that the model can't write come last.
        margin: Score of the gold answer (of the best answer if no gold answer is given) minus the
            best score of the other answers; None if one of the two scores is missing.
        n_left_out: How many answers at the end were not scored because of the time limit.
    """

    answers: tuple[RankedAnswer, ...]
    margin: float | None
    n_left_out: int

    def notes(self, gold: str | None) -> list[str]:
        """Return notes on answers or tokens that weren't scored, one sentence each."""
        notes = []
        if self.n_left_out:
            more = ", including the right one" * (gold is not None and self.find(gold) is None)
            notes.append(
                f"Time limit reached: the last {self.n_left_out} answers were not scored{more}."
            )
        if n := sum(answer.rank is None for answer in self.answers):
            contain = "contain" if n > 1 else "contains"
            notes.append(f"{n} of the answers {contain} characters that this model can't write.")
        scored = (answer.tokens.log_probs[answer.tokens.in_answer] for answer in self.answers)
        if any(np.isnan(log_probs).any() for log_probs in scored):
            notes.append(
                "The first token of an answer is not scored, because this model needs a token "
                "before it."
            )
        return notes

    def find(self, answer: str) -> RankedAnswer | None:
        """Return the ranked answer with this text; None if it wasn't scored."""
        return next((ranked for ranked in self.answers if ranked.answer == answer), None)


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """All models' rankings of the answers to one text."""

    request: RankRequest
    models: tuple[ModelRanking, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the object that `rank --json` prints."""
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
        """Return a row of plain values for each model and answer, best first."""
        query, _, gold = self.request.asked()
        request = self.request
        return [
            {
                "model": model.name,
                "rank": one.rank,
                "answer": one.answer,
                "is_gold": one.answer == gold if gold else None,
                "prob": one.prob,
                "log_prob": one.log_prob,
                "prob_of": counted(sum(each.rank is not None for each in model.answers), "answer"),
                "score": one.score,
                "score_is": f"{request.aggregate} of log-probabilities, {TOKENS_OF[request.part]}",
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
    """Return each token, its log-probability, and whether it is in the answer (key: `inside`)."""
    values = [None if np.isnan(value) else float(value) for value in scores.log_probs]
    names = ("token", "log_prob", inside)
    rows = zip(scores.tokens, values, scores.in_answer.tolist(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def rank_answers(
    model: StatementModel, request: RankRequest, limits: Limits = UNLIMITED
) -> ModelRanking:
    """Return one model's ranking of the answers that it scores within the time limit.

    Raises:
        UserError: If the model can't score an answer at the start of a text, or the text is too
            long.
    """
    query, answers, gold = request.asked()
    if not query.parts[0].strip() and not model.scores_first:
        raise UserError(
            f"{model.name} has no start token, so it can't score the first word of a text: write "
            "a word before the blank."
        )
    statements = [make_statement(query, answer, request.part) for answer in answers]
    tokens = score_statements(model, statements, request.hiding, request.scoring.scored, limits)
    scores = np.array([statement_score(each, request.aggregate) for each in tokens])
    possible = np.flatnonzero(~np.isneginf(scores))
    order = possible[np.argsort(-scores[possible], kind="stable")]
    log_probs = log_softmax(scores[None, order])[0] if len(order) else np.zeros(0)
    ranked = [
        RankedAnswer(answers[i], statements[i].text, rank, float(scores[i]), log_prob, tokens[i])
        for rank, (i, log_prob) in enumerate(zip(order, log_probs.tolist(), strict=True), start=1)
    ]
    ranked += [
        RankedAnswer(answers[i], statements[i].text, None, None, None, tokens[i])
        for i in np.flatnonzero(np.isneginf(scores))
    ]
    margin = None
    names = [answers[i] for i in order]
    if len(names) > 1 and (gold is None or gold in names):
        others = scores[order].tolist()
        margin = others.pop(0 if gold is None else names.index(gold)) - max(others)
    return ModelRanking(
        answers=tuple(ranked),
        margin=margin,
        n_left_out=len(answers) - len(tokens),
        **model_fields(model),
    )


def score_statements(
    model: StatementModel,
    statements: Sequence[Statement],
    hiding: Hiding,
    scored: Scored,
    limits: Limits,
) -> list[StatementScores]:
    """Return the scores of the first statements, as many as fit into the time limit; at least one.

    Raises:
        UserError: If a statement is too long.
    """
    for statement in statements:
        query = Query((f"{statement.text} ", ""))
        n_tokens = len(model.encode(query, KINDS[model.kind].contexts[0]).token_ids)
        limits.check_tokens(n_tokens, model.name)
    return limits.score_in_time(
        [statement.text for statement in statements],
        lambda rows: model.statement_log_probs(
            statements[rows.start : rows.stop], hiding=hiding, scored=scored
        ),
        sees_both=KINDS[model.kind].sees_both,
    )
