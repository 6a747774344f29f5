"""What the exported model knows: P@k on LAMA's T-REx facts, and how many of them its corpus states.

The run is one of the library's (`lama_core.probes`): LAMA's templates, the published common
vocabulary (lower-cased, for the model is uncased), and the other valid objects of a subject stay
among the candidates (`raw`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lama_core.datasets import load_dataset
from lama_core.errors import UserError
from lama_core.metrics.score_tables import score_table
from lama_core.probes.plan import ProbeRequest, plan
from lama_core.runs.execute import execute
from lama_core.runs.info import Run
from lama_core.scoring.ranking import Ranking

SOURCE = "TREx"
RANKING: Ranking = "raw"
COLUMNS = ("n_excluded", "p_at_1", "p_at_10", "mrr")


@dataclass(frozen=True)
class FactRank:
    """One fact and the rank of its object, 1 = best."""

    relation: str
    subject: str
    object: str
    rank: int


@dataclass(frozen=True)
class RelationScore:
    """P@k over the facts of one relation whose object is a candidate, or the mean of relations."""

    relation: str
    n_facts: int
    n_excluded: int
    p_at_1: float
    p_at_10: float
    mrr: float


def probe_facts(model: Path, facts: Path, runs: Path) -> Run:
    """Ask the model of a folder for the T-REx facts of another; the run is kept in `runs`."""
    relations = [r.name for r in load_dataset(str(facts)).relations if r.source == SOURCE]
    if not relations:
        raise UserError(f"{facts} holds no T-REx facts: name a folder in LAMA's layout")
    vocabulary = facts / "common_vocab_cased.txt"
    request = ProbeRequest(
        str(facts),
        (str(model),),
        relations=tuple(relations),
        candidates=f"file:{vocabulary}" if vocabulary.exists() else "common",
        ranking=RANKING,
    )
    return execute(plan(request).specs[0], folder=runs)


def relation_scores(run: Run) -> tuple[RelationScore, ...]:
    """Each relation, and last their unweighted mean, as LAMA reports a source."""
    tables = [score_table([run], by=by, ranking=RANKING) for by in ("relation", "source")]
    return tuple(
        RelationScore(str(row.get("relation", "mean")), int(row["n"]), *(row[c] for c in COLUMNS))
        for table in tables
        for row in table.to_dict("records")
    )


def fact_ranks(run: Run) -> Iterator[FactRank]:
    """The facts that count."""
    rows = run.facts[run.facts[f"rank_{RANKING}"].notna()]
    names = (rows[name].astype(str) for name in ("relation", "subject", "object"))
    for relation, subject, gold, rank in zip(*names, rows[f"rank_{RANKING}"], strict=True):
        yield FactRank(relation, subject, gold, int(rank))
