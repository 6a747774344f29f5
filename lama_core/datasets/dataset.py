"""What every reader returns: a Dataset (or AnalogyDataset) and a ReadReport of what was left out.

A dataset is immutable, and its `digest` is the SHA-256 of its content (relations and facts in
order, not file names or formatting), so two copies of the same data give the same digest and a
run can name exactly what it was made from.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, Generic, Literal, TypeVar

import orjson

from lama_core.errors import UserError, did_you_mean
from lama_core.types import Fact, Relation

BLANK = "[MASK]"
# SQuAD has no relations; its questions count as one.
SQUAD_RELATION = "Squad"
# Of an answer space, and of one of its answers.
MAX_ANSWERS = 100_000
MAX_LETTERS = 300
MAX_REASON = 400  # characters of what is said of a line, which may quote it

Content = Literal["facts", "analogies", "prompts"]
AnalogyKind = Literal["inflectional", "derivational", "lexicographic", "encyclopedic"]
Named = TypeVar("Named", "Relation", "AnalogyRelation")

# What of a fact is in a dataset's digest.
_HASHED = attrgetter(
    "id",
    "subject",
    "relation",
    "object",
    "source",
    "sentences",
    "negated_sentences",
    "misprimed_sentences",
    "judgments",
)
# Also in the digest, but only where a fact has them: the digest of any other data stays the same.
_HASHED_IF_SET = ("aliases", "question", "popularity")


@dataclass(frozen=True, slots=True)
class Dropped:
    """One line that a reader left out. `line` counts from 1; 0 means the file as a whole."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        """`file, line n: reason`, as it is printed."""
        place = f"{self.file}, line {self.line}" if self.line else self.file
        reason = self.reason
        if len(reason) > MAX_REASON:
            reason = f"{reason[: MAX_REASON // 2]} ... {reason[-MAX_REASON // 2 :]}"
        return f"{place}: {reason}"


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What a reader left out (`dropped`) and what else is worth knowing (`notes`)."""

    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()

    def summary(self, *, limit: int = 10) -> str:
        """A few lines for a person: how many lines were dropped, the first `limit`, the notes."""
        lines = [f"{len(self.dropped)} line(s) left out"] if self.dropped else []
        lines += [f"  {dropped}" for dropped in self.dropped[:limit]]
        if len(self.dropped) > limit:
            lines.append(f"  ... and {len(self.dropped) - limit} more")
        return "\n".join([*lines, *self.notes])


class _OfRelations(Generic[Named]):
    """Data in relations: found by name, and chosen."""

    name: str
    relations: tuple[Named, ...]

    @cached_property
    def _by_name(self) -> dict[str, Named]:
        return {relation.name: relation for relation in self.relations}

    def relation(self, name: str) -> Named:
        """The relation called `name`. Raises UserError, with the nearest name, if there is none."""
        if name not in self._by_name:
            names = list(self._by_name)
            hint = did_you_mean(name, names) or f"; it has {', '.join(names[:50])}"
            raise UserError(f"{self.name!r} has no relation {name!r}{hint}")
        return self._by_name[name]

    def choose(self, names: Iterable[str]) -> tuple[Named, ...]:
        """The relations of these names, in the data's order, whatever theirs; () is all.

        Raises UserError for a name that there is none of.
        """
        wanted = {self.relation(name).name for name in names}
        return tuple(one for one in self.relations if not wanted or one.name in wanted)


