"""This project's results on LAMA's T-REx: `assets/published/own_lama_trex.json`.

Scores of both embedded models on all 41 relations, so that pages can show results on LAMA without
its facts. Means are over relations (Petroni et al. 2019, section 4.4).
"""

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from lama_core.metrics.intervals import mean_share_intervals
from lama_core.metrics.score_tables import By
from lama_core.published import FOLDER, OWN
from lama_core.scoring.ranking import Ranking
from lama_core.types import RELATION_TYPES

SOURCE = "TREx"


@cache
def load_measured() -> dict[str, Any]:
    """Return the results that come with the project, and how they were made.

    Keys: command, commit (of this project), data, candidates, n_facts (with excluded ones), k
    (values of k for P@k), relations (name, label and type of each) and models. Keys of a model:
    model, context, precision, weights (digest of the weights and precision), perhaps note (on the
    weights), and relations. Keys of its relations: relation, n and n_excluded (facts that count,
    and excluded ones), and for the rankings raw and filtered: mrr, mean_rank and p_at_k (from 0 to
    1, for each k).
    """
    found: dict[str, Any] = json.loads((FOLDER / f"{OWN}lama_trex.json").read_bytes())
    return found


def measured_table(by: By, ranking: Ranking, *, k: int = 1) -> pd.DataFrame:
    """Return one row per model and relation (or type, or all of T-REx), as in `score_table`.

    Columns: model, source, relation and label (by relation only), type, n_relations, n, n_excluded,
    p_at_k with low and high (its 95 % interval), p_at_1, p_at_10, mrr, mean_rank. P@k is between 0
    and 1.

    Raises:
        ValueError: If there are no results for k.
    """
    measured = load_measured()
    about = pd.DataFrame(measured["relations"]).set_index("name")
    at = [measured["k"].index(one) for one in (k, 1, 10)]
    rows = []
    for model in measured["models"]:
        lines = pd.DataFrame([one | one[ranking] for one in model["relations"]])
        lines = lines.join(about, on="relation").assign(source=SOURCE)
        lines["type"] = pd.Categorical(lines["type"], RELATION_TYPES)
        for _, part in lines.groupby(by, sort=by == "type", observed=True):
            shares = np.array([[one[place] for place in at] for one in part["p_at_k"]])
            n = part["n"].to_numpy()
            ends = mean_share_intervals(np.rint(shares[:, 0] * n).astype(np.int64), n)
            p_at_k, p_at_1, p_at_10 = map(float, np.mean(shares, axis=0))
            first = part.iloc[0]
            rows.append(
                {
                    "model": model["model"],
                    "source": SOURCE,
                    "relation": first["relation"] if by == "relation" else None,
                    "label": first["label"] if by == "relation" else "",
                    "type": None if by == "source" else first["type"],
                    "n_relations": len(part),
                    "n": int(n.sum()),
                    "n_excluded": int(part["n_excluded"].sum()),
                    "p_at_k": p_at_k,
                    "low": float(ends.low),
                    "high": float(ends.high),
                    "p_at_1": p_at_1,
                    "p_at_10": p_at_10,
                    "mrr": float(part["mrr"].mean()),
                    "mean_rank": float(part["mean_rank"].mean()),
                }
            )
    return pd.DataFrame(rows)


def measured_curves(ranking: Ranking) -> pd.DataFrame:
    """Return mean P@k over the relations for every stored k, with columns of `precision_curves`."""
    columns = ["model", "p_at_k", "low", "high", "n", "n_relations"]
    tables = [
        measured_table("source", ranking, k=k)[columns].assign(k=k) for k in load_measured()["k"]
    ]
    return pd.concat(tables, ignore_index=True)
