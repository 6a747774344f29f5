"""What the paper tabulates of a study besides its scores (Jiang et al. 2020, sections 5 and 6).

statistics    pairs, unique subjects and objects, entropy of the objects (table 1)
majority      always the relation's most frequent object: max count / n, and 1 / unique objects
gains         of the best mined prompt over the manual one (table 4), of weights over the best
              prompt (table 5), of one word changed (table 6): differences of P@1 on the test facts
transfer      one model's weights on another, mean over relations (tables 12 and 13)
curves        P@1 of the K best prompts, mean over the relations that have so many (figures 2, 5)
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

import numpy as np

from lama_core.metrics.precision_at_k import precision_at
from lama_core.probes.prompts.analyses import edit_distance, transfer_weights
from lama_core.probes.prompts.mining import WORD
from lama_core.probes.prompts.selection import Combine
from lama_core.probes.prompts.study import RelationStudy
from lama_core.types import Fact

_PARTS = re.compile(rf"\[X\]|\[Y\]|{WORD.pattern}")
Change = Literal["update", "insert", "delete"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of some facts of one relation. entropy: of the objects, in natural units."""

    n_pairs: int
    n_subjects: int
    n_objects: int
    entropy: float


@dataclass(frozen=True, slots=True)
class Majority:
    """P@1 of always saying the most frequent object, micro and macro, between 0 and 1."""

    micro: float
    macro: float


@dataclass(frozen=True, slots=True)
class PromptGain:
    """P@1 of prompt `after` less that of `before`, -1 to 1, on n test facts."""

    relation: str
    label: str
    before: str
    after: str
    gain: float
    n: int


@dataclass(frozen=True, slots=True)
class WeightedGain:
    """P@1 of optimised less Top1, -1 to 1. weights: (template, weight), the heaviest first."""

    relation: str
    label: str
    weights: tuple[tuple[str, float], ...]
    gain: float
    n: int


@dataclass(frozen=True, slots=True)
class MeanTransfer:
    """P@1 with a model's own weights and with another's, means over relations, between 0 and 1.

    n, n_uncertain: as in `analyses.Transfer`, of all relations together.
    """

    own: float
    other: float
    n_relations: int
    n: int
    n_uncertain: int


@dataclass(frozen=True, slots=True)
class WordChange:
    """Two prompts one word apart, the worse first, and what the change gains."""

    change: Change
    gain: PromptGain


def fact_statistics(facts: Sequence[Fact]) -> Statistics:
    """Of the facts of one relation. Source: table 1, whose entropies are of natural logarithms."""
    counts = Counter(fact.object for fact in facts)
    shares = [count / len(facts) for count in counts.values()]
    entropy = -sum(share * math.log(share) for share in shares)
    n_subjects = len({fact.subject for fact in facts})
    return Statistics(len(facts), n_subjects, len(counts), entropy)


def majority(objects: Sequence[str]) -> Majority:
    """Of the golds of one relation's facts. Source: section 5.1."""
    counts = Counter(objects)
    return Majority(max(counts.values()) / len(objects), 1 / len(counts))


def mined_gain(study: RelationStudy, combination: str = "mine") -> PromptGain | None:
    """Compare a combination's best prompt in training with the manual one. Source: table 4."""
    entries = enumerate(study.pool.entries)
    manual = next((at for at, entry in entries if "manual" in entry.origins), None)
    found = study.ensemble(combination, "top1")
    if manual is None or found is None or found[0].only_prompt is None:
        return None
    return prompt_gain(study, manual, found[0].only_prompt)


def prompt_gain(study: RelationStudy, before: int, after: int) -> PromptGain:
    """What prompt `after` gains over prompt `before`, both positions in the pool."""
    about, templates = study.relation, study.pool.templates
    gain = float(study.test_accuracies[after] - study.test_accuracies[before])
    texts = templates[before], templates[after]
    return PromptGain(about.name, about.label, *texts, gain, len(study.test))


