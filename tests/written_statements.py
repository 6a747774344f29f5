"""Models of statements whose log-probabilities are written down, and data in BEAR's layout."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from probe_fakes import WordVocabulary

from lama_core.errors import UserError
from lama_core.models.protocols import (
    Context,
    Encoded,
    Hiding,
    Kind,
    ScoredPart,
    StartToken,
    Statement,
    StatementScores,
)
from lama_core.types import Query

# subject -> answer -> log-probability of the answer's first word; of each later one it is LATER.
Table = Mapping[str, Mapping[str, float]]
OTHER, LATER = -1.0, -0.5
# What an answer gains when the text goes on behind it, as a model that sees both sides has it; and
# when the rest of its word is not hidden.
BEHIND, SHOWN = 0.125, 0.25
UNKNOWN = "☃"
# Of single words, where these alone count.
VALUES = {"Oslo": -1.0, "New": -2.0, "York": -3.0, "Rome": -2.0}


class WrittenVocabulary(WordVocabulary):
    """Whole words; the snowman can't be written."""

    def can_write(self, word: str) -> bool:
        return UNKNOWN not in word


class StatementTable:
    """A model whose statements are written down: each word of a text is a token.

    kind: `causal` or `masked`. pause: seconds a call. most: the longest text, in words. lost: what
    it can't write. given: how many statements it was given in each call.
    """

    precision = "fp32"
    device = "cpu"
    notes = ()

    def __init__(
        self,
        said: Table | None = None,
        *,
        name: str = "table",
        kind: Kind = "masked",
        pause: float = 0.0,
        most: int = 100,
        scores_first: bool = True,
        lost: str = UNKNOWN,
    ) -> None:
        self.said = said
        self.name = name
        self.kind = kind
        self.pause = pause
        self.max_tokens = most
        self._scores_first = scores_first
        self.lost = lost
        self.vocabulary = WrittenVocabulary(())
        self.identity = hashlib.sha256(json.dumps([name, kind, said]).encode()).hexdigest()
        self.given: list[int] = []

    takes_start_token = False

    def scores_first(self, _start_token: StartToken = "needed") -> bool:
        return self._scores_first

    def encode(self, query: Query, context: Context = "both") -> Encoded:
        n_words = len(query.text("").split())
        if n_words > self.max_tokens:
            raise UserError("The text is too long.")
        return Encoded(tuple(range(n_words)), (), ())

    def statement_log_probs(
        self,
        statements: Sequence[Statement],
        *,
        hiding: Hiding = "within-word",
        scored: ScoredPart = "statement",
        start_token: StartToken = "needed",
    ) -> list[StatementScores]:
        time.sleep(self.pause)
        self.given.append(len(statements))
        return [self._score(one, hiding, scored) for one in statements]

    def tokens(self, text: str) -> list[str]:
        return text.split()

    def value(self, one: Statement, token: str, begins: bool, hiding: Hiding) -> float:
        """The log-probability of a token of the answer. begins: the answer begins with it."""
        if not begins:
            return LATER
        bonus = BEHIND * bool(one.text[one.end :]) + SHOWN * (hiding == "original")
        return self.of_answer(one) + bonus

    def of_answer(self, one: Statement) -> float:
        """The table's value of a statement's answer; without a table it follows from the text."""
        answer = one.text[one.start : one.end]
        if self.said is None:
            digest = hashlib.sha256(f"{one.text}|{answer}".encode()).digest()
            return -1 - digest[0] / 16
        return next(row[answer] for subject, row in self.said.items() if subject in one.text)

    def other(self, token: str) -> float:
        """The log-probability of a token outside the answer."""
        return OTHER

    def _score(self, one: Statement, hiding: Hiding, scored: ScoredPart) -> StatementScores:
        tokens, values, marks, at = self.tokens(one.text), [], [], 0
        for token in tokens:
            at = one.text.index(token, at)
            marks.append(at < one.end and at + len(token) > one.start)
            inside = marks[-1]
            values.append(
                self.value(one, token, at <= one.start, hiding) if inside else self.other(token)
            )
            at += len(token)
        in_answer = np.array(marks)
        log_probs = np.array(values, dtype=np.float32)
        if scored == "answer":
            log_probs[~in_answer] = np.nan
        if not self._scores_first:
            log_probs[:1] = np.nan
        unknown = not in_answer.any() or self.lost in one.text[one.start : one.end]
        return StatementScores(tuple(tokens), log_probs, in_answer, unknown)


class WholeTexts(StatementTable):
    def tokens(self, text: str) -> list[str]:
        return [text]

    def value(self, one: Statement, token: str, begins: bool, hiding: Hiding) -> float:
        return self.of_answer(one)


class ByWord(StatementTable):
    """A word has the log-probability of VALUES, else -0.5, wherever it stands."""

    def __init__(
        self, *, kind: Kind = "causal", scores_first: bool = True, lost: str = "nothing"
    ) -> None:
        super().__init__(name="fake", kind=kind, most=10_000, scores_first=scores_first, lost=lost)

    def tokens(self, text: str) -> list[str]:
        return [word.strip(",.") for word in text.split()]

    def value(self, one: Statement, token: str, begins: bool, hiding: Hiding) -> float:
        return self.other(token)

    def other(self, token: str) -> float:
        return VALUES.get(token, -0.5)


def write_bear(
    folder: Path,
    facts: Sequence[tuple[str, str]],
    answers: Sequence[str],
    templates: Sequence[str] = ("[X] is in [Y] now.", "in [Y] is [X]."),
    relation: str = "P1",
) -> Path:
    """A relation in BEAR's layout, beside those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "metadata_relations.json"
    known: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    known[relation] = {"templates": list(templates), "answer_space_labels": list(answers)}
    path.write_text(json.dumps(known), "utf-8")
    rows = [json.dumps({"sub_label": sub, "obj_label": obj}) for sub, obj in facts]
    (folder / f"{relation}.jsonl").write_text("\n".join(rows), "utf-8")
    return folder


CITIES = tuple(f"City {number}" for number in range(25))


def write_many(folder: Path, n_facts: int = 400) -> Path:
    """Two relations whose facts take several parts: 25 answers each."""
    for relation in ("P1", "P2"):
        facts = [(f"{relation} land {n}", CITIES[n * 7 % 25]) for n in range(n_facts)]
        write_bear(folder, facts, CITIES, relation=relation)
    return folder


def hashed(reference: str = "hashed", *, precision: str = "fp32") -> StatementTable:
    return StatementTable(name=reference, pause=0.05 if reference == "slow" else 0.0)
