"""Rank candidate pairs by the perplexity of the analogy sentence that each of them completes.

    PPPL(S) = exp(-sum_i log P(w_i | S without w_i))      masked models, one subword token at a
                                                          time; also encoder-decoder models (ours)
    PPL(S)  = exp(-sum_i log P(w_i | w_1 .. w_(i-1)))     causal models

The default is `sum`: equation 1 of Rezaee and Camacho-Collados, which has no 1/|S|. With `mean` the
sum is divided by the number of scored tokens, as in the code that the paper builds on. Special
tokens are not scored, nor is a causal model's first token if no token precedes it; if the sentence
begins with a word of the candidate pair, a start token does (`CausalModel.start`).

The app shows sum_i log P, of masked models the pseudo-log-likelihood, and the usual perplexity per
token, exp(-1/n sum_i log P).
Departure: Perplexity of a sentence
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np

from lama_core.datasets.dataset import Pair
from lama_core.errors import UserError
from lama_core.models.protocols import KINDS, SentenceScorer, TokenScores
from lama_core.progress import ignore
from lama_core.queries.analogy_templates import (
    DEFAULT_TEMPLATE,
    TemplateChoice,
    begins_with_candidate,
    check_word,
    fill_template,
    resolve_template,
)
from lama_core.queries.kind import Answer, Asked, Calls, QueryFunction, QueryKind
from lama_core.requests import argument, option
from lama_core.rounding import fixed
from lama_core.scoring import shared_fields
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.model_info import AboutModel, model_fields
from lama_core.tables import Column, Table, decimals, make_table, plain

Normalise = Literal["sum", "mean"]
NORMALISATIONS: tuple[Normalise, ...] = ("sum", "mean")
NormaliseChoice = Annotated[
    Normalise, option("Sum (as in the paper) or mean of the tokens' log-probabilities.")
]
MAX_PAIRS = 100


@dataclass(frozen=True, kw_only=True)
class ScoreRequest(shared_fields.ModelSettings, command="analogy score", python="score_analogies"):
    """A query pair with candidate pairs to rank: the fields of `analogy score`."""

    query: Annotated[str, argument("The query pair, such as Paris:France.")] = field(kw_only=False)
    pairs: Annotated[Sequence[str], argument("Two or more candidate pairs.")] = field(kw_only=False)
    gold: Annotated[str | None, option("The right pair, one of the candidate pairs.")] = None
    template: TemplateChoice = DEFAULT_TEMPLATE
    normalise: NormaliseChoice = "sum"


def short(value: float) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}"


def shown_scores(scores: TokenScores) -> str:
    """Return each token with its log-probability, and a dot for tokens without one."""
    scored = zip(scores.tokens, scores.log_probs.tolist(), strict=True)
    return "  ".join(f"{token} {'·' if math.isnan(v) else fixed(v, 2)}" for token, v in scored)


def scores_json(scores: TokenScores) -> list[dict[str, Any]]:
    """Return each token and its log-probability."""
    scored = zip(scores.tokens, scores.log_probs.tolist(), strict=True)
    return [{"token": token, "log_prob": plain(value)} for token, value in scored]


@dataclass(frozen=True, slots=True)
class PairScore:
    """One model's score of one candidate pair."""

    rank: Annotated[int, Column("By log_perplexity, 1 is best; ties keep the given order.")]
    pair: Annotated[Pair, Column("The candidate pair.", format=":".join)]
    sentence: Annotated[str, Column("The template with the query pair and the candidate pair.")]
    perplexity: Annotated[float, Column("exp(log_perplexity); infinite if it overflows.")]
    log_perplexity: Annotated[
        float, Column("Minus the sum or mean of the tokens' log-probabilities.")
    ]
    log_prob: Annotated[
        float,
        Column("Sum of the scored tokens' log-probabilities.", "total log-prob.", decimals(3)),
    ]
    mean_perplexity: Annotated[
        float,
        Column("exp of minus the tokens' mean log-probability; NaN without any.", format=short),
    ]
    n_tokens: Annotated[int, Column("Number of scored tokens.", "tokens")]
    tokens: Annotated[
        TokenScores,
        Column("The tokens' log-probabilities.", format=shown_scores, json=scores_json),
    ]


