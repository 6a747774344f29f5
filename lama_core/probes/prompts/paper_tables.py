"""Tables and figures of the paper other than the scores (Jiang et al. 2020, sections 5 and 6).

statistics    number of pairs, unique subjects and objects; entropy of the objects (table 1)
majority      baseline that always answers the relation's most frequent object: micro accuracy
              max count / n, macro accuracy 1 / unique objects
gains         differences of P@1 on the test facts: best mined prompt minus manual prompt (table
              4), optimised ensemble minus best prompt (table 5), change of one word (table 6)
transfer      one model's prompt weights applied to another, mean over relations (tables 12, 13)
curves        P@1 of the K best prompts, mean over the relations with at least K (figures 2, 5)
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

from lama_core.grouping import grouped
from lama_core.metrics.precision_at_k import precision_at
from lama_core.probes.prompts.analyses import edit_distance, transfer_weights
from lama_core.probes.prompts.mining import WORD
from lama_core.probes.prompts.published_scores import Averaging
from lama_core.probes.prompts.selection import Combine
from lama_core.probes.prompts.study import RelationStudy
from lama_core.types import Fact

_PARTS = re.compile(rf"\[X\]|\[Y\]|{WORD.pattern}")
Change = Literal["update", "insert", "delete"]


@dataclass(frozen=True, slots=True)
class PromptGain:
    """P@1 of prompt `after` minus P@1 of prompt `before`, -1 to 1, on n test facts."""

    relation: str
    label: str
    before: str
    after: str
    gain: float
    n: int


@dataclass(frozen=True, slots=True)
class WeightedGain:
    """P@1 of the optimised ensemble minus Top1, -1 to 1, on n test facts.

    weights: (template, weight), from highest to lowest weight.
    """

    relation: str
    label: str
    weights: tuple[tuple[str, float], ...]
    gain: float
    n: int


@dataclass(frozen=True, slots=True)
class MeanTransfer:
    """Mean P@1 over relations, 0 to 1, with prompt weights fitted on this and another model.

    The fields are as in `analyses.Transfer`; n and n_uncertain are sums over relations.
    """

    own: float
    other: float
    n_relations: int
    n: int
    n_uncertain: int


def fact_statistics(facts: Sequence[Fact]) -> dict[str, float]:
    """Return the properties of one relation's facts in table 1; entropies are in nats."""
    counts = Counter(fact.object for fact in facts)
    shares = [count / len(facts) for count in counts.values()]
    return {
        "subject-object pairs": len(facts),
        "unique subjects": len({fact.subject for fact in facts}),
        "unique objects": len(counts),
        "object entropy": -sum(share * math.log(share) for share in shares),
    }


def majority(objects: Sequence[str]) -> dict[Averaging, float]:
    """Return P@1 of always answering the most frequent object, between 0 and 1.

    Source: section 5.1.
    """
    counts = Counter(objects)
    return {"micro": max(counts.values()) / len(objects), "macro": 1 / len(counts)}


def mined_gain(study: RelationStudy, combination: str = "mine") -> PromptGain | None:
    """Return the gain over the manual prompt of a combination's best prompt on the training facts.

    Returns None if the study lacks either prompt. Source: table 4.
    """
    manual = study.pool.manual
    top = study.ensemble(combination, "top1")
    if manual is None or top is None or top[0].only_prompt is None:
        return None
    return prompt_gain(study, manual, top[0].only_prompt)


def prompt_gain(study: RelationStudy, before: int, after: int) -> PromptGain:
    """Return the gain of prompt `after` over prompt `before`, given by position in the pool."""
    relation, templates = study.relation, study.pool.templates
    return PromptGain(
        relation.name,
        relation.label,
        templates[before],
        templates[after],
        float(study.test_accuracies[after] - study.test_accuracies[before]),
        len(study.test),
    )


def weighted_gain(study: RelationStudy, combination: str = "mine") -> WeightedGain | None:
    """Return the gain of a combination's optimised ensemble over its Top1. Source: table 5."""
    top, optimised = (study.ensemble(combination, method) for method in ("top1", "optimised"))
    if top is None or optimised is None:
        return None
    weighted = zip(study.pool.templates, optimised[0].weights.tolist(), strict=True)
    weights = sorted((pair for pair in weighted if pair[1] > 0), key=lambda pair: -pair[1])
    gain = precision_at(optimised[1]) - precision_at(top[1])
    return WeightedGain(
        study.relation.name, study.relation.label, tuple(weights), gain, len(study.test)
    )


