"""`bench statements`: ranking answers by whole statements.

Workload: the statements of three relations of the starter facts. Lower bound of the time (the
limit): the minimal forward passes in full batches without padding; for a causal model one token for
each distinct prefix, for a masked model each distinct masked text once. Both run in their own
process, one after the other.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lama_core.datasets import load_dataset, relation_objects
from lama_core.models.cache import load_model
from lama_core.models.hf.both_sides import TokenHidingModel
from lama_core.scoring.blanks import fill
from lama_core.scoring.statement_scores import Scoring, make_statement, score_answers
from lama_core.types import Query
from tools.bench.measuring import BenchRow, called_in_a_fresh_process
from tools.bench.passes import copy_passes, full_passes

RELATIONS = ("P36", "P69", "P20")
MODELS = ("smollm2-135m", "minilm-mlm")


@dataclass(frozen=True, slots=True)
class RelationStatements:
    """Some facts of a relation, and the answers to rank for each fact."""

    template: str
    subjects: tuple[str, ...]
    answers: tuple[str, ...]

    @property
    def queries(self) -> list[Query]:
        """The query of each fact."""
        return [fill(self.template, subject) for subject in self.subjects]

    @property
    def texts(self) -> list[str]:
        """Every statement, fact by fact."""
        return [
            make_statement(query, answer).text for query in self.queries for answer in self.answers
        ]


def make_relations(n_statements: int) -> list[RelationStatements]:
    """Return starter relations with about `n_statements` statements, equally many per relation."""
    dataset = load_dataset("starter")
    relations = []
    for name in RELATIONS:
        answers = relation_objects(dataset, name)
        n_facts = max(1, n_statements // len(RELATIONS) // len(answers))
        subjects = dict.fromkeys(fact.subject for fact in dataset.facts_of(name))
        template = dataset.relation(name).prompts[0].template
        relations.append(RelationStatements(template, tuple(subjects)[:n_facts], answers))
    return relations


ScoreRelation = Callable[[RelationStatements], NDArray[np.float64]]
"""A function that returns the scores of a relation's statements, float64 [fact, answer]."""


def ours(model: str, precision: str) -> ScoreRelation:
    """Return the scoring function of this library."""
    opened: Any = load_model(model, precision=precision)  # type: ignore[arg-type]
    return lambda one: score_answers(opened, one.queries, one.answers, Scoring())


def minimal_passes(model: str, precision: str) -> ScoreRelation:
    """Return a function that only runs the minimal forward passes; its scores are zeros."""
    opened: Any = load_model(model, precision=precision)  # type: ignore[arg-type]

    def score(relation: RelationStatements) -> NDArray[np.float64]:
        statements = [
            make_statement(query, a) for query in relation.queries for a in relation.answers
        ]
        encoded = opened.vocabulary.read(statements)
        if isinstance(opened, TokenHidingModel):
            copies = {
                (copy.ids, copy.at)
                for number, text in enumerate(encoded)
                for copy in opened.copies(text, number, "within-word", "statement")
            }
            copy_passes(opened, copies)()
        else:
            prefixes = {text.ids[:end] for text in encoded for end in range(len(text.ids))}
            full_passes(opened, len(prefixes))()
        return np.zeros((len(relation.subjects), len(relation.answers)))

    return score


SYSTEMS: dict[str, Callable[[str, str], ScoreRelation]] = {
    "ours": ours,
    "minimal passes": minimal_passes,
}


def measure(
    system: str, model: str, precision: str, n_statements: int, repetitions: int
) -> dict[str, Any]:
    """Return a system's number of statements (n), statements per second (rate) and scores."""
    relations = make_relations(n_statements)
    score = SYSTEMS[system](model, precision)
    first = relations[0]
    score(RelationStatements(first.template, first.subjects[:1], first.answers[:8]))  # warm up
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        scores = [score(relation) for relation in relations]
        seconds.append(time.perf_counter() - start)
    n = sum(array.size for array in scores)
    return {"n": n, "rate": n / median(seconds), "scores": [array.tolist() for array in scores]}


def run(*, n_queries: int = 3000, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure statements per second in fp32 and bf16, and the share of the same first answers.

    Args:
        n_queries: Number of statements.
        repetitions: Number of measurements.
    """
    for model in MODELS:
        plain: list[Any] = []
        for precision in ("fp32", "bf16"):
            args = (model, precision, n_queries, repetitions)
            found, limit = (called_in_a_fresh_process(measure, system, *args) for system in SYSTEMS)
            plain = plain or found["scores"]
            what = f"{model}, {precision}, {found['n']:,} statements"
            rate, passes = found["rate"], limit["rate"]
            yield BenchRow(what, "statements/s", rate, None, "", passes, "minimal passes")
            pairs = zip(found["scores"], plain, strict=True)
            same = [np.argmax(x, axis=1) == np.argmax(y, axis=1) for x, y in pairs]
            share = float(np.concatenate(same).mean())
            yield BenchRow(f"{what}: same first answer as in fp32", "share", share)
