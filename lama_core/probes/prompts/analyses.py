"""What makes prompts differ, and which are good (Jiang et al. 2020, section 5.3).

divergence    Div(a, b) = share of facts on which a and b differ in being right; against the
              edit distance of their words, brought into [0, 1] (`DISTANCES`), in five bins
patterns      rank by accuracy, among the mined prompts, of those whose parts of speech hold one
              of ReVerb's three patterns
transfer      weights learnt on one model used on another

Departure: Edit distance of prompts
Departure: Parts of speech of prompts
Departure: Another model's weights
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.probes.prompts.ensemble import rank_prompts
from lama_core.probes.prompts.mining import WORD, Parser
from lama_core.probes.prompts.study import RelationStudy
from lama_core.requests import Request, argument, option

# How an edit distance becomes a share. min-max, as in the paper: 0 is a relation's nearest pair of
# prompts, 1 its furthest. longer: edits for each word of the longer prompt of the two.
# Departure: Edit distance of prompts
Distance = Literal["min-max", "longer"]
DISTANCES: tuple[Distance, ...] = get_args(Distance)
N_BINS = 5
STAND_INS = {"[X]": "Alice", "[Y]": "Paris"}


@dataclass(frozen=True)
class AnalyseRequest(Request):
    """A study to analyse: the fields of `prompts analyse`."""

    command: ClassVar[tuple[str, ...]] = ("prompts", "analyse")
    python: ClassVar[str] = "analyse_prompts"

    study: Annotated[str, argument("A study's name or folder.")]
    combination: Annotated[str, option("Which set of prompts.", name="--set")] = "mine"
    other: Annotated[
        str | None, option("Another model's study, whose weights are tried on this one.")
    ] = None
    distance: Annotated[
        Distance,
        option(
            "How edit distances become shares: min-max of the relation's pairs (the paper's), or "
            "divided by the longer prompt's number of words (longer)."
        ),
    ] = "min-max"
    patterns: Annotated[
        bool, option("Also rank prompts by part-of-speech pattern (needs spaCy).")
    ] = False


@dataclass(frozen=True, slots=True)
class PromptPair:
    """Two prompts of a relation. distance: normalised edit distance, 0 to 1."""

    relation: str
    first: str
    second: str
    distance: float
    divergence: float


@dataclass(frozen=True, slots=True)
class DistanceBin:
    """Prompt pairs whose distance is in (low, high] (the first: and 0); NaN without pairs."""

    low: float
    high: float
    n_pairs: int
    mean: float
    quartiles: tuple[float, float, float]


@dataclass(frozen=True)
class Divergence:
    """Divergence against distance. correlation: Pearson's, over pairs."""

    bins: tuple[DistanceBin, ...]
    correlation: float
    n_pairs: int


def edit_distance(first: str, second: str) -> int:
    """Levenshtein's distance of two templates, in words."""
    left, right = first.split(), second.split()
    row = list(range(len(right) + 1))
    for i, word in enumerate(left, start=1):
        previous, row[0] = row[0], i
        for j, other in enumerate(right, start=1):
            change = previous + (word != other)
            previous, row[j] = row[j], min(change, row[j] + 1, row[j - 1] + 1)
    return row[-1]


def normalised_distances(
    pairs: Sequence[tuple[str, str]], distance: Distance = "min-max"
) -> NDArray[np.float64]:
    """Edit distances of one relation's pairs of templates, brought into [0, 1], float64 [pair].

    Pairs that all lie equally far apart have 0 by `min-max`.
    Source: Jiang et al. 2020, section 5.3 ("normalized into [0, 1]"); `longer` is ours.
    """
    edits = np.array([edit_distance(*pair) for pair in pairs], dtype=np.float64)
    if distance == "longer":
        return edits / [max(1, *(len(text.split()) for text in pair)) for pair in pairs]
    least = edits.min(initial=np.inf)
    spread = edits.max(initial=-np.inf) - least
    return (edits - least) / spread if spread > 0 else np.zeros(len(edits))


def prompt_pairs(
    study: RelationStudy, combination: str = "all", distance: Distance = "min-max"
) -> list[PromptPair]:
    """Every pair of prompts of a combination, with distance and divergence on the test facts."""
    members = study.pool.members(combination)
    right = study.ranks == 1
    templates = study.pool.templates
    chosen = list(combinations(members, 2))
    texts = [(templates[a], templates[b]) for a, b in chosen]
    distances = normalised_distances(texts, distance)
    return [
        PromptPair(study.relation.name, *text, float(share), float((right[a] != right[b]).mean()))
        for text, share, (a, b) in zip(texts, distances, chosen, strict=True)
    ]


