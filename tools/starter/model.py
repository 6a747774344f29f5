"""Data that the builders share: relations, facts with their origin, and word lists."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

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
    return tuple(msgspec.json.decode(line, type=Spec) for line in lines)


@dataclass(frozen=True, slots=True)
class StarterFact:
    """A fact from a source: name of its relation, subject, object and origin."""

    relation: str
    subject: str
    object: str
    origin: str


@cache
def words(name: str) -> frozenset[str]:
    """Return a list of words.

    words.txt: one token for BERT and SmolLM2; years need to be one only for BERT.
    bert_words.txt: lower-cased, one token in BERT's uncased vocabulary.
    """
    lines = (HERE / name).read_text("utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def order_key(*parts: str) -> str:
    """Return the SHA-256 of the parts: a key for a reproducible random order."""
    return hashlib.sha256("|".join(parts).encode()).hexdigest()
