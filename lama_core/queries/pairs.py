"""Rank candidate pairs by the perplexity of the analogy sentence that each of them completes.

    PPPL(S) = exp(-sum_i log P(w_i | S without w_i))      masked models, one subword token at a
                                                          time; also encoder-decoder models (ours)
    PPL(S)  = exp(-sum_i log P(w_i | w_1 .. w_(i-1)))     causal models

The default is `sum`: equation 1 of Rezaee and Camacho-Collados, which has no 1/|S|. With `mean` the
sum is divided by the number of scored tokens, as in the code that the paper builds on. Special
tokens are not scored, nor is the first token of a causal model without a start token.

The app shows the total log-probability, sum_i log P, and the usual perplexity per token,
exp(-1/n sum_i log P).
Departure: Perplexity of a sentence
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from lama_core.datasets.dataset import Pair as Pair
from lama_core.errors import UserError
from lama_core.models.protocols import KINDS, SentenceScorer, TokenScores
from lama_core.progress import ignore
from lama_core.queries.analogy_templates import (
    DEFAULT_TEMPLATE,
    TemplateChoice,
    check_word,
    fill_template,
    resolve_template,
)
from lama_core.requests import argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.limits import UNLIMITED, Limits
from lama_core.scoring.model_info import AboutModel, model_fields

Normalise = Literal["sum", "mean"]
NORMALISATIONS: tuple[Normalise, ...] = ("sum", "mean")
NormaliseChoice = Annotated[
    Normalise, option("Sum (as in the paper) or mean of the tokens' log-probabilities.")
]
MAX_PAIRS = 100


@dataclass(frozen=True, kw_only=True)
class ScoreRequest(shared_fields.ModelSettings):
    """A query pair with candidate pairs to rank: the fields of `analogy score`."""

    command: ClassVar[tuple[str, ...]] = ("analogy", "score")
    python: ClassVar[str] = "score_analogies"

    query: Annotated[str, argument("The query pair, such as Paris:France.")] = field(kw_only=False)
    pairs: Annotated[Sequence[str], argument("Two or more candidate pairs.")] = field(kw_only=False)
    template: TemplateChoice = DEFAULT_TEMPLATE
    normalise: NormaliseChoice = "sum"


@dataclass(frozen=True, slots=True)
class PairScore:
    """One model's score of one candidate pair.

    Attributes:
        rank: By log_perplexity, 1 is best; ties keep the given order.
        total: Sum of the log-probabilities of the `n_scored` scored tokens.
        log_perplexity: Minus the sum or mean of these log-probabilities (see `Normalise`).
    """

    rank: int
    pair: Pair
    sentence: str
    total: float
    n_scored: int
    log_perplexity: float
    tokens: TokenScores

    @property
    def perplexity(self) -> float:
        """exp(log_perplexity); infinite if it overflows. With `sum`, of the whole sentence."""
        return float(np.exp(np.float64(min(self.log_perplexity, 1000.0))))

    @property
    def mean_perplexity(self) -> float:
        """Perplexity per scored token: exp of minus the mean log-probability; NaN without any."""
        if not self.n_scored:
            return float("nan")
        return float(np.exp(np.float64(min(-self.total / self.n_scored, 1000.0))))


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


@dataclass(frozen=True, slots=True)
class ScoreAnswer:
    """The results of `analogy score`."""

    query: Pair
    template: str
    normalise: Normalise
    models: tuple[ModelScores, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the results as JSON values; infinite and NaN values become None."""
        return {
            "query": list(self.query),
            "template": self.template,
            "normalise": self.normalise,
            "models": [
                {
                    **model.model_json(),
                    "measure": KINDS[model.kind].measure,
                    "pairs": [_pair_json(pair) for pair in model.ranked],
                }
                for model in self.models
            ],
        }