def word_changes(
    study: RelationStudy, combinations: Sequence[str] = ("mine+para", "man+para")
) -> list[tuple[Change, PromptGain]]:
    """Return the changes of one word that turn a prompt into a better one, best gain first.

    Both prompts are of one combination. Punctuation marks count as words, except for the final
    full stop. Source: table 6.
    """
    texts = [_words(template) for template in study.pool.templates]
    pools = map(study.pool.members, combinations)
    pairs = {pair for members in pools for pair in itertools.combinations(sorted(members), 2)}
    changes = []
    for pair in sorted(pairs):
        before, after = sorted(pair, key=study.test_accuracies.__getitem__)
        if edit_distance(texts[before], texts[after]) == 1:
            longer = len(texts[after].split()) - len(texts[before].split())
            change: Change = "insert" if longer > 0 else "delete" if longer < 0 else "update"
            changes.append((change, prompt_gain(study, before, after)))
    return sorted(changes, key=lambda found: -found[1].gain)


def edit_distances(study: RelationStudy, combination: str) -> list[int]:
    """Return the number of word edits between all pairs of prompts. Source: section 5.2."""
    texts = [_words(study.pool.templates[prompt]) for prompt in study.pool.members(combination)]
    return [edit_distance(first, second) for first, second in itertools.combinations(texts, 2)]


def find_prompt(study: RelationStudy, text: str) -> int | None:
    """Return the position of the prompt printed as `text` ("x was born in y"), or None."""
    templates = enumerate(study.pool.templates)
    return next((number for number, template in templates if same_prompt(template, text)), None)


def same_prompt(template: str, text: str) -> bool:
    """Return whether the paper prints a template as `text`, except for case and full stop."""
    marks = {"x": "[X]", "y": "[Y]"}
    printed = " ".join(marks.get(word, word) for word in text.split())
    return _words(template).lower() == _words(printed).lower()


def only_between(template: str) -> bool:
    """Return whether all words of a prompt are between [X] and [Y], as in middle-word prompts."""
    words = _words(template).split()
    return {words[0], words[-1]} == {"[X]", "[Y]"}


def mean_transfer(
    here: Sequence[RelationStudy], there: Sequence[RelationStudy], combination: str
) -> MeanTransfer | None:
    """Return mean P@1 of the studies `here`, with prompt weights from `here` and from `there`.

    Covers the relations for which both models have an optimised ensemble of this combination;
    None if there are none. Source: tables 12 and 13.
    """
    others = {one.relation.name: one for one in there if one.ensemble(combination, "optimised")}
    transfers = [
        transfer_weights(study, others[study.relation.name], combination)
        for study in here
        if study.relation.name in others and study.ensemble(combination, "optimised")
    ]
    if not transfers:
        return None
    return MeanTransfer(
        float(np.mean([transfer.own for transfer in transfers])),
        float(np.mean([transfer.other for transfer in transfers])),
        len(transfers),
        sum(transfer.n for transfer in transfers),
        sum(transfer.n_uncertain for transfer in transfers),
    )


def mean_curves(studies: Sequence[RelationStudy]) -> dict[tuple[str, Combine], list[float]]:
    """Return P@1 of the K best prompts for K = 1, 2, ..., by combination and way to combine.

    Values are between 0 and 1. Each K averages over the relations with at least K prompts.
    Source: figures 2 and 5.
    """
    curves = grouped(
        ((name, combine), values) for study in studies for name, combine, values in study.curves
    )
    means = {}
    for key, of_relations in curves.items():
        by_k = zip_longest(*of_relations)
        present = [[value for value in values if value is not None] for values in by_k]
        means[key] = [sum(values) / len(values) for values in present]
    return means


def _words(template: str) -> str:
    """Return the words and punctuation, separated by spaces, without the final full stop."""
    words = _PARTS.findall(template)
    return " ".join(words[:-1] if words[-1:] == ["."] else words)