def weighted_gain(study: RelationStudy, combination: str = "mine") -> WeightedGain | None:
    """Compare a combination's optimised ensemble with its Top1. Source: table 5."""
    top, optimised = (study.ensemble(combination, method) for method in ("top1", "optimised"))
    if top is None or optimised is None:
        return None
    known = zip(study.pool.templates, optimised[0].weights.tolist(), strict=True)
    weights = sorted((one for one in known if one[1] > 0), key=lambda one: -one[1])
    gain = precision_at(optimised[1]) - precision_at(top[1])
    about = study.relation
    return WeightedGain(about.name, about.label, tuple(weights), gain, len(study.test))


def word_changes(
    study: RelationStudy, combinations: Sequence[str] = ("mine+para", "man+para")
) -> list[WordChange]:
    """Pairs of prompts of one combination that are one word apart, the largest gain first.

    Signs count as words, the full stop at the end doesn't. Source: table 6.
    """
    texts = [_words(template) for template in study.pool.templates]
    accuracies = study.test_accuracies
    members = map(study.pool.members, combinations)
    pairs = {pair for known in members for pair in itertools.combinations(sorted(known), 2)}
    found = []
    for pair in sorted(pairs):
        before, after = sorted(pair, key=lambda one: accuracies[one])
        if edit_distance(texts[before], texts[after]) == 1:
            longer = len(texts[after].split()) - len(texts[before].split())
            change: Change = "insert" if longer > 0 else "delete" if longer < 0 else "update"
            found.append(WordChange(change, prompt_gain(study, before, after)))
    return sorted(found, key=lambda one: -one.gain.gain)


def edit_distances(study: RelationStudy, combination: str) -> list[int]:
    """Word edits between each two prompts of a combination. Source: section 5.2."""
    texts = [_words(study.pool.templates[prompt]) for prompt in study.pool.members(combination)]
    return [edit_distance(one, other) for one, other in itertools.combinations(texts, 2)]


def find_prompt(study: RelationStudy, text: str) -> int | None:
    """The position of the prompt that the paper writes as `text` ("x was born in y"), or None."""
    templates = enumerate(study.pool.templates)
    return next((at for at, template in templates if same_prompt(template, text)), None)


def same_prompt(template: str, text: str) -> bool:
    """Whether the paper writes a template as `text`: case and the full stop don't count."""
    marks = {"x": "[X]", "y": "[Y]"}
    written = " ".join(marks.get(word, word) for word in text.split())
    return _words(template).lower() == _words(written).lower()


def only_between(template: str) -> bool:
    """Whether all words of a prompt stand between [X] and [Y], as in every middle-word prompt."""
    words = _words(template).split()
    marks = {"[X]", "[Y]"}
    return {words[0], words[-1]} == marks


def mean_transfer(
    here: Sequence[RelationStudy], there: Sequence[RelationStudy], combination: str
) -> MeanTransfer | None:
    """The weights of one model's study on another's, over the relations that both have fitted.

    None where there is no such relation. Source: tables 12 and 13.
    """
    others = {one.relation.name: one for one in there if one.ensemble(combination, "optimised")}
    found = [
        transfer_weights(one, others[one.relation.name], combination)
        for one in here
        if one.relation.name in others and one.ensemble(combination, "optimised")
    ]
    if not found:
        return None
    return MeanTransfer(
        float(np.mean([one.own for one in found])),
        float(np.mean([one.other for one in found])),
        len(found),
        sum(one.n for one in found),
        sum(one.n_uncertain for one in found),
    )


def mean_curves(
    studies: Sequence[RelationStudy],
) -> dict[tuple[str, Combine], list[float]]:
    """P@1 of the K best prompts for K = 1, 2, ..., by combination and kind, between 0 and 1.

    Each K averages the relations that have so many prompts. Source: figures 2 and 5.
    """
    curves: dict[tuple[str, Combine], list[tuple[float, ...]]] = {}
    for study in studies:
        for name, kind, values in study.curves:
            curves.setdefault((name, kind), []).append(values)
    means = {}
    for key, found in curves.items():
        columns = zip_longest(*found)
        known = [[value for value in column if value is not None] for column in columns]
        means[key] = [sum(values) / len(values) for values in known]
    return means


def _words(template: str) -> str:
    """The template's words and signs with a space between, without the full stop at the end."""
    words = _PARTS.findall(template)
    return " ".join(words[:-1] if words[-1:] == ["."] else words)
