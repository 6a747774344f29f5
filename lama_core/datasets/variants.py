"""LAMA's variants as functions: a dataset in, a dataset and the excluded facts out.

UHN: Poerner et al. 2020, section 2. Negated and misprimed: Kassner and Schütze 2020. Facts keep
their ids, so that runs on a dataset and on its variant can be paired fact by fact.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lama_core.datasets.base import BLANK, Dataset, make_dataset
from lama_core.types import Fact, Prompt, Relation

# Called with a cloze text (blank written [MASK]) and k: the k most probable words, best first.
Guess = Callable[[str, int], Sequence[str]]

UHN_SOURCES = ("Google_RE", "TREx")
NAME_NOUNS = {
    "place_of_birth": "city",
    "place_of_death": "city",
    "P19": "city",
    "P20": "city",
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
    """A fact that a variant leaves out, and why."""

    fact: Fact
    reason: str


# The changed dataset, and the facts that aren't in it.
Variant = tuple[Dataset, tuple[Excluded, ...]]


def uhn(dataset: Dataset, *, guess: Guess | None = None) -> Variant:
    """LAMA-UHN: without facts whose object the subject's name gives away.

    First the substring filter, then, with a name guesser, the name filter. Only Google-RE and
    T-REx are filtered; facts of other sources stay.
    """
    dataset, excluded = uhn_substring(dataset)
    if guess is None:
        return dataset, excluded
    dataset, also_excluded = uhn_names(dataset, guess)
    return dataset, excluded + also_excluded


def uhn_substring(dataset: Dataset) -> Variant:
    """Without facts whose lower-cased object is a substring of the lower-cased subject."""

    def reason(fact: Fact) -> str | None:
        if fact.source in UHN_SOURCES and fact.object.lower() in fact.subject.lower():
            return f"the object {fact.object!r} stands in the subject {fact.subject!r}"
        return None

    return _without(dataset, reason, "uhn-substring")


def uhn_names(dataset: Dataset, guess: Guess, *, top_k: int = NAME_TOP_K) -> Variant:
    """Without facts whose object is guessed from a part of the subject's name.

    For place of birth and death, citizenship and languages, each whitespace part of the subject is
    put into "NAME is a common name in the following city : [MASK] ."; the fact goes when the object
    is among the `top_k` guesses (of the whole vocabulary of bert-base-cased in the paper). Case is
    ignored, so that an uncased guesser works too.
    """
    guessed: dict[str, frozenset[str]] = {}

    def guesses(text: str) -> frozenset[str]:
        if text not in guessed:
            guessed[text] = frozenset(word.strip().lower() for word in guess(text, top_k))
        return guessed[text]

    def reason(fact: Fact) -> str | None:
        noun = NAME_NOUNS.get(fact.relation)
        if noun is None or fact.source not in UHN_SOURCES:
            return None
        for name in fact.subject.split():
            if fact.object.lower() in guesses(NAME_PROMPT.format(name=name, noun=noun)):
                return f"the object {fact.object!r} is guessed from the name {name!r}"
        return None

    return _without(dataset, reason, "uhn-names")


def negated(dataset: Dataset) -> Variant:
    """Each template and sentence replaced by its negation; the gold stays the same.

    A relation uses its `negated_template`, else the negation that `negate_template` makes of its
    manual template; a fact uses its `negated_sentences`. Facts with neither are excluded.
    """
    relations = [_negated_relation(relation) for relation in dataset.relations]
    has_template = {relation.name for relation in relations if relation.prompts}
    facts, excluded = [], []
    for fact in dataset.facts:
        if fact.negated_sentences or fact.relation in has_template:
            facts.append(replace(fact, sentences=fact.negated_sentences, negated_sentences=()))
        else:
            reason = f"{fact.relation} has no negated template and the fact no negated sentence"
            excluded.append(Excluded(fact, reason))
    return _named(dataset, relations, facts, "negated"), tuple(excluded)


def negate_template(template: str) -> str | None:
    """The template with its verb negated, or None where the rules don't reach.

    "is", "can" and their like get a "not" (unless one stands there); a verb right after [X] gets
    "does not" or "did not".
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