def measure_divergence(pairs: Sequence[PromptPair]) -> Divergence:
    """Divergence by distance in five bins of 0.2, and their correlation (the paper's: 0.25).

    Source: Jiang et al. 2020, figure 3. The correlation is NaN when either never varies.
    """
    distances = np.array([pair.distance for pair in pairs])
    values = np.array([pair.divergence for pair in pairs])
    which = np.clip(np.ceil(distances * N_BINS - 1e-9).astype(int) - 1, 0, N_BINS - 1)
    bins = []
    for number in range(N_BINS):
        here = values[which == number]
        known = len(here) > 0
        low, middle, high = np.quantile(here, (0.25, 0.5, 0.75)) if known else (np.nan,) * 3
        ends = number / N_BINS, (number + 1) / N_BINS
        mean = float(here.mean()) if known else float("nan")
        quartiles = float(low), float(middle), float(high)
        bins.append(DistanceBin(*ends, len(here), mean, quartiles))
    varies = len(pairs) > 1 and distances.std() > 0 and values.std() > 0
    correlation = float(np.corrcoef(distances, values)[0, 1]) if varies else float("nan")
    return Divergence(tuple(bins), correlation, len(pairs))


# ReVerb's patterns over Penn tags (table 11 of the paper), with tags as in the released code. V is
# one verb, with a particle and adverbs; P a preposition, particle or "to", with adverbs. A verb of
# several words ("was born") needs no more, because a pattern is found anywhere in a prompt.
V = r"(?:RB )?(?:MD|VB[DGNPZ]?)(?: RP)?(?: RB)?"
P = r"(?:RB )?(?:IN|TO|RP)(?: RB)?"
W = r"(?:PRP\$?|CD|DT|JJ[RS]?|NNP?S?|POS|RB[RS]?|VB[GN])"
PATTERNS = {
    name: re.compile(rf"(?<!\S){pattern}(?!\S)")
    for name, pattern in {"V": V, "V P": f"{V} {P}", "V W* P": rf"{V}(?: {W})* {P}"}.items()
}
OTHER = "other"
# The words of a template as a tagger has them: the placeholders, a genitive 's apart, all others.
TAGGED = re.compile(rf"\[X\]|\[Y\]|['’]s\b|\w+(?=['’]s\b)|{WORD.pattern}")


@dataclass(frozen=True, slots=True)
class PatternRank:
    """A prompt's patterns, and its place by accuracy among its relation's prompts, 1 = best."""

    relation: str
    template: str
    patterns: tuple[str, ...]
    rank: int


def find_patterns(template: str, parser: Parser) -> tuple[str, ...]:
    """Return all of ReVerb's patterns in a template's parts of speech; without any, `other`.

    The placeholders are tagged as names, and are part of no pattern.
    Source: Jiang et al. 2020, section 5.3, and the released `ana.py`.
    """
    words = TAGGED.findall(template)
    parsed = parser.parse([STAND_INS.get(word, word) for word in words])
    tags = " ".join(
        text if text in STAND_INS else word.tag for text, word in zip(words, parsed, strict=True)
    )
    return tuple(name for name, pattern in PATTERNS.items() if pattern.search(tags)) or (OTHER,)


def rank_patterns(
    study: RelationStudy, parser: Parser, combination: str = "mine"
) -> list[PatternRank]:
    """Each prompt's patterns and its rank by test accuracy among a combination's prompts.

    Source: the paper's figure 4, of mined prompts.
    """
    members = study.pool.members(combination)
    order = rank_prompts(study.test_accuracies[list(members)]).tolist()
    templates = [study.pool.templates[members[place]] for place in order]
    return [
        PatternRank(study.relation.name, template, find_patterns(template, parser), rank)
        for rank, template in enumerate(templates, start=1)
    ]


@dataclass(frozen=True, slots=True)
class Transfer:
    """P@1 of one model with its own weights and with another's.

    n: test facts of the shortlist. n_uncertain: those on which a candidate outside of it might come
    first under the other's weights.
    """

    relation: str
    own: float
    other: float
    n: int
    n_uncertain: int


def transfer_weights(
    study: RelationStudy, other: RelationStudy, combination: str, method: str = "optimised"
) -> Transfer:
    """The weights that `other`'s model learnt, used on `study`'s. Source: tables 12 and 13.

    Prompts are matched by their text; weights of prompts that `study` lacks or has set aside are
    left out and the rest scaled to 1. Raises UserError if either has no such ensemble, or they
    share no prompt.
    """
    own, foreign = study.ensemble(combination, method), other.ensemble(combination, method)
    if own is None or foreign is None:
        raise UserError(
            f"{study.relation.name}: both studies need the ensemble {combination} {method}."
        )
    known = dict(zip(other.pool.templates, foreign[0].weights.tolist(), strict=True))
    entries = study.pool.entries
    carried = [0.0 if one.aside else known.get(one.prompt.template, 0.0) for one in entries]
    weights = np.array(carried, np.float32)
    if not weights.sum():
        raise UserError(f"{study.relation.name}: the two studies share no prompt of weight.")
    weights = np.asarray(weights / weights.sum(), dtype=np.float32)
    verdicts = [study.judge(one) for one in (own[0].weights, weights)]
    before, after = (float(one.correct.mean()) for one in verdicts)
    n_uncertain = int((~verdicts[1].certain).sum())
    return Transfer(study.relation.name, before, after, len(verdicts[0].correct), n_uncertain)
