"""Data that the builders share: relations, facts with their origin, and word lists."""

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
    """The phrasings of a relation of the starter facts, and limits for its facts.

    Names, labels and types follow Wikidata and ConceptNet as LAMA uses them; the phrasings were
    written for this project.

    Attributes:
        statements: Further phrasings for a fact's cloze sentences. With ten or more phrasings, the
            relation can be used for LAMA's Figure 4 (average rank over ten sentences of a fact).
        limit: Maximum number of facts.
        per_object: Maximum number of facts with the same object.
        single_words: `common` (objects are one token for BERT and SmolLM2) or `bert` (for BERT).
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
    """Return the starter relations of `hand/relations.jsonl`."""
    lines = (HERE / "hand" / "relations.jsonl").read_text("utf-8").splitlines()
    rows = ({name: _tuples(value) for name, value in json.loads(line).items()} for line in lines)
    return tuple(Spec(**row) for row in rows)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class StarterFact:
    """A fact from a source: name of its relation, subject, object and origin."""

    relation: str
    subject: str
    object: str
    origin: str


@cache
def known_words() -> frozenset[str]:
    """Return words that are one token for BERT and SmolLM2; years need to be one only for BERT."""
    return _words("words.txt")


@cache
def bert_words() -> frozenset[str]:
    """Return lower-cased words that are one token in BERT's uncased vocabulary."""
    return _words("bert_words.txt")


def _words(name: str) -> frozenset[str]:
    lines = (HERE / name).read_text("utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def order_key(*parts: str) -> str:
    """Return the SHA-256 of the parts: a key for a reproducible random order."""
    return hashlib.sha256("|".join(parts).encode()).hexdigest()


def at_most(facts: Iterable[StarterFact], limit: int) -> list[StarterFact]:
    """Return at most `limit` facts; subjects are drawn in the random order of `order_key`.

    All facts of a subject are kept or none: filtered ranking needs all valid objects of a subject.
    """
    by_subject: defaultdict[str, list[StarterFact]] = defaultdict(list)
    for fact in facts:
        by_subject[fact.subject].append(fact)
    kept: list[StarterFact] = []
    for subject in sorted(by_subject, key=lambda s: order_key(by_subject[s][0].relation, s)):
        if len(kept) + len(by_subject[subject]) <= limit:
            kept += by_subject[subject]
    return kept


def at_most_per_object(facts: Iterable[StarterFact], limit: int) -> list[StarterFact]:
    """Return at most `limit` facts of each object, in the random order of `order_key`."""
    by_object: defaultdict[str, list[StarterFact]] = defaultdict(list)
    for fact in facts:
        by_object[fact.object].append(fact)
    kept: list[StarterFact] = []
    for group in by_object.values():
        group.sort(key=lambda fact: order_key(fact.relation, fact.subject))
        kept += group[:limit]
    return kept