def _pair_json(pair: PairScore) -> dict[str, Any]:
    values = [float(value) for value in pair.tokens.log_probs]
    return {
        "rank": pair.rank,
        "pair": list(pair.pair),
        "sentence": pair.sentence,
        "perplexity": pair.perplexity if np.isfinite(pair.perplexity) else None,
        "log_perplexity": pair.log_perplexity,
        "log_prob": pair.total,
        "mean_perplexity": pair.mean_perplexity if np.isfinite(pair.mean_perplexity) else None,
        "n_tokens": pair.n_scored,
        "tokens": [
            {"token": token, "log_prob": value if np.isfinite(value) else None}
            for token, value in zip(pair.tokens.tokens, values, strict=True)
        ],
    }


def parse_pair(text: str) -> Pair:
    """Parse a pair such as `Paris:France`. Raises UserError unless a colon separates two words."""
    head, _, tail = text.partition(":")
    if not head.strip() or not tail.strip():
        raise UserError(
            f"Not a pair: {text[:60]!r}. Write two words with a colon between, as Paris:France."
        )
    return check_word(head), check_word(tail)


def score_pairs(
    models: Sequence[SentenceScorer],
    query: Pair,
    pairs: Sequence[Pair],
    *,
    template: str = DEFAULT_TEMPLATE,
    normalise: Normalise = "sum",
    limits: Limits = UNLIMITED,
) -> ScoreAnswer:
    """Return every model's (pseudo-)perplexity of the template with the query and each pair.

    Raises UserError for an invalid template or word, a repeated pair, or fewer than 2 or more than
    `MAX_PAIRS` pairs.
    """
    text = resolve_template(template)
    query = (check_word(query[0]), check_word(query[1]))
    pairs = [(check_word(head), check_word(tail)) for head, tail in pairs]
    if not 2 <= len(pairs) <= MAX_PAIRS:
        raise UserError(
            f"Got {len(pairs)} candidate pair{'' if len(pairs) == 1 else 's'}. Give 2 to "
            f"{MAX_PAIRS} pairs to compare."
        )
    repeated = [pair for number, pair in enumerate(pairs) if pair in pairs[:number]]
    if repeated:
        raise UserError(f"The pair {repeated[0][0]}:{repeated[0][1]} is given twice. Remove one.")
    sentences = [fill_template(text, (*query, *pair)).text for pair in pairs]
    scored = []
    for model in models:
        tokens = score_in_batches(model, sentences, limits)
        n = len(tokens)
        ranked = rank_pairs(pairs[:n], sentences[:n], tokens, normalise)
        scored.append(ModelScores(pairs=ranked, n_left_out=len(pairs) - n, **model_fields(model)))
    return ScoreAnswer(query, template, normalise, tuple(scored))


def score_in_batches(
    model: SentenceScorer,
    sentences: Sequence[str],
    limits: Limits = UNLIMITED,
    on_done: Callable[[int], None] = ignore,
) -> list[TokenScores]:
    """Return the scores of the first sentences, as many as the time limit allows; at least one.

    on_done: Called after each batch with the number of sentences scored so far.
    """

    def score(some: range) -> list[TokenScores]:
        scores = model.token_log_probs(sentences[some.start : some.stop])
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
    totals = [total_log_prob(scores) for scores in tokens]
    values = [log_perplexity(*total, normalise) for total in totals]
    ranks = np.argsort(np.argsort(values, kind="stable")) + 1
    rows = zip(ranks.tolist(), pairs, sentences, totals, values, tokens, strict=True)
    return tuple(
        PairScore(rank, pair, text, total, n_scored, value, scores)
        for rank, pair, text, (total, n_scored), value, scores in rows
    )


def total_log_prob(scores: TokenScores) -> tuple[float, int]:
    """Return the sum of the scored tokens' log-probabilities, and their number."""
    scored = scores.log_probs[~np.isnan(scores.log_probs)].astype(np.float64)
    return float(scored.sum()), len(scored)


def log_perplexity(total: float, n_scored: int, normalise: Normalise) -> float:
    """Return the log of the (pseudo-)perplexity: minus the log-probabilities' sum or mean."""
    return -total if normalise == "sum" else -total / max(n_scored, 1)
