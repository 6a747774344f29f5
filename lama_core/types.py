"""The types that all modules share: Fact, Prompt, Relation and Query.

All are frozen, so that a run's inputs can't change while it is made.
"""

from dataclasses import dataclass
from typing import Literal, get_args

RelationType = Literal["1-1", "N-1", "N-M"]
RELATION_TYPES: tuple[RelationType, ...] = get_args(RelationType)  # in the order of columns
OWN_TEMPLATE = "each fact's template "


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's template and where it comes from.

    Attributes:
        template: A text with one `[X]` (the subject) and one `[Y]` (the blank).
        origin: How it was made, such as `manual`, `mined`, `paraphrased` or `user`.
        weight: The prompt's weight in an ensemble, if its source publishes one.
    """

    template: str
    origin: str = "manual"
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of a knowledge source, such as P19, "place of birth".

    Attributes:
        source: The knowledge source: `TREx`, `Google_RE`, `ConceptNet` or `Squad`.
        type: 1-1, N-1 or N-M, as LAMA's relations.jsonl gives it; None if it gives none.
        prompts: The manual template, then paraphrases; empty if each fact has its own templates, or
            its own sentences (ConceptNet, SQuAD).
        answers: All possible objects, if the data list them (BEAR's answer spaces).
        domains: Subject areas of the relation, if the data give them.
        own_templates: The largest number of a fact's own templates (`Fact.templates`).
    """

    name: str
    source: str
    label: str = ""
    description: str = ""
    type: RelationType | None = None
    prompts: tuple[Prompt, ...] = ()
    negated_template: str | None = None
    answers: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    own_templates: int = 0

    @property
    def templates(self) -> tuple[str, ...]:
        """The prompts' templates; if the facts have their own, names that `Fact.template` takes."""
        own = (f"{OWN_TEMPLATE}{number}" for number in range(1, self.own_templates + 1))
        return tuple(own) or tuple(prompt.template for prompt in self.prompts)


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple (subject, relation, object) and the sentences that express it.

    Attributes:
        id: Unique within its dataset, the same each time the dataset is loaded.
        sentences: Cloze sentences with `[MASK]` in place of the object, from the data.
        negated_sentences: The sentences in negated form, from the data.
        misprimed_sentences: The sentences with a misleading word in front, from the data.
        judgments: Yes and no votes of the annotators (Google-RE); None without annotation.
        origin: The source of the fact, if its file names one; else empty.
        aliases: Other names of the object, which a generated answer may use.
        question: The fact as a question, if the data have one.
        popularity: Popularity of the subject, such as its page views in a month; None if unknown.
        templates: Its own templates, if the facts of its relation have different ones; else ().
    """

    id: str
    subject: str
    relation: str
    object: str
    source: str
    subject_id: str = ""
    object_id: str = ""
    sentences: tuple[str, ...] = ()
    negated_sentences: tuple[str, ...] = ()
    misprimed_sentences: tuple[str, ...] = ()
    judgments: tuple[int, int] | None = None
    origin: str = ""
    aliases: tuple[str, ...] = ()
    question: str = ""
    popularity: float | None = None
    templates: tuple[str, ...] = ()

    def template(self, of_relation: str) -> str:
        """Return the text of one of `Relation.templates` for this fact; empty if it has none."""
        if not of_relation.startswith(OWN_TEMPLATE):
            return of_relation
        number = int(of_relation.removeprefix(OWN_TEMPLATE))
        return next(iter(self.templates[number - 1 : number]), "")


@dataclass(frozen=True, slots=True)
class Query:
    """A text with one or more blanks.

    `Query(("The capital of France is ", "."))` is "The capital of France is ___."

    Attributes:
        parts: The text between the blanks, one more than there are blanks.
        second: Start of the second segment (index of the part, character in it); None if the text
            is a single segment.
    """

    parts: tuple[str, ...]
    second: tuple[int, int] | None = None

    @property
    def n_blanks(self) -> int:
        """Number of blanks."""
        return len(self.parts) - 1

    def text(self, blank: str = "[MASK]") -> str:
        """Return the text with each blank written as `blank`."""
        return blank.join(self.parts)
