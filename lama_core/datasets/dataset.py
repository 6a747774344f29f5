"""Facts, analogies and questions as the readers return them, with a report of excluded lines.

A dataset is immutable. Its `digest` is the SHA-256 of its content (relations and facts in order,
not file names or formatting): copies of the same data have the same digest, by which a run
identifies its data.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar, Generic, Literal, TypeVar

import orjson

from lama_core.errors import UserError, did_you_mean
from lama_core.grouping import grouped
from lama_core.rounding import counted
from lama_core.types import Fact, Relation

BLANK = "[MASK]"
# SQuAD has no relations; its questions count as one relation.
SQUAD_RELATION = "Squad"
MAX_ANSWERS = 100_000  # of an answer space
MAX_LETTERS = 300  # of an answer
MAX_WORD = 100  # characters of a word of an analogy
MAX_REASON = 400  # printed characters of a reason, which may quote the line

Content = Literal["facts", "analogies", "prompts", "questions"]
AnalogyRelationKind = Literal["inflectional", "derivational", "lexicographic", "encyclopedic"]
Pair = tuple[str, str]
Named = TypeVar("Named", "Relation", "AnalogyRelation")

# The fields of a fact that a dataset's digest covers.
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
# In the digest only if a fact has them, so that the digest of data without them stays the same.
_HASHED_IF_SET = ("aliases", "question", "popularity", "templates")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A line that a reader dropped. `line` counts from 1; 0 means the whole file."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        """Return `file, line n: reason`; a long reason is shortened in the middle."""
        place = f"{self.file}, line {self.line}" if self.line else self.file
        reason = self.reason
        if len(reason) > MAX_REASON:
            reason = f"{reason[: MAX_REASON // 2]} ... {reason[-MAX_REASON // 2 :]}"
        return f"{place}: {reason}"


@dataclass(frozen=True, slots=True)
class ReadReport:
    """The lines that a reader dropped, and notes on the rest of the data."""

    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()

    def summary(self, *, limit: int = 10) -> str:
        """Return the number of excluded lines, the first `limit` of them, and the notes."""
        lines = [f"{counted(len(self.dropped), 'line')} excluded"] if self.dropped else []
        lines += [f"  {dropped}" for dropped in self.dropped[:limit]]
        if len(self.dropped) > limit:
            lines.append(f"  ... and {len(self.dropped) - limit} more")
        return "\n".join([*lines, *self.notes])


class _OfRelations(Generic[Named]):
    """Data with relations, which can be looked up and chosen by name."""

    name: str
    relations: tuple[Named, ...]

    @cached_property
    def _by_name(self) -> dict[str, Named]:
        return {relation.name: relation for relation in self.relations}

    def relation(self, name: str) -> Named:
        """Return the relation `name`. Raises UserError, with the nearest name, if unknown."""
        if name not in self._by_name:
            names = list(self._by_name)
            hint = did_you_mean(name, names) or f"; it has {', '.join(names[:50])}"
            raise UserError(f"{self.name!r} has no relation {name!r}{hint}")
        return self._by_name[name]

    def choose(self, names: Iterable[str]) -> tuple[Named, ...]:
        """Return the relations with these names, in the dataset's order; all if none is named.

        Raises UserError for an unknown name.
        """
        wanted = {self.relation(name).name for name in names}
        return tuple(rel for rel in self.relations if not wanted or rel.name in wanted)


@dataclass(frozen=True, kw_only=True)
class _ReadData:
    """Fields that a reader returns with any data: the report, the digest, and how to cite them.

    licence, citation: empty if unknown.
    """

    report: ReadReport
    digest: str
    licence: str = ""
    citation: str = ""


@dataclass(frozen=True)
class Dataset(_OfRelations[Relation], _ReadData):
    """A knowledge source: relations, their facts in file order, and the report of reading it."""

    item: ClassVar[str] = "fact"  # what `n_items` counts

    name: str
    relations: tuple[Relation, ...]
    facts: tuple[Fact, ...]

    def __repr__(self) -> str:
        """Return the name and the numbers of relations and facts; the facts are too many."""
        n_facts = counted(len(self.facts), "fact")
        return f"Dataset({self.name!r}: {counted(len(self.relations), 'relation')}, {n_facts})"

    @property
    def n_items(self) -> int:
        """The number of facts."""
        return len(self.facts)

    @cached_property
    def _facts_by_relation(self) -> dict[str, tuple[Fact, ...]]:
        by_relation = grouped((fact.relation, fact) for fact in self.facts)
        return {name: tuple(facts) for name, facts in by_relation.items()}

    def facts_of(self, relation_name: str) -> tuple[Fact, ...]:
        """Return the relation's facts in file order; empty if it has none."""
        return self._facts_by_relation.get(relation_name, ())

    def sources(self) -> tuple[str, ...]:
        """Return the sources (`TREx`, `Squad`, ...) in order of first appearance."""
        return tuple(dict.fromkeys(relation.source for relation in self.relations))

    def n_facts_by_source(self) -> dict[str, int]:
        """Return the number of facts of each source."""
        return dict(Counter(fact.source for fact in self.facts))


