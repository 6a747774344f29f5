"""Answers that a user typed, ranked by the likelihood of the sentence with each answer.

    share(a) = exp(score(a)) / sum_b exp(score(b))

over the answers b that the model can write; `scoring` defines the score. A share isn't the model's
probability of the answer: it depends on which answers are typed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from lama_core.errors import NoStartTokenError, UserError
from lama_core.grouping import grouped
from lama_core.models.protocols import (
    KINDS,
    Statement,
    StatementScores,
)
from lama_core.queries.blank_answers import OVER_AS_TEXT, OVER_SETTING
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.requests import argument, option
from lama_core.rounding import counted
from lama_core.scoring import shared_fields
from lama_core.scoring.answer_spaces import check_answers
from lama_core.scoring.blanks import parse_query
from lama_core.scoring.limits import Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.scoring.statement_scores import (
    TOKENS_OF,
    AggregateChoice,
    PartChoice,
    Scoring,
    StatementModel,
    answer_tokens,
    log_softmax,
    make_statement,
    scored_tokens,
    statement_score,
    tokens_line,
)
from lama_core.tables import Column, Table, decimals, make_table
from lama_core.texts import written_key
from lama_core.types import Query

MAX_RANKED = 200
TIE = 1e-4  # of scores: a smaller difference can be one of last digits, which differ by CPU


@dataclass(frozen=True, kw_only=True)
class RankRequest(shared_fields.ModelSettings, command="rank", python="rank"):
    """The fields of `rank`: a text with one blank, and the answers to rank there."""

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
    start_token: shared_fields.StartToken = "needed"

    def check(self) -> None:
        super().check()
        self.asked()

    @property
    def scoring(self) -> Scoring:
        """How the statements are scored."""
        return Scoring(self.aggregate, self.part, self.hiding, self.start_token)

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
        if not (key := written_key(self.gold or "")):
            return query, answers, None
        gold = next((answer for answer in answers if written_key(answer) == key), None)
        if gold is None:
            raise UserError(
                f"The right answer {key[:60]!r} is not one of the answers: add it to them, or "
                "remove it."
            )
        return query, answers, gold


def tokens_json(scores: StatementScores, inside: str = "in_answer") -> list[dict[str, Any]]:
    """Return each token, its log-probability, and whether it is in the answer (key: `inside`)."""
    values = [None if np.isnan(value) else float(value) for value in scores.log_probs]
    names = ("token", "log_prob", inside)
    rows = zip(scores.tokens, values, scores.in_answer.tolist(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """One answer of a ranking.

    statement: The text with the answer.
    """

    rank: Annotated[
        int | None,
        Column("From 1, shared by equal scores; none if the model can't write the answer."),
    ]
    worst_rank: Annotated[int | None, Column("The last rank of the answers that share the rank.")]
    answer: Annotated[str, Column("The answer.")]
    is_gold: Annotated[
        bool | None, Column("Whether it is the gold answer; none without one.", in_json=False)
    ]
    score: Annotated[
        float | None,
        Column("Sum or mean of the log-probabilities.", format=decimals(2, none="-")),
    ]
    log_prob: Annotated[
        float | None, Column("Natural logarithm of prob.", "log share", decimals(2))
    ]
    prob: Annotated[
        float,
        Column(
            "Share of the typed answers: exp(score), divided by its sum over the answers.",
            "share of the answers",
            decimals(3),
        ),
    ]
    n_tokens: Annotated[int, Column("Number of scored tokens.")]
    tokens: Annotated[
        StatementScores,
        Column("The tokens' log-probabilities.", format=tokens_line, json=tokens_json),
    ]
    statement: str

    @property
    def ranks(self) -> str:
        """Return the rank, or the first and last of the ranks that equal scores share."""
        worst = f"–{self.worst_rank}" if self.worst_rank != self.rank else ""
        return f"{self.rank}{worst}" if self.rank else ""


@dataclass(frozen=True, slots=True)
class ModelRanking(AboutModel):
    """One model's ranking of the answers.

    Attributes:
        answers: The answers, best first; those that the model can't write come last.
        n_left_out: How many answers at the end were not scored because of the time limit.
    """

    answers: tuple[RankedAnswer, ...]
    n_left_out: int

    @property
    def n_ranked(self) -> int:
        """The number of answers that the model can write."""
        return sum(answer.rank is not None for answer in self.answers)

    @property
    def has_gold(self) -> bool:
        """Whether a gold answer was given."""
        return self.answers[0].is_gold is not None

    @property
    def gold(self) -> RankedAnswer | None:
        """The gold answer; None if none was given, or it wasn't scored."""
        return next((answer for answer in self.answers if answer.is_gold), None)

    @property
    def margin(self) -> float | None:
        """Score of the gold answer minus the best score of the others; None if one is missing.

        Without a gold answer it is the score of the best answer minus the best of the others.
        """
        first = self.gold if self.has_gold else self.answers[0]
        if first is None or first.score is None:
            return None
        others = [
            answer.score
            for answer in self.answers
            if answer is not first and answer.score is not None
        ]
        return first.score - max(others) if others else None

    def notes(self) -> list[str]:
        """Return notes on equal scores, and on what wasn't scored, one sentence each."""
        tied = grouped(
            (one.ranks, one.answer) for one in self.answers if one.rank != one.worst_rank
        )
        notes = [
            f"Equal scores share the ranks {ranks}: {', '.join(names)}."
            for ranks, names in tied.items()
        ]
        if self.n_left_out:
            more = ", including the right one" * (self.has_gold and self.gold is None)
            notes.append(
                f"Time limit reached: the last {self.n_left_out} answers were not scored{more}."
            )
        if n := len(self.answers) - self.n_ranked:
            contain = "contain" if n > 1 else "contains"
            notes.append(f"{n} of the answers {contain} characters that this model can't write.")
        scored = (answer.tokens.log_probs[answer.tokens.in_answer] for answer in self.answers)
        if any(np.isnan(log_probs).any() for log_probs in scored):
            notes.append(
                "The first token of an answer is not scored, because this model needs a token "
                "before it."
            )
        return notes