@dataclass(frozen=True, slots=True)
class ModelScores(AboutModel):
    """One model's scores of the pairs, in the given order.

    n_left_out: How many pairs at the end were not scored because of the time limit.
    """

    pairs: tuple[PairScore, ...]
    n_left_out: int

    @property
    def ranked(self) -> tuple[PairScore, ...]:
        """The pairs, best first."""
        return tuple(sorted(self.pairs, key=lambda pair: pair.rank))


def parse_pair(text: str) -> Pair:
    """Parse a pair such as `Paris:France`. Raises UserError unless a colon separates two words."""
    head, _, tail = text.partition(":")
    if not head.strip() or not tail.strip():
        raise UserError(
            f"Not a pair: {text[:60]!r}. Write two words with a colon between, as Paris:France."
        )
    return check_word(head), check_word(tail)


def score_in_batches(
    model: SentenceScorer,
    sentences: Sequence[str],
    template: str,
    limits: Limits = UNLIMITED,
    on_done: Callable[[int], None] = ignore,
) -> list[TokenScores]:
    """Return the scores of the first sentences, as many as the time limit allows; at least one.

    template: Name or text of the sentences' template. on_done: Called after each batch with the
    number of sentences scored so far.
    """
    begins = begins_with_candidate(template)

    def score(some: range) -> list[TokenScores]:
        scores = model.token_log_probs(sentences[some.start : some.stop], begins=begins)
        on_done(some.stop)
        return scores

    return limits.score_in_time(sentences, score, sees_both=KINDS[model.kind].sees_both)


def rank_pairs(
    pairs: Sequence[Pair],
    sentences: Sequence[str],
    tokens: Sequence[TokenScores],
    normalise: Normalise,
) -> tuple[PairScore, ...]:
    """Return the pairs with their perplexities and ranks, in the given order."""
    totals = list(map(total_log_prob, tokens))
    values = [log_perplexity(*total, normalise) for total in totals]
    ranks = np.argsort(np.argsort(values, kind="stable")) + 1
    rows = zip(ranks.tolist(), pairs, sentences, totals, values, tokens, strict=True)
    return tuple(
        PairScore(
            rank=rank,
            pair=pair,
            sentence=text,
            perplexity=_exp(value),
            log_perplexity=value,
            log_prob=total,
            mean_perplexity=_exp(-total / n) if n else math.nan,
            n_tokens=n,
            tokens=scores,
        )
        for rank, pair, text, (total, n), value, scores in rows
    )


def _exp(value: float) -> float:
    """Return exp(value); infinite if it overflows."""
    return float(np.exp(np.float64(min(value, 1000.0))))


def total_log_prob(scores: TokenScores) -> tuple[float, int]:
    """Return the sum of the scored tokens' log-probabilities, and their number."""
    scored = scores.log_probs[~np.isnan(scores.log_probs)].astype(np.float64)
    return float(scored.sum()), len(scored)


def log_perplexity(total: float, n_scored: int, normalise: Normalise) -> float:
    """Return the log of the (pseudo-)perplexity: minus the log-probabilities' sum or mean."""
    return -total if normalise == "sum" else -total / max(n_scored, 1)


@dataclass(frozen=True, slots=True)
class PairSentences:
    """The query pair, the candidate pairs, the sentence that each makes, and the right pair."""

    query: Pair
    pairs: tuple[Pair, ...]
    sentences: tuple[str, ...]
    gold: Pair | None = None