def misprimed(dataset: Dataset, *, words: Sequence[str] = (), seed: int = 0) -> Variant:
    """ "WORD? " before every query, with a word that is wrong.

    words: where to draw from; without them, the other objects of the relation that aren't right
    for the subject. The draw depends on the fact's id and `seed` only. Each fact's query becomes a
    sentence of its own, because the word differs by fact; a fact that brings misprimed sentences
    keeps those. Facts without a query or without a wrong word are excluded.
    """
    right: dict[tuple[str, str], set[str]] = {}
    for fact in dataset.facts:
        right.setdefault((fact.relation, fact.subject), set()).add(fact.object)
    objects = {
        relation.name: sorted({fact.object for fact in dataset.facts_of(relation.name)})
        for relation in dataset.relations
    }
    facts, excluded = [], []
    by_name = {relation.name: relation for relation in dataset.relations}
    for fact in dataset.facts:
        sentences = fact.misprimed_sentences
        if not sentences:
            queries = _queries(by_name[fact.relation], fact)
            pool = words or objects[fact.relation]
            word = _wrong_word(pool, right[fact.relation, fact.subject], f"{seed}:{fact.id}")
            if not queries:
                excluded.append(Excluded(fact, "it has neither template nor sentence"))
                continue
            if word is None:
                reason = f"{fact.relation} has no other object to mislead with"
                excluded.append(Excluded(fact, reason))
                continue
            prime = word[0].upper() + word[1:]
            sentences = tuple(f"{prime}? {query}" for query in queries)
        facts.append(replace(fact, sentences=sentences, misprimed_sentences=()))
    relations = [replace(relation, prompts=()) for relation in dataset.relations]
    return _named(dataset, relations, facts, "misprimed"), tuple(excluded)


def statements(dataset: Dataset) -> Variant:
    """Facts asked by their own sentences instead of templates; those without any are excluded."""
    facts, excluded = [], []
    for fact in dataset.facts:
        if fact.sentences:
            facts.append(fact)
        else:
            excluded.append(Excluded(fact, "it has no sentence of its own"))
    relations = [replace(relation, prompts=()) for relation in dataset.relations]
    return _named(dataset, relations, facts, "statements"), tuple(excluded)


VARIANTS: dict[str, Callable[[Dataset], Variant]] = {
    "uhn-substring": uhn_substring,
    "negated": negated,
    "misprimed": misprimed,
    "statements": statements,
}


def _wrong_word(pool: Sequence[str], right: set[str], seed: str) -> str | None:
    """A word of `pool` that isn't right, drawn by `seed`; None if there is none."""
    if right.issuperset(pool):
        return None
    draw = random.Random(seed)
    while (word := draw.choice(pool)) in right:
        pass
    return word


def _queries(relation: Relation, fact: Fact) -> tuple[str, ...]:
    """The fact's manual query, else its sentences."""
    if relation.prompts:
        template = relation.prompts[0].template
        return (template.replace("[X]", fact.subject).replace("[Y]", BLANK),)
    return fact.sentences


def _negated_relation(relation: Relation) -> Relation:
    template = relation.negated_template
    if template is None and relation.prompts:
        template = negate_template(relation.prompts[0].template)
    prompts = (Prompt(template, "negated"),) if template else ()
    return replace(relation, prompts=prompts, negated_template=None)


def _without(
    dataset: Dataset, reason: Callable[[Fact], str | None], variant: str
) -> tuple[Dataset, tuple[Excluded, ...]]:
    kept, excluded = [], []
    for fact in dataset.facts:
        why = reason(fact)
        if why is None:
            kept.append(fact)
        else:
            excluded.append(Excluded(fact, why))
    return _named(dataset, dataset.relations, kept, variant), tuple(excluded)


def _named(
    dataset: Dataset, relations: Sequence[Relation], facts: Sequence[Fact], variant: str
) -> Dataset:
    """The changed dataset; relations that lost all their facts are left out."""
    used = {fact.relation for fact in facts}
    return make_dataset(
        f"{dataset.name}+{variant}",
        [relation for relation in relations if relation.name in used],
        facts,
        dataset.report,
        licence=dataset.licence,
        citation=dataset.citation,
    )