Typed = tuple[Query, tuple[str, ...], str | None]
AskedAnswers = Asked[RankRequest, Typed]


class AnswersKind(QueryKind[RankRequest, Typed, ModelRanking]):
    """Answers that a user typed, ranked at a blank; prepared are query, answers, gold answer."""

    name = "answers"
    example = 'rank "The capital of Brazil is ___." --answer "Rio de Janeiro" --answer Brasília'
    row = RankedAnswer
    items = "answers"
    answer_field = "answer"

    def prepare(self, request: RankRequest, limits: Limits) -> Typed:
        """Return the query, the answers and the gold answer.

        Raises:
            UserError: If the text, an answer or the gold answer is invalid.
        """
        return request.asked()

    def answer(self, model: StatementModel, asked: AskedAnswers, calls: Calls) -> ModelRanking:
        """Return one model's ranking of the answers that it scores within the time limit.

        Raises:
            UserError: If the model can't score an answer at the start of a text, or the text is
                too long.
        """
        query, answers, gold = asked.shared
        if not query.parts[0].strip() and not model.scores_first(asked.request.start_token):
            raise NoStartTokenError(model.name)
        scoring = asked.request.scoring
        statements = [make_statement(query, answer, scoring.part) for answer in answers]
        tokens = score_statements(model, statements, scoring, calls.limits)
        return ModelRanking(
            answers=rank_answers(answers, gold, statements, tokens, scoring),
            n_left_out=len(answers) - len(tokens),
            **model_fields(model),
        )

    def rows(self, asked: AskedAnswers, one: ModelRanking) -> Sequence[RankedAnswer]:
        """Return the answers, best first; those that the model can't write come last."""
        return one.answers

    def tables(self, asked: AskedAnswers, one: ModelRanking) -> Iterator[Table | str]:
        """Yield the ranking, with the tokens of each answer, and the notes."""
        request = asked.request
        rows = [
            replace(
                row,
                answer=row.answer + " ✓" * bool(row.is_gold),
                tokens=answer_tokens(row.tokens),
            )
            for row in one.answers
        ]
        yield make_table(
            RankedAnswer,
            rows,
            "rank answer prob score tokens",
            labels={"score": f"{request.aggregate} of log-prob.", "tokens": "its tokens"},
            title=f"{one.name}: {counted(len(rows), 'answer')}, part {request.part}" + one.computed,
        )
        yield from one.notes()

    def title(self, request: RankRequest) -> str:
        """Return the text."""
        return request.text

    def head(self, answer: Answer[RankRequest, Typed, ModelRanking]) -> dict[str, Any]:
        """Return the text, the answers and the options."""
        request, (query, answers, gold) = answer.asked.request, answer.asked.shared
        return {
            "text": query.text(),
            "answers": list(answers),
            "gold": gold,
            "part": request.part,
            "aggregate": request.aggregate,
            "hiding": request.hiding,
            "start_token": request.start_token,
        }

    def details(self, asked: AskedAnswers, one: ModelRanking) -> dict[str, Any]:
        """Return what prob is a share of, the margin, and how many answers were not scored."""
        left_out = {"n_left_out": one.n_left_out} if one.n_left_out else {}
        return {"prob_of": counted(one.n_ranked, "answer"), "margin": one.margin, **left_out}

    def constants(self, asked: AskedAnswers, one: ModelRanking) -> dict[str, Any]:
        """Return what prob is a share of, what the scores are over, the margin and the text."""
        request, (query, _, _) = asked.request, asked.shared
        return {
            "prob_of": counted(one.n_ranked, "answer"),
            "score_is": f"{request.aggregate} of log-probabilities, {TOKENS_OF[request.part]}",
            "margin": one.margin,
            "text": query.text(),
        }

    def settings(self, asked: AskedAnswers, one: ModelRanking) -> dict[str, str]:
        """Return what was ranked."""
        request = asked.request
        return {
            "ranked": f"{len(one.answers):,} answers by the {request.aggregate} over the "
            f"{request.part}",
            OVER_SETTING: OVER_AS_TEXT["answers"],
            "start token": request.start_token,
        }

    def gold(self, asked: AskedAnswers, one: ModelRanking) -> str:
        """Return the gold answer and its rank as text; empty if there is none."""
        gold = one.gold
        return f"Right answer {gold.answer}: rank {gold.ranks or 'unknown'}" if gold else ""