@dataclass(frozen=True, slots=True)
class AnalogyRelation:
    """A relation of an analogy set, such as "country - capital".

    pairs: (head, tails); the first tail is the usual answer, the others are right, too.
    one_to_many: some heads have several tails. bidirectional: the relation is symmetric.
    """

    name: str
    kind: AnalogyRelationKind
    pairs: tuple[tuple[str, tuple[str, ...]], ...]
    one_to_many: bool = False
    bidirectional: bool = False


@dataclass(frozen=True)
class AnalogyDataset(_OfRelations[AnalogyRelation], _ReadData):
    """A set of analogy relations and the report of reading it."""

    item: ClassVar[str] = "pair"

    name: str
    relations: tuple[AnalogyRelation, ...]

    @property
    def n_items(self) -> int:
        """The number of pairs of all relations."""
        return sum(len(relation.pairs) for relation in self.relations)


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """A multiple-choice analogy question.

    stem: The pair in the question. choices: Two or more pairs. answer: Index of the first choice
    that is right. group: Such as the question's level; may be empty.
    """

    stem: Pair
    choices: tuple[Pair, ...]
    answer: int
    group: str = ""


@dataclass(frozen=True)
class QuestionDataset(_ReadData):
    """Multiple-choice analogy questions and the report of reading them."""

    item: ClassVar[str] = "question"

    name: str
    questions: tuple[ChoiceQuestion, ...]

    @property
    def n_items(self) -> int:
        """The number of questions."""
        return len(self.questions)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of questions, in order of first appearance."""
        return tuple(dict.fromkeys(question.group for question in self.questions))


AnyDataset = Dataset | AnalogyDataset | QuestionDataset
ITEMS: dict[Content, str] = {
    "facts": Dataset.item,
    "prompts": Dataset.item,
    "analogies": AnalogyDataset.item,
    "questions": QuestionDataset.item,
}


def n_relations(dataset: AnyDataset) -> int | None:
    """Return the number of relations; None for questions, which have none."""
    return None if isinstance(dataset, QuestionDataset) else len(dataset.relations)


def relation_objects(dataset: Dataset, relation_name: str) -> tuple[str, ...]:
    """Return the relation's distinct objects, in order of first appearance.

    They are the candidates of the answer space `relation`.
    Raises UserError, with the nearest name, for an unknown relation.
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
    """Return a Dataset with its digest; about: `licence` and `citation`."""
    relations, facts = tuple(relations), tuple(facts)
    digest = facts_digest(relations, facts)
    return Dataset(name, relations, facts, report=report, digest=digest, **about)


def make_analogies(
    name: str, relations: Iterable[AnalogyRelation], report: ReadReport, **about: str
) -> AnalogyDataset:
    """Return an AnalogyDataset with its digest; about: `licence` and `citation`."""
    relations = tuple(relations)
    digest = digest_of([rel.name, rel.kind, rel.pairs] for rel in relations)
    return AnalogyDataset(name, relations, report=report, digest=digest, **about)


def make_questions(
    name: str, questions: Iterable[ChoiceQuestion], report: ReadReport, **about: str
) -> QuestionDataset:
    """Return a QuestionDataset with its digest; about: `licence` and `citation`."""
    questions = tuple(questions)
    digest = digest_of([one.stem, one.choices, one.answer, one.group] for one in questions)
    return QuestionDataset(name, questions, report=report, digest=digest, **about)


def facts_digest(relations: Iterable[Relation], facts: Iterable[Fact]) -> str:
    """Return the SHA-256 (hex) of the relations and facts in order, independent of their files."""
    rows: Iterable[Any] = (
        [
            *(rel.name, rel.source, rel.type),
            [[prompt.template, prompt.origin, prompt.weight] for prompt in rel.prompts],
            rel.negated_template,
            *([rel.answers] if rel.answers else []),  # so that the digest of others stays the same
        ]
        for rel in relations
    )
    return digest_of(chain(rows, map(_hashed, facts)))


def _hashed(fact: Fact) -> tuple[Any, ...]:
    more = {name: getattr(fact, name) for name in _HASHED_IF_SET}
    known = {name: value for name, value in more.items() if value not in ((), "", None)}
    return (*_HASHED(fact), known) if known else _HASHED(fact)


def digest_of(rows: Iterable[Any]) -> str:
    """Return the SHA-256 (hex) of rows of plain values, each written as a line of JSON."""
    digest = hashlib.sha256()
    for row in rows:  # orjson refuses lone surrogates, which no reader lets through
        digest.update(orjson.dumps(row) + b"\n")
    return digest.hexdigest()
