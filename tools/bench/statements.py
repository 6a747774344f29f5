"""`bench statements`: ranking answers by whole statements, compared with lm-pub-quiz and minicons.

Workload: the statements of three relations of the starter facts. Each system runs in its own
process, one after the other. Lower bound of the time (the limit): the minimal forward passes in
full batches without padding; for a causal model one token for each distinct prefix, for a masked
model each distinct masked text once. The scores are compared, too.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
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
from tools.bench.passes import batched, copy_passes, full_passes
from tools.bench.workload import plain_model

RELATIONS = ("P36", "P69", "P20")
MODELS = ("smollm2-135m", "minilm-mlm")
PEERS = {"lm-pub-quiz": "lm_pub_quiz", "minicons": "minicons"}
PEER_BATCH = 32  # as in lm-pub-quiz's examples


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


def lm_pub_quiz(model: str, precision: str) -> ScoreRelation:
    """Return the scoring function of lm-pub-quiz, BEAR's library; it scores fact by fact."""
    from lm_pub_quiz import Evaluator

    network, tokenizer, kind = plain_model(model, precision)
    evaluator = Evaluator.from_model(
        network, model_type="MLM" if kind == "masked" else "CLM", tokenizer=tokenizer, device="cpu"
    )

    def score(relation: RelationStatements) -> NDArray[np.float64]:
        return np.array(
            [
                evaluator.score_answers(
                    template=relation.template,
                    answers=relation.answers,
                    subject=subject,
                    reduction="sum",
                    batch_size=PEER_BATCH,
                )
                for subject in relation.subjects
            ]
        )

    return score


def minicons(model: str, precision: str) -> ScoreRelation:
    """Return the scoring function of minicons; it scores batches of statements."""
    from minicons import scorer

    network, tokenizer, kind = plain_model(model, precision)
    if kind == "masked":
        opened = scorer.MaskedLMScorer(network, device="cpu", tokenizer=tokenizer)
        more: dict[str, Any] = {"PLL_metric": "within_word_l2r"}
    else:
        opened = scorer.IncrementalLMScorer(network, device="cpu", tokenizer=tokenizer)
        more = {"bos_token": True}

    def score(relation: RelationStatements) -> NDArray[np.float64]:
        scores: list[float] = []
        for batch in batched(relation.texts, PEER_BATCH):
            scores += opened.sequence_score(batch, reduction=lambda x: x.sum(0).item(), **more)
        return np.array(scores).reshape(len(relation.subjects), len(relation.answers))

    return score


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
    "lm-pub-quiz": lm_pub_quiz,
    "minicons": minicons,
    "minimal passes": minimal_passes,
}


Measured = dict[str, Any]


def measure(
    system: str, model: str, precision: str, n_statements: int, repetitions: int
) -> Measured:
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


def _measured(*args: Any) -> Measured:
    """Run `measure` in a new process."""
    found: Measured = called_in_a_fresh_process(measure, *args)[0]
    return found


def _peer(name: str, *args: Any) -> Measured | None:
    """Measure a peer in a new process; None if it isn't installed or fails."""
    if find_spec(PEERS[name]) is None:
        return None
    try:
        return _measured(name, *args)
    except subprocess.CalledProcessError:
        return None


def run(*, n_queries: int = 3000, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure statements per second in fp32 and bf16, and compare the scores.

    Compares scores by the share of our first answers that are the same in bf16 and fp32, and by
    the largest difference of a peer's score from ours in fp32.
    A peer that isn't installed, or fails, has no value.

    Args:
        n_queries: Number of statements.
        repetitions: Number of measurements.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    for model in MODELS:
        plain: Measured | None = None
        peers = {name: _peer(name, model, "fp32", n_queries, 1) for name in PEERS}
        for precision in ("fp32", "bf16"):
            args = (model, precision, n_queries, repetitions)
            found = _measured("ours", *args)
            limit = _measured("minimal passes", *args)["rate"]
            plain = plain or found
            what = f"{model}, {precision}, {found['n']:,} statements"
            for name, peer in peers.items():
                rate = peer["rate"] if peer else None
                label = f"{name}, fp32" if peer else f"{name} is not installed, or fails here"
                yield BenchRow(
                    what, "statements/s", found["rate"], rate, label, limit, "minimal passes"
                )
            same = _same_first(found["scores"], plain["scores"])
            yield BenchRow(f"{what}: same first answer as in fp32", "share", same)
        for name, peer in peers.items():
            if peer and plain:
                largest = _largest_difference(plain["scores"], peer["scores"])
                title = f"{model}: largest difference from {name}'s scores"
                yield BenchRow(title, "nats", largest)


def _same_first(a: Sequence[Any], b: Sequence[Any]) -> float:
    same = [np.argmax(x, axis=1) == np.argmax(y, axis=1) for x, y in zip(a, b, strict=True)]
    return float(np.concatenate(same).mean())


def _largest_difference(a: Sequence[Any], b: Sequence[Any]) -> float:
    return max(float(np.abs(np.subtract(x, y)).max()) for x, y in zip(a, b, strict=True))
