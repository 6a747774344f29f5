"""LAMA's variants: UHN (unhelpful names), negated and misprimed queries.

UHN (Poerner et al. 2020, section 2): a function from a dataset to the filtered dataset. Facts keep
their ids, so that runs on a dataset and on its variant can be paired.
Negated and misprimed (Kassner and Schütze 2020): functions from a query's text to the changed text;
a run uses them through its prompt set.
"""

import random
import re
from collections.abc import Sequence

from lama_core.datasets.dataset import Dataset, make_dataset

UHN_SOURCES = ("Google_RE", "TREx")
# A template and its negation, of the first pattern that it has; None if the rules don't cover it.
_NEGATIONS: dict[str, str | None] = {
    r"\b(?:not|cannot|never)\b": None,
    r"\b(?:is|was|are|were|can|will|must|should)\b": r"\g<0> not",
    r"^\[X\] died\b": "[X] did not die",
    r"^\[X\] used\b": "[X] did not use",
    r"^\[X\] wrote\b": "[X] did not write",
    r"^\[X\] served\b": "[X] did not serve",
    r"^\[X\] won\b": "[X] did not win",
    r"^\[X\] has\b": "[X] does not have",
    r"^\[X\] does\b": "[X] does not do",
    r"^\[X\] goes\b": "[X] does not go",
    r"^\[X\] ([a-z]*(?:ch|sh|ss|x))es\b": r"[X] does not \1",
    r"^\[X\] ([a-z]*(?<!s))s\b": r"[X] does not \1",
}


def uhn_substring(dataset: Dataset) -> Dataset:
    """Return the dataset without facts whose subject contains the object, ignoring case.

    Only Google-RE and T-REx are filtered; facts of other sources are kept.
    Departure: Facts that names give away
    """
    kept = [
        fact
        for fact in dataset.facts
        if fact.source not in UHN_SOURCES or fact.object.lower() not in fact.subject.lower()
    ]
    used = {fact.relation for fact in kept}
    return make_dataset(
        f"{dataset.name}+uhn-substring",
        [relation for relation in dataset.relations if relation.name in used],
        kept,
        dataset.report,
        licence=dataset.licence,
        citation=dataset.citation,
    )


def negate_template(template: str) -> str | None:
    """Return the template with its verb negated, or None if the rules don't cover it.

    "is", "can" and other auxiliaries get a "not"; a verb right after [X] gets "does not" or
    "did not". A template that is negative already isn't covered.
    Departure: Negated and misprimed queries
    """
    for pattern, negation in _NEGATIONS.items():
        if re.search(pattern, template):
            return negation and re.sub(pattern, negation, template, count=1)
    return None


def misprime(query: str, word: str) -> str:
    """Return the query with "WORD? " prepended (Kassner and Schütze 2020, section 2)."""
    return f"{word[:1].upper()}{word[1:]}? {query}"


def wrong_word(pool: Sequence[str], right: set[str], fact_id: str) -> str | None:
    """Draw a wrong word from `pool`, with the fact's id as seed; None if all are right.

    Departure: Negated and misprimed queries
    """
    if right.issuperset(pool):
        return None
    draw = random.Random(f"0:{fact_id}")
    while (word := draw.choice(pool)) in right:
        pass
    return word
