"""What the builders pass to each other: relations, statements of fact, and word lists."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lama_core.types import RelationType

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """How a relation of the starter facts is phrased, and how many facts it may have.

    Names, labels and types follow Wikidata and ConceptNet as LAMA uses them; the phrasings are our
    own. statements: further phrasings that become a fact's cloze sentences; ten or more make the
    relation usable for LAMA's Figure 4 (average rank over ten sentences of one fact).
    limit: at most so many facts. per_object: at most so many of one object.
    single_words: `common` (objects are one token in BERT's and SmolLM2's vocabularies) or `bert`.
    """

    relation: str
    source: str
    label: str
    type: RelationType
    template: str
    negated: str
    paraphrases: tuple[str, ...]
    statements: tuple[str, ...] = ()
    limit: int = 400
    per_object: int = 400
    single_words: str = "common"


@cache
def specs() -> tuple[Spec, ...]:
    """The starter relations, a line each of `hand/relations.jsonl`."""
    lines = (HERE / "hand" / "relations.jsonl").read_text("utf-8").splitlines()
    rows = ({name: _tuples(value) for name, value in json.loads(line).items()} for line in lines)
    return tuple(Spec(**row) for row in rows)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Stated:
    """One fact as a builder states it: relation's name, subject, object and where it is from."""

    relation: str
    subject: str
    object: str
    origin: str


@cache
def known_words() -> frozenset[str]:
    """Words (and years) that common vocabularies have as one token; see `words.txt`."""
    return _words("words.txt")


@cache
def bert_words() -> frozenset[str]:
    """Lower-cased words that BERT's uncased vocabulary has as one token."""
    return _words("bert_words.txt")


def _words(name: str) -> frozenset[str]:
    lines = (HERE / name).read_text("utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def order_key(*parts: str) -> str:
    """A key that shuffles the same way each time: SHA-256 of the parts."""
    return hashlib.sha256("|".join(parts).encode()).hexdigest()


def at_most(facts: Iterable[Stated], limit: int) -> list[Stated]:
    """The facts of as many subjects as fit in `limit`, subjects drawn by `order_key`.

    Subjects stay whole, because filtered ranking needs all valid objects of a subject.
    """
    by_subject: defaultdict[str, list[Stated]] = defaultdict(list)
    for fact in facts:
        by_subject[fact.subject].append(fact)
    kept: list[Stated] = []
    for subject in sorted(by_subject, key=lambda s: order_key(by_subject[s][0].relation, s)):
        if len(kept) + len(by_subject[subject]) <= limit:
            kept += by_subject[subject]
    return kept


def at_most_per_object(facts: Iterable[Stated], limit: int) -> list[Stated]:
    """At most `limit` facts of each object, drawn by `order_key`, so that none dominates."""
    by_object: defaultdict[str, list[Stated]] = defaultdict(list)
    for fact in facts:
        by_object[fact.object].append(fact)
    kept: list[Stated] = []
    for group in by_object.values():
        group.sort(key=lambda fact: order_key(fact.relation, fact.subject))
        kept += group[:limit]
    return kept
