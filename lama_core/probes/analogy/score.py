"""Which of several pairs completes an analogy best: the sentence that the model finds likeliest.

    PPPL(S) = exp(-sum_i log P(w_i | S without w_i))      masked models, one word piece at a time;
                                                          encoder-decoder models, as we do it
    PPL(S)  = exp(-sum_i log P(w_i | w_1 .. w_(i-1)))     causal models

Source: Rezaee and Camacho-Collados, equation 1, which has no 1/|S|: `sum`, the default. With `mean`
the sum is divided by the number of scored tokens, as in the code that the paper builds on. Special
tokens are not scored; nor is the first token of a causal model that has no start token.

Pairs are ranked by that. People read the total log-probability, sum_i log P, and the perplexity in
the usual sense, per token: exp(-1/n sum_i log P).
Departure: Perplexity of a sentence
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from lama_core.errors import UserError
from lama_core.models.protocols import KINDS, SentenceScorer, TokenScores
from lama_core.probes.analogy.templates import (
    DEFAULT_TEMPLATE,
    TemplateChoice,
    check_word,
    fill,
    resolve_template,
)
from lama_core.probes.model_info import OfModel, model_fields
from lama_core.requests import argument, option
from lama_core.scoring import shared_fields
from lama_core.scoring.limits import UNLIMITED, Limits

Pair = tuple[str, str]
Normalise = Literal["sum", "mean"]
NORMALISATIONS: tuple[Normalise, ...] = ("sum", "mean")
NormaliseChoice = Annotated[
    Normalise, option("sum (the paper's equation) or mean of the log-probabilities.")
]
MAX_PAIRS = 100


@dataclass(frozen=True, kw_only=True)
class ScoreRequest(shared_fields.ModelSettings):
    """A query pair and candidate pairs to rank: the fields of `analogy score`."""

    command: ClassVar[tuple[str, ...]] = ("analogy", "score")
    python: ClassVar[str] = "score_analogies"

    query: Annotated[str, argument("The query pair, such as Paris:France.")] = field(kw_only=False)
    pairs: Annotated[Sequence[str], argument("Two or more candidate pairs.")] = field(kw_only=False)
    template: TemplateChoice = DEFAULT_TEMPLATE
    normalise: NormaliseChoice = "sum"


@dataclass(frozen=True, slots=True)
class PairScore:
    """One candidate pair, as one model sees it.

    rank: by log_perplexity; ties in the order given. total: of the `n_scored` tokens'
    log-probabilities. log_perplexity: minus their sum or mean.
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
        """exp(log_perplexity), of the whole sentence with `sum`; infinite where too large."""
        return float(np.exp(np.float64(min(self.log_perplexity, 1000.0))))

    @property
    def mean_perplexity(self) -> float:
        """Exp of minus the mean log-probability of the scored tokens; NaN where there are none."""
        if not self.n_scored:
            return float("nan")
        return float(np.exp(np.float64(min(-self.total / self.n_scored, 1000.0))))


@dataclass(frozen=True, slots=True)
class ModelScores(OfModel):
    """All pairs as one model sees them, in the order given; the last `n_left_out` had no time."""

    pairs: tuple[PairScore, ...]
    n_left_out: int

    @property
    def ranked(self) -> tuple[PairScore, ...]:
        """The pairs, best first."""
        return tuple(sorted(self.pairs, key=lambda pair: pair.rank))


@dataclass(frozen=True, slots=True)
class ScoreAnswer:
    """What `analogy score` and the page show."""

    query: Pair
    template: str
    normalise: Normalise
    models: tuple[ModelScores, ...]

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON; what is not a finite number is null."""
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
    """`Paris:France` as a pair. Raises UserError unless it has two words with a colon between."""
    head, colon, tail = text.partition(":")
    if not colon or not head.strip() or not tail.strip():
        raise UserError(f"{text[:60]!r} is no pair: write two words with a colon, as Paris:France.")
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
    """Return every model's (pseudo-)perplexity of the template with the query and each pair."""
    text = resolve_template(template)
    query = (check_word(query[0]), check_word(query[1]))
    pairs = [(check_word(head), check_word(tail)) for head, tail in pairs]
    if not 2 <= len(pairs) <= MAX_PAIRS:
        raise UserError(
            f"{len(pairs)} candidate {'pair is' if len(pairs) == 1 else 'pairs are'} given: give "
            f"from 2 to {MAX_PAIRS}, to compare them."
        )
    doubles = [pair for number, pair in enumerate(pairs) if pair in pairs[:number]]
    if doubles:
        raise UserError(f"The pair {doubles[0][0]}:{doubles[0][1]} is given twice: leave one out.")
    sentences = [fill(text, (*query, *pair)).text for pair in pairs]
    scored = []
    for model in models:
        tokens = _score(model, sentences, limits)
        n = len(tokens)
        ranked = rank_pairs(pairs[:n], sentences[:n], tokens, normalise)
        about = model_fields(model)
        scored.append(ModelScores(pairs=ranked, n_left_out=len(pairs) - n, **about))
    return ScoreAnswer(query, template, normalise, tuple(scored))


def _score(model: SentenceScorer, sentences: list[str], limits: Limits) -> list[TokenScores]:
    """The tokens of the first sentences, as many as the limits allow; one at least."""
    return limits.score_in_time(
        sentences,
        lambda some: model.token_log_probs(sentences[some.start : some.stop]),
        sees_both=KINDS[model.kind].sees_both,
    )


def rank_pairs(
    pairs: Sequence[Pair],
    sentences: Sequence[str],
    tokens: Sequence[TokenScores],
    normalise: Normalise,
) -> tuple[PairScore, ...]:
    """The pairs with their perplexities and ranks, in the order given."""
    totals = [total_log_prob(scores) for scores in tokens]
    values = [log_perplexity(*one, normalise) for one in totals]
    ranks = np.argsort(np.argsort(values, kind="stable")) + 1
    rows = zip(ranks.tolist(), pairs, sentences, totals, values, tokens, strict=True)
    return tuple(
        PairScore(rank, pair, text, log_prob, n_scored, value, scores)
        for rank, pair, text, (log_prob, n_scored), value, scores in rows
    )


def total_log_prob(scores: TokenScores) -> tuple[float, int]:
    """The sum of the log-probabilities of a text's tokens, and how many were scored."""
    scored = scores.log_probs[~np.isnan(scores.log_probs)].astype(np.float64)
    return float(scored.sum()), len(scored)


def log_perplexity(total: float, n_scored: int, normalise: Normalise) -> float:
    """Log of the (pseudo-)perplexity: minus the sum, or the mean, of the log-probabilities."""
    return -total if normalise == "sum" else -total / max(n_scored, 1)
