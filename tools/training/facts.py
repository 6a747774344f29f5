"""P@k of the exported model on LAMA's T-REx facts.

The run uses the library (`lama_core.probes`), with LAMA's templates and the published common
vocabulary (lower-cased, because the model is uncased). The other valid objects of a subject are
among the candidates (`raw` ranking).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lama_core.datasets import load_dataset
from lama_core.errors import UserError
from lama_core.metrics.score_tables import score_table
from lama_core.probes.cloze.request import ProbeRequest
from lama_core.probes.plan import plan
from lama_core.runs.execute import execute
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking

SOURCE = "TREx"
RANKING: Ranking = "raw"
COLUMNS = ("n_excluded", "p_at_1", "p_at_10", "mrr")


@dataclass(frozen=True)
class FactRank:
    """A fact and the rank of its object; 1 is best."""

    relation: str
    subject: str
    object: str
    rank: int


@dataclass(frozen=True)
class RelationScore:
    """P@k of a relation over the facts whose object is a candidate; or the mean over relations."""

    relation: str
    n_facts: int
    n_excluded: int
    p_at_1: float
    p_at_10: float
    mrr: float


def probe_facts(model: Path, facts: Path, runs: Path) -> Run:
    """Score the model in `model` on the T-REx facts in `facts`, and store the run in `runs`."""
    relations = [r.name for r in load_dataset(str(facts)).relations if r.source == SOURCE]
    if not relations:
        raise UserError(f"{facts} has no T-REx facts: give a folder in LAMA's layout")
    vocabulary = facts / "common_vocab_cased.txt"
    request = ProbeRequest(
        str(facts),
        (str(model),),
        relations=tuple(relations),
        candidates=f"file:{vocabulary}" if vocabulary.exists() else "common",
        ranking=RANKING,
    )
    return execute(plan(request)[0], folder=runs)


def relation_scores(run: Run) -> tuple[RelationScore, ...]:
    """Return the scores of each relation, then their unweighted mean, as LAMA computes it."""
    tables = [score_table([run], by=by, ranking=RANKING) for by in ("relation", "source")]
    return tuple(
        RelationScore(str(row.get("relation", "mean")), int(row["n"]), *(row[c] for c in COLUMNS))
        for table in tables
        for row in table.to_dict("records")
    )


def fact_ranks(run: Run) -> Iterator[FactRank]:
    """Yield the facts that have a rank."""
    rows = run.facts[run.facts[f"rank_{RANKING}"].notna()]
    names = (rows[name].astype(str) for name in ("relation", "subject", "object"))
    for relation, subject, gold, rank in zip(*names, rows[f"rank_{RANKING}"], strict=True):
        yield FactRank(relation, subject, gold, int(rank))
