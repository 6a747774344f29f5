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
_AUXILIARY = re.compile(r"\b(is|was|are|were|can|will|must|should)\b(?! not\b)")
_VERB_AFTER_SUBJECT = re.compile(r"^\[X\] ([a-z]+)\b")
_PAST_VERBS = {"died": "die", "used": "use", "wrote": "write", "served": "serve", "won": "win"}
_IRREGULAR_VERBS = {"has": "have", "does": "do", "goes": "go"}


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
    if re.search(r"\b(not|cannot|never)\b", template):
        return None
    auxiliary = _AUXILIARY.search(template)
    if auxiliary:
        return f"{template[: auxiliary.end()]} not{template[auxiliary.end() :]}"
    verb = _VERB_AFTER_SUBJECT.match(template)
    if verb is None:
        return None
    word, rest = verb[1], template[verb.end() :]
    if word in _PAST_VERBS:
        return f"[X] did not {_PAST_VERBS[word]}{rest}"
    if word in _IRREGULAR_VERBS:
        return f"[X] does not {_IRREGULAR_VERBS[word]}{rest}"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return f"[X] does not {word[:-2]}{rest}"
    if word.endswith("s") and not word.endswith("ss"):
        return f"[X] does not {word[:-1]}{rest}"
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