def rank_answers(
    answers: Sequence[str],
    gold: str | None,
    statements: Sequence[Statement],
    tokens: Sequence[StatementScores],
    scoring: Scoring,
) -> tuple[RankedAnswer, ...]:
    """Return the scored answers, best first; those that the model can't write come last.

    Answers with equal scores (`TIE`) share the best of their ranks, and are in the order given.
    """
    scores = np.array([statement_score(each, scoring.aggregate) for each in tokens])
    possible = np.flatnonzero(~np.isneginf(scores))
    order = possible[np.argsort(-scores[possible], kind="stable")]
    tie = np.cumsum(np.diff(scores[order], prepend=np.inf) < -TIE)
    order = order[np.lexsort((order, tie))]
    log_probs = log_softmax(scores[None, order])[0] if len(order) else np.zeros(0)
    ranks = np.searchsorted(tie, tie, "left") + 1
    worst = np.searchsorted(tie, tie, "right")

    def ranked(
        at: int, rank: int | None, worst: int | None, log_prob: float | None
    ) -> RankedAnswer:
        return RankedAnswer(
            rank=rank,
            worst_rank=worst,
            answer=answers[at],
            is_gold=answers[at] == gold if gold else None,
            score=float(scores[at]) if rank else None,
            log_prob=log_prob,
            prob=0.0 if log_prob is None else float(np.exp(log_prob)),
            n_tokens=len(scored_tokens(tokens[at])),
            tokens=tokens[at],
            statement=statements[at].text,
        )

    rows = (column.tolist() for column in (order, ranks, worst, log_probs))
    return (
        *(ranked(*row) for row in zip(*rows, strict=True)),
        *(ranked(at, None, None, None) for at in np.flatnonzero(np.isneginf(scores)).tolist()),
    )


def score_statements(
    model: StatementModel,
    statements: Sequence[Statement],
    scoring: Scoring,
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
        lambda rows: scoring.score(model, statements[rows.start : rows.stop]),
        sees_both=KINDS[model.kind].sees_both,
    )


rank = QueryFunction(
    RankRequest,
    AnswersKind(),
    """Rank answers of any length by their likelihood at a text's blank.

    Returns:
        A DataFrame with a row for each model and answer, the most likely first; prob is the share
        of the answers, so it sums to 1 over them. Equal scores share the best of their ranks;
        worst_rank is the last of these.

    Raises:
        UserError: If the text doesn't have exactly one blank, or a model is unknown.

    >>> import lama_core as lama
    >>> answers = ["Egypt", "the United States", "Japan"]
    >>> found = lama.rank("The Nile flows through ___.", answers)
    >>> found[["rank", "answer", "prob"]].round(2)
       rank             answer  prob
    0     1              Egypt  0.99
    1     2  the United States  0.01
    2     3              Japan  0.00
    """,
)
