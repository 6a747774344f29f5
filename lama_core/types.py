"""The nouns that every module shares: Fact, Prompt, Relation and Query.

All are frozen: what a run was made from can't change under it.
"""

from dataclasses import dataclass
from typing import Literal

RelationType = Literal["1-1", "N-1", "N-M"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A template: a text with one `[X]` (the subject) and one `[Y]` (the blank).

    weight: the prompt's share in an ensemble, where its source publishes one.
    origin: where it comes from: `manual`, `mined`, `paraphrased`, `user`, ...
    """

    template: str
    origin: str = "manual"
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of a knowledge source, such as P19, "place of birth".

    source: the knowledge source it belongs to: `TREx`, `Google_RE`, `ConceptNet`, `Squad`.
    type: 1-1, N-1 or N-M as LAMA's relations.jsonl says, None where it doesn't.
    prompts: the manual template first, then paraphrases; empty for a relation whose facts bring
        their own sentences (ConceptNet, SQuAD).
    answers: what a fact's object is one of, where the data say so (BEAR's answer spaces).
    domains: what the relation is about, as the data say.
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


@dataclass(frozen=True, slots=True)
class Fact:
    """One (subject, relation, object), with the sentences that state it.

    id: unique within its dataset, stable across loads.
    sentences: cloze sentences with `[MASK]` in the object's place, at most what the file holds.
    negated_sentences, misprimed_sentences: the same, negated or after a misleading word.
    judgments: yes and no votes of the judges (Google-RE), None where nobody judged.
    origin: where the fact itself comes from, as its file says; empty if it doesn't.
    aliases: other names of the object, which a generated answer may use.
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


@dataclass(frozen=True, slots=True)
class Query:
    """A text with one or more blanks, cut at its blanks: `parts` has one more item than blanks.

    `Query(("The capital of France is ", "."))` is "The capital of France is ___."
    second: where a second segment begins, as a part and a character of it; None: the text is one.
    """

    parts: tuple[str, ...]
    second: tuple[int, int] | None = None

    @property
    def n_blanks(self) -> int:
        """How many blanks the text has."""
        return len(self.parts) - 1

    def text(self, blank: str = "[MASK]") -> str:
        """The text with `blank` written in the place of each blank."""
        return blank.join(self.parts)