class PairsKind(QueryKind[ScoreRequest, PairSentences, ModelScores]):
    """Candidate pairs, ranked by the analogy that each forms with a query pair."""

    name = "pairs"
    example = "analogy score Paris:France Rome:Italy Italy:Rome --model minilm-mlm"
    row = PairScore
    items = "pairs"
    answer_field = "pair"

    def prepare(self, request: ScoreRequest, limits: Limits) -> PairSentences:
        """Return the pairs and their sentences.

        Raises:
            UserError: For an invalid template or word, a repeated pair, fewer than 2 or more than
                `MAX_PAIRS` pairs, or a right pair that isn't one of them.
        """
        text = resolve_template(request.template)
        query, *pairs = map(parse_pair, (request.query, *request.pairs))
        if not 2 <= len(pairs) <= MAX_PAIRS:
            raise UserError(
                f"Got {len(pairs)} candidate pair{'' if len(pairs) == 1 else 's'}. Give 2 to "
                f"{MAX_PAIRS} pairs to compare."
            )
        if repeated := [pair for number, pair in enumerate(pairs) if pair in pairs[:number]]:
            raise UserError(f"The pair {':'.join(repeated[0])} is given twice. Remove one.")
        gold = parse_pair(request.gold) if request.gold else None
        if gold and gold not in pairs:
            raise UserError(
                f"The right pair {':'.join(gold)} is not one of the candidate pairs: add it to "
                "them, or remove it."
            )
        sentences = tuple(fill_template(text, (*query, *pair)).text for pair in pairs)
        return PairSentences(query, tuple(pairs), sentences, gold)

    def answer(
        self, model: SentenceScorer, asked: Asked[ScoreRequest, PairSentences], calls: Calls
    ) -> ModelScores:
        """Return one model's (pseudo-)perplexity of each sentence within the time limit."""
        pairs, sentences = asked.shared.pairs, asked.shared.sentences
        tokens = score_in_batches(model, sentences, asked.request.template, calls.limits)
        n = len(tokens)
        ranked = rank_pairs(pairs[:n], sentences[:n], tokens, asked.request.normalise)
        return ModelScores(pairs=ranked, n_left_out=len(pairs) - n, **model_fields(model))

    def rows(
        self, asked: Asked[ScoreRequest, PairSentences], one: ModelScores
    ) -> Sequence[PairScore]:
        """Return the pairs, best first."""
        return one.ranked

    def tables(
        self, asked: Asked[ScoreRequest, PairSentences], one: ModelScores
    ) -> Iterator[Table | str]:
        """Yield the ranking, and the log-probabilities of each sentence's tokens."""
        yield make_table(
            PairScore,
            one.ranked,
            "rank pair log_prob n_tokens mean_perplexity sentence",
            labels={
                "log_prob": KINDS[one.kind].total,
                "mean_perplexity": f"{KINDS[one.kind].measure} (mean)",
            },
            title=f"{one.name}, ranked by the {asked.request.normalise} of the log-probabilities"
            + one.computed,
        )
        for pair in one.ranked:
            yield f"  {shown_scores(pair.tokens)}"
        if gold := self.gold(asked, one):
            yield gold

    def title(self, request: ScoreRequest) -> str:
        """Return the query pair and the candidate pairs."""
        return f"{request.query} :: {' / '.join(request.pairs)}"

    def head(self, answer: Answer[ScoreRequest, PairSentences, ModelScores]) -> dict[str, Any]:
        """Return the query pair and the options."""
        request = answer.asked.request
        query, gold = answer.asked.shared.query, answer.asked.shared.gold
        return {
            "query": list(query),
            **({"gold": list(gold)} if gold else {}),
            "template": request.template,
            "normalise": request.normalise,
        }

    def details(
        self, asked: Asked[ScoreRequest, PairSentences], one: ModelScores
    ) -> dict[str, Any]:
        """Return the name of the model's perplexity."""
        return {"measure": KINDS[one.kind].measure}

    def constants(
        self, asked: Asked[ScoreRequest, PairSentences], one: ModelScores
    ) -> dict[str, Any]:
        """Return the name of the model's perplexity, and what the rank is by."""
        by = f"{asked.request.normalise} of log-probabilities"
        return {"measure": KINDS[one.kind].measure, "ranked_by": by}

    def settings(
        self, asked: Asked[ScoreRequest, PairSentences], one: ModelScores
    ) -> dict[str, str]:
        """Return what was ranked."""
        ranked = f"{len(one.pairs)} pairs by the {asked.request.normalise} over the tokens"
        return {"ranked": ranked, "log-probabilities over": "all tokens of the model"}

    def gold(self, asked: Asked[ScoreRequest, PairSentences], one: ModelScores) -> str:
        """Return the right pair and its rank as text; empty if there is none."""
        ranks = {pair.pair: pair.rank for pair in one.pairs}
        gold = asked.shared.gold
        return f"Right pair {':'.join(gold)}: rank {ranks.get(gold, 'unknown')}" if gold else ""


score_analogies = QueryFunction(
    ScoreRequest,
    PairsKind(),
    """Rank candidate pairs by the likelihood of the analogy that each forms with a query pair.

    Returns:
        A DataFrame with a row for each model and pair, the best first. mean_perplexity: exp of the
        negative mean log-probability per token.

    Raises:
        UserError: If a pair isn't written as A:B, or a model is unknown.

    >>> import lama_core as lama
    >>> lama.score_analogies("Paris:France", ["Rome:Italy", "Rome:Peru"])[["rank", "pair"]]
       rank        pair
    0     1  Rome:Italy
    1     2   Rome:Peru
    """,
)