@dataclass(frozen=True)
class Dataset(_OfRelations[Relation]):
    """A knowledge source: relations, their facts in file order, and the report of reading it.

    licence, citation: empty when the source doesn't say.
    """

    name: str
    relations: tuple[Relation, ...]
    facts: tuple[Fact, ...]
    report: ReadReport
    digest: str
    licence: str = ""
    citation: str = ""

    @cached_property
    def _facts_by_relation(self) -> dict[str, tuple[Fact, ...]]:
        grouped: dict[str, list[Fact]] = {}
        for fact in self.facts:
            grouped.setdefault(fact.relation, []).append(fact)
        return {name: tuple(facts) for name, facts in grouped.items()}

    def facts_of(self, relation_name: str) -> tuple[Fact, ...]:
        """The relation's facts in file order; empty if it has none."""
        return self._facts_by_relation.get(relation_name, ())

    def sources(self) -> tuple[str, ...]:
        """The knowledge sources in order of first appearance, such as `TREx`, `Squad`."""
        return tuple(dict.fromkeys(relation.source for relation in self.relations))

    def n_facts_by_source(self) -> dict[str, int]:
        """How many facts each knowledge source has."""
        return dict(Counter(fact.source for fact in self.facts))


@dataclass(frozen=True, slots=True)
class AnalogyRelation:
    """A relation of an analogy set, such as "country - capital".

    pairs: (head, tails); the first tail is the usual answer, the others are right too.
    one_to_many: some head has more than one tail. bidirectional: it also holds read backwards.
    """

    name: str
    kind: AnalogyKind
    pairs: tuple[tuple[str, tuple[str, ...]], ...]
    one_to_many: bool = False
    bidirectional: bool = False


@dataclass(frozen=True)
class AnalogyDataset(_OfRelations[AnalogyRelation]):
    """A set of analogy relations and the report of reading it."""

    name: str
    relations: tuple[AnalogyRelation, ...]
    report: ReadReport
    digest: str
    licence: str = ""
    citation: str = ""

    @property
    def n_pairs(self) -> int:
        """How many pairs all relations have together."""
        return sum(len(relation.pairs) for relation in self.relations)


def relation_objects(dataset: Dataset, relation_name: str) -> tuple[str, ...]:
    """The relation's different objects, in order of first appearance: the candidates `relation`.

    Raises UserError, with the nearest name, if there is no such relation.
    """
    dataset.relation(relation_name)
    return tuple(dict.fromkeys(fact.object for fact in dataset.facts_of(relation_name)))


def make_dataset(
    name: str,
    relations: Iterable[Relation],
    facts: Iterable[Fact],
    report: ReadReport,
    **about: str,
) -> Dataset:
    """A Dataset with its digest; about: its `licence` and `citation`."""
    relations, facts = tuple(relations), tuple(facts)
    return Dataset(name, relations, facts, report, facts_digest(relations, facts), **about)


def make_analogies(
    name: str, relations: Iterable[AnalogyRelation], report: ReadReport, **about: str
) -> AnalogyDataset:
    """An AnalogyDataset with its digest; about: its `licence` and `citation`."""
    relations = tuple(relations)
    digest = digest_of([one.name, one.kind, one.pairs] for one in relations)
    return AnalogyDataset(name, relations, report, digest, **about)


def facts_digest(relations: Iterable[Relation], facts: Iterable[Fact]) -> str:
    """SHA-256 (hex) of the relations and facts in order; the same whatever files they came from."""
    rows: list[Any] = []
    for relation in relations:
        prompts = [[p.template, p.origin, p.weight] for p in relation.prompts]
        row = [relation.name, relation.source, relation.type, prompts, relation.negated_template]
        rows.append([*row, relation.answers] if relation.answers else row)
    return digest_of(chain(rows, map(_hashed, facts)))


def _hashed(fact: Fact) -> tuple[Any, ...]:
    more = {name: getattr(fact, name) for name in _HASHED_IF_SET}
    known = {name: value for name, value in more.items() if value not in ((), "", None)}
    return (*_HASHED(fact), known) if known else _HASHED(fact)


def digest_of(rows: Iterable[Any]) -> str:
    """SHA-256 (hex) of rows of plain values, each as a line of JSON."""
    digest = hashlib.sha256()
    for row in rows:  # orjson refuses a lone surrogate; readers never let one in
        digest.update(orjson.dumps(row) + b"\n")
    return digest.hexdigest()
