"""Analyses of a study's prompts (Jiang et al. 2020, section 5.3).

divergence    Div(a, b) = share of facts on which exactly one of a and b is right; by edit distance
              in words, normalised to [0, 1], in five bins
patterns      accuracy ranks of the mined prompts that match one of ReVerb's three part-of-speech
              patterns
transfer      prompt weights that are fitted on one model and applied to another

Departure: Edit distance of prompts
Departure: Parts of speech of prompts
Departure: Another model's weights
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from lama_core.errors import UserError
from lama_core.probes.prompts.ensemble import rank_prompts
from lama_core.probes.prompts.mining import WORD, Parser
from lama_core.probes.prompts.study import RelationStudy
from lama_core.requests import Request, argument, option

N_BINS = 5
STAND_INS = {"[X]": "Alice", "[Y]": "Paris"}


@dataclass(frozen=True)
class AnalyseRequest(Request, command="prompts analyse", python="analyse_prompts"):
    """A study to analyse: the fields of `prompts analyse`."""

    study: Annotated[str, argument("Name or folder of a study.")]
    combination: Annotated[
        str, option("Combination of prompt sets, such as mine+man.", name="--set")
    ] = "mine"
    other: Annotated[
        str | None,
        option("Study of another model, whose prompt weights are applied to this study."),
    ] = None
    patterns: Annotated[
        bool, option("Also rank prompts by part-of-speech pattern (needs spaCy).")
    ] = False


@dataclass(frozen=True, slots=True)
class PromptPair:
    """Two prompts of a relation, with their normalised edit distance and divergence, 0 to 1."""

    relation: str
    first: str
    second: str
    distance: float
    divergence: float

    @property
    def bin_number(self) -> int:
        """Index of the bin of `measure_divergence` that includes the distance."""
        return max(0, math.ceil(self.distance * N_BINS - 1e-9) - 1)


@dataclass(frozen=True, slots=True)
class DistanceBin:
    """Divergence of the prompt pairs with a distance in (low, high]; NaN without pairs.

    The first bin includes 0.
    """

    low: float
    high: float
    n_pairs: int
    mean: float
    quartiles: tuple[float, float, float]


@dataclass(frozen=True)
class Divergence:
    """Divergence by distance. correlation: Pearson's r between them over all pairs."""

    bins: tuple[DistanceBin, ...]
    correlation: float
    n_pairs: int


