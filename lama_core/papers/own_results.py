"""This project's results on LAMA's T-REx: `assets/published/own_lama_trex.json`.

Scores of both embedded models on all 41 relations, so that pages can show results on LAMA without
its facts. Means are over relations (Petroni et al. 2019, section 4.4).
"""

from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np
import pandas as pd

from lama_core.metrics.intervals import mean_share_intervals
from lama_core.metrics.score_tables import By
from lama_core.published import FOLDER, OWN
from lama_core.scoring.ranking import Ranking
from lama_core.types import RELATION_TYPES, RelationType

SOURCE = "TREx"


@dataclass(frozen=True, slots=True)
class RankedFigures:
    """A relation's scores in one ranking. p_at_k: from 0 to 1, for each k in `MeasuredLama.k`."""

    mrr: float
    mean_rank: float
    p_at_k: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MeasuredRelation:
    """A model's scores on one relation. n, n_excluded: facts that count, and excluded facts."""

    relation: str
    n: int
    n_excluded: int
    raw: RankedFigures
    filtered: RankedFigures


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """One model's results. weights: digest of the weights and precision; note: on the weights."""

    model: str
    context: str
    precision: str
    weights: str
    relations: tuple[MeasuredRelation, ...]
    note: str = ""

    @property
    def n(self) -> int:
        """Number of facts that count, over all relations."""
        return sum(one.n for one in self.relations)


@dataclass(frozen=True, slots=True)
class AboutRelation:
    """A relation's name, label and type."""

    name: str
    label: str
    type: RelationType


@dataclass(frozen=True, slots=True)
class MeasuredLama:
    """All results, and how they were made.

    n_facts: facts, including excluded ones. k: values of k for P@k. commit: this project's commit.
    """

    what: str
    command: str
    commit: str
    data: str
    candidates: str
    n_facts: int
    k: tuple[int, ...]
    relations: tuple[AboutRelation, ...]
    models: tuple[MeasuredModel, ...]


@cache
def load_measured() -> MeasuredLama:
    """Return the results that come with the project."""
    text = (FOLDER / f"{OWN}lama_trex.json").read_bytes()
    return msgspec.json.decode(text, type=MeasuredLama)


def measured_table(by: By, ranking: Ranking, *, k: int = 1) -> pd.DataFrame:
    """Return one row per model and relation (or type, or all of T-REx), as in `score_table`.

    Columns: model, source, relation and label (by relation only), type, n_relations, n, n_excluded,
    p_at_k with low and high (its 95 % interval), p_at_1, p_at_10, mrr, mean_rank. P@k is between 0
    and 1.

    Raises:
        ValueError: If k isn't in `MeasuredLama.k`.
    """
    measured = load_measured()
    about = {one.name: one for one in measured.relations}
    at = [measured.k.index(one) for one in (k, 1, 10)]
    rows = []
    for model in measured.models:
        groups: dict[str | None, list[MeasuredRelation]] = {}
        if by == "type":
            groups = {kind: [] for kind in RELATION_TYPES}
        for relation in model.relations:
            kind = about[relation.relation].type
            key = {"relation": relation.relation, "type": kind, "source": None}[by]
            groups.setdefault(key, []).append(relation)
        for key, members in groups.items():
            ranked: list[RankedFigures] = [getattr(member, ranking) for member in members]
            shares = np.array([[one.p_at_k[place] for place in at] for one in ranked])
            n = np.array([member.n for member in members], dtype=np.int64)
            ends = mean_share_intervals(np.rint(shares[:, 0] * n).astype(np.int64), n)
            one = about[members[0].relation] if by == "relation" else None
            p_at_k, p_at_1, p_at_10 = map(float, np.mean(shares, axis=0))
            rows.append(
                {
                    "model": model.model,
                    "source": SOURCE,
                    "relation": one.name if one else None,
                    "label": one.label if one else "",
                    "type": one.type if one else key,
                    "n_relations": len(members),
                    "n": int(n.sum()),
                    "n_excluded": sum(member.n_excluded for member in members),
                    "p_at_k": p_at_k,
                    "low": float(ends.low),
                    "high": float(ends.high),
                    "p_at_1": p_at_1,
                    "p_at_10": p_at_10,
                    "mrr": float(np.mean([one.mrr for one in ranked])),
                    "mean_rank": float(np.mean([one.mean_rank for one in ranked])),
                }
            )
    return pd.DataFrame(rows)


def measured_curves(ranking: Ranking) -> pd.DataFrame:
    """Return mean P@k over the relations for every stored k, with columns of `precision_curves`."""
    columns = ["model", "p_at_k", "low", "high", "n", "n_relations"]
    tables = [
        measured_table("source", ranking, k=k)[columns].assign(k=k) for k in load_measured().k
    ]
    return pd.concat(tables, ignore_index=True)
