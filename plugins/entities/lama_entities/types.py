"""Types of entities, and the relations that fit a type: the plug-in's own data.

`relations.tsv` has a row for each relation of the starter facts and of LAMA (T-REx, Google-RE, and
ConceptNet's with a template): the types of its subjects and of its objects, the usual one first,
and constraints that the facts keep:

    single      a subject has one object only
    symmetric   (a, b) means (b, a)
    irreflexive nothing has itself as object
    inverse=R   (a, b) means (b, a) in R
    same=R      the relation R under another name; a card has one row for both
    within=R    the subject lies in the object: R of the subject is the object, or R of the object
    contains=R  the object lies in the subject: R of the object is the subject, or R of the subject

and aliases: other names that a model may give a relation when it lists facts. Two relations can
have the same one: "born" is the year or the place of birth.

`types.tsv` has a row for each type, and words for it: objects of P31 and IsA that tell the type of
their subject, and the candidates when a model is asked for the type ("X is a ___").
"""

import csv
import difflib
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cachetools import LRUCache, cached

from lama_core.datasets import Dataset
from lama_core.grouping import grouped
from lama_core.texts import ARTICLES, word_key, written_key
from lama_core.types import Relation

CLASSES = ("P31", "IsA")  # relations whose objects are words for types


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the facts of a relation keep; relation: R above, or empty."""

    kind: str
    relation: str = ""


@dataclass(frozen=True, slots=True)
class RelationTypes:
    """A row of relations.tsv; subjects, objects: types, the usual one first.

    aliases: other names of the relation.
    """

    relation: str
    label: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    aliases: tuple[str, ...]

    def constraint(self, kind: str) -> Constraint | None:
        """Return the constraint of a kind; None if the relation doesn't have it."""
        return next((one for one in self.constraints if one.kind == kind), None)

    @property
    def reversed(self) -> str:
        """The relation in which (b, a) follows from (a, b): the inverse, or itself; or empty."""
        inverse = self.constraint("inverse")
        return inverse.relation if inverse else self.relation * bool(self.constraint("symmetric"))


