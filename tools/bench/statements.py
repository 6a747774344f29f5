"""`bench statements`: ranking answers by whole statements.

Workload: the statements of three relations of the starter facts. Lower bound of the time (the
limit): the minimal forward passes in full batches without padding; for a causal model one token for
each distinct prefix, for a masked model each distinct masked text once.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from lama_core.datasets import load_dataset, relation_objects
from lama_core.models.cache import load_model
from lama_core.models.hf.both_sides import TokenHidingModel
from lama_core.scoring.blanks import fill
from lama_core.scoring.statement_scores import Scoring, make_statement, score_answers
from lama_core.types import Query
from tools.bench.measuring import BenchRow, Way, called_in_a_fresh_process, rates
from tools.bench.passes import copy_passes, full_passes

RELATIONS = ("P36", "P69", "P20")
MODELS = ("smollm2-135m", "minilm-mlm")


def make_relations(n_statements: int) -> list[tuple[list[Query], tuple[str, ...]]]:
    """Return queries and answers of starter relations with about `n_statements` statements."""
    dataset = load_dataset("starter")
    relations = []
    for name in RELATIONS:
        answers = relation_objects(dataset, name)
        n_facts = max(1, n_statements // len(RELATIONS) // len(answers))
        subjects = [*dict.fromkeys(fact.subject for fact in dataset.facts_of(name))][:n_facts]
        template = dataset.relation(name).prompts[0].template
        relations.append(([fill(template, subject) for subject in subjects], answers))
    return relations


def run_minimal_passes(model: Any, queries: Sequence[Query], answers: Sequence[str]) -> None:
    """Run only the minimal forward passes of all statements."""
    encoded = model.vocabulary.read(
        [make_statement(query, answer) for query in queries for answer in answers]
    )
    if isinstance(model, TokenHidingModel):
        copies = {
            (copy.ids, copy.at)
            for number, text in enumerate(encoded)
            for copy in model.copies(text, number, "within-word", "statement")
        }
        copy_passes(model, copies)()
    else:
        prefixes = {text.ids[:end] for text in encoded for end in range(len(text.ids))}
        full_passes(model, len(prefixes))()


def measure(name: str, precision: Any, n_statements: int, repetitions: int) -> dict[str, Any]:
    """Return the number of statements (n), statements per second (rate, limit) and first answers.

    The library and the minimal passes alternate.
    """
    model: Any = load_model(name, precision=precision)
    relations = make_relations(n_statements)
    ours = partial(score_answers, model, scoring=Scoring())
    scores = [ours(queries, answers) for queries, answers in relations]
    ways: list[Way] = [
        lambda: [ours(queries, answers) for queries, answers in relations],
        lambda: [run_minimal_passes(model, queries, answers) for queries, answers in relations],
    ]
    n = sum(array.size for array in scores)
    rate, limit = rates(n, ways, repetitions)
    firsts = np.concatenate([array.argmax(axis=1) for array in scores]).tolist()
    return {"n": n, "rate": rate, "limit": limit, "firsts": firsts}


def run(*, n_queries: int = 3000, repetitions: int = 3) -> Iterator[BenchRow]:
    """Measure statements per second in fp32 and bf16, and the share of the same first answers.

    Args:
        n_queries: Number of statements.
        repetitions: Number of measurements.
    """
    for model in MODELS:
        plain: list[int] = []
        for precision in ("fp32", "bf16"):
            found = called_in_a_fresh_process(measure, model, precision, n_queries, repetitions)
            plain = plain or found["firsts"]
            what = f"{model}, {precision}, {found['n']:,} statements"
            rate, limit = found["rate"], found["limit"]
            yield BenchRow(what, "statements/s", rate, None, "", limit, "minimal passes")
            same = float(np.equal(found["firsts"], plain).mean())
            yield BenchRow(f"{what}: same first answer as in fp32", "share", same)
