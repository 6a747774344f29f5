"""LAMA's variants: UHN (unhelpful names), negated and misprimed queries.

UHN (Poerner et al. 2020, section 2): functions from a dataset to the filtered dataset and the
excluded facts. Facts keep their ids, so that runs on a dataset and on its variant can be paired.
Negated and misprimed (Kassner and Schütze 2020): functions from a query's text to the changed text;
a run uses them through its prompt set.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from lama_core.datasets.dataset import Dataset, make_dataset
from lama_core.types import Fact

# (cloze text with [MASK], k) -> the k most probable words, best first.
Guess = Callable[[str, int], Sequence[str]]

UHN_SOURCES = ("Google_RE", "TREx")
NAME_NOUNS = dict.fromkeys(("place_of_birth", "place_of_death", "P19", "P20"), "city") | {
    "P27": "country",
    "P103": "language",
    "P1412": "language",
}
NAME_PROMPT = "{name} is a common name in the following {noun} : [MASK] ."
NAME_TOP_K = 3

_AUXILIARY = re.compile(r"\b(is|was|are|were|can|will|must|should)\b(?! not\b)")
_VERB_AFTER_SUBJECT = re.compile(r"^\[X\] ([a-z]+)\b")
_PAST_VERBS = {"died": "die", "used": "use", "wrote": "write", "served": "serve", "won": "win"}
_IRREGULAR_VERBS = {"has": "have", "does": "do", "goes": "go"}


@dataclass(frozen=True, slots=True)
class Excluded:
    """A fact that a variant excludes, and why."""

    fact: Fact
    reason: str


# The filtered dataset, and the facts that it excludes.
Variant = tuple[Dataset, tuple[Excluded, ...]]


def uhn(dataset: Dataset, *, guess: Guess | None = None) -> Variant:
    """Return LAMA-UHN: the dataset without facts whose object can be guessed from the subject.

    The substring filter comes first, then, with a name guesser, the name filter. Only Google-RE and
    T-REx are filtered; facts of other sources are kept.
    """
    dataset, excluded = uhn_substring(dataset)
    if guess is None:
        return dataset, excluded
    dataset, also_excluded = uhn_names(dataset, guess)
    return dataset, excluded + also_excluded


def uhn_substring(dataset: Dataset) -> Variant:
    """Exclude facts whose lower-cased object is a substring of the lower-cased subject."""

    def reason(fact: Fact) -> str | None:
        if fact.source in UHN_SOURCES and fact.object.lower() in fact.subject.lower():
            return f"the object {fact.object!r} is part of the subject {fact.subject!r}"
        return None

    return _without(dataset, reason, "uhn-substring")


def uhn_names(dataset: Dataset, guess: Guess) -> Variant:
    """Exclude facts whose object can be guessed from a part of the subject's name.

    For place of birth and death, citizenship and languages, each word of the subject is put into
    "NAME is a common name in the following city : [MASK] ."; the fact is excluded if the object is
    among the `NAME_TOP_K` guesses (in the paper of all of bert-base-cased's vocabulary). Case is
    ignored, so that an uncased guesser works, too.
    Departure: Facts that names give away
    """

    @cache
    def guesses(text: str) -> frozenset[str]:
        return frozenset(word.strip().lower() for word in guess(text, NAME_TOP_K))

    def reason(fact: Fact) -> str | None:
        noun = NAME_NOUNS.get(fact.relation)
        if noun is None or fact.source not in UHN_SOURCES:
            return None
        for name in fact.subject.split():
            if fact.object.lower() in guesses(NAME_PROMPT.format(name=name, noun=noun)):
                return f"the object {fact.object!r} is guessed from the name {name!r}"
        return None

    return _without(dataset, reason, "uhn-names")


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


def _without(dataset: Dataset, reason: Callable[[Fact], str | None], variant: str) -> Variant:
    """Return the dataset without the facts that have a `reason`, and the excluded facts."""
    kept, excluded = [], []
    for fact in dataset.facts:
        why = reason(fact)
        if why is None:
            kept.append(fact)
        else:
            excluded.append(Excluded(fact, why))
    used = {fact.relation for fact in kept}
    changed = make_dataset(
        f"{dataset.name}+{variant}",
        [relation for relation in dataset.relations if relation.name in used],
        kept,
        dataset.report,
        licence=dataset.licence,
        citation=dataset.citation,
    )
    return changed, tuple(excluded)