def edit_distance(first: str, second: str) -> int:
    """Return the Levenshtein distance of two templates, in words."""
    left, right = first.split(), second.split()
    row = list(range(len(right) + 1))
    for i, word in enumerate(left, start=1):
        previous, row[0] = row[0], i
        for j, other in enumerate(right, start=1):
            previous, row[j] = row[j], min(previous + (word != other), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def normalised_distances(pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """Return the edit distances of one relation's pairs, float64 [pair].

    0 is the relation's closest pair of prompts, 1 its most distant pair; if all pairs have the same
    distance, all results are 0.
    Source: Jiang et al. 2020, section 5.3 ("normalized into [0, 1]").
    Departure: Edit distance of prompts
    """
    edits = np.array([edit_distance(*pair) for pair in pairs], dtype=np.float64)
    least = edits.min(initial=np.inf)
    spread = edits.max(initial=-np.inf) - least
    return (edits - least) / spread if spread > 0 else np.zeros(len(edits))


def prompt_pairs(study: RelationStudy, combination: str = "all") -> list[PromptPair]:
    """Return all pairs of a combination's prompts, with distance and divergence on test facts."""
    right, templates = study.ranks == 1, study.pool.templates
    pairs = list(combinations(study.pool.members(combination), 2))
    texts = [(templates[a], templates[b]) for a, b in pairs]
    return [
        PromptPair(study.relation.name, *text, float(share), float((right[a] != right[b]).mean()))
        for text, share, (a, b) in zip(texts, normalised_distances(texts), pairs, strict=True)
    ]


def measure_divergence(pairs: Sequence[PromptPair]) -> Divergence:
    """Return the divergence in five bins of distance, and Pearson's r between them (paper: 0.25).

    The correlation is NaN if distance or divergence is constant.
    Source: Jiang et al. 2020, figure 3.
    """
    distances = np.array([pair.distance for pair in pairs])
    values = np.array([pair.divergence for pair in pairs])
    bin_numbers = np.array([pair.bin_number for pair in pairs], dtype=int)
    bins = []
    for number in range(N_BINS):
        inside = values[bin_numbers == number]
        mean = float(inside.mean()) if len(inside) else math.nan
        low, middle, high = np.quantile(inside if len(inside) else math.nan, (0.25, 0.5, 0.75))
        ends = number / N_BINS, (number + 1) / N_BINS
        bins.append(DistanceBin(*ends, len(inside), mean, (float(low), float(middle), float(high))))
    varies = len(pairs) > 1 and distances.std() > 0 and values.std() > 0
    correlation = float(np.corrcoef(distances, values)[0, 1]) if varies else math.nan
    return Divergence(tuple(bins), correlation, len(pairs))


# ReVerb's patterns over Penn tags (table 11 of the paper), with tags as in the released code. V is
# one verb with an optional particle and adverbs; P is a preposition, particle or "to" with optional
# adverbs. One verb is enough for verbs of several words ("was born"), because a pattern may match
# anywhere in a prompt.
V = r"(?:RB )?(?:MD|VB[DGNPZ]?)(?: RP)?(?: RB)?"
P = r"(?:RB )?(?:IN|TO|RP)(?: RB)?"
W = r"(?:PRP\$?|CD|DT|JJ[RS]?|NNP?S?|POS|RB[RS]?|VB[GN])"
PATTERNS = {
    name: re.compile(rf"(?<!\S){pattern}(?!\S)")
    for name, pattern in {"V": V, "V P": f"{V} {P}", "V W* P": rf"{V}(?: {W})* {P}"}.items()
}
OTHER = "other"
# The tokens of a template for the tagger: placeholders, words and signs, with a separate "'s".
TAGGED = re.compile(rf"\[X\]|\[Y\]|['’]s\b|\w+(?=['’]s\b)|{WORD.pattern}")


@dataclass(frozen=True, slots=True)
class PatternRank:
    """A prompt's patterns, and its accuracy rank among the relation's prompts; 1 is best."""

    relation: str
    template: str
    patterns: tuple[str, ...]
    rank: int


def find_patterns(template: str, parser: Parser) -> tuple[str, ...]:
    """Return the names of ReVerb's patterns that match a template; `other` if none does.

    The parser sees names instead of the placeholders; a pattern never includes a placeholder.
    Source: Jiang et al. 2020, section 5.3, and the released `ana.py`.
    """
    words = TAGGED.findall(template)
    parsed = zip(words, parser.parse([STAND_INS.get(word, word) for word in words]), strict=True)
    tags = " ".join(text if text in STAND_INS else word.tag for text, word in parsed)
    return tuple(name for name, pattern in PATTERNS.items() if pattern.search(tags)) or (OTHER,)


def rank_patterns(
    study: RelationStudy, parser: Parser, combination: str = "mine"
) -> list[PatternRank]:
    """Return the patterns and the rank by test accuracy of each prompt of a combination.

    Source: figure 4 of the paper, for mined prompts.
    """
    members = np.array(study.pool.members(combination), dtype=int)
    ranked = members[rank_prompts(study.test_accuracies[members])]
    templates = (study.pool.templates[number] for number in ranked)
    return [
        PatternRank(study.relation.name, template, find_patterns(template, parser), rank)
        for rank, template in enumerate(templates, start=1)
    ]


@dataclass(frozen=True, slots=True)
class Transfer:
    """P@1 of a model's ensemble, with prompt weights fitted on this model and on another one.

    Attributes:
        relation: The relation.
        own: P@1 with the weights fitted on this model.
        other: P@1 with the weights fitted on the other model.
        n: Number of test facts with a shortlist.
        n_uncertain: Number of these facts whose best answer under the other weights might be
            outside the shortlist.
    """

    relation: str
    own: float
    other: float
    n: int
    n_uncertain: int


def transfer_weights(
    study: RelationStudy, other: RelationStudy, combination: str, method: str = "optimised"
) -> Transfer:
    """Apply the prompt weights of another model's study to this study.

    Prompts are matched by their text. Weights of prompts that `study` lacks or excludes from
    ensembles are dropped, and the other weights scaled to sum 1. Source: tables 12 and 13.

    Raises:
        UserError: If a study lacks the ensemble, or the studies share no weighted prompt.
    """
    own, foreign = study.ensemble(combination, method), other.ensemble(combination, method)
    name = study.relation.name
    if own is None or foreign is None:
        raise UserError(
            f"{name}: a study lacks the ensemble {combination} {method}. Run `prompts fit` for "
            "both models with this set and method."
        )
    by_template = dict(zip(other.pool.templates, foreign[0].weights.tolist(), strict=True))
    weights = np.array(
        [
            0.0 if entry.aside else by_template.get(entry.prompt.template, 0.0)
            for entry in study.pool.entries
        ],
        np.float32,
    )
    if not weights.sum():
        raise UserError(
            f"{name}: the two studies have no weighted prompt in common. Choose studies of the "
            "same prompts."
        )
    weights = np.asarray(weights / weights.sum(), dtype=np.float32)
    before, after = study.judge(own[0].weights), study.judge(weights)
    return Transfer(
        name,
        float(before.correct.mean()),
        float(after.correct.mean()),
        len(after.correct),
        int((~after.certain).sum()),
    )