def _rows(name: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@cache
def relation_types() -> Mapping[str, RelationTypes]:
    """Return relation -> its types and constraints, in the order of a card's rows."""
    return {
        row["relation"]: RelationTypes(
            row["relation"],
            row["label"],
            tuple(row["subject"].split()),
            tuple(row["object"].split()),
            tuple(Constraint(*one.split("=")) for one in row["constraints"].split()),
            tuple(filter(None, row["aliases"].split("; "))),
        )
        for row in _rows("relations.tsv")
    }


@cache
def same_relations(relation: str) -> tuple[str, ...]:
    """Return all names of a relation, such as P19 and place_of_birth."""

    def main_name(row: RelationTypes) -> str:
        same = row.constraint("same")
        return same.relation if same else row.relation

    rows = relation_types()
    wanted = main_name(rows[relation])
    return tuple(name for name, row in rows.items() if main_name(row) == wanted)


@cache
def type_words() -> Mapping[str, tuple[str, ...]]:
    """Return type -> words for it, the usual one first."""
    return {row["type"]: tuple(row["words"].split()) for row in _rows("types.tsv")}


@cache
def type_of_word() -> Mapping[str, str]:
    """Return word (`texts.word_key`) -> the type that it means."""
    return {word_key(word): kind for kind, words in type_words().items() for word in words}


def relations_of(dataset: Dataset, kind: str) -> tuple[Relation, ...]:
    """Return the data set's relations that fit subjects of a type, in the order of the table.

    A relation needs a template. Of two names of one relation (`same`), the first is returned.
    """
    known = {one.name: one for one in dataset.relations if one.prompts}
    fitting = [
        row for row in relation_types().values() if kind in row.subjects and row.relation in known
    ]
    return tuple(
        known[row.relation]
        for row in fitting
        if (same := row.constraint("same")) is None or same.relation not in known
    )


def templates_of(dataset: Dataset) -> dict[str, str]:
    """Return each relation with a template -> its first one that none before it in the table has.

    Country, continent and region have the same first template: "[X] is located in [Y]."
    """
    known = {one.name: one for one in dataset.relations if one.prompts}
    found: dict[str, str] = {}
    for name in relation_types():
        if one := known.get(name):
            others = (template for template in one.templates if template not in found.values())
            found[name] = next(others, one.templates[0])
    return found


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity of a data set.

    Attributes:
        name: Its name as the data write it.
        types: Its types, the likeliest first.
        objects: Relation -> its objects as a subject, in file order; also under the relation's
            other names (`same`), and the subjects of which it is the object in the inverse or
            symmetric relation.
    """

    name: str
    types: tuple[str, ...]
    objects: Mapping[str, tuple[str, ...]]


def find_entity(dataset: Dataset, name: str, types: Collection[str] = ()) -> Entity | None:
    """Return an entity of a data set by its name; None if no subject or object has it.

    The type that most relations suggest comes first: each relation of which the entity is a subject
    (or an object) counts one, divided among the types of its subjects (objects); of P31 and IsA,
    the objects tell the type.

    Args:
        dataset: The data set.
        name: The name. Case, and an article before it, may differ from the data's.
        types: Of several names that differ so, one of such a type is preferred: "queen" as the
            object of "member of" is Queen. Then one in the same case, and a subject of facts: "dog"
            is "a dog".
    """
    index, bare = _index(dataset), _bare(name)
    found = [index.entity(spelling) for spelling in index.spellings.get(name_key(name), ())]

    def fit(one: Entity) -> tuple[bool | int, ...]:
        is_same = _bare(one.name) == bare
        has_type = one.types[0] in types
        return has_type, is_same, bool(one.objects), one.name == name, index.n_facts[one.name]

    return max(found, key=fit, default=None)


def written_name(word: str, found: Entity | None) -> str:
    """Return a model's word as the data write it, such as Oslo or the Netherlands.

    found: its entity in the data. An article is added only to a proper name ("the Netherlands"),
    not to a common noun ("a piano").
    """
    if found is None:
        return word
    is_same = word_key(found.name) == word_key(word)
    has_article = written_key(found.name).startswith("the ") and found.types[0] != "thing"
    return found.name if is_same or has_article else word


def similar_name(dataset: Dataset, name: str) -> str:
    """Return the most similar name in a data set to one that it doesn't have, or "".

    That is a name with all its words ("Mozart"), the one with most facts; else one with few other
    letters but the same first one.
    """
    index, key = _index(dataset), name_key(name)
    words = {*key.split()}
    longer = [names for one, names in index.spellings.items() if words < {*one.split()}]
    alike = [one for one in index.spellings if one[:1] == key[:1]]
    nearest = difflib.get_close_matches(key, alike, n=1, cutoff=0.85)
    longer = longer or [index.spellings[one] for one in nearest]
    return max((names[0] for names in longer), key=lambda one: index.n_facts[one], default="")


def entities_of(dataset: Dataset, kind: str) -> tuple[Entity, ...]:
    """Return the entities of a data set whose first type is this one, in file order."""
    index = _index(dataset)
    return tuple(one for one in map(index.entity, index.weights) if one.types[0] == kind)


def name_key(name: str) -> str:
    """Return a name for comparisons, which ignore case and an article before it."""
    return word_key(_bare(name))


def _bare(name: str) -> str:
    """Return a name without the article before it."""
    text = written_key(name)
    first, _, rest = text.partition(" ")
    return rest if rest and first in ARTICLES else text


@dataclass(frozen=True, slots=True)
class _Index:
    """The entities of a data set.

    Attributes:
        spellings: Key of a name without article -> the names with this key.
        weights: Name -> type -> number of relations that suggest it, in parts.
        objects: Name -> relation -> objects, in file order.
        n_facts: Name -> number of facts with it.
    """

    spellings: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, Mapping[str, float]]
    objects: Mapping[str, Mapping[str, tuple[str, ...]]]
    n_facts: Counter[str]

    def entity(self, name: str) -> Entity:
        weights = self.weights[name]
        types = tuple(sorted(weights, key=lambda kind: -weights[kind]))
        return Entity(name, types, self.objects.get(name, {}))


@cached(LRUCache(4), key=lambda dataset: dataset.digest, lock=threading.Lock())
def _index(dataset: Dataset) -> _Index:
    weights: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    objects: defaultdict[str, dict[str, dict[str, None]]] = defaultdict(dict)
    n_facts: Counter[str] = Counter()
    counted: defaultdict[str, set[object]] = defaultdict(set)
    for fact in dataset.facts:
        if (row := relation_types().get(fact.relation)) is None:
            continue
        for other in same_relations(fact.relation):
            objects[fact.subject].setdefault(other, {})[fact.object] = None
        if back := row.reversed:
            objects[fact.object].setdefault(back, {})[fact.subject] = None
        kind = type_of_word().get(word_key(fact.object)) if fact.relation in CLASSES else None
        types = (kind,) if kind else row.subjects
        for name, suggested in ((fact.subject, types), (fact.object, row.objects)):
            n_facts[name] += 1
            told = fact.relation, name is fact.subject, suggested
            for one in () if told in counted[name] else suggested:
                weights[name][one] += 1 / len(suggested)
            counted[name].add(told)
    spellings = grouped((name_key(name), name) for name in weights)
    return _Index(
        {key: tuple(names) for key, names in spellings.items()},
        weights,
        {name: {r: tuple(words) for r, words in rows.items()} for name, rows in objects.items()},
        n_facts,
    )
